package hosttest_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/hosttest/suite"
)

// The plugin that the Rust SDK's README makes from scratch: its code blocks are the
// files, and its commands build, test, upload and run the plugin.
func TestRustReadme(t *testing.T) {
	sdk := filepath.Join(hosttest.Root(), "sdk-guest", "rust")
	raw, err := os.ReadFile(filepath.Join(sdk, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	readme := string(raw)
	dir := filepath.Join(t.TempDir(), "greet-rust")
	rust, toml := blocks(readme, "rust"), blocks(readme, "toml")
	if len(rust) < 1 || len(toml) != 2 {
		t.Fatalf("README.md has %d rust and %d toml blocks", len(rust), len(toml))
	}
	write(t, filepath.Join(dir, "src", "lib.rs"), rust[0])
	write(t, filepath.Join(dir, "Cargo.toml"), strings.ReplaceAll(toml[0], "../../sdk-guest/rust", sdk))
	write(t, filepath.Join(dir, ".cargo", "config.toml"), toml[1])
	// The downloaded versions, and the target folder that all builds share.
	lock, err := os.ReadFile(filepath.Join(sdk, "Cargo.lock"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "Cargo.lock"), string(lock))
	if err := os.Symlink(targets(), filepath.Join(dir, "target")); err != nil {
		t.Fatal(err)
	}
	command := commands(readme)
	for _, prefix := range []string{"cargo build", "cargo test"} {
		line := only(t, command, prefix)
		line = strings.ReplaceAll(line, "x86_64-unknown-linux-gnu", machine(t))
		cargo(t, dir, append(strings.Fields(line)[1:], "--quiet", "--offline")...)
	}
	furtherBlocks(t, sdk, string(lock), rust[1:])
	checkSizes(t, readme, filepath.Join(dir, "target", "wasm32-unknown-unknown", "release", "greet_rust.wasm"))
	p := hosttest.Serve(t, t.TempDir())
	for _, c := range [][2]string{{"weft push", "greet-rust"}, {"weft run", "Hello, Ada!"}} {
		if out := shell(t, p, dir, only(t, command, c[0])); !strings.Contains(out, c[1]) {
			t.Errorf("%s printed %q, want %q", c[0], out, c[1])
		}
	}
	body := regexp.MustCompile(`-d '(.*)'`).FindStringSubmatch(only(t, command, "curl -X POST"))
	if body == nil {
		t.Fatal("the curl command of README.md has no body")
	}
	expect(t, p.Result(t, "greet-rust", body[1]), `"Hello, Ada!"`)
}

// furtherBlocks builds each other code block of the README as a module of one crate, and
// runs their tests.
func furtherBlocks(t *testing.T, sdk, lock string, list []string) {
	t.Helper()
	dir, lib := t.TempDir(), ""
	for i, block := range list {
		lib += fmt.Sprintf("mod block_%d {\n%s}\n", i+2, block)
		if !strings.Contains(block, "#[test]") {
			t.Errorf("block %d has no test", i+2)
		}
	}
	write(t, filepath.Join(dir, "src", "lib.rs"), lib)
	write(t, filepath.Join(dir, "Cargo.toml"), fmt.Sprintf("[package]\nname = \"blocks\"\nedition = \"2024\"\n[dependencies]\nweft = { path = %q }\n", filepath.Join(sdk, "weft")))
	write(t, filepath.Join(dir, "Cargo.lock"), lock)
	cargo(t, dir, "test", "--target", machine(t), "--quiet", "--offline")
}

// checkSizes compares the sizes in the README with a module, and with the examples that
// add no data of their own.
func checkSizes(t *testing.T, readme, module string) {
	t.Helper()
	m := regexp.MustCompile(`has (\d+) to (\d+) KB`).FindStringSubmatch(readme)
	if m == nil {
		t.Fatal("README.md does not say how large a module is")
	}
	least, _ := strconv.Atoi(m[1])
	most, _ := strconv.Atoi(m[2])
	greet, err := os.ReadFile(module)
	if err != nil {
		t.Fatal(err)
	}
	for name, wasm := range map[string][]byte{"greet": greet, "counter": hosttest.Plugin(t, "counter-rust"), "quiz": hosttest.Plugin(t, "quiz-rust"), "fetch": hosttest.Plugin(t, "fetch-rust")} {
		if n := len(wasm); n < least*1000 || n > most*1000 {
			t.Errorf("%s-rust.wasm has %d bytes, README.md says %s", name, n, m[0])
		}
	}
}

// blocks returns the code blocks of a language.
func blocks(markdown, lang string) (list []string) {
	for _, m := range regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$").FindAllStringSubmatch(markdown, -1) {
		if m[1] == lang {
			list = append(list, m[2])
		}
	}
	return list
}

// commands returns the indented lines without their comments.
func commands(markdown string) (list []string) {
	for line := range strings.Lines(markdown) {
		if command, ok := strings.CutPrefix(line, "    "); ok {
			command, _, _ = strings.Cut(command, " #")
			list = append(list, strings.TrimSpace(command))
		}
	}
	return list
}

// only returns the only command with a prefix.
func only(t *testing.T, commands []string, prefix string) string {
	t.Helper()
	for _, c := range commands {
		if strings.HasPrefix(c, prefix) {
			return c
		}
	}
	t.Fatalf("README.md has no command %q", prefix)
	return ""
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// machine returns Rust's name for this machine.
func machine(t *testing.T) string {
	t.Helper()
	rustc := suite.Tool(t, "wasm32-rustc")
	out, err := exec.Command(rustc, "-vV").Output()
	if err != nil {
		t.Fatalf("%s: %v", rustc, err)
	}
	m := regexp.MustCompile(`(?m)^host: (.+)$`).FindSubmatch(out)
	if m == nil {
		t.Fatalf("%s names no host: %s", rustc, out)
	}
	return string(m[1])
}

// shell runs a weft command in a folder, for a server, and returns its output.
func shell(t *testing.T, p *hosttest.Process, dir, command string) string {
	t.Helper()
	cmd := exec.Command(hosttest.Binary(t), strings.Fields(command)[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "WEFT_SERVER="+p.URL)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", command, err, out, stderr.Bytes())
	}
	return string(out) + stderr.String()
}
