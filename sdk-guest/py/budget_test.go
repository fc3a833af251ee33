package py_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/weftrun/weft/host/hosttest/suite"
)

// What every author pays: the image of which each invocation begins, and the fuel of
// describing.
func TestBudgetsOfTheSDK(t *testing.T) {
	const mostKept, mostDescribing = 8_400_000, 90_000_000
	suite.NotShort(t, "compiles an interpreter")
	main, err := os.ReadFile(filepath.Join(suite.Root(), "plugins", "counter-py", "main.py"))
	if err != nil {
		t.Fatal(err)
	}
	wasm := build(t, map[string]string{"main.py": string(main)})
	r, faults := box.Report(suite.Context(t), wasm, suite.Limits())
	if len(faults) > 0 || !r.InPlace {
		t.Fatalf("faults %v, in place %v %v", faults, r.InPlace, r.Reasons)
	}
	t.Logf("module %d bytes, image %d bytes of %d, describing %d units", len(wasm), r.SnapshotBytes, r.ImageBytes, r.DescribeFuel)
	if r.SnapshotBytes > mostKept || r.DescribeFuel > mostDescribing {
		t.Errorf("at most %d bytes and %d units are meant", mostKept, mostDescribing)
	}
}
