package httpapi

import (
	"runtime"
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// What is made of a body while it is read is taken from where its bytes are: of bodies of
// small items a server reads as many at a time as it has memory for.
func TestBodiesCountWithWhatIsMadeOfThem(t *testing.T) {
	const most = 4 << 20
	s := &Server{bodies: newLoad("max-request-bytes", most)}
	at := func(tenant string) *place { return &place{s: s, tenant: tenant} }
	plain := []byte(`{"start_event":{"l":"` + strings.Repeat("a", 1<<20) + `"}}`)
	small := []byte(`{"start_event":{"l":[{}` + strings.Repeat(",{}", 1<<16) + `]}}`) // 200 KiB
	huge := []byte(`{"start_event":{"l":[{}` + strings.Repeat(",{}", 1<<18) + `]}}`)
	read := func(p *place, body []byte, cbor bool) error {
		v, err := parseBody(body, cbor, p)
		if err == nil && !cbor {
			_, err = v.canonical()
		}
		return err
	}
	inCBOR, err := abi.FromJSON(huge)
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range [][]byte{plain, small} {
		if err := read(at("a"), body, false); err != nil || s.bodies.taken != 0 {
			t.Fatalf("%v, and %d bytes are taken", err, s.bodies.taken)
		}
	}
	for _, cbor := range []bool{false, true} {
		body := huge
		if cbor {
			body = inCBOR
		}
		if err := read(at("a"), body, cbor); host.CodeOf(err) != host.CodeTooLarge {
			t.Errorf("a body for which there is never memory: %v", err)
		}
		other := at("b")
		if err := other.grow(5 << 18); err != nil {
			t.Fatal(err)
		}
		another := at("c")
		if err := another.grow(3 << 18); err != nil {
			t.Fatal(err)
		}
		if err := read(at("a"), small, false); err != nil {
			t.Error(err)
		}
		third := at("d")
		if err := third.grow(1 << 19); err != nil {
			t.Fatal(err)
		}
		if err := read(at("a"), small, false); host.CodeOf(err) != host.CodeOverloaded {
			t.Errorf("beside others: %v", err)
		}
		other.shrink(other.bytes)
		another.shrink(another.bytes)
		third.shrink(third.bytes)
		if s.bodies.taken != 0 || len(s.bodies.tenants) != 0 {
			t.Fatalf("%d bytes are taken", s.bodies.taken)
		}
	}
}

// What a body is taken to need is about what its transcoding allocates.
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
		// Buffers that grow leave smaller ones behind.
		made, weight := after.TotalAlloc-before.TotalAlloc, transcoding(text, false)
		if ratio := float64(made) / float64(weight); ratio > 6 {
			t.Errorf("%s: %d bytes are allocated for %d that were counted", name, made, weight)
		}
		if nodes := keeping(raw); nodes < 80<<17 {
			t.Errorf("%s: %d bytes for the nodes", name, nodes)
		}
	}
}
