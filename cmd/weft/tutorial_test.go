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

// TestTutorial plays docs/tutorial word for word: it takes the commands and the changes
// of files from the pages, and compares their output with the pages. Each page is played
// separately, in an empty home and without a network. To save time, the compilers' caches
// are shared with TestProjects and with earlier runs. With WEFT_COLD=1 the caches are
// empty, as on a new machine.
//
// A part of a page says how many commands it has. The test counts them, so that five
// minutes cannot become fifteen unnoticed. Seconds are logged, not asserted.
func TestTutorial(t *testing.T) {
	for _, p := range docPages(t) {
		if dir, name := filepath.Split(p.path); dir == "docs/tutorial/" {
			t.Run(strings.TrimSuffix(name, ".md"), func(t *testing.T) {
				if name == "go.md" || name == "rust.md" || name == "python.md" {
					suite.OnlySoak(t) // the pages are similar, and compilers take long
				}
				if name == "python.md" {
					needPython(t)
				}
				if name != "README.md" { // this page makes the program that the other pages use
					t.Parallel() // each compiler leaves cores idle at times
				}
				playTutorial(t, p)
			})
		}
	}
}

// saysCommands matches the number of commands of a part.
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

// cleanMachine returns a reader with an empty home, and the programs that a page
// requires: weft, the compilers, and the system's programs.
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
	// The sources are for users who build weft.
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

// cargoShims puts wrappers before cargo. The toolchain's cargo has another name and must
// be given a target for unit tests, unlike a user's cargo. The wrappers also keep the
// build results of a project's folder target, which is deleted with the project.
func cargoShims(t *testing.T, bin, targets string, test []string) {
	t.Helper()
	begin := "#!/bin/sh\n"
	if os.Getenv("WEFT_COLD") == "" {
		begin += "export CARGO_TARGET_DIR=\"" + targets + "/$(basename \"$(pwd -P)\")\"\n"
	}
	program, err := exec.LookPath(test[0])
	if err != nil {
		return // this machine does not have Rust: the page says what users then see
	}
	args := slices.DeleteFunc(slices.Clone(test[1:]), func(arg string) bool { return arg == "--quiet" })
	shim := begin + "if [ \"$1\" = test ]; then shift; exec '" + program + "' " + strings.Join(args, " ") + " \"$@\"; fi\nexec '" + program + "' \"$@\"\n"
	for _, name := range []string{"cargo", filepath.Base(test[0])} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(shim), 0o777); err != nil {
			t.Fatal(err)
		}
	}
}

// caches are the caches of this machine's compilers (except with WEFT_COLD), the modules
// on which weft depends, because there is no network, and the compilers in a home.
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
