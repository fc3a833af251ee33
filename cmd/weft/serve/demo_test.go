package serve

import (
	"strings"
	"testing"
)

// The demonstration's text is real, and a busy machine counts it in a second or two:
// 432,000 lines in 2,160 invocations took eight seconds.
func TestDemoText(t *testing.T) {
	t.Chdir("../../..") // the folder in which 'make run' runs: the licence is a part of the text
	text, files, err := demoText(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if files < 50 || len(text) < 1<<20 || !strings.Contains(text, "func ListenAndServe(") {
		t.Errorf("%d files, %d bytes: not the sources of a library", files, len(text))
	}
	if len(text) > 4<<20 {
		t.Errorf("%d bytes: the first result takes too long on a machine with other work", len(text))
	}
}
