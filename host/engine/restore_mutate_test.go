package engine

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// TestRestoreMutated: if one field of a real snapshot has another value, Restore must
// refuse the snapshot, or return a session that does not panic on any tick.
func TestRestoreMutated(t *testing.T) {
	files, err := filepath.Glob(histories + "/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	rounds := 60
	if few {
		rounds = 5
	}
	const seed = 11
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, seed))
	taken, refused := 0, 0
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		a := parseArchive(string(text))
		p := newPlayer(t, graphsOf(t, a))
		var snapshots [][]byte
		for line := range strings.Lines(a.file("ticks")) {
			if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			p.play(line)
			data, err := p.live.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			snapshots = append(snapshots, data)
		}
		for range rounds {
			var form savedForm
			if err := abi.Unmarshal(snapshots[rng.IntN(len(snapshots))], &form); err != nil {
				t.Fatal(err)
			}
			form.Session = mutate[savedSession](t, rng, form.Session)
			data := must(abi.Marshal(form))
			s, err := Restore(p.live.key, p.live.graphs, data)
			if err != nil {
				refused++
				continue
			}
			taken++
			for id := range s.runs {
				if past, err := Restore(p.live.key, p.live.graphs, data); err == nil {
					_, _, _ = past.Fork(id, ForkTarget{Key: host.SessionKey{Tenant: "t", Session: "fork"}, RunID: "f", HandlerID: "f", At: 9})
					_, _ = past.Snapshot()
				}
			}
			exercise(s)
		}
	}
	t.Logf("%d taken, %d refused", taken, refused)
	if taken == 0 || refused == 0 {
		t.Errorf("%d mutated snapshots are taken, %d refused", taken, refused)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// mutate changes one field of an encoded item, or of an item inside it.
func mutate[T any](t *testing.T, rng *rand.Rand, item []byte) []byte {
	t.Helper()
	var v T
	if err := abi.Unmarshal(item, &v); err != nil {
		t.Fatal(err)
	}
	inside := func(list [][]byte, change func([]byte) []byte) bool {
		if len(list) == 0 || rng.IntN(4) == 0 {
			return false
		}
		i := rng.IntN(len(list))
		list[i] = change(list[i])
		return true
	}
	done := false
	switch v := any(&v).(type) {
	case *savedSession:
		done = inside(v.Runs, func(b []byte) []byte { return mutate[savedRun](t, rng, b) }) ||
			inside(v.Outbox, func(b []byte) []byte { return mutate[savedMessage](t, rng, b) }) ||
			inside(v.Turns, func(b []byte) []byte { return mutate[savedTurn](t, rng, b) })
	case *savedRun:
		done = inside(v.Invocations, func(b []byte) []byte { return mutate[savedInvocation](t, rng, b) }) ||
			inside(v.Collections, func(b []byte) []byte { return mutate[savedCollection](t, rng, b) })
	}
	if !done {
		var leaves []func()
		gatherLeaves(rng, reflect.ValueOf(&v).Elem(), &leaves)
		if len(leaves) > 0 {
			leaves[rng.IntN(len(leaves))]()
		}
	}
	out, err := abi.Marshal(v)
	if err != nil {
		return item // the form cannot express the value
	}
	return out
}

// gatherLeaves lists the possible changes of a value.
func gatherLeaves(rng *rand.Rand, v reflect.Value, out *[]func()) {
	numbers := []int64{0, 1, 2, 3, 5, -1, 64, 1 << 40, -1 << 63, 1<<63 - 1}
	add := func(f func()) { *out = append(*out, f) }
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range v.Fields() {
			gatherLeaves(rng, field, out)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			add(func() { v.SetZero() })
			gatherLeaves(rng, v.Elem(), out)
			return
		}
		add(func() { v.Set(reflect.New(v.Type().Elem())) })
	case reflect.Slice:
		if n := v.Len(); n > 0 {
			add(func() { v.SetZero() })
			add(func() { v.Set(reflect.AppendSlice(v.Slice(0, n), v.Slice(0, n))) })
			add(func() { v.Set(v.Slice(0, n-1)) })
			if v.Type().Elem().Kind() != reflect.Uint8 {
				gatherLeaves(rng, v.Index(rng.IntN(n)), out)
			}
		} else {
			add(func() { v.Set(reflect.MakeSlice(v.Type(), 1, 1)) })
		}
	case reflect.Bool:
		add(func() { v.SetBool(!v.Bool()) })
	case reflect.Int, reflect.Int64:
		add(func() { v.SetInt(numbers[rng.IntN(len(numbers))]) })
	case reflect.Uint8, reflect.Uint64:
		add(func() { v.SetUint(uint64(numbers[rng.IntN(len(numbers))])) })
	case reflect.String:
		add(func() { v.SetString([]string{"", "x", "w", "h", "r", "Answer"}[rng.IntN(6)]) })
	}
}
