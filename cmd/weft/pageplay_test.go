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

// reader does what a page of docs/tutorial says, on a machine that is clean: an empty
// home, an empty folder, no network. What is not the page's own, it takes from blocks:
//
//	```console          what a terminal shows: a line "$ COMMAND" is entered, and
//	                    the lines below it have to come out
//	```console NAME     the same in another terminal, that has a name
//	^C                  in one of these: Ctrl-C
//	```diff FILE        is applied to the file: its lines with "-" and " " have to be
//	                    there once, and become those with "+" and " "
//	```python FILE      is put into the file
//	```go FILE          (any other language) these lines have to be in the file
//
// A command has ended when the next block begins, unless the next line of its terminal
// is ^C: then it goes on, and what it has shown is enough. A block that begins without
// "$ " is what such a command says next. A command has to succeed, unless the page
// shows a line that begins with "weft: " or "FAIL".
//
// What is compared is freed of what differs from one machine and one time to the
// other, see [unvarying]; "..." in a page stands for the rest of a line, and on a line
// of its own for any lines. Addresses 127.0.0.1:PORT become ports that are free.
type reader struct {
	t       *testing.T
	page    page
	home    string   // where the terminals begin
	env     []string // of all terminals
	screens map[string]*shownOn
	ports   []string // pairs: what the page says, what it is here
	counts  map[string]int
}

// shownOn is one terminal: a shell.
type shownOn struct {
	name    string
	shell   *exec.Cmd
	in      *os.File
	lines   chan string
	running string   // the command that has not ended, if there is one
	seen    []string // for the error
}

// part is what a page says in one block, to one terminal.
type turn struct {
	line    int // of the page
	screen  string
	command string // "": what the running command says next; "^C"
	shown   []string
	lasts   bool // it runs until ^C
}

// play goes through the page from its beginning to its end.
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
		case kind == "python" && about != "":
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
		// From now on a command goes where one has logged in, and not where the server
		// would be that everybody has at home.
		p.env = append(p.env, "WEFT_SERVER=")
		for _, other := range p.screens {
			if other.running == "" {
				other.enter("unset WEFT_SERVER")
				p.rest(other, turn{}, where)
			}
		}
	}
}

// onScreen returns a terminal, a new one if need be.
func (p *reader) onScreen(name string) *shownOn {
	if s := p.screens[name]; s != nil {
		return s
	}
	s := &shownOn{name: name, lines: make(chan string, 10_000)}
	s.shell = exec.Command("bash", "--noprofile", "--norc")
	s.shell.Dir, s.shell.Env = p.home, p.env
	s.shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // ^C reaches what it runs
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
	p.t.Cleanup(func() { // of what the page has not ended, too
		_ = syscall.Kill(-s.shell.Process.Pid, syscall.SIGKILL)
		_ = s.shell.Wait()
		_ = in.Close()
	})
	p.screens[name] = s
	s.send("trap : INT")
	return s
}

// section is the title above a line.
func (p *reader) section(line int) string {
	for ; line > 0; line-- {
		if title, ok := strings.CutPrefix(p.page.lines[line-1], "## "); ok {
			return title
		}
	}
	return ""
}

// here is a text of the page as it has to be on this machine, and back is the reverse.
func (p *reader) here(text string) string { return strings.NewReplacer(p.ports...).Replace(text) }

func (p *reader) back(text string) string {
	reversed := slices.Clone(p.ports)
	slices.Reverse(reversed)
	text = strings.NewReplacer(reversed...).Replace(text)
	return strings.ReplaceAll(text, p.home, "~")
}

// follow waits until a command that goes on has said what is shown.
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

// theEnd is what a shell prints behind a command.
const theEnd = "=-= the end: "

func endOf(line string) (code string, ended bool) { return strings.CutPrefix(line, theEnd) }

// enter runs a command. It has no input, lest it takes what is entered next.
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
			// What a program prints without a line's end stands before the shell's own line.
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

// matches compares what a page shows with what came, line by line.
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

// differing are what is another one each time.
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
	{regexp.MustCompile(`\b127\.0\.0\.1:\d+`), "ADDRESS"}, // that of 'weft dev' is another if it is taken
}

// unvarying is a line without what differs from one machine and one time to the other:
// times, sizes, fuel, digests, ids, keys, versions, ports, and how many spaces there are
// between columns.
func unvarying(line string) string {
	line = strings.Join(strings.Fields(line), " ")
	for _, d := range differing {
		line = d.what.ReplaceAllString(line, d.name)
	}
	return line
}

// lastPort is the port that freePort gave last.
var lastPort atomic.Int32

func init() { lastPort.Store(20_000 + rand.Int32N(9_000)) }

// freePort finds a port that nobody has, and that no system gives to those who take
// any: others ask for such ones all the time. It does not listen there: a program that
// another test just starts may hold the socket for a moment longer than this one.
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
