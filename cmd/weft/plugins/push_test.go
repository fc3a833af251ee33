package plugins

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/weftrun/weft/cmd/weft/screen"
	"github.com/weftrun/weft/host/client"
	"github.com/weftrun/weft/host/turns"
)

// The stages of an upload are shown with the place in the queue of the compiler.
func TestStagesOfUploads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var shown strings.Builder
		w := screen.NewWorking(&shown)
		tell := Uploading(w, "x.wasm", 3_000_000)
		stages := []turns.Stage{
			{Name: client.StageSending}, {Name: client.StageSent}, {Name: turns.StageWaiting, Ahead: 2},
			{Name: turns.StageWaiting, Ahead: 1}, {Name: turns.StageCompiling},
		}
		for _, s := range stages {
			tell(s)
		}
		if got, want := shown.String(), "uploading x.wasm, 3.0 MB\nwaiting for the compiler: 2 modules before it\n"; got != want {
			t.Errorf("elsewhere than on a terminal:\n%s\nwant:\n%s", got, want)
		}
		shown.Reset()
		w.Size = func() screen.Terminal { return screen.Terminal{Live: true, Cols: 80, Rows: 5} }
		for _, s := range stages {
			tell(s)
		}
		w.Done()
		for _, want := range []string{"uploading x.wasm, 3.0 MB, 0 s", "the server checks x.wasm, 0 s", "compiler: 2 modules before it, 0 s",
			"compiler: 1 module before it, 0 s", "the server compiles x.wasm, 0 s"} {
			if !strings.Contains(shown.String(), want) {
				t.Errorf("%q is not shown in\n%q", want, shown.String())
			}
		}
	})
}
