package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/hosttest/suite"
)

func TestMain(m *testing.M) {
	testscript.Main(sharing{m}, map[string]func(){"weft": main})
}

// sharing runs the tests with servers that share compiled code.
type sharing struct{ *testing.M }

func (s sharing) Run() int {
	end, err := hosttest.ShareCode()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer end()
	// Commands of a project compile the same interpreters and templates again and again.
	if err := os.Setenv("WEFT_CACHE", hosttest.CodeOfServers()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return s.M.Run()
}

// scriptPlugins are the examples that the scripts run.
var scriptPlugins = []string{"accumulator", "approval", "branch", "chain", "counter", "flaky", "human", "stream", "wordcount"}

// TestScripts plays testdata/script: the command line as people and programs
// use it, against a server in a separate process. In addition to testscript's
// own commands, scripts have these commands:
//
//	startserver [FLAG...]           starts a server on $WORK/data and sets WEFT_SERVER
//	stopserver                      interrupts the server and checks that it succeeds
//	exits CODE COMMAND...           runs a command that must exit with the code
//	spawn NAME PATTERN COMMAND...   starts a command and waits until it prints the pattern
//	terminal CODE COMMAND...        runs a command on a terminal of 100 columns (Linux); its
//	                                output becomes the file "screen"
//	interrupt NAME                  sends Ctrl-C to a spawned command
//	join NAME CODE                  waits for its end; then stdout and stderr are its output
//	setenv VAR FILE                 sets a variable to a file's text (stdout: of the last command)
//	freeaddr VAR                    finds an unused address
//	bigfile FILE BYTES              makes a text of at least that many bytes
//	testplugin NAME...              builds plugins of testdata/plugins as NAME.wasm
//	cmpdiff FILE PART               looks for the text of PART in FILE, with times as TIME
//
// and the variables WEFT (the program), PLUGINS (a folder), BUILD (go or tinygo), OTHER (the other one, if
// approval is built by it: condition otherbuild) and HOSTILE (a folder of modules that
// are refused).
func TestScripts(t *testing.T) {
	plugins, build := builtPlugins(t)
	other := otherBuild(plugins, build)
	weft, err := exec.LookPath("weft") // testscript.Main has put it there
	if err != nil {
		t.Fatal(err)
	}
	cache, untimed := goCache(t), suite.Environ(t)
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join(hosttest.Root(), "testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("PLUGINS", plugins)
			e.Setenv("BUILD", build)
			e.Setenv("OTHER", other)
			e.Setenv("WEFT", weft)
			e.Setenv("GOCACHE", cache) // HOME is not set
			e.Setenv("WEFT_CACHE", hosttest.CodeOfServers())
			e.Setenv("GOFLAGS", "-mod=mod")
			e.Setenv("GOPROXY", "off")
			e.Setenv("HOSTILE", filepath.Join(hosttest.Root(), "testdata", "hostile"))
			// The race detector makes each program sleep for a second at its end.
			e.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0")
			e.Values[spawnedKey{}] = map[string]*spawned{}
			e.Values[untimedKey{}] = untimed
			return nil
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "root":
				return os.Geteuid() == 0, nil
			case "otherbuild": // 'make plugins' builds both
				return other != "", nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"startserver": startServer, "stopserver": stopServer, "exits": exits, "terminal": onTerminalTo,
			"spawn": spawn, "interrupt": interrupt, "join": join, "setenv": setenv, "freeaddr": freeAddr, "bigfile": bigFile, "cmpdiff": cmpDiff,
			"testplugin": func(ts *testscript.TestScript, neg bool, args []string) { testPlugin(t, ts, neg, args) },
		},
	})
}

// builtPlugins finds the built examples: TinyGo's builds, which compile faster, if all
// exist, otherwise Go's.
func builtPlugins(t *testing.T) (dir, build string) {
	t.Helper()
	suite.NotShort(t, "needs built plugins")
	dir = suite.Plugins()
	var missing error
	for _, build := range []string{"tinygo", "go"} {
		missing = nil
		for _, name := range scriptPlugins {
			_, err := os.Stat(filepath.Join(dir, name+"-"+build+".wasm"))
			missing = errors.Join(missing, err)
		}
		if missing == nil {
			return dir, build
		}
	}
	suite.Missing(t, "needs built plugins: make plugins (%v)", missing)
	return "", ""
}

// goCache is Go's build cache.
func goCache(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// otherBuild returns the compiler that is not BUILD's, "" if it has built nothing.
func otherBuild(plugins, build string) string {
	other := "go"
	if build == "go" {
		other = "tinygo"
	}
	if _, err := os.Stat(filepath.Join(plugins, "approval-"+other+".wasm")); err != nil {
		return ""
	}
	return other
}

// spawned is a command that runs in the background of the script.
type spawned struct {
	cmd      *exec.Cmd
	found    chan []string // the pattern's match, once
	out, err output
	readers  sync.WaitGroup
}

// output collects what a command prints.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) add(line string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.WriteString(line)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// spawnedKey is the key of the map of spawned commands in a script's Values.
type spawnedKey struct{}

// untimedKey is the key in a script's Values of the environment that removes the time
// limits of servers.
type untimedKey struct{}

func spawnedIn(ts *testscript.TestScript) map[string]*spawned {
	return ts.Value(spawnedKey{}).(map[string]*spawned)
}

// spawnCommand starts a command and returns what the pattern matched.
func spawnCommand(ts *testscript.TestScript, name, pattern string, args []string) []string {
	path, err := exec.LookPath(args[0])
	ts.Check(err)
	p := &spawned{cmd: exec.Command(path, args[1:]...), found: make(chan []string, 1)}
	p.cmd.Dir = ts.Getenv("WORK")
	p.cmd.Env = environ(ts)
	stdout, err := p.cmd.StdoutPipe()
	ts.Check(err)
	stderr, err := p.cmd.StderrPipe()
	ts.Check(err)
	ts.Check(p.cmd.Start())
	ts.Defer(func() { _ = p.end() }) // it may have ended: join reports that
	p.read(stdout, &p.out, regexp.MustCompile(pattern))
	p.read(stderr, &p.err, regexp.MustCompile(pattern))
	ended := make(chan struct{})
	go func() {
		p.readers.Wait()
		close(ended)
	}()
	spawnedIn(ts)[name] = p
	select {
	case match := <-p.found:
		return match
	case <-ended:
	case <-time.After(suite.Hang):
	}
	ts.Fatalf("%s has not printed %q:\n%s%s", name, pattern, &p.out, &p.err)
	return nil
}

// environ is the script's environment.
func environ(ts *testscript.TestScript) []string {
	var env []string
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "WORK", "WEFT_SERVER", "WEFT_KEY", "GORACE"} {
		env = append(env, name+"="+ts.Getenv(name))
	}
	return append(env, ts.Value(untimedKey{}).([]string)...)
}

