// Command kernels has what ordinary guests spend their time on, one export each.
// It is measured as TinyGo's and as Go's WebAssembly.
package main

import (
	"bytes"
	"crypto/sha256"
	"hash/crc32"
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
