package plugins

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/weftrun/weft/host/diagram"
)

// drawn is a graph with a loop, a question and hostile names.
func drawn() *layers {
	return newLayers("w <\"x\">", &diagram.Graph{
		Nodes: []diagram.GraphNode{
			{ID: "Again", Label: "Again", Kind: "event"}, {ID: "Ask", Label: "Ask", Kind: "event"},
			{ID: "StartEvent", Label: "StartEvent", Kind: "event"}, {ID: "StopEvent", Label: "StopEvent", Kind: "event"},
			{ID: "external_step", Label: "external_step", Kind: "external"},
			{ID: "one", Label: "one", Kind: "step"}, {ID: "two", Label: "two \"<&\x1b[2J\\", Kind: "step"},
			{ID: "resource:web (http)", Label: "web (http)", Kind: "resource"},
		},
		Edges: []diagram.GraphEdge{
			{Source: "StartEvent", Target: "one"}, {Source: "one", Target: "Ask"}, {Source: "one", Target: "Again", Label: "list"},
			{Source: "Again", Target: "two", Label: "collects 2"}, {Source: "two", Target: "Again"}, {Source: "two", Target: "StopEvent"},
			{Source: "Ask", Target: "external_step"}, {Source: "two", Target: "two"}, {Source: "nobody", Target: "one"},
		},
	})
}

func TestGraphFormats(t *testing.T) {
	const text = `StartEvent
└─▶ [one]
    ├─▶ Ask
    │   └─▶ (outside)
    └─▶ Again  in a list: each begins an invocation
        └─▶ [two "<&\u001b[2J\]  collects 2
            ├─▶ Again  (see above)
            ├─▶ StopEvent
            └─▶ [two "<&\u001b[2J\]  (see above)
resource web (http)
`
	if got := drawText(drawn()); got != text {
		t.Errorf("text:\n%s", got)
	}
	for format, want := range map[string][]string{
		"mermaid": {"flowchart LR", `n0("Again")`, `n4{{"external_step"}}`, `n5["one"]`, `two #quot;<&`, `n5 -->|"list"| n0`, `n7[("web (http)")]`, "n6 --> n6"},
		"dot":     {`digraph "w <\"x\">" {`, `n0 [label="Again", shape=ellipse]`, `\"<&`, "n6 -> n0", `n0 -> n6 [label="collects 2"]`, `n7 [label="web (http)", shape=cylinder]`},
		"svg":     {`<title>w &lt;&#34;x&#34;&gt;</title>`, "two &#34;&lt;&amp;", ">external_step</text>", ">collects 2</text>"},
	} {
		got := drawers[format](drawn())
		for _, part := range want {
			if !strings.Contains(got, part) {
				t.Errorf("%s has no %s:\n%s", format, part, got)
			}
		}
		if strings.Contains(got, "\x1b") || strings.Contains(got, "nobody") {
			t.Errorf("%s: %q", format, got)
		}
	}
}

func TestGraphIsXML(t *testing.T) {
	for _, l := range []*layers{drawn(), newLayers("empty", &diagram.Graph{})} {
		d := xml.NewDecoder(strings.NewReader(drawSVG(l)))
		for {
			_, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%v in\n%s", err, drawSVG(l))
			}
		}
	}
}
