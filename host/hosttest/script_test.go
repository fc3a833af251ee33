package hosttest_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/hosttest/suite"
	"github.com/weftrun/weft/host/sandbox"
)

// scriptExamples are the examples that exist in TypeScript and in Python, as plugins/NAME-ts
// and plugins/NAME-py.
var scriptExamples = []string{"approval", "conversation", "counter", "fetch", "flaky", "human", "joke", "parent", "quiz", "wordcount"}

// The manifest of a plugin in TypeScript or Python is that of the same plugin in Go, byte
// for byte.
func TestScriptManifests(t *testing.T) {
	box, err := sandbox.New(t.Context(), sandbox.Config{CacheDir: hosttest.Code, Limits: suite.Limits()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = box.Close(t.Context()) }()
	manifest := func(wasm []byte, workflow string) []byte {
		sum := sha256.Sum256(wasm)
		d, err := box.Describe(t.Context(), hex.EncodeToString(sum[:]), wasm, suite.Limits())
		if err != nil {
			t.Fatal(err)
		}
		m, err := abi.DecodeManifest(d.Manifest)
		if err != nil {
			t.Fatal(err)
		}
		m.Workflow = workflow
		b, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	compare := func(language, name string, was, is []byte) {
		if was, is := manifest(was, name), manifest(is, name); !bytes.Equal(was, is) {
			t.Errorf("%s: the manifest in Go\n%s\nin %s\n%s", name, abi.Diag(was), language, abi.Diag(is))
		}
	}
	for _, name := range scriptExamples {
		was := hosttest.Plugin(t, name+"-tinygo")
		compare("TypeScript", name, was, hosttest.Plugin(t, name+"-ts"))
		compare("Python", name, was, hosttest.Plugin(t, name+"-py"))
	}
	scenes := tinyScenes(t)
	compare("TypeScript", "scenes", scenes, tsScenes(t))
	compare("Python", "scenes", scenes, pyScenes(t))
}

// The examples in TypeScript and in Python are those of scriptExamples, each with its README
// and the cases of the other language.
func TestScriptExamples(t *testing.T) {
	for _, language := range []string{"-ts", "-py"} {
		dirs, err := filepath.Glob(filepath.Join(hosttest.Root(), "plugins", "*"+language))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, dir := range dirs {
			name := strings.TrimSuffix(filepath.Base(dir), language)
			names = append(names, name)
			if _, err := os.Stat(filepath.Join(dir, "README.md")); err != nil {
				t.Error(err)
			}
			if is, was := cases(t, dir), cases(t, filepath.Join(filepath.Dir(dir), name+"-ts")); !bytes.Equal(is, was) {
				t.Errorf("%s plays other cases than %s-ts", filepath.Base(dir), name)
			}
		}
		if !slices.Equal(names, scriptExamples) {
			t.Errorf("the folders *%s are of %q, the tests of %q", language, names, scriptExamples)
		}
	}
}

func cases(t *testing.T, dir string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "cases.json"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The server is killed while an asynchronous step in TypeScript waits and computes. When the
// step runs again, it sees the same numbers, times and answers, and each effect exists
// once.
func TestScriptKilledInAStep(t *testing.T) {
	rnd := seed(t)
	data := t.TempDir()
	p := hosttest.Serve(t, data)
	put(t, p, "steady-ts", builtByWeft(t, "testdata/plugins/steady-ts"))
	var chances []string
	for round := 1; round <= 2; round++ {
		r := p.RunNoWait(t, "steady-ts", in("s", fields{"spins": 3_000_000}))
		seen := func(kind, part string) (list []json.RawMessage) {
			found := false
			p.Events(t, r.HandlerID, "", func(e hosttest.Event) bool {
				var v struct {
					Prefix string            `json:"prefix"`
					Seen   []json.RawMessage `json:"seen"`
				}
				if err := json.Unmarshal(e.Value, &v); err != nil {
					t.Fatal(err)
				}
				found = e.Type == kind && v.Prefix == part
				list = v.Seen
				return found
			})
			if !found {
				t.Fatalf("the run ends without %s %s", kind, part)
			}
			return list
		}
		answer := func(waiter string, n int) {
			cue{Waiter: waiter, Event: fmt.Appendf(nil, `{"type":"HumanResponseEvent","value":{"n":%d}}`, n)}.send(t, p, r.HandlerID)
		}
		first := seen("InputRequiredEvent", "first?")
		p = kill(t, p, data)
		answer("first", 10*round)
		progress := seen("ProgressEvent", "")
		for range 2 { // while it computes
			pause(t, rnd, 200*time.Millisecond)
			p = kill(t, p, data)
		}
		second := seen("InputRequiredEvent", "second?")
		p = kill(t, p, data)
		answer("second", 10*round+1)
		events := p.Events(t, r.HandlerID, "", nil)
		if len(events) != 4 || events[3].Type != "StopEvent" {
			t.Errorf("stream after the kills: %v", events)
		}
		_, out := p.Do(t, http.MethodGet, "/handlers/"+r.HandlerID, nil)
		var got struct {
			Seen    []json.RawMessage `json:"seen"`
			Edits   int               `json:"edits"`
			Answers []int             `json:"answers"`
		}
		if err := json.Unmarshal(record(t, out).Result.Value.Result, &got); err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		last := fmt.Sprintf("%s", got.Seen)
		for _, earlier := range [][]json.RawMessage{first, progress, second} {
			if was := fmt.Sprintf("%s", earlier); len(earlier) == 0 || len(earlier) > len(got.Seen) || was != fmt.Sprintf("%s", got.Seen[:len(earlier)]) {
				t.Errorf("an attempt has seen %s, the last one %s", was, last)
			}
		}
		want := []int{10, 11, 20, 21}[:2*round]
		if got.Edits != 2*round || !slices.Equal(got.Answers, want) {
			t.Errorf("after round %d: %d edits, answers %d", round, got.Edits, got.Answers)
		}
		expect(t, string(got.Seen[1])+string(got.Seen[3]), `true["early","late"]`)
		chances = append(chances, string(got.Seen[0]), string(got.Seen[4]))
	}
	slices.Sort(chances)
	if n := len(slices.Compact(chances)); n != 4 {
		t.Errorf("%d different numbers by chance of 4: %s", n, chances)
	}
	clean(t, data)
}
