//go:build !race

package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/weftrun/weft/host/hosttest/suite"
)

// reader does what a page of docs/tutorial says, on a clean machine: an empty home, an
// empty folder, no network. It reads the following blocks of the page:
//
//	```console          content of a terminal: a line "$ COMMAND" is entered, and
//	                    the lines below it are the expected output
//	```console NAME     the same in another, named terminal
//	^C                  in a terminal: Ctrl-C
//	```diff FILE        is applied to the file: its lines with "-" and " " must occur
//	                    once, and become the lines with "+" and " "
//	```python FILE      is written to the file
//	```go FILE          (any other language) the file must contain these lines
//
// A command must end before the next block begins, unless the next line of its terminal
// is ^C. Then it continues, and its output so far is enough. A block that begins without
// "$ " is the next output of such a command. A command must succeed, unless the page
// shows a line that begins with "weft: " or "FAIL".
//
// The comparison ignores what differs between machines and times, see [unvarying]. "..."
// in a page matches the rest of a line, and on its own line any lines. Addresses
// 127.0.0.1:PORT become free ports.
type reader struct {
	t       *testing.T
	page    page
	home    string   // the initial folder of terminals
	env     []string // of all terminals
	screens map[string]*shownOn
	ports   []string // pairs: the text of the page, the text here
	counts  map[string]int
}

// shownOn is one terminal: a shell.
type shownOn struct {
	name    string
	shell   *exec.Cmd
	in      *os.File
	lines   chan string
	running string   // the command that is running; "": none
	seen    []string // for the error
}

// turn is the content of one block for one terminal.
type turn struct {
	line    int // of the page
	screen  string
	command string // "": the next output of the running command; "^C"
	shown   []string
	lasts   bool // it runs until ^C
}

// play plays the page from its beginning to its end.
func (p *reader) play() {
	p.t.Helper()
	fenced, _ := p.page.blocks()
	turns := p.turns(fenced)
	at := 0
	for _, b := range fenced {
		kind, about, _ := strings.Cut(b.lang, " ")
		switch {
		case kind == "console":
			for ; at < len(turns) && turns[at].line <= b.line+strings.Count(b.text, "\n"); at++ {
				p.take(turns[at])
			}
		case kind == "diff":
			p.change(b, about)
		case kind == "python" && about != "" && !strings.HasPrefix(p.page.path, "docs/tutorial/"):
			if err := os.WriteFile(filepath.Join(p.home, about), []byte(p.here(b.text)), 0o666); err != nil {
				p.t.Fatal(err)
			}
		case about != "":
			if text, err := os.ReadFile(filepath.Join(p.home, about)); err != nil || !strings.Contains(string(text), b.text) {
				p.t.Fatalf("%s:%d: these lines are not in %s (%v)", p.page.path, b.line, about, err)
			}
		}
	}
	for _, s := range p.screens {
		if s.running != "" {
			p.t.Errorf("%s: the page ends while %q runs", p.page.path, s.running)
		}
	}
}

// turns reads the terminals of a page.
func (p *reader) turns(fenced []block) []turn {
	var all []turn
	for _, b := range fenced {
		kind, name, _ := strings.Cut(b.lang, " ")
		if kind != "console" {
			continue
		}
		lines := strings.Split(strings.TrimSuffix(b.text, "\n"), "\n")
		for i := 0; i < len(lines); i++ {
			one := turn{line: b.line + 1 + i, screen: name}
			switch command, ok := strings.CutPrefix(lines[i], "$ "); {
			case ok:
				for strings.HasSuffix(command, "\\") && i+1 < len(lines) {
					i++
					command += "\n" + lines[i]
				}
				one.command = command
			case lines[i] == "^C":
				one.command = "^C"
			default:
				i--
			}
			for i+1 < len(lines) && !strings.HasPrefix(lines[i+1], "$ ") && lines[i+1] != "^C" {
				i++
				one.shown = append(one.shown, lines[i])
			}
			all = append(all, one)
		}
	}
	for i := range all {
		next := slices.IndexFunc(all[i+1:], func(o turn) bool { return o.screen == all[i].screen })
		all[i].lasts = all[i].command != "^C" && next >= 0 && (all[i+1+next].command == "^C" || all[i+1+next].command == "")
	}
	return all
}

