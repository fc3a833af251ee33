package plugins

import (
	"context"
	"fmt"
	"html"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/cmd/weft/remote"
	"github.com/weftrun/weft/cmd/weft/screen"
	"github.com/weftrun/weft/host/diagram"
)

// drawers draw a workflow in a format.
var drawers = map[string]func(*layers) string{
	"text": drawText, "mermaid": drawMermaid, "dot": drawDOT, "svg": drawSVG,
}

// NewGraph makes the command 'weft graph'.
func NewGraph() *cobra.Command {
	format, version := "text", ""
	cmd := &cobra.Command{
		Use:   "graph NAME",
		Short: "Draw a workflow: its steps, and the events between them",
		Long: `Draw a workflow: its steps, the events between them, the outside world that answers
their questions, the steps that take over after a failure, and the resources that its
plugins ask for. Of a flow it draws the nodes in their order, and the workflows that
they run. Marks show where lists fan out, and which steps collect lists, join types or
wait for an event. Only the code of a step says which resources it calls and which
workflows it runs, so the drawing has no lines for them.

Formats are text, mermaid (for Markdown), dot (for Graphviz) and svg.`,
		Example: `  weft graph wordcount
  weft graph wordcount --format mermaid
  weft graph wordcount --format svg > wordcount.svg
  weft graph wordcount --json`,
		Args: cli.Takes("NAME"),
	}
	cmd.Flags().StringVar(&format, "format", format, "`FORMAT`: text, mermaid, dot or svg")
	cmd.Flags().StringVar(&version, "version", "", "draw the version with this `DIGEST`, instead of the newest")
	return remote.Command(cmd, func(ctx context.Context, r *remote.Conn, args []string) error {
		draw, ok := drawers[format]
		if !ok {
			return cli.Usage("unknown format %q: use text, mermaid, dot or svg", format)
		}
		d, err := r.Diagram(ctx, args[0], version)
		if version == "" {
			err = r.UnknownWorkflow(ctx, err, args[0])
		}
		if err != nil {
			return err
		}
		if r.JSON {
			return r.PrintAnswer()
		}
		return r.Print(draw(newLayers(args[0], drawable(&d))))
	})
}

// drawable returns a diagram as a graph. The kinds of edges that an arrow alone does not
// explain are labels.
func drawable(d *diagram.Diagram) *diagram.Graph {
	var g diagram.Graph
	for i := range d.Nodes {
		n := &d.Nodes[i]
		node := diagram.GraphNode{ID: n.ID, Label: n.Label, Kind: string(n.Kind)}
		switch n.Kind {
		case diagram.NodeOutside:
			node.Kind = "external"
		case diagram.NodeEnding:
			node.Kind, node.Label = "event", "("+n.Label+")"
		case diagram.NodeWorkflow:
			node.Label = "workflow " + n.Label
		case diagram.NodeResource:
			node.Label = n.Label + " (" + n.Resource + ")"
		}
		g.Nodes = append(g.Nodes, node)
	}
	for _, e := range d.Edges {
		label := e.Label
		switch e.Kind {
		case diagram.EdgeWaits, diagram.EdgeCatches, diagram.EdgeRuns:
			label = string(e.Kind)
		}
		g.Edges = append(g.Edges, diagram.GraphEdge{Source: e.Source, Target: e.Target, Label: label})
	}
	return &g
}

// layers is a graph whose nodes are arranged in columns, so that most edges lead to the
// right.
type layers struct {
	name    string
	nodes   []diagram.GraphNode
	edges   [][2]int // by the indices of nodes
	labels  []string // of the edges
	column  []int
	columns [][]int
}

