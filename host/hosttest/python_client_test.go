package hosttest_test

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/weftrun/weft/host/hosttest"
)

// The field's own Python client, unmodified, against the real server: each check
// of testdata/client is a subtest.
func TestPythonClient(t *testing.T) {
	python := hosttest.Python(t, "client")
	p := hosttest.Serve(t, t.TempDir())
	for _, name := range []string{"counter", "loop", "wordcount", "concurrent", "human", "approval", "stream", "flaky", "spin"} {
		put(t, p, name, hosttest.Plugin(t, name+"-tinygo"))
	}
	for _, name := range []string{"hello", "plain", "fail", "slow", "timeout", "waiter"} {
		put(t, p, name, hosttest.BuildPlugin(t, "recorded", name))
	}
	runChecks(t, python, p.URL)
}

// check is a line that testdata/client/run.py prints.
type check struct {
	Check   string
	Failure *string
	Checks  *int // in the last line
}

// runChecks runs all checks of testdata/client against a server.
func runChecks(t *testing.T, python, url string) {
	cmd := exec.CommandContext(t.Context(), python, "run.py", url)
	cmd.Dir = filepath.Join(hosttest.Root(), "testdata", "client")
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1", "NO_PROXY=*")
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	seen, total := 0, -1
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var c check
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Errorf("%s: %v", lines.Bytes(), err)
			continue
		}
		if c.Checks != nil {
			total = *c.Checks
			continue
		}
		seen++
		t.Run(c.Check, func(t *testing.T) {
			if c.Failure != nil {
				t.Error(*c.Failure)
			}
		})
	}
	if err := cmd.Wait(); err != nil || lines.Err() != nil {
		t.Errorf("the checks ended early: %v, %v", err, lines.Err())
	}
	if seen == 0 || seen != total {
		t.Errorf("%d checks have reported, of %d", seen, total)
	}
}