// take plays one turn.
func (p *reader) take(one turn) {
	p.t.Helper()
	where := fmt.Sprintf("%s:%d", p.page.path, one.line)
	s := p.onScreen(one.screen)
	switch {
	case one.command == "^C":
		if s.running == "" {
			p.t.Fatalf("%s: nothing runs that ^C could end", where)
		}
		if err := syscall.Kill(-s.shell.Process.Pid, syscall.SIGINT); err != nil {
			p.t.Fatal(err)
		}
	case one.command != "":
		if s.running != "" {
			p.t.Fatalf("%s: %q still runs in this terminal", where, s.running)
		}
		p.counts[p.section(one.line)]++
		s.enter(p.here(one.command))
	case s.running == "":
		p.t.Fatalf("%s: nothing runs that could say this", where)
	}
	if one.lasts {
		p.follow(s, one, where)
		return
	}
	said, code := p.rest(s, one, where)
	fails := slices.ContainsFunc(one.shown, func(l string) bool {
		return strings.HasPrefix(l, "weft: ") || strings.HasPrefix(l, "FAIL")
	})
	if (code != "0") != fails {
		p.t.Fatalf("%s: %s: exit code %s\n%s", where, one.command, code, strings.Join(said, "\n"))
	}
	if !matches(one.shown, said) {
		p.t.Fatalf("%s: %s: it has printed\n%s\nand the page says\n%s", where, one.command,
			strings.Join(said, "\n"), strings.Join(one.shown, "\n"))
	}
	if strings.HasPrefix(one.command, "weft login ") {
		// From now on commands use the server of the login, and not the default server.
		p.env = append(p.env, "WEFT_SERVER=")
		for _, other := range p.screens {
			if other.running == "" {
				other.enter("unset WEFT_SERVER")
				p.rest(other, turn{}, where)
			}
		}
	}
}

// onScreen returns a terminal by its name, and opens it if necessary.
func (p *reader) onScreen(name string) *shownOn {
	if s := p.screens[name]; s != nil {
		return s
	}
	s := &shownOn{name: name, lines: make(chan string, 10_000)}
	s.shell = exec.Command("bash", "--noprofile", "--norc")
	s.shell.Dir, s.shell.Env = p.home, p.env
	s.shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // ^C reaches its commands
	theirs, in, err := os.Pipe()
	if err != nil {
		p.t.Fatal(err)
	}
	out, said, err := os.Pipe()
	if err != nil {
		p.t.Fatal(err)
	}
	s.in, s.shell.Stdin, s.shell.Stdout, s.shell.Stderr = in, theirs, said, said
	if err := s.shell.Start(); err != nil {
		p.t.Fatal(err)
	}
	_, _ = theirs.Close(), said.Close()
	go s.read(out)
	p.t.Cleanup(func() { // also ends commands that the page has not ended
		_ = syscall.Kill(-s.shell.Process.Pid, syscall.SIGKILL)
		_ = s.shell.Wait()
		_ = in.Close()
	})
	p.screens[name] = s
	s.send("trap : INT")
	return s
}

// section returns the title above a line.
func (p *reader) section(line int) string {
	for ; line > 0; line-- {
		if title, ok := strings.CutPrefix(p.page.lines[line-1], "## "); ok {
			return title
		}
	}
	return ""
}

// here translates a text of the page to this machine, and back is the reverse.
func (p *reader) here(text string) string { return strings.NewReplacer(p.ports...).Replace(text) }

func (p *reader) back(text string) string {
	reversed := slices.Clone(p.ports)
	slices.Reverse(reversed)
	text = strings.NewReplacer(reversed...).Replace(text)
	return strings.ReplaceAll(text, p.home, "~")
}

// follow waits until a continuing command has printed the expected output.
func (p *reader) follow(s *shownOn, one turn, where string) {
	p.t.Helper()
	late := time.After(suite.Hang)
	for _, want := range one.shown {
		if want == "..." {
			continue
		}
		for found := false; !found; {
			select {
			case line := <-s.lines:
				if _, ended := endOf(line); ended {
					p.t.Fatalf("%s: %q has ended before it said %q:\n%s", where, s.running, want, strings.Join(s.seen, "\n"))
				}
				s.seen = append(s.seen, line)
				found = matches([]string{want}, []string{p.back(line)})
			case <-late:
				p.t.Fatalf("%s: %q has not said %q:\n%s", where, s.running, want, strings.Join(s.seen, "\n"))
			}
		}
	}
}

// rest waits for the end of a command.
func (p *reader) rest(s *shownOn, one turn, where string) (said []string, code string) {
	p.t.Helper()
	late := time.After(suite.Hang)
	for {
		select {
		case line := <-s.lines:
			if code, ended := endOf(line); ended {
				s.running, s.seen = "", nil
				return said, code
			}
			s.seen = append(s.seen, line)
			said = append(said, p.back(line))
		case <-late:
			p.t.Fatalf("%s: %q has not ended:\n%s", where, one.command, strings.Join(s.seen, "\n"))
		}
	}
}

// theEnd is printed by the shell after each command.
const theEnd = "=-= the end: "

func endOf(line string) (code string, ended bool) { return strings.CutPrefix(line, theEnd) }

// enter runs a command. It has no input, so that it cannot read the next command.
func (s *shownOn) enter(command string) {
	s.running = command
	s.send("{ " + command + "\n} </dev/null; echo \"" + theEnd + "$?\"")
}

func (s *shownOn) send(text string) { _, _ = s.in.WriteString(text + "\n") }

