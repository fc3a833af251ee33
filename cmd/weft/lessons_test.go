//go:build !race

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/hosttest/suite"
)

// lessons are the examples, with parts of the output of the commands in each README.
var lessons = map[string][]string{
	"accumulator":    {`"Processed: milk"`, `"Processed: bread"`, `"status":"completed"`},
	"approval":       {`"approved":true`, `"by":["manager","finance"]`, `"calls":1`},
	"approval-py":    {`"approved":true`, `"by":["manager","finance"]`, `"calls":1`},
	"approval-ts":    {`"approved":true`, `"by":["manager","finance"]`, `"calls":1`},
	"branch":         {`Branch A complete.`, `Branch B complete.`},
	"chain":          {`"hops":1000`},
	"concurrent":     {`["C:q","A:q","B:q"]`},
	"counter":        {"1\n", `"status":"completed"`},
	"counter-race":   {`{"count":200}`, `"count":200`},
	"counter-rust":   {"1\n", `"status":"completed"`},
	"counter-py":     {"1\n", `"status":"completed"`},
	"counter-ts":     {"1\n", `"status":"completed"`},
	"flaky":          {`"attempts":3`, `"status":"failed"`},
	"flaky-py":       {`"attempts":3`, `"status":"failed"`},
	"flaky-ts":       {`"attempts":3`, `"status":"failed"`},
	"greet-c":        {`"hello":"Ada"`, `"greeted":1`},
	"greet-zig":      {`"hello":"Ada"`, `"greeted":1`},
	"history":        {`"total_interactions":1`, `"total_interactions":2`},
	"human":          {`"status":"sent"`, `"result":42`},
	"human-py":       {`"status":"sent"`, `"result":42`},
	"human-ts":       {`"status":"sent"`, `"result":42`},
	"loop":           {`"iterations":5`},
	"metadata":       {`"output":"Processed: to be or not to be"`, `"token_count":6`},
	"parent":         {`"children":2`, `"Processed: tea"`},
	"parent-py":      {`"children":2`, `"Processed: tea"`},
	"parent-ts":      {`"children":2`, `"Processed: tea"`},
	"quiz":           {`"Capital of France?"`, `"feedback":"Correct!"`, `"current_index":1`},
	"quiz-rust":      {`"Capital of France?"`, `"feedback":"Correct!"`, `"current_index":1`},
	"quiz-py":        {`"Capital of France?"`, `"feedback":"Correct!"`, `"current_index":1`},
	"quiz-ts":        {`"Capital of France?"`, `"feedback":"Correct!"`, `"current_index":1`},
	"review":         {`"status":"running"`, `Published: buy tea (1 in all)`},
	"rescue":         {`recovered: asked to fail`},
	"shopping-list":  {`Added 'milk' to the shopping list.`, `- bread`},
	"sleeper":        {`"slept"`},
	"spin":           {`"status":"cancelled"`},
	"stream":         {`ProgressEvent`, `"done"`, `"type":"StopEvent"`},
	"wordcount":      {`"words":6`, `[["be",2],["to",2]]`},
	"wordcount-rust": {`"words":6`, `[["be",2],["to",2]]`},
	"wordcount-ts":   {"distinct", "lines"},
	"wordcount-py":   {"distinct", "lines"},
}

// notPlayed are the examples whose commands no test runs, with the reason.
var notPlayed = map[string]string{
	"conversation": "asks a model on the network; TestConversation and its unit test have one that stands for it",
	"joke":         "likewise",
	"fetch":        "fetches a page of the network; TestFetch has a service of its own",
	"fetch-rust":   "likewise",

	"conversation-rust": "as conversation",
	"joke-rust":         "as joke",
	"conversation-py":   "as conversation",
	"conversation-ts":   "as conversation",
	"joke-py":           "as joke",
	"joke-ts":           "as joke",
	"fetch-py":          "as fetch",
	"fetch-ts":          "as fetch",
}

