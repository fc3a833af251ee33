package abi_test

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
)

var update = flag.Bool("update", false, "rewrite the golden vectors of testdata/abi")

const vectorDir = "../testdata/abi"

func allVectors() []vector {
	return slices.Concat(valueVectors, stepVectors, manifestVectors, callVectors)
}

// codec is the pair of functions of a rule of abi.cddl.
type codec struct {
	decode func([]byte) (any, error)
	encode func(any) ([]byte, error)
}

// message makes a codec of a decoder and a message's own Encode.
func message[T interface{ Encode() ([]byte, error) }](decode func([]byte) (T, error)) codec {
	return codec{
		decode: func(b []byte) (any, error) { return decode(b) },
		encode: func(v any) ([]byte, error) { return v.(T).Encode() },
	}
}

var emptyCodec = codec{
	decode: func(b []byte) (any, error) { return empty{}, abi.DecodeEmpty(b) },
	encode: func(any) ([]byte, error) { return abi.EncodeEmpty() },
}

var rules = map[string]codec{
	"value": {
		decode: func(b []byte) (any, error) { return abi.DecodeValue(b) },
		encode: func(v any) ([]byte, error) { return abi.EncodeValue(v) },
	},
	"event":       message(abi.DecodeEvent),
	"error":       message(abi.DecodeError),
	"step-input":  message(abi.DecodeStepInput),
	"step-output": message(abi.DecodeStepOutput),
	"manifest":    message(abi.DecodeManifest),
	"state_get":   message(abi.DecodeStateGet),
	"state_edit": {
		decode: func(b []byte) (any, error) { return abi.DecodeEdits(b) },
		encode: func(v any) ([]byte, error) { return abi.EncodeEdits(v.([]abi.Edit)) },
	},
	"state_begin":           message(abi.DecodeStateBegin),
	"state_commit":          message(abi.DecodeStateCommit),
	"state_abort":           emptyCodec,
	"now":                   emptyCodec,
	"send_event":            message(abi.DecodeSendEvent),
	"collect_events":        message(abi.DecodeCollectEvents),
	"wait_for_event":        message(abi.DecodeWaitForEvent),
	"write_event_to_stream": message(abi.DecodeWriteStream),
	"run_workflow":          message(abi.DecodeRunWorkflow),
	"call_resource":         message(abi.DecodeCallResource),
	"sleep":                 message(abi.DecodeSleep),
	"random":                message(abi.DecodeRandom),
	"log":                   message(abi.DecodeLog),
}

// responses are the codecs of responses that abi.cddl has no rule of their own
// for.
var responses = map[string]codec{
	"collect_events response": {
		decode: func(b []byte) (any, error) { return abi.DecodeEvents(b) },
		encode: func(v any) ([]byte, error) { return abi.EncodeEvents(v.([]abi.Event)) },
	},
	"state_edit response": {
		decode: func(b []byte) (any, error) { return abi.DecodeResults(b) },
		encode: func(v any) ([]byte, error) { return abi.EncodeResults(v.([]abi.Raw)) },
	},
}

// ruleOf returns the rule that a vector's name begins with.
func ruleOf(t testing.TB, name string) (string, codec) {
	t.Helper()
	best := ""
	for rule := range rules {
		if strings.HasPrefix(name, rule+"-") && len(rule) > len(best) {
			best = rule
		}
	}
	if best == "" {
		t.Fatalf("%s: the name begins with no rule of abi.cddl", name)
	}
	return best, rules[best]
}

// vectorFiles returns the names of the vectors of a folder, without .cbor.
func vectorFiles(t testing.TB, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.cbor"))
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(filepath.Base(f), ".cbor")
	}
	slices.Sort(files) // "a-b" before "a", which the suffix had turned round
	return files
}

