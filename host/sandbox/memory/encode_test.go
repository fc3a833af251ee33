package memory

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
)

func TestEncode(t *testing.T) {
	p := New(Config{})
	defer p.Close()
	r := random(t)
	images := [][]byte{{}, make([]byte, PageBytes), bytes.Repeat([]byte{1}, PageBytes)}
	for range 20 {
		images = append(images, picture(r, PageBytes*r.IntN(20)))
	}
	for _, image := range images {
		s := snap(t, p, image)
		in := s.Encode()
		got, err := Decode(in, uint64(len(image)))
		if err != nil {
			t.Fatal(err)
		}
		clear(in) // it is not shared
		if got.Hash() != s.Hash() || got.Size() != len(image) || got.Kept() != s.Kept() {
			t.Errorf("decoded %d bytes, kept %d, want %d and %d", got.Size(), got.Kept(), len(image), s.Kept())
		}
		l := take(t, p, MaxBytes)
		if !got.Fill(l) {
			t.Fatal("not filled")
		}
		l.Reallocate(uint64(len(image)))
		same(t, l.Bytes(), image)
		l.Release()
		if len(image) > 0 {
			if _, err := Decode(s.Encode(), uint64(len(image)-1)); !errors.Is(err, ErrEncoding) {
				t.Errorf("of more than may be: error = %v", err)
			}
		}
	}
}

// encoded puts an encoding together.
func encoded(data int, numbers ...uint64) []byte {
	out := []byte(magic)
	for _, n := range numbers {
		out = binary.AppendUvarint(out, n)
	}
	return append(out, bytes.Repeat([]byte{7}, data)...)
}

var hostile = map[string][]byte{
	"empty":                    {},
	"another version":          append([]byte(magic[:7]+"\x02"), encoded(0, 1, 0)[8:]...),
	"nothing after the magic":  encoded(0),
	"no number of runs":        encoded(0, 1),
	"size too large":           encoded(0, 1<<62, 0),
	"runs without data":        encoded(0, 16, 1<<40),
	"empty run":                encoded(4096, 1, 1, 3, 0),
	"run beyond the end":       encoded(2*4096, 1, 1, 15, 2),
	"zeroes beyond the end":    encoded(4096, 1, 1, 17, 1),
	"runs that touch":          encoded(2*4096, 1, 2, 1, 1, 0, 1),
	"sum that wraps":           encoded(2*4096, 1, 2, 1, 1, 1<<64-2, 1),
	"less data":                encoded(4095, 1, 1, 0, 1),
	"more data":                encoded(4097, 1, 1, 0, 1),
	"data without runs":        encoded(1, 1, 0),
	"number not shortest":      append(append([]byte(magic), 0x81, 0x00), 0),
	"number without an end":    append([]byte(magic), 0xff, 0xff),
	"number of more than 64 b": append([]byte(magic), bytes.Repeat([]byte{0xff}, 11)...),
}

func TestDecodeHostile(t *testing.T) {
	for name, in := range hostile {
		if s, err := Decode(in, 16*PageBytes); !errors.Is(err, ErrEncoding) {
			t.Errorf("%s: snapshot %+v, error %v", name, s, err)
		}
	}
	if _, err := Decode(encoded(4096, 1, 1, 15, 1), PageBytes); err != nil {
		t.Errorf("a good one: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, in := range hostile {
		f.Add(in)
	}
	f.Add(encoded(0, 0, 0))
	f.Add(encoded(4096, 1, 1, 15, 1))
	f.Add(encoded(3*4096, 3, 2, 0, 1, 30, 2))
	p := New(Config{})
	f.Cleanup(p.Close)
	f.Fuzz(func(t *testing.T, in []byte) {
		const most = 64 * PageBytes
		s, err := Decode(in, most)
		if err != nil {
			if !errors.Is(err, ErrEncoding) {
				t.Fatal(err)
			}
			return
		}
		if s.Size() > most || s.Kept() > len(in) || !bytes.Equal(s.Encode(), in) {
			t.Fatalf("size %d, kept %d, or it is encoded otherwise", s.Size(), s.Kept())
		}
		l := take(t, p, most)
		defer l.Release()
		if !s.Fill(l) || l.Reallocate(uint64(s.Size())) == nil || !s.Reset(l) || l.Hash() != s.Hash() {
			t.Fatal("a memory is not as the snapshot")
		}
	})
}
