package cbor

import (
	"encoding/hex"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func TestFloats(t *testing.T) {
	for _, test := range []struct { // RFC 8949, appendix A
		f    float64
		want string
	}{
		{0, "f90000"}, {math.Copysign(0, -1), "f98000"}, {1, "f93c00"}, {1.1, "fb3ff199999999999a"},
		{1.5, "f93e00"}, {65504, "f97bff"}, {100000, "fa47c35000"}, {3.4028234663852886e+38, "fa7f7fffff"},
		{1e300, "fb7e37e43c8800759c"}, {5.960464477539063e-8, "f90001"}, {0.00006103515625, "f90400"},
		{-4, "f9c400"}, {-4.1, "fbc010666666666666"}, {65505, "fa477fe100"}, {1e-8, "fb3e45798ee2308c3a"},
	} {
		got := AppendFloat(nil, test.f)
		if hex.EncodeToString(got) != test.want {
			t.Errorf("%v is %x, want %s", test.f, got, test.want)
		}
		d := NewDecoder(got)
		if back := d.Float(); math.Float64bits(back) != math.Float64bits(test.f) || d.Err() != nil {
			t.Errorf("%s reads as %v (%v), want %v", test.want, back, d.Err(), test.f)
		}
	}
}

// Every finite half-precision float is written as it was read.
func TestHalfFloats(t *testing.T) {
	for h := 0; h <= math.MaxUint16; h++ {
		item := []byte{0xf9, byte(h >> 8), byte(h)}
		d := NewDecoder(item)
		f := d.Float()
		if finite := h>>10&0x1f != 31; finite != (d.Err() == nil) {
			t.Fatalf("%x: %v", item, d.Err())
		} else if back := AppendFloat(nil, f); finite && string(back) != string(item) {
			t.Fatalf("%x comes back as %x", item, back)
		}
	}
}

func TestInt(t *testing.T) {
	for item, want := range map[string]int64{
		"00": 0, "17": 23, "1818": 24, "20": -1, "3863": -100, "1b7fffffffffffffff": math.MaxInt64,
		"3b7fffffffffffffff": math.MinInt64, "f94200": 3, "fbc059000000000000": -100, "1900ff": 255,
	} {
		d := NewDecoder(unhex(t, item))
		if got := d.Int(math.MinInt64, math.MaxInt64); got != want || d.Err() != nil {
			t.Errorf("%s reads as %d (%v), want %d", item, got, d.Err(), want)
		}
	}
	for item, want := range map[string]string{
		"1b8000000000000000": "beyond the range", "f93e00": "a fraction", "f97e00": "not finite", "f5": "a bool where an integer",
		"6131": "text where an integer", "": "end too early", "19ff": "end too early", "fb43e0000000000000": "beyond the range",
	} {
		d := NewDecoder(unhex(t, item))
		d.Int(math.MinInt64, math.MaxInt64)
		if err := d.Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", item, err, want)
		}
	}
	d := NewDecoder(unhex(t, "190100"))
	if d.Uint(math.MaxUint8); d.Err() == nil {
		t.Error("256 passes as a uint8")
	}
}

func TestRefusals(t *testing.T) {
	for item, want := range map[string]string{
		"c001":       "a tag where plain data",
		"9fff":       "indefinite",
		"f7":         "plain data",
		"1f":         "indefinite",
		"62ff":       "beyond the end",
		"9a7fffffff": "beyond the end",
		"a16161":     "end too early",
	} {
		for name, read := range map[string]func(*Decoder){
			"skip":  func(d *Decoder) { d.Skip() },
			"value": func(d *Decoder) { d.Value() },
		} {
			d := NewDecoder(unhex(t, item))
			read(d)
			if err := d.Err(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s of %s: error %v, want %q", name, item, err, want)
			}
		}
	}
}

func TestDepth(t *testing.T) {
	deep := strings.Repeat("81", MaxDepth) + "00"
	for _, test := range []struct {
		item string
		ok   bool
	}{{deep, true}, {"81" + deep, false}, {strings.Repeat("81", 1_000_000), false}} {
		skip, value := NewDecoder(unhex(t, test.item)), NewDecoder(unhex(t, test.item))
		skip.Skip()
		value.Value()
		if (skip.Err() == nil) != test.ok || (value.Err() == nil) != test.ok {
			t.Errorf("depth %d: %v, %v", len(test.item)/2-1, skip.Err(), value.Err())
		}
	}
}

func TestErrorsSayWhere(t *testing.T) {
	d := NewDecoder(unhex(t, "83010261 78"))
	d.Array()
	d.Int(0, 9)
	d.Int(0, 9)
	d.Int(0, 9)
	d.Within("2")
	d.Within("list")
	var e *Error
	if !errors.As(d.Err(), &e) || e.Offset != 3 || e.Path != "list.2" {
		t.Errorf("%#v", d.Err())
	}
}

// Whatever the bytes are, reading them ends without a panic, within them, and
// the two ways to read agree on whether they are an item.
func TestGarbage(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	start := unhex(t, "a3616101616282f5f6fb3ff199999999999a6163a1616443010203")
	for range 100_000 {
		b := append([]byte(nil), start...)
		for range 1 + r.IntN(3) {
			b[r.IntN(len(b))] = byte(r.Uint32())
		}
		b = b[:r.IntN(len(b)+1)]
		skip, value := NewDecoder(b), NewDecoder(b)
		skip.Skip()
		value.Value()
		if skip.Err() != nil && value.Err() == nil {
			t.Fatalf("%x: skip: %v, but it is a value", b, skip.Err())
		}
		if value.Err() == nil && value.Offset() != skip.Offset() {
			t.Fatalf("%x: skip ends at %d, value at %d", b, skip.Offset(), value.Offset())
		}
	}
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}
