package hosttest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/weftrun/weft/host/hosttest"
)

// kvKills is how often the tests kill the server; WEFT_KILLS overrides it.
const kvKills = 8

// kvGrants is a file of resources that grants a shelf to everybody.
const kvGrants = `{"resources": {"shelf": {"kind": "kv", "settings": {"value_bytes": 1048576}, "grants": [{"tenant": "*", "workflow": "*"}]}}}`

// keptKeys reads all keys of the shelf, with their values.
func keptKeys(t *testing.T, p *hosttest.Process) map[string]string {
	t.Helper()
	kept := map[string]string{}
	var page struct {
		Keys []struct {
			Key   string
			Value json.RawMessage
		}
		Next string `json:"next_cursor"`
	}
	for path := "/resources/shelf/keys?values=true&limit=3"; ; path = "/resources/shelf/keys?values=true&limit=3&cursor=" + page.Next {
		status, out := p.Do(t, http.MethodGet, path, nil)
		page.Keys, page.Next = nil, ""
		if err := json.Unmarshal(out, &page); err != nil || status != http.StatusOK {
			t.Fatalf("%d %s: %v", status, out, err)
		}
		for _, k := range page.Keys {
			kept[k.Key] = string(k.Value)
		}
		if page.Next == "" {
			return kept
		}
	}
}

// A real server is killed again and again while many runs read, change and write values
// that all of them share. In the end each run has changed each value once: every sum was
// given to exactly one run, and nobody saw a sum whose commit was lost.
func TestKVKilled(t *testing.T) {
	rnd := seed(t)
	kills := kvKills
	if n, err := strconv.Atoi(os.Getenv("WEFT_KILLS")); err == nil {
		kills = n
	}
	file := filepath.Join(t.TempDir(), "resources.json")
	write(t, file, kvGrants)
	s := &storm{t: t, data: t.TempDir(), args: []string{"--resources", file}}
	s.serve()
	put(t, s.p, "scenes", hosttest.BuildPlugin(t, "scenes"))
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	s.stop = stop
	const clients = 6
	sums, own := make([][]int64, clients), make([]int64, clients)
	for i := range clients {
		c := &stormClient{storm: s, name: fmt.Sprint("client", i), rnd: rand.New(rand.NewPCG(rnd.Uint64(), 1))}
		s.clients.Go(func() {
			for ; ctx.Err() == nil; c.n++ {
				result, err := c.run("scenes", start(fields{"what": "tally", "text": c.name}))
				var got [2]int64
				if err == nil {
					err = json.Unmarshal([]byte(result), &got)
				}
				if own[i]++; err != nil || got[0] != own[i] {
					t.Errorf("%s, run %d: %s %v", c.name, own[i], result, err)
					return
				}
				sums[i] = append(sums[i], got[1])
			}
		})
	}
	for range kills {
		pause(t, rnd, 400*time.Millisecond)
		s.restart()
		s.unblocked()
	}
	pause(t, rnd, 400*time.Millisecond)
	s.end(s.unblocked)
	s.verify()

	var all []int64
	for i := range clients {
		all = append(all, sums[i]...)
	}
	slices.Sort(all)
	for i, sum := range all {
		if sum != int64(i+1) {
			t.Fatalf("the sum %d was given to nobody, or twice: %v", i+1, all)
		}
	}
	kept := keptKeys(t, s.p)
	var listed []int64
	if err := json.Unmarshal([]byte(kept["all"]), &listed); err != nil {
		t.Fatal(err)
	}
	slices.Sort(listed)
	if !slices.Equal(listed, all) || kept["sum"] != strconv.Itoa(len(all)) || len(kept) != clients+2 {
		t.Errorf("the runs were given %v; it keeps %v", all, kept)
	}
	for i := range clients {
		if name := fmt.Sprint("own/client", i); kept[name] != strconv.FormatInt(own[i], 10) {
			t.Errorf("%s is %s, after %d runs", name, kept[name], own[i])
		}
	}
	clean(t, s.data)
	t.Logf("%d kills, %d runs, %d requests sent again", s.killed, s.runs.Load(), s.again.Load())
}