// newLayers puts each node one column to the right of its rightmost predecessor. Backward
// edges, as in a loop, do not count. Edges from and to missing nodes are omitted.
func newLayers(name string, g *diagram.Graph) *layers {
	l := &layers{name: name, nodes: g.Nodes, column: make([]int, len(g.Nodes))}
	index := map[string]int{}
	for i, n := range g.Nodes {
		index[n.ID] = i
	}
	out := make([][]int, len(g.Nodes))
	reached := make([]bool, len(g.Nodes))
	for _, e := range g.Edges {
		from, ok := index[e.Source]
		to, known := index[e.Target]
		if ok && known {
			l.edges = append(l.edges, [2]int{from, to})
			l.labels = append(l.labels, e.Label)
			out[from] = append(out[from], to)
			reached[to] = true
		}
	}
	order, seen := make([]int, 0, len(g.Nodes)), make([]bool, len(g.Nodes))
	var visit func(int)
	visit = func(i int) {
		if seen[i] {
			return
		}
		seen[i] = true
		for _, to := range out[i] {
			visit(to)
		}
		order = append(order, i)
	}
	for i, n := range g.Nodes { // nodes without predecessors come first, except external nodes
		if !reached[i] && n.Kind != "external" {
			visit(i)
		}
	}
	for i := range g.Nodes {
		visit(i)
	}
	slices.Reverse(order)
	place := make([]int, len(g.Nodes))
	for at, i := range order {
		place[i] = at
	}
	for _, i := range order {
		for _, to := range out[i] {
			if place[to] > place[i] {
				l.column[to] = max(l.column[to], l.column[i]+1)
			}
		}
		for len(l.columns) <= l.column[i] {
			l.columns = append(l.columns, nil)
		}
		l.columns[l.column[i]] = append(l.columns[l.column[i]], i)
	}
	return l
}

// drawText draws the events as a tree: each step below the events that start it, each
// event below the steps that return it. A node that was drawn before is named, but its
// branch is not drawn again.
func drawText(l *layers) string {
	t := &tree{l: l, out: make([][]int, len(l.nodes)), drawn: make([]bool, len(l.nodes))}
	led := make([]bool, len(l.nodes))
	for i, e := range l.edges {
		t.out[e[0]] = append(t.out[e[0]], i)
		led[e[1]] = true
	}
	for i := range l.nodes { // the events that start a run, and nodes without predecessors
		if !led[i] && l.nodes[i].Kind != "external" && l.nodes[i].Kind != "resource" {
			t.node(i, "", "", "")
		}
	}
	for _, column := range l.columns { // cycles, and external nodes without questions
		for _, i := range column {
			if !t.drawn[i] {
				t.node(i, "", "", "")
			}
		}
	}
	return t.b.String()
}

// tree is a drawing of [drawText].
type tree struct {
	l     *layers
	out   [][]int // edges by their source node
	drawn []bool
	b     strings.Builder
}

// node draws a node at the end of a branch of the tree, and its successors below. rest is
// the prefix of the lines below; label is the label of the edge to the node.
func (t *tree) node(i int, branch, rest, label string) {
	n := &t.l.nodes[i]
	text := screen.Printable(n.Label)
	switch n.Kind {
	case "event":
	case "external":
		text = "(outside)"
	case "resource":
		text = "resource " + text
	default:
		text = "[" + text + "]"
	}
	if how, ok := labels[label]; ok {
		text += "  " + how
	} else if label != "" {
		text += "  " + screen.Printable(label)
	}
	again := t.drawn[i] && len(t.out[i]) > 0
	if again {
		text += "  (see above)"
	}
	t.drawn[i] = true
	fmt.Fprintf(&t.b, "%s%s\n", branch, text)
	if again {
		return
	}
	for k, e := range t.out[i] {
		edge, fork, below := t.l.edges[e], "├─▶ ", "│   "
		if k == len(t.out[i])-1 {
			fork, below = "└─▶ ", "    "
		}
		t.node(edge[1], rest+fork, rest+below, t.l.labels[e])
	}
}

// labels explain the labels of edges.
var labels = map[string]string{
	"list": "in a list: each begins an invocation", "collects": "when all of a list are there",
	"waits": "in the middle: it waits for the event", "joins": "when one of each type is there",
	"catches": "takes over after its failure", "runs": "as a child",
}

