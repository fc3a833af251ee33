package record_test

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/weftrun/weft/host/store/record"
)

// A module comes back as it was, whatever its bytes are, and code takes less space.
func TestPackModule(t *testing.T) {
	random := make([]byte, 100_000)
	rng := rand.NewChaCha8([32]byte{7})
	if _, err := rng.Read(random); err != nil {
		t.Fatal(err)
	}
	code := append([]byte("\x00asm\x01\x00\x00\x00"), bytes.Repeat([]byte("\x20\x00\x41\x01\x6a\x21\x00"), 50_000)...)
	packed, err := record.PackModule(code)
	if err != nil {
		t.Fatal(err)
	}
	if len(packed) > len(code)/10 {
		t.Errorf("%d bytes take %d", len(code), len(packed))
	}
	for name, module := range map[string][]byte{"code": code, "random": random, "empty": {}, "packed": packed} {
		packed, err := record.PackModule(module)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := record.PackModule(module); err != nil || !bytes.Equal(again, packed) {
			t.Errorf("%s: packed differently the second time (%v)", name, err)
		}
		got, err := record.UnpackModule(packed)
		if err != nil || got == nil || !bytes.Equal(got, module) {
			t.Errorf("%s: %d bytes come back as %d (%v)", name, len(module), len(got), err)
		}
	}
}

// A module that an older release has stored is read as it is.
func TestUnpackModuleOfOlderRelease(t *testing.T) {
	old := []byte("\x00asm\x01\x00\x00\x00")
	if got, err := record.UnpackModule(old); err != nil || !bytes.Equal(got, old) {
		t.Errorf("%q comes back as %q (%v)", old, got, err)
	}
	if got := record.ShownModule(nil); got != nil {
		t.Errorf("no bytes come back as %q", got)
	}
}

// A module whose stored bytes have changed is never read as another module, and a short
// frame of a huge module takes no memory.
func TestUnpackDamagedModule(t *testing.T) {
	module := []byte(strings.Repeat("\x00asm and what follows", 40))
	packed, err := record.PackModule(module)
	if err != nil {
		t.Fatal(err)
	}
	const magic = 4
	seen := 0
	for i := range packed {
		damaged := bytes.Clone(packed)
		damaged[i] ^= 0x10
		got, err := record.UnpackModule(damaged)
		switch {
		case i < magic: // the bytes of a module that is not compressed
			if err != nil || !bytes.Equal(got, damaged) {
				t.Errorf("with the change of byte %d: %q, %v", i, got, err)
			}
		case err != nil:
			seen++
			if shown := record.ShownModule(damaged); !bytes.Equal(shown, damaged) {
				t.Errorf("the change of byte %d is shown as %q", i, shown)
			}
		case !bytes.Equal(got, module): // a change of the window's size changes nothing
			t.Errorf("the change of byte %d makes another module", i)
		}
	}
	if seen < len(packed)/2 {
		t.Errorf("of %d changes, %d are seen", len(packed), seen)
	}
	if _, err := record.UnpackModule(append(bytes.Clone(packed), 0)); err == nil {
		t.Error("a byte after the frame is not seen")
	}
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	bomb := encoder.EncodeAll(make([]byte, 256<<20+1), nil)
	if _, err := record.UnpackModule(bomb); err == nil {
		t.Errorf("%d bytes unpack to more than 256 MiB", len(bomb))
	}
}
