package hosttest_test

import (
	"path/filepath"
	"testing"

	"github.com/weftrun/weft/host/hosttest"
)

// A host of this process accepts the code of the tests' compiler. Otherwise it would
// compile everything again.
func TestCompilerOfTests(t *testing.T) {
	h := hosttest.New(t, hosttest.Config{})
	h.Load(t, "tinygo", "counter")
	if got := h.Result(t, "counter", nil); got != "1" {
		t.Errorf("the counter gives %s", got)
	}
	codes, err := filepath.Glob(filepath.Join(hosttest.Code, "*", "code"))
	if err != nil || len(codes) == 0 {
		t.Fatalf("folders of code %q, %v", codes, err)
	}
	for _, folder := range codes {
		if code, err := filepath.Glob(filepath.Join(folder, "wazero-*")); err != nil || len(code) != 1 {
			t.Errorf("code %q, %v", code, err)
		}
	}
}