// read collects a stream to its end and reports the pattern's first match.
func (p *spawned) read(from io.Reader, to *output, pattern *regexp.Regexp) {
	p.readers.Go(func() {
		lines := bufio.NewReader(from)
		for {
			line, err := lines.ReadString('\n')
			to.add(line)
			if match := pattern.FindStringSubmatch(line); match != nil {
				select {
				case p.found <- match:
				default: // one match is enough
				}
			}
			if err != nil {
				return
			}
		}
	})
}

// end kills the command if it still runs.
func (p *spawned) end() error {
	if p.cmd.ProcessState != nil {
		return nil
	}
	_ = p.cmd.Process.Kill() // it may have already ended
	p.readers.Wait()
	return p.cmd.Wait()
}

func spawn(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: spawn NAME PATTERN COMMAND...")
	}
	spawnCommand(ts, args[0], args[1], args[2:])
}

func interrupt(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: interrupt NAME")
	}
	ts.Check(spawnedIn(ts)[args[0]].cmd.Process.Signal(os.Interrupt))
}

func join(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: join NAME CODE")
	}
	p := spawnedIn(ts)[args[0]]
	p.readers.Wait()
	_ = p.cmd.Wait() // the exit code is checked below
	if got := strconv.Itoa(p.cmd.ProcessState.ExitCode()); got != args[1] {
		ts.Fatalf("%s has exited with %s:\n%s%s", args[0], got, &p.out, &p.err)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".out"), []byte(p.out.String()), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".err"), []byte(p.err.String()), 0o600))
}

func startServer(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: startserver [FLAG...]")
	}
	command := append([]string{"weft", "serve", "--addr", "127.0.0.1:0", "--data", "data"}, args...)
	data := ts.MkAbs("data")
	ts.Check(hosttest.LendCode(data))
	ts.Defer(func() { hosttest.KeepCode(data) }) // when the server has ended: deferred functions run in reverse order
	match := spawnCommand(ts, "server", `serves on (http://([0-9.:]+)),`, command)
	ts.Setenv("WEFT_SERVER", match[1])
	ts.Setenv("ADDR", match[2])
}

func stopServer(ts *testscript.TestScript, neg bool, args []string) {
	interrupt(ts, neg, []string{"server"})
	join(ts, neg, []string{"server", "0"})
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		code = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d:\n%s%s", code, ts.ReadFile("stdout"), ts.ReadFile("stderr"))
	}
}

func onTerminalTo(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: terminal CODE COMMAND...")
	}
	path, err := exec.LookPath(args[1])
	ts.Check(err)
	cmd := exec.Command(path, args[2:]...)
	cmd.Dir, cmd.Env = ts.Getenv("WORK"), append(environ(ts), "TERM="+ts.Getenv("TERM"), "NO_COLOR="+ts.Getenv("NO_COLOR"))
	screen, err := onTerminalOf(100, 30, cmd)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		ts.Fatalf("%v", err)
	}
	ts.Check(os.WriteFile(ts.MkAbs("screen"), screen, 0o600))
	if got := strconv.Itoa(cmd.ProcessState.ExitCode()); got != args[0] {
		ts.Fatalf("exit code %s:\n%s", got, screen)
	}
}

func setenv(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: setenv VAR FILE")
	}
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile(args[1])))
}

func freeAddr(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: freeaddr VAR")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Setenv(args[0], l.Addr().String())
	ts.Check(l.Close())
}

func bigFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: bigfile FILE BYTES")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	const line = "It is a truth universally acknowledged, that a \"word\" counts.\n"
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Repeat(line, n/len(line)+1)), 0o600))
}

func testPlugin(t *testing.T, ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: testplugin NAME...")
	}
	for _, name := range args {
		ts.Check(os.WriteFile(ts.MkAbs(name+".wasm"), hosttest.BuildPlugin(t, name), 0o600))
	}
}

// aTime matches the duration of a case.
var aTime = regexp.MustCompile(`\([0-9.]+(µs|m?s)\)`)

func cmpDiff(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: cmpdiff FILE PART")
	}
	have, want := aTime.ReplaceAllString(ts.ReadFile(args[0]), "(TIME)"), ts.ReadFile(args[1])
	if !strings.Contains(have, want) {
		ts.Fatalf("%s has not this text:\n%s\nit is:\n%s", args[0], want, have)
	}
}