func readFile(t testing.TB, parts ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func writeFile(t testing.TB, content []byte, parts ...string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(parts...), content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// replaceFolder removes the vectors of a folder before they are written again.
func replaceFolder(t testing.TB, dir string, suffixes ...string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range suffixes {
		files, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if err := os.Remove(f); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestGoldenVectors(t *testing.T) {
	vectors := allVectors()
	if *update {
		replaceFolder(t, vectorDir, ".cbor", ".diag")
	}
	var names []string
	for _, v := range vectors {
		names = append(names, v.name)
		t.Run(v.name, func(t *testing.T) { checkVector(t, v) })
	}
	slices.Sort(names)
	if files := vectorFiles(t, vectorDir); !slices.Equal(names, files) {
		t.Errorf("files and literals differ: run with -update\nfiles    %v\nliterals %v", files, names)
	}
}

func checkVector(t *testing.T, v vector) {
	_, c := ruleOf(t, v.name)
	encoded, err := c.encode(v.want)
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	if *update {
		writeFile(t, encoded, vectorDir, v.name+".cbor")
		writeFile(t, []byte(abi.Diag(encoded)+"\n"), vectorDir, v.name+".diag")
	}
	file := readFile(t, vectorDir, v.name+".cbor")
	if !bytes.Equal(encoded, file) {
		t.Fatalf("encoded\n%s\nwant\n%s", abi.Diag(encoded), abi.Diag(file))
	}
	if want := string(readFile(t, vectorDir, v.name+".diag")); abi.Diag(file)+"\n" != want {
		t.Errorf("diagnostic notation\n%s\nwant\n%s", abi.Diag(file), want)
	}
	decoded, err := c.decode(file)
	if err != nil {
		t.Fatalf("decode: %v", err)
	}
	if !reflect.DeepEqual(decoded, v.want) {
		t.Errorf("decoded\n%#v\nwant\n%#v", decoded, v.want)
	}
	again, err := c.encode(decoded)
	if err != nil || !bytes.Equal(again, file) {
		t.Errorf("encoded again\n%s (%v)\nwant\n%s", abi.Diag(again), err, abi.Diag(file))
	}
	canonical, err := abi.Canonical(file, abi.MaxMessageDepth)
	if err != nil || !bytes.Equal(canonical, file) {
		t.Errorf("not canonical: %v", err)
	}
}

// A guest may write keys in any order and heads in any width.
func TestLooseVectorsDecodeAlike(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, v := range allVectors() {
		_, c := ruleOf(t, v.name)
		file := readFile(t, vectorDir, v.name+".cbor")
		for range 10 {
			loose := loosen(rng, file)
			decoded, err := c.decode(loose)
			if err != nil {
				t.Fatalf("%s: decode %x: %v", v.name, loose, err)
			}
			again, err := c.encode(decoded)
			if err != nil || !bytes.Equal(again, file) {
				t.Fatalf("%s: %x came back as\n%s (%v)\nwant\n%s", v.name, loose, abi.Diag(again), err, abi.Diag(file))
			}
			if err := abi.CheckValue(loose, abi.MaxMessageDepth); err != nil {
				t.Fatalf("%s: check %x: %v", v.name, loose, err)
			}
		}
	}
}

// What a message was encoded from must not be cut short without an error.
func TestTruncatedVectorsAreRefused(t *testing.T) {
	for _, v := range allVectors() {
		_, c := ruleOf(t, v.name)
		file := readFile(t, vectorDir, v.name+".cbor")
		for n := range min(len(file), 600) {
			if _, err := c.decode(file[:n:n]); err == nil {
				t.Errorf("%s: the first %d bytes of %d were accepted", v.name, n, len(file))
			}
		}
		if _, err := c.decode(append(file[:len(file):len(file)], 0)); err == nil ||
			!strings.Contains(err.Error(), "trailing data") {
			t.Errorf("%s: trailing data: %v", v.name, err)
		}
	}
}

func TestEveryRuleHasVectors(t *testing.T) {
	count := 0
	for rule := range rules {
		found := false
		for _, v := range allVectors() {
			found = found || strings.HasPrefix(v.name, rule+"-")
		}
		if !found {
			t.Errorf("no vector for %s", rule)
		}
		count++
	}
	cddl := string(readFile(t, "abi.cddl"))
	for rule := range rules {
		if !strings.Contains(cddl, "\n"+rule+" ") {
			t.Errorf("abi.cddl has no rule %s", rule)
		}
	}
	if vectors := len(allVectors()); vectors < 60 {
		t.Errorf("only %d vectors for %d rules", vectors, count)
	}
}

func ExampleDiag() {
	r, err := abi.FromJSON([]byte(`{"items": ["milk", 2, 2.0], "key": {"$bytes": "AP8="}}`))
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(abi.Diag(r))
	// Output: {"key": h'00ff', "items": ["milk", 2, 2.0]}
}
