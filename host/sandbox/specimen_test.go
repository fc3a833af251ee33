package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/hosttest/suite"
)

// hostileFolder has the corpus.
var hostileFolder = filepath.Join("..", "..", "testdata", "hostile")

// specimen is a module of the corpus and what must become of it. It is not
// changed once it is made.
type specimen struct {
	name   string
	wasm   []byte
	at     string
	wants  []want
	limits host.Limits // of an invocation; complete
	answer int         // bytes of the answer to each host call; 0: null
	runs   int         // invocations, one after the other
	opaque bool        // what its output is worth, the sandbox's caller finds out
}

// want is one problem, or what an invocation comes to: one of the codes, "ok"
// for a success, and parts of the message in their order.
type want struct {
	codes []string
	parts []string
}

// wantOf reads "CODE|CODE PART ... PART".
func wantOf(text string) want {
	codes, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	w := want{codes: strings.Split(codes, "|")}
	if rest != "" {
		w.parts = strings.Split(rest, " ... ")
	}
	return w
}

// met tells what is wrong with a code and a message, "" when nothing is.
func (w want) met(code, message string) string {
	found := false
	for _, c := range w.codes {
		found = found || c == code
	}
	rest := message
	for _, part := range w.parts {
		var ok bool
		if _, rest, ok = strings.Cut(rest, part); !ok {
			return fmt.Sprintf("%s: %q has no %q in its place", code, message, part)
		}
	}
	if !found {
		return fmt.Sprintf("%s: %q, want %s", code, message, strings.Join(w.codes, " or "))
	}
	return ""
}

// corpusLimits are those of the sandbox that the corpus runs in, and of its
// invocations.
func corpusLimits() (box, invocation host.Limits) {
	invocation = suite.Limits() // counts are to stop them
	invocation.MemoryBytes, invocation.Fuel = corpusMemory, corpusFuel
	invocation.HostCalls, invocation.LogLines = 1000, 100
	box = invocation
	box.MemoryBytes = 64 << 20
	box.DescribeFuel = corpusFuel
	return box, invocation
}

// readCorpus reads testdata/hostile.
func readCorpus(tb testing.TB) []*specimen {
	tb.Helper()
	texts, err := filepath.Glob(filepath.Join(hostileFolder, "*.wat"))
	if err != nil {
		tb.Fatal(err)
	}
	binaries, err := filepath.Glob(filepath.Join(hostileFolder, "*.wasm"))
	if err != nil || len(binaries) != len(texts) || len(texts) < 60 {
		tb.Fatalf("%d texts and %d binaries (%v): each module has one of both", len(texts), len(binaries), err)
	}
	var all []*specimen
	for _, path := range texts {
		text, err := os.ReadFile(path)
		if err != nil {
			tb.Fatal(err)
		}
		s, err := readHeader(string(text))
		if err != nil {
			tb.Fatalf("%s: %v", path, err)
		}
		s.name = strings.TrimSuffix(filepath.Base(path), ".wat")
		s.wasm = readFile(tb, strings.TrimSuffix(path, ".wat")+".wasm")
		all = append(all, s)
	}
	return all
}

// readHeader reads the comment that a module's text begins with.
func readHeader(text string) (*specimen, error) {
	_, limits := corpusLimits()
	s := &specimen{limits: limits, runs: 3}
	tries := false
	for line := range strings.Lines(text) {
		line, isComment := strings.CutPrefix(line, ";; ")
		if !isComment {
			break
		}
		key, value, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok {
			return nil, fmt.Errorf("%q is not KEY: VALUE", line)
		}
		var err error
		switch key {
		case "tries":
			tries = true
		case "at":
			s.at = value
		case "wants":
			s.wants = append(s.wants, wantOf(value))
		case "limits":
			err = s.setLimits(value)
		case "answer":
			s.answer, err = strconv.Atoi(value)
		case "host":
			s.opaque = true
		case "runs":
			s.runs, err = strconv.Atoi(value)
		default:
			err = errors.New("unknown key")
		}
		if err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
	}
	if !tries || len(s.wants) == 0 || s.at != atInvoke && s.at != atUpload && s.at != atDescribe && s.at != atManifest {
		return nil, errors.New("the header is not complete: it needs tries, at and wants")
	}
	return s, nil
}

// setLimits reads "fuel=1000 wall=5ms".
func (s *specimen) setLimits(text string) error {
	counts := map[string]*int{
		"memory": &s.limits.MemoryBytes, "calls": &s.limits.HostCalls, "call_bytes": &s.limits.CallBytes,
		"input": &s.limits.InputBytes, "output": &s.limits.OutputBytes, "log_bytes": &s.limits.LogBytes,
		"log_lines": &s.limits.LogLines, "depth": &s.limits.CallDepth,
	}
	for field := range strings.FieldsSeq(text) {
		var err error
		key, value, _ := strings.Cut(field, "=")
		switch {
		case key == "fuel":
			s.limits.Fuel, err = strconv.ParseUint(value, 10, 64)
		case key == "wall":
			s.limits.WallTime, err = time.ParseDuration(value)
		case counts[key] != nil:
			*counts[key], err = strconv.Atoi(value)
		default:
			err = errors.New("unknown limit")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", field, err)
		}
	}
	return nil
}

// limitNamed is how a message says which setting was passed; its amount is a
// number before it.
var limitNamed = regexp.MustCompile(`[0-9].*\(limit [a-z]+(_[a-z]+)*[,)]`)

// nameless tells what is wrong with the message of a limit that was passed: it
// names the setting and the amount, so that people know what to change.
func nameless(code, message string) string {
	switch strings.TrimPrefix(code, "describe_") {
	case host.RunLimitExceeded, host.RunFuelExhausted, host.RunDeadlineExceeded, problemTooLarge, problemCompileTime, problemCompileBytes:
		if !limitNamed.MatchString(message) {
			return fmt.Sprintf("%s: %.200q names no limit and its amount", code, message)
		}
	}
	return ""
}

// Each binary of the corpus was made from the text beside it.
func TestCorpusIsBuilt(t *testing.T) {
	const advice = "run testdata/hostile/build"
	sums := map[string]string{}
	for line := range strings.Lines(string(readFile(t, filepath.Join(hostileFolder, "SHA256SUMS")))) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		sums[filepath.Base(name)] = sum
	}
	compiler, err := exec.LookPath("wat2wasm")
	if err != nil {
		t.Log("wat2wasm is not installed: the binaries are only held against their sums")
	}
	for _, s := range readCorpus(t) {
		for _, name := range []string{s.name + ".wat", s.name + ".wasm"} {
			sum := sha256.Sum256(readFile(t, filepath.Join(hostileFolder, name)))
			if sums[name] != hex.EncodeToString(sum[:]) {
				t.Errorf("%s is not what was built, or built from: %s", name, advice)
			}
			delete(sums, name)
		}
		if compiler == "" {
			continue
		}
		built := exec.CommandContext(t.Context(), compiler, "--debug-names", "--enable-multi-memory", "--output=-", filepath.Join(hostileFolder, s.name+".wat"))
		if out, err := built.Output(); err != nil || string(out) != string(s.wasm) {
			t.Errorf("%s.wasm is not what its text says (%v): %s", s.name, err, advice)
		}
	}
	for name := range sums {
		t.Errorf("%s is gone: %s", name, advice)
	}
}
