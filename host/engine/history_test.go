package engine

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
)

// reporter is the part of *testing.T, *testing.B and *rapid.T that the helpers need.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	FailNow()
}

var update = flag.Bool("update", false, "rewrite what the histories of testdata/engine expect")

const histories = "../../testdata/engine"

// TestHistories plays the histories of testdata/engine. A manifest and ticks result in
// entries, commands and finally a dump of the session. Each history is also replayed:
// after every tick, a session that folds the encoded entries must equal the session that
// decided them.
//
// A file begins with the rule that it tests, and has the sections manifest.json
// (manifest-V.json for a version V other than v1), ticks, want and dump. See
// [player.play] for the language of the ticks.
func TestHistories(t *testing.T) {
	eachHistory(t, func(t *testing.T, h *history) {
		p := newPlayer(t, h.graphs)
		p.keepAll = true
		h.playOn(p)
		want, dump := p.out.String(), p.dumps()
		if *update {
			h.set("want", want)
			h.set("dump", dump)
			if err := os.WriteFile(h.path, []byte(h.String()), 0o644); err != nil {
				t.Fatal(err)
			}
			return
		}
		diffText(t, "want", h.file("want"), want)
		diffText(t, "dump", h.file("dump"), dump)
	})
}

// history is a file of testdata/engine.
type history struct {
	*archive
	path   string
	graphs map[string]*Graph // by version
}

// eachHistory runs a test for each history, under its name.
func eachHistory(t *testing.T, test func(t *testing.T, h *history)) {
	files, err := filepath.Glob(histories + "/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 150 {
		t.Errorf("%d histories, want at least 150", len(files))
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) { test(t, readHistory(t, name)) })
	}
}

func readHistory(t *testing.T, path string) *history {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	a := parseArchive(string(text))
	return &history{archive: a, path: path, graphs: graphsOf(t, a)}
}

// play plays all ticks of the history.
func (h *history) play(t *testing.T) *player {
	p := newPlayer(t, h.graphs)
	h.playOn(p)
	return p
}

func (h *history) playOn(p *player) {
	for line := range strings.Lines(h.file("ticks")) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			p.play(line)
		}
	}
}

// graphsOf compiles the manifests of a history, by version.
func graphsOf(t reporter, a *archive) map[string]*Graph {
	t.Helper()
	graphs := make(map[string]*Graph)
	for _, f := range a.files {
		base, ok := strings.CutSuffix(f.name, ".json")
		if !ok {
			continue
		}
		version := "v1"
		if v, other := strings.CutPrefix(base, "manifest-"); other {
			version = v
		}
		graphs[version] = mustGraph(t, f.text)
	}
	return graphs
}

// diffText reports the first line in which two texts differ.
func diffText(t reporter, what, want, got string) {
	t.Helper()
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(w), len(g)) {
		line := func(lines []string) string {
			if i < len(lines) {
				return lines[i]
			}
			return "(end)"
		}
		if line(w) != line(g) {
			t.Fatalf("%s, line %d:\n got %s\nwant %s\n(go test ./host/engine -update rewrites it)", what, i+1, line(g), line(w))
		}
	}
}

func mustGraph(t reporter, manifest string) *Graph {
	t.Helper()
	g, problems := Compile(mustManifest(t, manifest))
	for _, p := range problems {
		t.Errorf("manifest: %+v", p)
	}
	if g == nil {
		t.FailNow()
	}
	return g
}

func mustManifest(t reporter, text string) *abi.Manifest {
	t.Helper()
	raw, err := abi.FromJSON([]byte(text))
	if err != nil {
		t.Fatalf("manifest: %v", err)
	}
	m, err := abi.DecodeManifest(raw)
	if err != nil {
		t.Fatalf("manifest: %v", err)
	}
	return &m
}

// archive is a text with named sections, each after a line "-- NAME --".
type archive struct {
	comment string
	files   []section
}

type section struct{ name, text string }

func parseArchive(text string) *archive {
	a := &archive{}
	for line := range strings.Lines(text) {
		name, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "-- ")
		if name, end := strings.CutSuffix(name, " --"); ok && end {
			a.files = append(a.files, section{name: name})
		} else if n := len(a.files); n > 0 {
			a.files[n-1].text += line
		} else {
			a.comment += line
		}
	}
	return a
}

func (a *archive) file(name string) string {
	for _, f := range a.files {
		if f.name == name {
			return f.text
		}
	}
	return ""
}

func (a *archive) set(name, text string) {
	for i := range a.files {
		if a.files[i].name == name {
			a.files[i].text = text
			return
		}
	}
	a.files = append(a.files, section{name, text})
}

func (a *archive) String() string {
	out := a.comment
	for _, f := range a.files {
		out += "-- " + f.name + " --\n" + f.text
	}
	return out
}
