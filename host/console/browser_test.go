package console_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	_ "modernc.org/sqlite" // to write many runs

	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/hosttest/suite"
)

// consoleScript returns a call of .ci/console, which needs what it has installed before.
func consoleScript(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	suite.NotShort(t, "needs Node and a browser")
	script := filepath.Join(hosttest.Root(), ".ci", "console")
	if out, err := exec.Command(script, "ready").CombinedOutput(); err != nil {
		suite.Missing(t, "needs Node and a browser: %v\n%s", err, out)
	}
	return exec.CommandContext(t.Context(), script, args...)
}

// The files in the binary are what the sources of the console give, to the byte.
func TestConsoleIsBuilt(t *testing.T) {
	if out, err := consoleScript(t, "same").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// A real browser uses the console of real servers: one without keys, one with keys and one
// with many runs.
func TestConsoleInABrowser(t *testing.T) {
	cmd := consoleScript(t, "e2e")
	p := hosttest.Serve(t, t.TempDir())
	var examples map[string]json.RawMessage
	if err := json.Unmarshal([]byte(exampleStarts), &examples); err != nil {
		t.Fatal(err)
	}
	for name := range examples {
		put(t, p, name)
	}
	const key = "the-admin-key-of-a-test-that-is-long-enough"
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(key), 0o600); err != nil {
		t.Fatal(err)
	}
	wasm := filepath.Join(t.TempDir(), "counter.wasm")
	if err := os.WriteFile(wasm, hosttest.Plugin(t, "counter-tinygo"), 0o600); err != nil {
		t.Fatal(err)
	}
	keyed := hosttest.Serve(t, t.TempDir(), "--admin-key-file", file)
	cmd.Env = append(os.Environ(), "WEFT_URL="+p.URL, "WEFT_EXAMPLES="+exampleStarts, "WEFT_SCALE_URL="+manyRuns(t).URL, "WEFT_KEYED_URL="+keyed.URL, "WEFT_KEY="+key, "WEFT_RESULTS="+t.TempDir(), "WEFT_WASM="+wasm)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Errorf("%v\n%s", err, &out)
		return
	}
	t.Log(out.String())
}

// manyRuns serves a store with 100,000 runs, whose rows are written into it, and with a run
// whose journal has 20,000 entries.
func manyRuns(t *testing.T) *hosttest.Process {
	t.Helper()
	dir := t.TempDir()
	p := hosttest.Serve(t, dir)
	put(t, p, "approval")
	if code := p.Interrupt(t); code != 0 {
		t.Fatalf("the server ended with %d", code)
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, "weft.db"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
		INSERT INTO runs (hid, sid, latest, tenant, handler, run, session, workflow, status, started, updated, completed, paused, steps, fuel, error, error_code, phase)
		SELECT i, i, 1, 'default', 'h' || i, 'r' || i, 's' || i, 'flow' || (i % 7), 'completed', i * 1000000, i * 1000000, i * 1000000, 0, 1, i, '', '', 'completed' FROM n`)
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	p = hosttest.Serve(t, dir)
	if status, out := p.Do(t, http.MethodPost, "/workflows/approval/run-nowait", []byte(`{"handler_id":"long","start_event":{"item":"desk"}}`)); status != http.StatusOK {
		t.Fatalf("the long run: %d %s", status, out)
	}
	const writers = 50 // they share commits
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: writers}}
	defer client.CloseIdleConnections()
	var edits sync.WaitGroup
	for i := range writers {
		edits.Go(func() {
			for j := range 20_000 / writers {
				if err := edit(t.Context(), client, p.URL+"/sessions/long/state", fmt.Sprintf(`{"note%d":%d}`, i, j+1)); err != nil {
					t.Errorf("edit %d of %d: %v", j, i, err)
					return
				}
			}
		})
	}
	edits.Wait()
	return p
}

// put uploads an example.
func put(t *testing.T, p *hosttest.Process, name string) {
	t.Helper()
	if status, out := p.Do(t, http.MethodPut, "/plugins/"+name, hosttest.Plugin(t, name+"-tinygo")); status != http.StatusCreated {
		t.Fatalf("upload %s: %d %s", name, status, out)
	}
}

func edit(ctx context.Context, client *http.Client, url, patch string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPatch, url, strings.NewReader(patch))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, res.Body)
	if res.StatusCode != http.StatusOK {
		err = errors.Join(err, errors.New(res.Status))
	}
	return errors.Join(err, res.Body.Close())
}

// exampleStarts are events that start the examples that need no resource, one or several for
// each, as JSON.
const exampleStarts = `{
	"accumulator": [{"items": ["a", "b"]}], "approval": [{"item": "desk"}], "branch": [{"branch": "A"}, {"branch": "B"}], "chain": [{"n": 3}],
	"concurrent": [{"query": "q"}], "counter": [{}, {}], "flaky": [{"fail_times": 2}, {"fail_times": 9, "max_attempts": 2}], "history": [{"query": "q"}],
	"human": [{}], "loop": [{"n": 3}], "metadata": [{"query": "q"}], "parent": [{"items": ["milk", "bread"]}],
	"quiz": [{"action": "start"}, {"action": "answer", "answer": "paris"}], "rescue": [{"fail": true}, {"fail": false}], "sleeper": [{"seconds": 0}],
	"stream": [{"n": 3}], "wordcount": [{"text": "to be or not to be"}, {"text": ""}]
}`