func (s *shownOn) read(out *os.File) {
	var line strings.Builder
	buffer := make([]byte, 4096)
	for {
		n, err := out.Read(buffer)
		for _, c := range buffer[:n] {
			if c != '\n' {
				line.WriteByte(c)
				continue
			}
			// Output without a final line end precedes the shell's own line.
			text := line.String()
			if before, code, ok := strings.Cut(text, theEnd); ok && before != "" {
				s.lines <- before
				text = theEnd + code
			}
			s.lines <- text
			line.Reset()
		}
		if err != nil {
			return
		}
	}
}

// change applies a diff.
func (p *reader) change(b block, name string) {
	p.t.Helper()
	file := filepath.Join(p.home, name)
	text, err := os.ReadFile(file)
	if err != nil {
		p.t.Fatalf("%s:%d: %v", p.page.path, b.line, err)
	}
	for _, hunk := range regexp.MustCompile(`(?m)^@@.*\n`).Split(b.text, -1) {
		var before, after strings.Builder
		for _, line := range strings.SplitAfter(hunk, "\n") {
			if line == "" {
				continue
			}
			rest := line[1:]
			if line[0] != '+' {
				before.WriteString(rest)
			}
			if line[0] != '-' {
				after.WriteString(rest)
			}
		}
		if before.Len() == 0 {
			continue
		}
		if n := strings.Count(string(text), before.String()); n != 1 {
			p.t.Fatalf("%s:%d: these lines are %d times in %s, not once:\n%s", p.page.path, b.line, n, name, before.String())
		}
		text = []byte(strings.Replace(string(text), before.String(), after.String(), 1))
	}
	if err := os.WriteFile(file, text, 0o666); err != nil {
		p.t.Fatal(err)
	}
}

// matches compares the lines of a page with the output.
func matches(shown, came []string) bool {
	if len(shown) == 0 {
		return len(came) == 0
	}
	if shown[0] == "..." {
		for skip := range len(came) + 1 {
			if matches(shown[1:], came[skip:]) {
				return true
			}
		}
		return false
	}
	if len(came) == 0 {
		return false
	}
	want, have := unvarying(shown[0]), unvarying(came[0])
	if begin, ok := strings.CutSuffix(want, "..."); ok && strings.HasPrefix(have, begin) || want == have {
		return matches(shown[1:], came[1:])
	}
	return false
}

// differing are parts that differ each time.
var differing = []struct {
	what *regexp.Regexp
	name string
}{
	{regexp.MustCompile(`\bweft_[a-z]+_[A-Za-z0-9_-]{6,}`), "KEY"},
	{regexp.MustCompile(`\bkey_[0-9a-f]{16}\b`), "ID"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d\S*`), "TIME"},
	{regexp.MustCompile(`\b\d\d:\d\d:\d\d\.\d+`), "TIME"},
	{regexp.MustCompile(`\b(now|[\d.]+(µs|ms|s|m|m\d+s)( ago)?)(?:\b|$)`), "TIME"},
	{regexp.MustCompile(`\b[\d.]+ [kM]?B\b`), "SIZE"},
	{regexp.MustCompile(`\bfuel \d+`), "fuel N"},
	{regexp.MustCompile(`\bdigest \S+|\bversion [0-9a-f]{12}\b`), "DIGEST"},
	{regexp.MustCompile(`\b(handler|run|to) [A-Za-z0-9]{12}\b`), "$1 ID"},
	{regexp.MustCompile(`^[A-Za-z0-9]{12}\b`), "ID"},
	{regexp.MustCompile(`^weft \S+ \(go\S+ \S+\)`), "weft VERSION"},
	{regexp.MustCompile(`^weft \S+ serves on`), "weft VERSION serves on"},
	{regexp.MustCompile(`^server \S+ at`), "server VERSION at"},
	{regexp.MustCompile(`\b127\.0\.0\.1:\d+`), "ADDRESS"}, // 'weft dev' uses another port if its port is in use
}

// unvarying removes from a line what differs between machines and times: times, sizes,
// fuel, digests, ids, keys, versions, ports, and the number of spaces between columns.
func unvarying(line string) string {
	line = strings.Join(strings.Fields(line), " ")
	for _, d := range differing {
		line = d.what.ReplaceAllString(line, d.name)
	}
	return line
}

// lastPort is the last port that freePort returned.
var lastPort atomic.Int32

func init() { lastPort.Store(20_000 + rand.Int32N(9_000)) }

// freePort finds an unused port outside the range from which the system assigns ports,
// which other programs use all the time. It does not listen on the port: a child process
// of another test could inherit the socket and keep it open a moment longer.
func freePort(t *testing.T) string {
	t.Helper()
	for range 100 {
		port := strconv.Itoa(int(lastPort.Add(1)))
		conn, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err != nil {
			return port
		}
		_ = conn.Close()
	}
	t.Fatal("none of a hundred ports is free")
	return ""
}