// drawMermaid draws a flowchart of Mermaid.
func drawMermaid(l *layers) string {
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	shapes := map[string][2]string{"event": {"(", ")"}, "external": {"{{", "}}"}, "resource": {"[(", ")]"}}
	quote := strings.NewReplacer(`"`, "#quot;", `\`, "#92;")
	for i, n := range l.nodes {
		shape, ok := shapes[n.Kind]
		if !ok {
			shape = [2]string{"[", "]"}
		}
		fmt.Fprintf(&b, "  n%d%s\"%s\"%s\n", i, shape[0], quote.Replace(screen.Printable(n.Label)), shape[1])
	}
	for i, e := range l.edges {
		label := ""
		if l.labels[i] != "" {
			label = `|"` + quote.Replace(screen.Printable(l.labels[i])) + `"|`
		}
		fmt.Fprintf(&b, "  n%d -->%s n%d\n", e[0], label, e[1])
	}
	return b.String()
}

// drawDOT draws a graph of Graphviz.
func drawDOT(l *layers) string {
	quote := func(s string) string {
		return `"` + strings.NewReplacer(`"`, `\"`, `\`, `\\`).Replace(screen.Printable(s)) + `"`
	}
	shapes := map[string]string{"event": "ellipse", "external": "hexagon", "resource": "cylinder"}
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %s {\n  rankdir=LR\n", quote(l.name))
	for i, n := range l.nodes {
		shape := shapes[n.Kind]
		if shape == "" {
			shape = "box"
		}
		fmt.Fprintf(&b, "  n%d [label=%s, shape=%s]\n", i, quote(n.Label), shape)
	}
	for i, e := range l.edges {
		label := ""
		if l.labels[i] != "" {
			label = " [label=" + quote(l.labels[i]) + "]"
		}
		fmt.Fprintf(&b, "  n%d -> n%d%s\n", e[0], e[1], label)
	}
	b.WriteString("}\n")
	return b.String()
}

// Sizes of a drawing in pixels.
const (
	svgLetter = 8 // approximate width of a letter
	svgHeight = 32
	svgGapX   = 56
	svgGapY   = 20
	svgMargin = 16
)

// drawSVG draws the columns from left to right. Backward edges are drawn below everything
// else.
func drawSVG(l *layers) string {
	x, width := make([]int, len(l.columns)), make([]int, len(l.columns))
	y := make([]int, len(l.nodes))
	right, bottom := svgMargin, 0
	for c, column := range l.columns {
		x[c] = right
		for row, i := range column {
			width[c] = max(width[c], svgLetter*(len([]rune(l.nodes[i].Label))+2))
			y[i] = svgMargin + row*(svgHeight+svgGapY)
			bottom = max(bottom, y[i]+svgHeight)
		}
		right += width[c] + svgGapX
	}
	var b strings.Builder
	back := 0
	for i, e := range l.edges {
		from, to := l.column[e[0]], l.column[e[1]]
		x1, y1 := x[from]+width[from], y[e[0]]+svgHeight/2
		x2, y2 := x[to], y[e[1]]+svgHeight/2
		if l.labels[i] != "" {
			fmt.Fprintf(&b, `<text x="%d" y="%d" font-size="10">%s</text>`+"\n", x1+svgGapX/2, (y1+y2)/2-4, html.EscapeString(screen.Printable(l.labels[i])))
		}
		if from < to {
			fmt.Fprintf(&b, `<path d="M%d %d C%d %d %d %d %d %d" marker-end="url(#tip)"/>`+"\n", x1, y1, x1+svgGapX/2, y1, x2-svgGapX/2, y2, x2, y2)
			continue
		}
		back++
		low := bottom + svgGapY*back
		fmt.Fprintf(&b, `<path d="M%d %d h%d V%d H%d V%d h%d" marker-end="url(#tip)"/>`+"\n", x1, y1, svgGapX/4, low, x2-svgGapX/4, y2, svgGapX/4)
	}
	for i, n := range l.nodes {
		c := l.column[i]
		round, fill := 2, "#dbe9ff"
		switch n.Kind {
		case "event":
			round, fill = svgHeight/2, "#fff"
		case "external":
			fill = "#ffe9c7"
		case "resource":
			fill = "#e2f0d9"
		}
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%d" height="%d" rx="%d" fill="%s"/><text x="%d" y="%d">%s</text>`+"\n",
			x[c], y[i], width[c], svgHeight, round, fill, x[c]+width[c]/2, y[i]+svgHeight/2+5, html.EscapeString(screen.Printable(n.Label)))
	}
	w, h := right-svgGapX+svgMargin, bottom+svgGapY*back+svgMargin
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="monospace" font-size="13" text-anchor="middle">
<title>%s</title>
<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8z" stroke="none" fill="#445"/></marker></defs>
<g fill="none" stroke="#445">
%s</g></svg>
`, w, h, w, h, html.EscapeString(screen.Printable(l.name)), strings.ReplaceAll(b.String(), "<text ", `<text stroke="none" fill="#112" `))
}
