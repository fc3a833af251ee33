package spectest

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"
)

var (
	seedFlag    = flag.Uint64("seed", 0, "of the random modules; 0: another at each run")
	modulesFlag = flag.Int("modules", modulesByDefault(), "random modules of each generator")
	keepFlag    = flag.Bool("keep", false, "write the modules of weft-smith to testdata")
)

func modulesByDefault() int {
	if few {
		return 40
	}
	return 150
}

// seed is this run's, as printed.
func seed(t *testing.T) uint64 {
	seed := *seedFlag
	for seed == 0 {
		seed = rand.Uint64() >> 1
	}
	t.Logf("seed %d: go test -run %s ./host/sandbox/spectest -seed %d -modules %d", seed, t.Name(), seed, *modulesFlag)
	return seed
}

// plays says whether this run plays the i-th of what there is to play. If it plays few,
// it plays each fourth, from one on that the seed gives: a script or module is
// of one goroutine, and what several at once have in common they have in each.
func plays(seed uint64, i int) bool { return !few || uint64(i)%4 == seed%4 }

// TestGenerated compares modules of this package's own generator.
func TestGenerated(t *testing.T) {
	seed := seed(t)
	compare(t, upTo(*modulesFlag), func(index int) []byte {
		return generate(randomChoices(seed, uint64(index), 500+index%8*1000))
	})
}

// corpusFile has modules that weft-smith has made, compressed.
const corpusFile = "testdata/smith.gz"

// TestSmith compares modules of wasm-smith: those that are kept, and new ones if
// weft-smith is installed (.ci/toolchain/weft-smith).
func TestSmith(t *testing.T) {
	t.Run("kept", func(t *testing.T) {
		modules, seed := kept(t), seed(t)
		left := slices.DeleteFunc(upTo(len(modules)), func(index int) bool { return !plays(seed, index) })
		compare(t, left, func(index int) []byte { return modules[index] })
	})
	t.Run("new", func(t *testing.T) {
		tool, err := exec.LookPath("weft-smith")
		if errors.Is(err, exec.ErrNotFound) {
			t.Skip("no weft-smith, which needs Rust: the kept modules are its work too")
		}
		if err != nil {
			t.Fatal(err)
		}
		seed := strconv.FormatUint(seed(t), 10)
		out, err := exec.CommandContext(t.Context(), tool, seed, "0", strconv.Itoa(*modulesFlag)).Output()
		if err != nil {
			t.Fatalf("weft-smith: %v", err)
		}
		if *keepFlag {
			keep(t, out)
		}
		modules := split(t, out)
		compare(t, upTo(len(modules)), func(index int) []byte { return modules[index] })
	})
}

// upTo gives the indexes of so many modules.
func upTo(modules int) []int {
	indexes := make([]int, modules)
	for i := range indexes {
		indexes[i] = i
	}
	return indexes
}

// compare compares modules in all lanes. The index of a module is the name of its
// test and the seed of its arguments.
func compare(t *testing.T, modules []int, module func(index int) []byte) {
	total := newTally()
	for _, index := range modules {
		t.Run(strconv.Itoa(index), func(t *testing.T) {
			t.Parallel()
			if err := differ(t, module(index), uint64(index), total); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() {
		t.Log(total)
		if got := sum(total.modules); got == len(modules) && total.assertions["returned"] < len(modules) {
			t.Errorf("%d calls returned, in %d modules", total.assertions["returned"], len(modules))
		}
	})
}

// kept reads the corpus.
func kept(t *testing.T) [][]byte {
	file, err := os.ReadFile(corpusFile)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := gzip.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	modules, err := io.ReadAll(plain)
	if err != nil {
		t.Fatal(err)
	}
	return split(t, modules)
}

// keep writes the corpus.
func keep(t *testing.T, modules []byte) {
	var file bytes.Buffer
	packed, err := gzip.NewWriterLevel(&file, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := packed.Write(modules); err != nil {
		t.Fatal(err)
	}
	if err := packed.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(corpusFile, file.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// split takes apart what weft-smith writes: modules, each behind its length.
func split(t *testing.T, all []byte) [][]byte {
	var modules [][]byte
	for len(all) > 0 {
		if len(all) < 4 {
			t.Fatal("weft-smith: cut in a length")
		}
		length := binary.LittleEndian.Uint32(all)
		all = all[4:]
		if uint64(length) > uint64(len(all)) {
			t.Fatalf("weft-smith: module of %d bytes, %d are left", length, len(all))
		}
		modules = append(modules, all[:length])
		all = all[length:]
	}
	return modules
}

// FuzzDifferential compares what a fuzzer's bytes make the generator choose.
func FuzzDifferential(f *testing.F) {
	for index := range uint64(20) {
		f.Add(randomChoices(1, index, 200+int(index)*200).rest)
	}
	total := newTally()
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := differ(t, generate(&choices{b}), uint64(len(b)), total); err != nil {
			t.Error(fmt.Errorf("the generator's module: %w", err))
		}
	})
}
