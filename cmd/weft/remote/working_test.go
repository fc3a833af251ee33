package remote

import (
	"strings"
	"testing"
)

// If the output is not a terminal, each phase is a line; programs get no output.
func TestWorkingElsewhere(t *testing.T) {
	var shown strings.Builder
	r := &Conn{Errs: &shown}
	w := r.Working()
	w.Phase("uploading %s", "x.wasm")
	w.Detail("the server compiles it")
	w.Done()
	r.JSON = true
	r.Working().Phase("uploading y.wasm")
	if got := shown.String(); got != "uploading x.wasm\n" {
		t.Errorf("shown %q", got)
	}
}
