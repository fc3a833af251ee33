package httpapi

import (
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/httpapi/abuse"
)

// The memory for processing a body counts like the memory for the body: a server reads as
// many bodies of small items at a time as it has memory for.
func TestBodiesCountWithWhatIsMadeOfThem(t *testing.T) {
	const most = 4 << 20
	bodies := abuse.NewLoad("max-request-bytes", most)
	at := func(tenant string) *abuse.Place { return bodies.Place(tenant, false) }
	plain := []byte(`{"start_event":{"l":"` + strings.Repeat("a", 1<<20) + `"}}`)
	small := []byte(`{"start_event":{"l":[{}` + strings.Repeat(",{}", 1<<16) + `]}}`) // 200 KiB
	huge := []byte(`{"start_event":{"l":[{}` + strings.Repeat(",{}", 1<<18) + `]}}`)
	read := func(p *abuse.Place, body []byte, cbor bool) error {
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
		if err := read(at("a"), body, false); err != nil || bodies.Taken() != 0 {
			t.Fatalf("%v, and %d bytes are taken", err, bodies.Taken())
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
		if err := other.Grow(5 << 18); err != nil {
			t.Fatal(err)
		}
		another := at("c")
		if err := another.Grow(3 << 18); err != nil {
			t.Fatal(err)
		}
		if err := read(at("a"), small, false); err != nil {
			t.Error(err)
		}
		third := at("d")
		if err := third.Grow(1 << 19); err != nil {
			t.Fatal(err)
		}
		if err := read(at("a"), small, false); host.CodeOf(err) != host.CodeOverloaded {
			t.Errorf("beside others: %v", err)
		}
		other.Release()
		another.Release()
		third.Release()
		if bodies.Taken() != 0 {
			t.Fatalf("%d bytes are taken", bodies.Taken())
		}
	}
}
