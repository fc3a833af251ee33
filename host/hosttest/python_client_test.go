package hosttest_test

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/store/postgres/pgtest"
)

// The unmodified Python client of llama-agents runs against the real server. Each check
// of testdata/client is a subtest.
func TestPythonClient(t *testing.T) {
	python := hosttest.Python(t, "client")
	p := hosttest.Serve(t, t.TempDir())
	putChecked(t, p)
	runChecks(t, python, p.URL)
}

// The client runs against three nodes, of which a proxy chooses one for each connection.
func TestPythonClientOnCluster(t *testing.T) {
	t.Parallel() // its time is waiting
	python := hosttest.Python(t, "client")
	n := newNodes(t, 3, pgtest.Own(t).URL)
	putChecked(t, n.list[0].Process)
	runChecks(t, python, n.url)
}

// putChecked uploads the plugins of the checks.
func putChecked(t *testing.T, p *hosttest.Process) {
	t.Helper()
	for _, name := range []string{"counter", "loop", "wordcount", "concurrent", "human", "approval", "stream", "flaky", "spin"} {
		put(t, p, name, hosttest.Plugin(t, name+"-tinygo"))
	}
	for _, name := range []string{"hello", "plain", "fail", "slow", "timeout", "waiter"} {
		put(t, p, name, hosttest.BuildPlugin(t, "recorded", name))
	}
}

// pythonScript starts a script of testdata/client that ends with the test.
func pythonScript(t *testing.T, python string, line ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), python, line...)
	cmd.Dir = filepath.Join(hosttest.Root(), "testdata", "client")
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "NO_PROXY=*")
	cmd.Stderr = t.Output()
	return cmd
}

// pythonCheck is a line that testdata/client/run.py prints.
type pythonCheck struct {
	Check   string
	Seconds float64
	Failure *string
	Checks  *int // in the last line
}

// runChecks runs all checks of testdata/client against a server.
func runChecks(t *testing.T, python, url string) {
	cmd := pythonScript(t, python, "run.py", url)
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
		var c pythonCheck
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
			t.Logf("took %.3f s", c.Seconds)
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

// The Python client follows a run whose server is killed: its stream continues, without
// gaps or repetitions.
func TestPythonClientOverAKill(t *testing.T) {
	python := hosttest.Python(t, "client")
	data := t.TempDir()
	p := hosttest.Serve(t, data)
	put(t, p, "human", hosttest.Plugin(t, "human-tinygo"))
	line := newRelay(t)
	line.to(p.URL)

	cmd := pythonScript(t, python, "follow.py", line.URL)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := bufio.NewScanner(out)
	if !said.Scan() || said.Text() != "asked" {
		t.Fatalf("the client says %q", said.Text())
	}
	line.hold()
	p = kill(t, p, data)
	line.to(p.URL)
	if _, err := in.Write([]byte("go on\n")); err != nil {
		t.Fatal(err)
	}
	said.Scan()
	var got struct {
		Types   []string
		Numbers []int
		Result  string
	}
	if err := json.Unmarshal(said.Bytes(), &got); err != nil {
		t.Fatalf("the client says %q: %v", said.Text(), err)
	}
	if types := strings.Join(got.Types, " "); types != "InputRequiredEvent StopEvent" || got.Result != "after the crash" || got.Numbers[0] >= got.Numbers[1] {
		t.Errorf("the client says %s", said.Text())
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
