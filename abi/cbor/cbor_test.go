package cbor_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math"
	"testing"

	"github.com/weftrun/weft/abi/cbor"
)

// The heads of RFC 8949, appendix A.
func TestHeads(t *testing.T) {
	for _, tt := range []struct {
		major byte
		arg   uint64
		want  string
	}{
		{cbor.Uint, 0, "00"}, {cbor.Uint, 23, "17"}, {cbor.Uint, 24, "1818"}, {cbor.Uint, 100, "1864"},
		{cbor.Uint, 255, "18ff"}, {cbor.Uint, 256, "190100"}, {cbor.Uint, 1000, "1903e8"}, {cbor.Uint, 65535, "19ffff"},
		{cbor.Uint, 65536, "1a00010000"}, {cbor.Uint, 1000000, "1a000f4240"}, {cbor.Uint, math.MaxUint32, "1affffffff"},
		{cbor.Uint, math.MaxUint32 + 1, "1b0000000100000000"}, {cbor.Uint, 1000000000000, "1b000000e8d4a51000"},
		{cbor.Uint, math.MaxUint64, "1bffffffffffffffff"}, {cbor.Nint, math.MaxUint64, "3bffffffffffffffff"},
		{cbor.Nint, 999, "3903e7"}, {cbor.Bytes, 4, "44"}, {cbor.Text, 0, "60"}, {cbor.Array, 25, "9819"}, {cbor.Map, 5, "a5"},
	} {
		b := cbor.AppendHead([]byte("..."), tt.major, tt.arg)[3:]
		if got := hex.EncodeToString(b); got != tt.want {
			t.Errorf("AppendHead(%d, %d) is %s, want %s", tt.major, tt.arg, got, tt.want)
			continue
		}
		if cbor.Major(b[0]) != tt.major || cbor.Size(tt.arg) != len(b) {
			t.Errorf("%s: major type %d, size %d", tt.want, cbor.Major(b[0]), cbor.Size(tt.arg))
		}
		text := append([]byte("..."), b...)
		if arg, next := cbor.Head(text, 3); arg != tt.arg || next != len(text) {
			t.Errorf("%s: Head is %d, %d", tt.want, arg, next)
		}
		if arg, next, ok := cbor.Read(text, 3); arg != tt.arg || next != len(text) || !ok {
			t.Errorf("%s: Read is %d, %d, %v", tt.want, arg, next, ok)
		}
		for n := range b {
			if _, _, ok := cbor.Read(b[:n], 0); ok {
				t.Errorf("%s: Read takes %d bytes of it", tt.want, n)
			}
		}
	}
}

// Reserved information and indefinite lengths are not heads, whatever follows.
func TestNoHeads(t *testing.T) {
	for initial := range 1 << 8 {
		b := append([]byte{byte(initial)}, make([]byte, 300)...)
		if _, _, ok := cbor.Read(b, 0); ok != (cbor.Info(b[0]) <= cbor.Info64) {
			t.Errorf("%02x: Read says %v", initial, ok)
		}
	}
	if _, _, ok := cbor.Read(nil, 0); ok {
		t.Error("there is a head in nothing")
	}
}

func TestScalars(t *testing.T) {
	for want, b := range map[string][]byte{
		"00":                 cbor.AppendInt(nil, 0),
		"20":                 cbor.AppendInt(nil, -1),
		"3863":               cbor.AppendInt(nil, -100),
		"3b7fffffffffffffff": cbor.AppendInt(nil, math.MinInt64),
		"62c3bc":             cbor.AppendText(nil, "ü"),
		"f4":                 cbor.AppendBool(nil, false),
		"f5":                 cbor.AppendBool(nil, true),
		"f93c00":             cbor.AppendFloat(nil, 1),
		"f98000":             cbor.AppendFloat(nil, math.Copysign(0, -1)),
		"fa47c35000":         cbor.AppendFloat(nil, 100000),
		"fb3ff199999999999a": cbor.AppendFloat(nil, 1.1),
		"f90001":             cbor.AppendFloat(nil, 5.960464477539063e-8),
		"fa33000000":         cbor.AppendFloat(nil, 5.960464477539063e-8/2),
	} {
		if got := hex.EncodeToString(b); got != want {
			t.Errorf("%s instead of %s", got, want)
		}
	}
}

