// Workload does pieces of ordinary work, in the way in which a program in Go does them.
// Workload-ts does the same in TypeScript.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"slices"

	"github.com/weftrun/weft/sdk-guest/go/weft"
)

// StartEvent says what to do, and how much of it.
type StartEvent struct {
	weft.Start
	Task string `enum:"json,sort,regexp,calls,digest,loop"`
	N    int
}

type item struct {
	ID   int      `json:"id"`
	Name string   `json:"name"`
	Tags []string `json:"tags"`
	V    float64  `json:"v"`
}

// random gives numbers below 2^31, the same in all languages.
type random uint32

func (r *random) next() int {
	*r = (*r*1103515245 + 12345) & 0x7fffffff
	return int(*r)
}

// asJSON writes a list of objects and reads it.
func asJSON(n int) (int, error) {
	items := make([]item, n)
	for i := range items {
		items[i] = item{i, "item", []string{"a", "b"}, float64(i) / 3}
	}
	text, err := json.Marshal(items)
	if err != nil {
		return 0, err
	}
	items = nil
	if err := json.Unmarshal(text, &items); err != nil {
		return 0, err
	}
	return len(text) + len(items), nil
}

func sorted(n int) int {
	r := random(12345)
	list := make([]int, n)
	for i := range list {
		list[i] = r.next()
	}
	slices.Sort(list)
	return list[n/2]
}

var word = regexp.MustCompile(`[a-z]+[0-9]{2,3}`)

// words counts different words of a text.
func words(n int) int {
	r := random(12345)
	var text []byte
	for range n {
		text = append(text, "word"...)
		for v := (r.next() >> 8) % 1000; ; v /= 10 {
			text = append(text, byte('0'+v%10))
			if v < 10 {
				break
			}
		}
		text = append(text, ' ')
	}
	count := map[string]int{}
	for _, w := range word.FindAllString(string(text), -1) {
		count[w]++
	}
	return len(count)
}

func fib(n int) int {
	if n < 2 {
		return n
	}
	return fib(n-1) + fib(n-2)
}

func numbers(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

// digest is what the libraries compute: SHA-256.
func digest(n int) string {
	sum := sha256.Sum256(bytes.Repeat([]byte("0123456789"), n/10))
	return hex.EncodeToString(sum[:])
}

// loop is a checksum that is computed bit by bit: CRC-32.
func loop(n int) uint32 {
	crc := ^uint32(0)
	for _, b := range numbers(n) {
		crc ^= uint32(b)
		for range 8 {
			crc = crc>>1 ^ 0xedb88320&-(crc&1)
		}
	}
	return ^crc
}

func work(_ *weft.Context[weft.Untyped], ev StartEvent) (weft.Stop, error) {
	switch ev.Task {
	case "json":
		n, err := asJSON(ev.N)
		return weft.Result(n), err
	case "sort":
		return weft.Result(sorted(ev.N)), nil
	case "regexp":
		return weft.Result(words(ev.N)), nil
	case "calls":
		return weft.Result(fib(ev.N)), nil
	case "digest":
		return weft.Result(digest(ev.N)), nil
	}
	return weft.Result(loop(ev.N)), nil
}

func init() { weft.Define("workload", weft.Step("work", work)) }

func main() {}
