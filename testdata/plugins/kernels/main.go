//go:build !echo

// Kernels is a guest to measure with: its input names a piece of ordinary work
// and how often to do it, and its output is a checksum, the same from every
// compiler. With the tag echo it is a guest that hands back what it is given, the
// least that an invocation can do; with the tags echo and extism the same for
// Extism's hosts.
package main

import (
	"encoding/binary"
	"strconv"
	"strings"

	"github.com/weftrun/weft/testdata/plugins/kernels/raw"
)

// kernels do their work that many times. What they need memory for they take
// once, when the module is initialized.
var kernels = map[string]func(rounds int) uint64{
	"cbor":    cbor,
	"hashmap": hashmap,
	"loadsum": loadsum,
	"matrix":  matrix,
	"none":    func(int) uint64 { return 0 },
	"regexp":  matches,
	"sha256":  digest,
	"sort":    sorted,
	"strings": text,
}

func step(input []byte) int32 {
	name, count, _ := strings.Cut(string(input), " ")
	rounds, err := strconv.Atoi(count)
	do := kernels[name]
	if err != nil || do == nil {
		return raw.Answer(1, input)
	}
	raw.Mark()
	sum := do(rounds)
	raw.Mark()
	return raw.Answer(0, binary.LittleEndian.AppendUint64(nil, sum))
}

// warm makes the data, and has every kernel take the memory that it needs.
func warm() {
	words, block, letters = makeWords(), makeBlock(), makeLetters()
	left, right = newMatrix(2), newMatrix(3)
	for _, do := range kernels {
		do(1)
	}
}

func init() { raw.Step, raw.Warm = step, warm }

func main() {}
