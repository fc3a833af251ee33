package sandbox

import "testing"

// A module for a browser, as Go's GOOS=js and wasm-bindgen build it, is one mistake,
// however many of its loader's functions it imports.
func TestModuleForABrowser(t *testing.T) {
	b := newBench(t, nil)
	for _, loader := range []string{"gojs", "wbg", "__wbindgen_placeholder__"} {
		wasm := []byte("\x00asm\x01\x00\x00\x00" + "\x01\x04\x01\x60\x00\x00") // one type, () -> ()
		imports := "\x02"
		for _, name := range []string{"a", "b"} {
			imports += string(rune(len(loader))) + loader + "\x01" + name + "\x00\x00"
		}
		wasm = append(wasm, "\x02"+string(rune(len(imports)))+imports...)
		checkProblems(t, check(t, b, wasm), []string{
			"forbidden_import: the module is built for a browser or for Node (it imports " + loader + ".a): build a reactor",
			"missing_export: weft_describe", "missing_export: weft_step", "missing_export: memory",
		})
	}
}
