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
	"github.com/weftrun/weft/host/hosttest/suite"
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
				if name == "go.md" || name == "rust.md" {
					suite.OnlySoak(t) // the pages say the same, and compilers take long
				}
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
	// The sources are for those who build weft.
	for name, target := range map[string]string{"weft": hosttest.Root(), "bin/weft": weft} {
		if err := os.Symlink(target, filepath.Join(home, name)); err != nil {
			t.Fatal(err)
		}
	}
	cargoShims(t, filepath.Join(home, "bin"), filepath.Join(root, "tutorial-cargo"), cargo)
	address, other := freePort(t), freePort(t)
	m := &reader{
		t: t, page: p, home: home, screens: map[string]*shownOn{}, counts: map[string]int{},
		ports: []string{"127.0.0.1:8080", "127.0.0.1:" + address, "127.0.0.1:9000", "127.0.0.1:" + other},
	}
	m.env = append(m.env, "HOME="+home, "PATH="+filepath.Join(home, "bin")+":"+os.Getenv("PATH"), "TMPDIR="+t.TempDir(),
		"LANG=C.UTF-8", "TERM=dumb", "GOPROXY=off", "GOWORK=off", "CARGO_NET_OFFLINE=true",
		"WEFT_ADDR=127.0.0.1:"+address, "WEFT_SERVER=http://127.0.0.1:"+address)
	m.env = append(m.env, caches(t)...)
	return m
}

// cargoShims puts programs before cargo. The toolchain's has another name and needs a
// target to be named for unit tests, which a user's own does not. And what cargo builds in
// a project's folder target, which goes with the project, is kept from time to time.
func cargoShims(t *testing.T, bin, targets string, test []string) {
	t.Helper()
	begin := "#!/bin/sh\n"
	if os.Getenv("WEFT_COLD") == "" {
		begin += "export CARGO_TARGET_DIR=\"" + targets + "/$(basename \"$(pwd -P)\")\"\n"
	}
	program, err := exec.LookPath(test[0])
	if err != nil {
		return // there is no Rust on this machine: the page says what one sees then
	}
	args := slices.DeleteFunc(slices.Clone(test[1:]), func(arg string) bool { return arg == "--quiet" })
	shim := begin + "if [ \"$1\" = test ]; then shift; exec '" + program + "' " + strings.Join(args, " ") + " \"$@\"; fi\nexec '" + program + "' \"$@\"\n"
	for _, name := range []string{"cargo", filepath.Base(test[0])} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(shim), 0o777); err != nil {
			t.Fatal(err)
		}
	}
}

// caches are where the compilers of this machine keep what they have built (but for
// WEFT_COLD), where Go has the modules of which weft is made, as there is no network, and
// where those compilers are that a home has.
func caches(t *testing.T) []string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	found := strings.Fields(string(out))
	env, dirs := []string{"GOMODCACHE=" + found[1]}, map[string]string{"RUSTUP_HOME": ".rustup", "CARGO_HOME": ".cargo"}
	if os.Getenv("WEFT_COLD") == "" {
		env, dirs["XDG_CACHE_HOME"] = append(env, "GOCACHE="+found[0]), ".cache"
	}
	user, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	for name, dir := range dirs {
		if value := os.Getenv(name); value != "" {
			env = append(env, name+"="+value)
		} else if _, err := os.Stat(filepath.Join(user, dir)); err == nil {
			env = append(env, name+"="+filepath.Join(user, dir))
		}
	}
	return env
}
