package state

import (
	"fmt"
	"testing"

	"github.com/weftrun/weft/abi"
)

// The cost of an edit follows what it touches. On one core of a cloud server:
//
//	Set/1KB     1.4 us  1.4 KB   Set/1MB        2.6 us  3.2 KB
//	Append/10   1.0 us  0.9 KB   Append/100000  4.5 us  4.5 KB
//	Decode   60 MB/s             Encode       570 MB/s
func BenchmarkSet(b *testing.B) {
	for _, size := range []struct {
		name string
		n    int
	}{{"1KB", 30}, {"1MB", 30_000}} {
		root := largeState(b, size.n)
		edits := []abi.Edit{set(fmt.Sprintf("k%d.field", size.n/2), abi.Raw{0x19, 0x10, 0})}
		b.Run(size.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, _, err := Apply(root, edits, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, n := range []int{10, 1000, 100_000} {
		root := largeState(b, n)
		edits := []abi.Edit{{Op: abi.OpAppend, Path: "list", Value: abi.Raw{0x19, 0x10, 0}}}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, _, err := Apply(root, edits, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkGet(b *testing.B) {
	root := largeState(b, 30_000)
	p, err := ParsePath("k15000.field")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := Get(root, p); !ok {
			b.Fatal("nothing there")
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	raw := largeState(b, 30_000).Encode()
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Decode(raw); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	root := largeState(b, 30_000)
	b.SetBytes(int64(root.Bytes()))
	b.ReportAllocs()
	for b.Loop() {
		_ = root.Encode()
	}
}

// BenchmarkReplace is the commit of an edit that appended one element.
func BenchmarkReplace(b *testing.B) {
	root := largeState(b, 10_000)
	p, err := ParsePath("list")
	if err != nil {
		b.Fatal(err)
	}
	list, _ := Get(root, p)
	v, err := Decode(list.with(Elem{List: true, Index: uint64(list.Len())}, intNode(4711)).Encode())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, changes, err := Replace(root, p, v); err != nil || len(changes) != 1 {
			b.Fatal(err, len(changes))
		}
	}
}

// BenchmarkFold applies the record of 10,000 appends.
func BenchmarkFold(b *testing.B) {
	list := fromJSON(b, `{"list":[]}`)
	changes := make([]Change, 10_000)
	for i := range changes {
		changes[i] = Change{Op: OpSet, Path: []Elem{{Key: "list"}, {List: true, Index: uint64(i)}}, Value: intNode(i)}
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Fold(list, changes); err != nil {
			b.Fatal(err)
		}
	}
}