// TestHalves holds every binary16 to the conversion that the hardware does of
// the same number as a binary32.
func TestHalves(t *testing.T) {
	for h := range 1 << 16 {
		got, want := cbor.Float(cbor.Float16, uint64(h)), widened(uint16(h))
		if math.Float64bits(got) != math.Float64bits(want) && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Fatalf("%04x is %v, want %v", h, got, want)
		}
		if math.IsNaN(want) || math.IsInf(want, 0) {
			continue
		}
		if b := cbor.AppendFloat(nil, want); !bytes.Equal(b, []byte{cbor.Float16, byte(h >> 8), byte(h)}) {
			t.Fatalf("%04x is written as %x", h, b)
		}
		if single := uint64(math.Float32bits(float32(want))); cbor.IsShortest(cbor.Float32, single) ||
			!cbor.IsShortest(cbor.Float32, single|1) {
			t.Fatalf("%04x: wrong about the shortest form of binary32 %08x or the next one", h, single)
		}
	}
}

// widened moves the parts of a binary16 to where a binary32 has them. Its
// exponent is then 112 too small: the product makes up for that, also of
// subnormal numbers.
func widened(h uint16) float64 {
	sign, rest := uint32(h&0x8000)<<16, uint32(h&0x7fff)<<13
	if h&0x7c00 == 0x7c00 {
		return float64(math.Float32frombits(sign | rest | 0x7f800000))
	}
	return float64(math.Float32frombits(sign|rest)) * 0x1p112
}

func TestSkip(t *testing.T) {
	for _, item := range []string{
		"00", "1bffffffffffffffff", "43010203", "6161", "80", "83010203", "8201820203", "a0",
		"a26161016162820203", "f4", "f93c00", "fb3ff199999999999a", "9a00000001f6", "ba000000016161a0",
	} {
		b, err := hex.DecodeString("ff" + item + "00")
		if err != nil {
			t.Fatal(err)
		}
		if got := cbor.Skip(b, 1); got != len(b)-1 {
			t.Errorf("%s ends at %d", item, got-1)
		}
	}
}

func TestWide(t *testing.T) {
	b := cbor.AppendWide([]byte{cbor.Null}, cbor.Array)
	cbor.PutWide(b, 1, 0x01020304)
	if fmt.Sprintf("%x", b) != "f69a01020304" || len(b) != 1+cbor.WideSize {
		t.Errorf("the wide head is %x", b)
	}
}

// FuzzRead holds Read to the bounds of what it gets, and to Head and AppendHead.
func FuzzRead(f *testing.F) {
	f.Add([]byte{0x1b, 0, 0, 0, 0, 0, 0, 0, 1}, 0)
	f.Add([]byte{0, 0x5f, 0x19, 1}, 2)
	f.Fuzz(func(t *testing.T, b []byte, off int) {
		if off < 0 || off > len(b) {
			return
		}
		arg, next, ok := cbor.Read(b, off)
		if !ok {
			if off < len(b) && cbor.Info(b[off]) < cbor.Info8 {
				t.Fatal("no head in one byte that is a whole one")
			}
			return
		}
		if next <= off || next > len(b) {
			t.Fatalf("the head at %d ends at %d of %d", off, next, len(b))
		}
		if a, n := cbor.Head(b, off); a != arg || n != next {
			t.Fatalf("Head is %d, %d, Read %d, %d", a, n, arg, next)
		}
		shortest := cbor.AppendHead(nil, cbor.Major(b[off]), arg)
		if len(shortest) != cbor.Size(arg) || len(shortest) > next-off {
			t.Fatalf("the shortest head of %d takes %d bytes, Size says %d, the input had %d", arg, len(shortest), cbor.Size(arg), next-off)
		}
		if len(shortest) == next-off && !bytes.Equal(shortest, b[off:next]) {
			t.Fatalf("%x is written as %x", b[off:next], shortest)
		}
	})
}
