package hosttest_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/diagram"
	"github.com/weftrun/weft/host/hosttest"
)

var updateDiagrams = flag.Bool("update-diagrams", false, "write the diagrams of the examples: testdata/diagrams")

// The diagrams of the examples are those of testdata/diagrams. Their nodes are whole: every
// edge has its two ends, and every step its plugin and its declaration. The module of an
// example comes back as it was uploaded.
func TestDiagramsOfExamples(t *testing.T) {
	h := hosttest.New(t, hosttest.Config{})
	names := []string{
		"accumulator", "approval", "branch", "chain", "concurrent", "conversation", "counter", "fetch", "flaky", "history", "human", "joke", "loop",
		"metadata", "parent", "quiz", "rescue", "sleeper", "spin", "stream", "wordcount",
	}
	h.Load(t, "tinygo", append(names, "review", "shopping-list")...)
	for _, flow := range []string{"review", "shopping-list"} {
		doc, err := os.ReadFile(filepath.Join(hosttest.Root(), "plugins", flow, "flow.json"))
		if err != nil {
			t.Fatal(err)
		}
		putFlow(t, h, flow+"-flow", doc)
		names = append(names, flow+"-flow")
	}
	slices.Sort(names)
	for i, w := range summaries(t, h) {
		flow := strings.HasSuffix(w.Name, "-flow")
		if w.Name != names[i] || len(w.Plugins) != 1 || w.Plugins[0] != strings.TrimSuffix(w.Name, "-flow") || w.Version != 1 || len(w.Digest) != 64 ||
			w.Composed != flow || w.Flow != flow || w.Runs != 0 {
			t.Errorf("summary %d of %s is %+v", i, names[i], w)
		}
	}
	run := h.RunNoWait(t, "human", `{}`)
	for _, w := range summaries(t, h) {
		if want := map[bool]int{true: 1}[w.Name == "human"]; w.Runs != want {
			t.Errorf("%s has %d runs while %s waits", w.Name, w.Runs, run.HandlerID)
		}
	}
	wasm, err := h.Client.Module(t.Context(), "counter", "")
	if err != nil || !bytes.Equal(wasm, hosttest.Plugin(t, "counter-tinygo")) {
		t.Errorf("the module of counter has %d bytes, %v", len(wasm), err)
	}
	for _, name := range names {
		d, err := h.Client.Diagram(t.Context(), name, "")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		old, err := h.Client.Diagram(t.Context(), name, d.Digest)
		if err != nil || len(old.Nodes) != len(d.Nodes) {
			t.Errorf("%s by its digest: %v", name, err)
		}
		got := diagramText(t, &d)
		file := filepath.Join(hosttest.Root(), "testdata", "diagrams", name+".txt")
		if *updateDiagrams {
			if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil || got != string(want) {
			t.Errorf("%s is\n%s\nwant\n%s\n%v", name, got, want, err)
		}
	}
	if _, err := h.Client.Diagram(t.Context(), "counter", strings.Repeat("0", 64)); host.CodeOf(err) != host.CodeNotFound {
		t.Errorf("a version that is not there: %v", err)
	}
	of, err := h.Client.Diagram(t.Context(), "chain", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Client.Diagram(t.Context(), "counter", of.Digest); host.CodeOf(err) != host.CodeNotFound {
		t.Errorf("a version of another workflow: %v", err)
	}
}

func summaries(t *testing.T, h *hosttest.Host) []host.WorkflowSummary {
	t.Helper()
	list, err := h.Client.WorkflowSummaries(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// diagramText writes a diagram, a line for each node and edge, without its digest.
func diagramText(t *testing.T, d *diagram.Diagram) string {
	t.Helper()
	var b strings.Builder
	known := map[string]bool{}
	for i := range d.Nodes {
		n := &d.Nodes[i]
		if known[n.ID] {
			t.Errorf("%s: two nodes %s", d.Workflow, n.ID)
		}
		known[n.ID] = true
		if n.Kind == diagram.NodeStep && !d.Flow && (n.Plugin == "" || n.Step == "" || n.Declared == nil) {
			t.Errorf("%s: step %+v", d.Workflow, n)
		}
		fmt.Fprintf(&b, "%s %s", n.Kind, n.ID)
		for _, part := range []string{n.Plugin, n.Step, n.Parent, n.Form, string(n.EventKind), n.Resource} {
			if part != "" {
				fmt.Fprintf(&b, " %s", part)
			}
		}
		if n.Declared != nil {
			shown, err := abi.ToJSON(n.Declared)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, " %s", shown)
		}
		b.WriteByte('\n')
	}
	for _, e := range d.Edges {
		if !known[e.Source] || !known[e.Target] {
			t.Errorf("%s: edge %+v has no end", d.Workflow, e)
		}
		fmt.Fprintf(&b, "%s --%s--> %s\n", e.Source, strings.TrimSpace(string(e.Kind)+" "+e.Label), e.Target)
	}
	return b.String()
}
