// Package diagram has the words for what a workflow looks like: its steps, its events, and what
// leads from one to another.
//
// It does not depend on workflows, or how they are drawn.
package diagram

import "github.com/weftrun/weft/abi"

// Graph is a workflow drawn as steps and events.
type Graph struct {
	Nodes []GraphNode
	Edges []GraphEdge
}

// GraphNode is a step, an event or the outside world.
type GraphNode struct {
	ID          string
	Label       string
	Kind        string // step, event, external
	Description string
	EventType   string
	EventTypes  []string
	Schema      abi.Raw
	ProducedBy  []string
}

// GraphEdge leads from a step to an event it emits or from an event to a step
// that accepts it or waits for it.
type GraphEdge struct {
	Source, Target string
	// Label describes the edge: "list" for a fan-out, "collects" or "collects N" for a
	// step that takes a list, "joins" for a step that takes several types together,
	// "waits" for a step that waits for the event while it runs; otherwise "".
	Label string
}

// Diagram is all that a version of a workflow says of its steps, and of what leads from
// one to another. What only the code of the steps decides, such as the resources that a
// step calls, has nodes without edges.
type Diagram struct {
	Workflow    string
	Digest      string // of the version
	Description string
	Flow        bool // the workflow is a flow, whose nodes are a tree
	Nodes       []Node
	Edges       []Edge
}

// Node is a part of a [Diagram].
type Node struct {
	ID          string // unique in the diagram
	Kind        NodeKind
	Label       string
	Description string
	// Plugin serves the step; "": none does, such as for a flow's own nodes.
	Plugin string
	// Step is the name that journals have for a step. It is "" for other nodes, and for the
	// nodes of a flow that call no function.
	Step string
	// Declared is the step as its plugin's manifest declares it, and Config its
	// configuration by the workflow's settings: maps, or nil.
	Declared abi.Raw
	Config   abi.Raw
	// Parent is the flow's node that contains this node, and Form what a flow's node does,
	// such as loop.
	Parent, Form string
	// EventKind is the kind of an event; "" for a plain event.
	EventKind abi.EventKind
	// Resource is the kind of a resource, and Optional says that plugins can do without it.
	Resource string
	Optional bool
}

// NodeKind is what a node of a [Diagram] stands for.
type NodeKind string

// The kinds of nodes.
const (
	NodeStep     NodeKind = "step"
	NodeEvent    NodeKind = "event"
	NodeOutside  NodeKind = "outside" // people and programs that answer
	NodeEnding   NodeKind = "ending"  // the cancellation or the timeout of a run
	NodeWorkflow NodeKind = "workflow"
	NodeResource NodeKind = "resource"
)

// Edge leads from one node to another.
type Edge struct {
	Source, Target string
	Kind           EdgeKind
	// Label is that of a [GraphEdge].
	Label string
}

// EdgeKind is what an edge of a [Diagram] stands for.
type EdgeKind string

// The kinds of edges.
const (
	EdgeAccepts EdgeKind = "accepts" // a step takes an event
	EdgeEmits   EdgeKind = "emits"   // a step returns or sends an event
	EdgeWaits   EdgeKind = "waits"   // a step waits for an event while it runs
	EdgeAsks    EdgeKind = "asks"    // an event, or a step that waits, asks the outside
	EdgeAnswers EdgeKind = "answers" // the outside sends an event
	EdgeCatches EdgeKind = "catches" // a step takes over after a failure, from the step that failed
	EdgeRuns    EdgeKind = "runs"    // a flow's node runs a workflow
	EdgeLeads   EdgeKind = "leads"   // a flow's node follows another
)
