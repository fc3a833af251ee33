//go:build !race

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/host/hosttest"
)

// TestTutorial plays docs/tutorial word for word: the commands and the changes of files
// are taken from the pages, and what the pages show has to come out. Each page is
// played on its own, in an empty home and without a network. What takes time on a new
// machine is shared with TestProjects and with the last time: what the compilers have
// built before. WEFT_COLD=1 has them begin from nothing, as a new machine does.
//
// A part of a page says how many commands it has; a test that did not count them would
// let five minutes become fifteen. Seconds are logged, not asserted.
func TestTutorial(t *testing.T) {
	for _, p := range docPages(t) {
		if dir, name := filepath.Split(p.path); dir == "docs/tutorial/" {
			t.Run(strings.TrimSuffix(name, ".md"), func(t *testing.T) {
				if name != "README.md" { // which makes the program that the others use
					t.Parallel() // each compiler leaves cores idle now and then
				}
				playTutorial(t, p)
			})
		}
	}
}

// saysCommands is how a part tells how much there is to enter.
var saysCommands = regexp.MustCompile(`\b(\d+) commands?\b`)

func playTutorial(t *testing.T, p page) {
	machine := cleanMachine(t, p)
	began := time.Now()
	machine.play()
	total := 0
	for i, line := range p.lines {
		title, ok := strings.CutPrefix(line, "## ")
		n := machine.counts[title]
		if !ok || n == 0 {
			continue
		}
		total += n
		var says string
		for _, below := range p.lines[i+1:] {
			if found := saysCommands.FindStringSubmatch(below); found != nil {
				says = found[1]
				break
			}
			if strings.HasPrefix(below, "## ") {
				break
			}
		}
		if says != strconv.Itoa(n) {
			t.Errorf("%s:%d: this part has %d commands, and says %q", p.path, i+1, n, says)
		}
	}
	t.Logf("%s: %d commands, %.1f seconds", p.path, total, time.Since(began).Seconds())
}

// cleanMachine has a home with nothing in it, and the programs that a page says one
// has: weft, the compilers, and the system's.
func cleanMachine(t *testing.T, p page) *reader {
	t.Helper()
	weft, cargo := os.Getenv("WEFT_BIN"), nativeCargo(t)
	if weft == "" {
		weft = filepath.Join(hosttest.Root(), "bin", "weft")
	}
	root := filepath.Join(hosttest.Root(), "build", "projects")
	home := filepath.Join(root, "tutorial", strings.TrimSuffix(filepath.Base(p.path), ".md"))
	if err := os.RemoveAll(home); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(home, "bin"), 0o777); err != nil {
		t.Fatal(err)
	}
	// The sources, for those who build weft, and the toolchain's cargo, whose name and
	// target are others than those of a user's own.
	for name, target := range map[string]string{"weft": hosttest.Root(), "bin/weft": weft} {
		if err := os.Symlink(target, filepath.Join(home, name)); err != nil {
			t.Fatal(err)
		}
	}
	cargo = slices.DeleteFunc(cargo, func(arg string) bool { return arg == "--quiet" })
	if cargo[0] != "cargo" {
		shim := "#!/bin/sh\nif [ \"$1\" = test ]; then shift; exec " + strings.Join(cargo, " ") + " \"$@\"; fi\nexec wasm32-cargo \"$@\"\n"
		if err := os.WriteFile(filepath.Join(home, "bin", "cargo"), []byte(shim), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	address, other := freePort(t), freePort(t)
	m := &reader{
		t: t, page: p, home: home, screens: map[string]*screen{}, counts: map[string]int{},
		ports: []string{"127.0.0.1:8080", "127.0.0.1:" + address, "127.0.0.1:9000", "127.0.0.1:" + other},
	}
	m.env = append(m.env, "HOME="+home, "PATH="+filepath.Join(home, "bin")+":"+os.Getenv("PATH"), "TMPDIR="+t.TempDir(),
		"LANG=C.UTF-8", "TERM=dumb", "GOPROXY=off", "GOWORK=off", "CARGO_NET_OFFLINE=true",
		"WEFT_ADDR=127.0.0.1:"+address, "WEFT_SERVER=http://127.0.0.1:"+address)
	if os.Getenv("WEFT_COLD") == "" {
		m.env = append(m.env, "CARGO_TARGET_DIR="+filepath.Join(root, "cargo"))
		m.env = append(m.env, caches(t)...)
	}
	return m
}

// caches are where the compilers of this machine keep what they have built, and where
// those of them are that a home has.
func caches(t *testing.T) []string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	found := strings.Fields(string(out))
	env := []string{"GOCACHE=" + found[0], "GOMODCACHE=" + found[1]}
	user, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	for name, dir := range map[string]string{"XDG_CACHE_HOME": ".cache", "RUSTUP_HOME": ".rustup", "CARGO_HOME": ".cargo"} {
		if value := os.Getenv(name); value != "" {
			env = append(env, name+"="+value)
		} else if _, err := os.Stat(filepath.Join(user, dir)); err == nil {
			env = append(env, name+"="+filepath.Join(user, dir))
		}
	}
	return env
}
