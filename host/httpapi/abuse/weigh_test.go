package abuse

import (
	"runtime"
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
)

// The estimated memory of a body is about the memory that its transcoding allocates.
func TestTranscodingIsWeighed(t *testing.T) {
	for name, item := range map[string]string{"objects": "{}", "lists": "[]", "numbers": "1", "long numbers": "123456.5", "pairs": `{"a":1,"b":[]}`, "unordered": `{"b":1,"a":2,"c":{}}`} {
		text := []byte("[" + item + strings.Repeat(","+item, 1<<17) + "]")
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		raw, err := abi.FromJSON(text)
		runtime.ReadMemStats(&after)
		if err != nil {
			t.Fatal(err)
		}
		// Growing buffers leave smaller ones behind.
		made, weight := after.TotalAlloc-before.TotalAlloc, Transcoding(text, false)
		if ratio := float64(made) / float64(weight); ratio > 6 {
			t.Errorf("%s: %d bytes are allocated for %d that were counted", name, made, weight)
		}
		if nodes := Keeping(raw); nodes < 80<<17 {
			t.Errorf("%s: %d bytes for the nodes", name, nodes)
		}
	}
}
