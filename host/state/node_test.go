package state

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/abi/cbor"
)

func TestDecodeEncode(t *testing.T) {
	tests := []struct {
		json         string
		depth, count int
	}{
		{`null`, 0, 0},
		{`true`, 0, 0},
		{`-9223372036854775808`, 0, 0},
		{`18446744073709551615`, 0, 0},
		{`1.0`, 0, 0},
		{`1e300`, 0, 0},
		{`"ä"`, 0, 0},
		{`{"$bytes":"AAEC"}`, 0, 0},
		{`[]`, 1, 0},
		{`{}`, 1, 0},
		{`[[],[[1]]]`, 3, 2},
		{`{"b":1,"aa":{"c":[2]}}`, 3, 2},
		{"[" + strings.Repeat(`"x",`, 999) + `"y"]`, 1, 1000},
	}
	for _, tt := range tests {
		raw := rawJSON(t, tt.json)
		n, err := Decode(raw)
		if err != nil {
			t.Errorf("%s: %v", tt.json, err)
			continue
		}
		if got := n.Encode(); !bytes.Equal(got, raw) {
			t.Errorf("%s: encodes to %x, want %x", tt.json, got, raw)
		}
		if n.Bytes() != len(raw) || n.Depth() != tt.depth || n.Len() != tt.count {
			t.Errorf("%s: bytes %d, depth %d, len %d; want %d, %d, %d", tt.json, n.Bytes(), n.Depth(), n.Len(), len(raw), tt.depth, tt.count)
		}
		if got := n.AppendTo([]byte{1}); !bytes.Equal(got[1:], raw) || got[0] != 1 {
			t.Errorf("%s: appended %x", tt.json, got)
		}
	}
}

func TestDecodeOwnsNothing(t *testing.T) {
	raw := rawJSON(t, `{"a":"text","long key":[1000,"x"]}`)
	want := bytes.Clone(raw)
	n, err := Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	clear(raw)
	if !bytes.Equal(n.Encode(), want) {
		t.Error("the tree changed with its source")
	}
	got := n.Encode()
	clear(got)
	if !bytes.Equal(n.Encode(), want) {
		t.Error("the tree changed with its encoding")
	}
}

func TestDecodeAnyOrder(t *testing.T) {
	// {"b": 1, "a": 0 in two bytes}
	n, err := Decode(abi.Raw{0xa2, 0x61, 'b', 1, 0x61, 'a', 0x18, 0})
	if err != nil {
		t.Fatal(err)
	}
	if got := toJSON(t, n); got != `{"a":0,"b":1}` {
		t.Error(got)
	}
}

func TestDecodeRefuses(t *testing.T) {
	nested := func(n int) abi.Raw { return append(bytes.Repeat([]byte{0x81}, n), 0) }
	tests := []struct {
		name string
		raw  abi.Raw
		code abi.Status
	}{
		{"nothing", nil, abi.StatusInvalidMessage},
		{"truncated", abi.Raw{0x82, 1}, abi.StatusInvalidMessage},
		{"huge claim", abi.Raw{0x9b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, abi.StatusInvalidMessage},
		{"trailing", abi.Raw{1, 1}, abi.StatusInvalidMessage},
		{"duplicate key", abi.Raw{0xa2, 0x61, 'a', 1, 0x61, 'a', 2}, abi.StatusInvalidMessage},
		{"tag", abi.Raw{0xc1, 1}, abi.StatusInvalidMessage},
		{"NaN", abi.Raw{0xf9, 0x7e, 0}, abi.StatusInvalidMessage},
		{"bytes key alone", abi.Raw{0xa1, 0x66, '$', 'b', 'y', 't', 'e', 's', 1}, abi.StatusInvalidMessage},
		{"65 deep", nested(65), abi.StatusLimitExceeded},
		{"100,000 deep", nested(100_000), abi.StatusInvalidMessage},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Decode(tt.raw)
			e := coded(t, err, tt.code)
			if cause := (*abi.DataError)(nil); tt.code == abi.StatusInvalidMessage && !errors.As(e, &cause) {
				t.Errorf("no cause in %v", err)
			}
		})
	}
	if _, err := Decode(nested(64)); err != nil {
		t.Errorf("64 deep: %v", err)
	}
}

func TestDecodeBeyondMessageLimits(t *testing.T) {
	// More elements than one message may have: a state grows over many.
	n := abi.DefaultLimits.MaxElements + 1
	raw := append(cbor.AppendHead(nil, cbor.Array, uint64(n)), make([]byte, n)...)
	list, err := Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	if list.Len() != n {
		t.Errorf("%d elements", list.Len())
	}
}

func TestAbsent(t *testing.T) {
	var n *Node
	if n.Encode() != nil || n.Bytes() != 0 || n.Depth() != 0 || n.Len() != 0 || n.IsMap() || n.IsList() {
		t.Error("an absent node has something")
	}
	if Equal(n, Empty()) || !Equal(n, nil) {
		t.Error("absent equals absent only")
	}
}

func TestEqual(t *testing.T) {
	tests := []struct {
		a, b string
		want bool
	}{
		{`1`, `1`, true},
		{`1`, `1.0`, false},
		{`0.0`, `-0.0`, false},
		{`"1"`, `1`, false},
		{`[]`, `{}`, false},
		{`[1000,2000]`, `[1000,2000]`, true},
		{`[1000,2000]`, `[2000,1000]`, false},
		{`{"a":1000}`, `{"a":1000}`, true},
		{`{"a":1000}`, `{"b":1000}`, false},
		{`{"a":{"b":[1000]}}`, `{"a":{"b":[1001]}}`, false},
		{`[1000]`, `[1000,1]`, false},
	}
	for _, tt := range tests {
		if got := Equal(fromJSON(t, tt.a), fromJSON(t, tt.b)); got != tt.want {
			t.Errorf("Equal(%s, %s) = %v", tt.a, tt.b, got)
		}
	}
	// The same elements in pages of another shape.
	grown := emptyList
	for i := range 500 {
		grown = grown.with(Elem{List: true, Index: uint64(i)}, intNode(i))
	}
	for range 250 {
		grown = grown.without(Elem{List: true, Index: 3})
	}
	again, err := Decode(grown.Encode())
	if err != nil {
		t.Fatal(err)
	}
	if !Equal(grown, again) {
		t.Error("shape matters")
	}
}