// TestLessons runs the commands of each example's README, and the commands of other pages
// that need a server with the examples. The examples are built by TinyGo, Rust, C and
// Zig.
func TestLessons(t *testing.T) {
	dir, plugins := lessonFolder(t)
	server := hosttest.Serve(t, t.TempDir(), "--examples="+plugins)
	t.Run("README.md", func(t *testing.T) { playMainReadme(t, dir, server.URL) })
	t.Run("compositions", func(t *testing.T) { putCompositions(t, server.URL) })
	for _, p := range docPages(t) {
		if slices.Contains(playedPages, p.path) {
			t.Run(filepath.Base(p.path), func(t *testing.T) { playPage(t, p, server.URL) })
		}
	}
	folders, err := os.ReadDir(filepath.Join(hosttest.Root(), "plugins"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		if !f.IsDir() {
			continue
		}
		t.Run(f.Name(), func(t *testing.T) {
			readme := readmeOf(t, f.Name())
			want, ok := lessons[f.Name()]
			if why := notPlayed[f.Name()]; why != "" {
				return
			}
			if !ok {
				t.Fatal("this example is not in lessons: say what its commands print")
			}
			said := playReadme(t, dir, server.URL, readme)
			for _, part := range want {
				if !strings.Contains(said, part) {
					t.Errorf("its commands have not printed %s, but\n%s", part, said)
				}
			}
		})
	}
}

// playMainReadme runs the commands of README.md.
func playMainReadme(t *testing.T, dir, url string) {
	if err := os.Symlink(filepath.Dir(weftProgram()), filepath.Join(dir, "bin")); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(hosttest.Root(), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var commands []string
	for line := range strings.Lines(string(text)) {
		command, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "    ")
		named := strings.HasPrefix(command, "curl ") || strings.HasPrefix(command, "bin/weft run ") || strings.HasPrefix(command, "bin/weft inspect ")
		if ok && named && !strings.Contains(command, "greet") { // .ci/test builds this example
			commands = append(commands, command)
		}
	}
	if len(commands) < 7 {
		t.Errorf("only %d commands were found", len(commands))
	}
	said := playReadme(t, dir, url, commands)
	for _, part := range []string{`"result":1`, `"words":6`, `"type":"StopEvent"`, "steps", "merge: 1 done"} {
		if !strings.Contains(said, part) {
			t.Errorf("the commands have not printed %s, but\n%s", part, said)
		}
	}
}

// lessonFolder makes a folder with the files that the commands name: the sources, and
// build/plugins. There the TinyGo builds have the names of the Go builds, because they
// load in a tenth of the time.
func lessonFolder(t *testing.T) (dir, plugins string) {
	t.Helper()
	built, build := builtPlugins(t)
	dir = t.TempDir()
	plugins = filepath.Join(dir, "build", "plugins")
	if err := os.MkdirAll(plugins, 0o777); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(built)
	if err != nil {
		t.Fatal(err)
	}
	links := map[string]string{filepath.Join(dir, "plugins"): filepath.Join(hosttest.Root(), "plugins"),
		filepath.Join(dir, "README.md"): filepath.Join(hosttest.Root(), "README.md")}
	for _, f := range files {
		name := f.Name()
		if plain, ok := strings.CutSuffix(name, "-"+build+".wasm"); ok {
			name = plain + "-go.wasm"
		} else if strings.HasSuffix(name, "-go.wasm") || strings.HasSuffix(name, "-tinygo.wasm") {
			continue
		}
		links[filepath.Join(plugins, name)] = filepath.Join(built, f.Name())
	}
	for name, target := range links {
		if err := os.Symlink(target, name); err != nil {
			t.Fatal(err)
		}
	}
	return dir, plugins
}

// readmeOf reads an example's README: a title, a description, commands.
func readmeOf(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(hosttest.Root(), "plugins", name, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	if lines[0] != "# "+name || len(lines) < 5 || len(lines) > 45 || lines[2] == "" {
		t.Errorf("README.md does not begin with its name and what it teaches, or is no lesson of one page (%d lines)", len(lines))
	}
	var commands []string
	for _, line := range lines {
		if command, ok := strings.CutPrefix(line, "    "); ok && !strings.HasPrefix(command, "make ") {
			commands = append(commands, command)
		}
	}
	if len(commands) == 0 {
		t.Error("README.md has no command to try it by")
	}
	return commands
}

// handlerID matches the value of ID in the commands.
var handlerID = regexp.MustCompile(`"handler_id": ?"([^"]+)"`)

// playReadme runs commands one after the other, and returns their output.
func playReadme(t *testing.T, dir, url string, commands []string) string {
	t.Helper()
	var all strings.Builder
	id := "ID"
	shared := "" // variables that are set on a separate line
	for _, command := range commands {
		command = strings.ReplaceAll(command, "127.0.0.1:8080", strings.TrimPrefix(url, "http://"))
		command = regexp.MustCompile(`\bID\b`).ReplaceAllString(command, id)
		if regexp.MustCompile(`^[a-z]+=\S+$`).MatchString(command) {
			shared += command + "\n"
			continue
		}
		ctx, stop := context.WithTimeout(t.Context(), suite.Hang)
		cmd := exec.CommandContext(ctx, "bash", "-c", "curl() { command curl -sS \"$@\"; }\n"+shared+command)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "WEFT_SERVER="+url, "PATH="+filepath.Dir(weftProgram())+":"+os.Getenv("PATH"))
		said, err := cmd.CombinedOutput()
		stop()
		if err != nil {
			t.Errorf("%s: %v\n%s", command, err, said)
		}
		if bytes.HasPrefix(said, []byte(`{"detail"`)) {
			t.Errorf("%s: %s", command, said)
		}
		if found := handlerID.FindSubmatch(said); found != nil && strings.Contains(command, "run-nowait") {
			id = string(found[1])
		}
		waitForEnd(t, url, id, command)
		all.Write(said)
	}
	return all.String()
}

// waitForEnd waits for the end of a run that was answered, as a person who enters one
// command after the other does.
func waitForEnd(t *testing.T, url, id, command string) {
	t.Helper()
	sends := strings.Contains(command, "/events/"+id) || strings.HasPrefix(command, "weft send "+id)
	if id == "ID" || !sends || strings.Contains(command, "after_sequence") || strings.Contains(command, `"manager"`) {
		return
	}
	resp, err := http.Get(url + "/events/" + id + "?sse=false&after_sequence=-1")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var event any
	for d := json.NewDecoder(resp.Body); d.Decode(&event) == nil; { // to the end of the stream
		event = nil
	}
}

// weftProgram is the built program.
func weftProgram() string {
	if weft := os.Getenv("WEFT_BIN"); weft != "" {
		return weft
	}
	return filepath.Join(hosttest.Root(), "bin", "weft")
}

// putCompositions checks that a server would accept the compositions in the pages if it
// had their plugins.
func putCompositions(t *testing.T, url string) {
	found := 0
	for _, p := range docPages(t) {
		fenced, _ := p.blocks()
		for _, b := range fenced {
			if b.lang != "json" || !strings.Contains(b.text, `"settings": {`) || !strings.Contains(b.text, `"plugins": [`) {
				continue
			}
			found++
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, url+"/workflows/hello", strings.NewReader(b.text))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			var answer struct{ Detail, Code string }
			_ = json.NewDecoder(resp.Body).Decode(&answer)
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusBadRequest || !strings.Contains(fmt.Sprint(answer), "greet-part") {
				t.Errorf("%s:%d: %d, %+v", p.path, b.line, resp.StatusCode, answer)
			}
		}
	}
	if found == 0 {
		t.Error("no composition was found")
	}
}

// playedPages are pages besides the tutorial whose terminals are played.
var playedPages = []string{"docs/journal.md", "docs/sessions.md"}

// playPage runs the commands of a page.
func playPage(t *testing.T, p page, url string) {
	r := &reader{t: t, page: p, home: t.TempDir(), screens: map[string]*shownOn{}, counts: map[string]int{},
		ports: []string{"127.0.0.1:8080", strings.TrimPrefix(url, "http://")}}
	r.env = []string{"HOME=" + r.home, "PATH=" + filepath.Dir(weftProgram()) + ":" + os.Getenv("PATH"), "WEFT_SERVER=" + url}
	r.play()
	if len(r.counts) == 0 {
		t.Error("no command was found")
	}
}
