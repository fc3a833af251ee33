// Command kernels has what ordinary guests spend their time on, one export each.
// It is measured as TinyGo's and as Go's WebAssembly.
package main

import (
	"bytes"
	"crypto/sha256"
	"hash/crc32"
	"regexp"
	"sort"
	"strconv"
	"strings"
)

func main() {}

var (
	words  = strings.Fields(strings.Repeat("the quick brown fox jumps over the lazy dog and runs away ", 40))
	block  = bytes.Repeat([]byte("0123456789abcdef"), 1024)
	target = make([]byte, len(block))
	left   [48 * 48]float64
	right  [48 * 48]float64
	out    [48 * 48]float64
)

// random is a small generator, so that runs are alike.
type random uint32

func (r *random) next() uint32 {
	*r ^= *r << 13
	*r ^= *r >> 17
	*r ^= *r << 5
	return uint32(*r)
}

//go:wasmexport sort
func sorting(n int32) int32 {
	r, values := random(1), make([]int, n)
	for i := range values {
		values[i] = int(r.next() >> 8)
	}
	sort.Ints(values)
	return int32(values[n/2])
}

//go:wasmexport sha256
func hash(n int32) int32 {
	sum := int32(0)
	for range n {
		h := sha256.Sum256(block)
		sum += int32(h[0])
	}
	return sum
}

//go:wasmexport crc32
func checksum(n int32) int32 {
	sum := uint32(0)
	for range n {
		sum += crc32.ChecksumIEEE(block)
	}
	return int32(sum)
}

//go:wasmexport matrix
func matrix(n int32) int32 {
	for i := range left {
		left[i], right[i] = float64(i%7), float64(i%5)
	}
	for range n {
		for i := range 48 {
			for j := range 48 {
				sum := 0.0
				for k := range 48 {
					sum += left[i*48+k] * right[k*48+j]
				}
				out[i*48+j] = sum
			}
		}
	}
	return int32(out[17])
}

//go:wasmexport fib
func fib(n int32) int32 {
	if n < 2 {
		return n
	}
	return fib(n-1) + fib(n-2)
}

//go:wasmexport copying
func copying(n int32) int32 {
	for i := range n {
		copy(target, block[i%64:])
		copy(target[100:100+i%64], block)
	}
	return int32(target[100])
}

//go:wasmexport count
func count(n int32) int32 {
	most := 0
	for range n {
		counts := map[string]int{}
		for _, w := range words {
			counts[w]++
		}
		most += counts["the"]
	}
	return int32(most)
}

//go:wasmexport sieve
func sieve(n int32) int32 {
	composite, found := make([]bool, n), int32(0)
	for i := int32(2); i < n; i++ {
		if composite[i] {
			continue
		}
		found++
		for j := i * 2; j < n; j += i {
			composite[j] = true
		}
	}
	return found
}

//go:wasmexport text
func text(n int32) int32 {
	length := 0
	for i := range n {
		var b strings.Builder
		for j := range 20 {
			b.WriteString(strconv.Itoa(int(i) * j))
			b.WriteByte(',')
		}
		length += len(strings.Split(b.String(), ","))
	}
	return int32(length)
}

type tree struct {
	left, right *tree
	key         uint32
}

//go:wasmexport tree
func search(n int32) int32 {
	r, depth := random(7), int32(0)
	var root *tree
	for range n {
		key, at := r.next(), &root
		for *at != nil {
			depth++
			if key < (*at).key {
				at = &(*at).left
			} else {
				at = &(*at).right
			}
		}
		*at = &tree{key: key}
	}
	return depth
}

var (
	dates = regexp.MustCompile(`(\d{4})-(\d\d)-(\d\d)|[a-z]+@[a-z]+\.org`)
	prose = strings.Repeat("on 2026-11-21 fox@dogs.org jumped, 12-3 times over the lazy one; ", 8)
)

//go:wasmexport regexp
func matching(n int32) int32 {
	found := 0
	for range n {
		found += len(dates.FindAllStringIndex(prose, -1))
	}
	return int32(found)
}

// event is what the CBOR kernel writes and reads again.
type event struct {
	id     uint64
	kind   string
	values []uint64
	body   []byte
}

func appendHead(b []byte, major byte, n uint64) []byte {
	switch major <<= 5; {
	case n < 24:
		return append(b, major|byte(n))
	case n < 1<<8:
		return append(b, major|24, byte(n))
	case n < 1<<16:
		return append(b, major|25, byte(n>>8), byte(n))
	}
	return append(b, major|26, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
}

func appendText(b []byte, s string) []byte { return append(appendHead(b, 3, uint64(len(s))), s...) }

func (e *event) append(b []byte) []byte {
	b = appendHead(b, 5, 4)
	b = appendHead(appendText(b, "id"), 0, e.id)
	b = appendText(appendText(b, "kind"), e.kind)
	b = appendHead(appendText(b, "values"), 4, uint64(len(e.values)))
	for _, v := range e.values {
		b = appendHead(b, 0, v)
	}
	b = appendHead(appendText(b, "body"), 2, uint64(len(e.body)))
	return append(b, e.body...)
}

type decoder struct{ b []byte }

func (d *decoder) head() uint64 {
	low := d.b[0] & 31
	d.b = d.b[1:]
	n, more := uint64(0), 0
	switch low {
	case 24, 25, 26:
		more = 1 << (low - 24)
	default:
		return uint64(low)
	}
	for range more {
		n = n<<8 | uint64(d.b[0])
		d.b = d.b[1:]
	}
	return n
}

func (d *decoder) bytes() []byte {
	n := d.head()
	taken := d.b[:n]
	d.b = d.b[n:]
	return taken
}

func (d *decoder) event() (e event) {
	for range d.head() {
		switch string(d.bytes()) {
		case "id":
			e.id = d.head()
		case "kind":
			e.kind = string(d.bytes())
		case "values":
			e.values = make([]uint64, d.head())
			for i := range e.values {
				e.values[i] = d.head()
			}
		case "body":
			e.body = bytes.Clone(d.bytes())
		}
	}
	return e
}

var buffer []byte

//go:wasmexport cbor
func messages(n int32) int32 {
	e := event{kind: "step.finished", values: make([]uint64, 20), body: block[:200]}
	sum := uint64(0)
	for i := range uint64(n) {
		e.id = i * 1000
		e.values[i%20] = i * i
		buffer = e.append(buffer[:0])
		back := (&decoder{buffer}).event()
		sum += back.id + back.values[0] + uint64(len(back.body))
	}
	return int32(sum)
}
