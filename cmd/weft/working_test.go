package main

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/client"
)

// What is written while the line is shown stands above it, whole, and the line is gone
// in the end.
func TestWorkingLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var shown strings.Builder
		w := newWorking(&shown)
		w.size = func() terminal { return terminal{live: true, cols: 30, rows: 5} }
		for range 2 {
			w.phase("compiling %s", "greet")
			if _, err := io.WriteString(w, "main.go:1: said\n"); err != nil {
				t.Fatal(err)
			}
			w.detail("the server checks a file with a long name")
			w.done()
			w.done()
		}
		const gone = toLineStart + clearBelow
		once := gone + "⠋ compiling greet, 0 s" + gone + "main.go:1: said\n" + gone + "⠙ the server checks a file w…" + gone
		again := strings.NewReplacer("⠋", "⠹", "⠙", "⠸").Replace(once)
		if got := shown.String(); got != once+again {
			t.Errorf("shown:\n%q\nwant:\n%q", got, once+again)
		}
	})
}

// Elsewhere than on a terminal each phase is a line, and for programs there is none.
func TestWorkingElsewhere(t *testing.T) {
	var shown strings.Builder
	r := &remote{errs: &shown}
	w := r.working()
	w.phase("uploading %s", "x.wasm")
	w.detail("the server compiles it")
	w.done()
	r.json = true
	r.working().phase("uploading y.wasm")
	if got := shown.String(); got != "uploading x.wasm\n" {
		t.Errorf("shown %q", got)
	}
}

// The stages of an upload, as the server tells them, are shown with the place in the
// line of the compiler.
func TestStagesOfUploads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var shown strings.Builder
		w := newWorking(&shown)
		tell := uploading(w, "x.wasm", 3_000_000)
		stages := []host.Stage{
			{Name: client.StageSending}, {Name: client.StageSent}, {Name: host.StageWaiting, Ahead: 2},
			{Name: host.StageWaiting, Ahead: 1}, {Name: host.StageCompiling},
		}
		for _, s := range stages {
			tell(s)
		}
		if got, want := shown.String(), "uploading x.wasm, 3.0 MB\nwaiting for the compiler: 2 modules before it\n"; got != want {
			t.Errorf("elsewhere than on a terminal:\n%s\nwant:\n%s", got, want)
		}
		shown.Reset()
		w.size = func() terminal { return terminal{live: true, cols: 80, rows: 5} }
		for _, s := range stages {
			tell(s)
		}
		w.done()
		for _, want := range []string{"uploading x.wasm, 3.0 MB, 0 s", "the server checks x.wasm, 0 s", "compiler: 2 modules before it, 0 s",
			"compiler: 1 module before it, 0 s", "the server compiles x.wasm, 0 s"} {
			if !strings.Contains(shown.String(), want) {
				t.Errorf("%q is not shown in\n%q", want, shown.String())
			}
		}
	})
}
