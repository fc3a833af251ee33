package apiwire

import (
	"github.com/weftrun/weft/host/diagram"
)

// Plugin is a version of a plugin in a listing; see [host.PluginInfo].
type Plugin struct {
	_          struct{} `doc:"A version of a plugin."`
	Name       string   `json:"name"`
	Workflow   OrNull   `json:"workflow" doc:"That it makes by itself; null: it is a part of others."`
	Version    int      `json:"version" api:"min=1" doc:"1 for the first upload, counting up."`
	SHA256     string   `json:"sha256" doc:"Of the bytes that were uploaded."`
	Size       int      `json:"size" doc:"In bytes."`
	Created    Time     `json:"created_at"`
	Runs       int      `json:"runs" doc:"Running runs that hold it."`
	HeldBy     []Held   `json:"held_by,omitempty" doc:"On which versions of which workflows those runs are."`
	ComposedIn []string `json:"composed_in" doc:"Composed workflows that have its steps."`
}

// Held says how many runs use a version of a workflow.
type Held struct {
	Workflow string `json:"workflow"`
	Version  OrNull `json:"version"`
	Runs     int    `json:"runs"`
}

// PluginDetails is a version of a plugin with its manifest.
type PluginDetails struct {
	_ struct{} `doc:"A version of a plugin, with its manifest."`
	Plugin
	RewrittenSHA256 string       `json:"rewritten_sha256" doc:"Of the module that runs: the upload with the host's checks in it."`
	Manifest        Value        `json:"manifest" doc:"What the plugin says of itself."`
	Imports         []string     `json:"imports" doc:"What it asks of the host."`
	Check           *[]Migration `json:"check,omitempty" doc:"With check=true: which runs in progress could move to the new version." fill:"-"`
	DryRun          bool         `json:"dry_run,omitempty" doc:"With dry_run=true: nothing was stored." fill:"-"`
	Unchanged       bool         `json:"unchanged,omitempty" doc:"With dry_run=true: the newest version has the same bytes." fill:"-"`
	Changes         *[]Change    `json:"changes,omitempty" doc:"With dry_run=true, if the plugin has a version: how the module differs from the newest." fill:"-"`
}

// Change is a difference between the manifests or imports of two versions of a plugin.
type Change struct {
	_       struct{} `doc:"A difference between two versions of a plugin."`
	Part    string   `json:"part" doc:"The member of the manifest, such as steps, events or resources; or imports."`
	Name    string   `json:"name,omitempty" doc:"Of the step, event, resource or import; absent where the part itself has changed."`
	Change  string   `json:"change" api:"enum=added|removed|changed"`
	Members []string `json:"members,omitempty" doc:"What has changed of it, such as accepts or timeout_ms."`
}

// Plugins is a list of the newest versions of plugins.
type Plugins struct {
	Plugins []Plugin `json:"plugins" doc:"The newest version of each."`
}

// Versions is a list of the versions of a plugin.
type Versions struct {
	Versions []Plugin `json:"versions"`
}

// Workflows is a list of the names of workflows.
type Workflows struct {
	Workflows []string           `json:"workflows" doc:"Their names."`
	Details   *[]WorkflowSummary `json:"details,omitempty" doc:"With details=true: the same workflows, each with what a list shows of it."`
}

// WorkflowSummary is what a list shows of a workflow; see [host.WorkflowSummary].
type WorkflowSummary struct {
	_           struct{} `doc:"A workflow in short."`
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Plugins     []string `json:"plugins"`
	Version     int      `json:"version" api:"min=1" doc:"Number of the newest version."`
	Digest      string   `json:"sha256" doc:"The newest version."`
	Composed    bool     `json:"composed" doc:"The workflow was composed, or has settings."`
	Flow        bool     `json:"flow"`
	Runs        int      `json:"runs" doc:"Running runs, of any version."`
}

// Workflow is what a workflow is made of; see [host.WorkflowInfo].
type Workflow struct {
	_        struct{}    `doc:"What a workflow is made of."`
	Name     string      `json:"name"`
	Plugins  []string    `json:"plugins"`
	Settings Settings    `json:"settings"`
	Digest   string      `json:"sha256" doc:"Its version."`
	Composed bool        `json:"composed" doc:"The workflow was composed, or has settings."`
	Timeout  *RunTimeout `json:"timeout" fill:"-"`
	Flow     Value       `json:"flow,omitempty" api:"object" doc:"The flow, if the workflow is one, as it was uploaded."`
}

// RunTimeout is the timeout of runs; see [host.WorkflowTimeout].
type RunTimeout struct {
	_    struct{} `doc:"Of a run; null for none."`
	Span Seconds  `json:"seconds" api:"min=0"`
	Set  bool     `json:"set" doc:"true: the workflow sets the timeout, which counts waits too. false: it is the server's default, which counts only work."`
}

// Settings are the settings of a workflow; see [host.WorkflowSettings].
type Settings struct {
	_           struct{}         `body:"closed" doc:"Settings of a workflow."`
	Timeout     *Seconds         `json:"timeout,omitempty" api:"min=0" doc:"Of a run, in seconds; 0: none."`
	Description string           `json:"description,omitempty"`
	Config      map[string]Value `json:"config,omitempty" api:"object,loose" doc:"Configurations of steps, by name."`
}

// Composition is what a workflow is composed of.
type Composition struct {
	_        struct{} `body:"closed" doc:"A composition of plugins, or a flow."`
	Plugins  []string `json:"plugins,omitempty" doc:"Default: the plugin that makes the workflow by itself."`
	Flow     Value    `json:"flow,omitempty" api:"object" doc:"A tree over functions of plugins, instead of plugins."`
	Settings Settings `json:"settings,omitempty" api:"loose"`
	Timeout  *Seconds `json:"timeout,omitempty" api:"min=0" doc:"settings.timeout, for short."`
	Name     string   `json:"name,omitempty" doc:"The same as in the path."`
}

// StartStop are the schemas of a workflow's start and stop events.
type StartStop struct {
	_     struct{} `doc:"JSON Schemas of the start and the stop event."`
	Start Value    `json:"start" api:"object"`
	Stop  Value    `json:"stop" api:"object"`
}

// EventSchemas are the schemas of a workflow's events.
type EventSchemas struct {
	Events []Value `json:"events" api:"object" doc:"JSON Schemas, with the type as title."`
}

// Diagram is a version of a workflow as nodes and edges; see [diagram.Diagram].
type Diagram struct {
	_           struct{}      `doc:"The steps of a version of a workflow, and what leads from one to another."`
	Workflow    string        `json:"workflow"`
	Digest      string        `json:"sha256" doc:"The version."`
	Description string        `json:"description"`
	Flow        bool          `json:"flow" doc:"The workflow is a flow: its nodes are a tree by their parents, and edges of the kind leads are its order."`
	Nodes       []DiagramNode `json:"nodes"`
	Edges       []DiagramEdge `json:"edges"`
}

// DiagramNode is a part of a diagram; see [diagram.Node].
type DiagramNode struct {
	_           struct{}         `doc:"A part of a workflow."`
	ID          string           `json:"id"`
	Kind        diagram.NodeKind `json:"kind" api:"enum=step|event|outside|ending|workflow|resource" doc:"outside: people and programs that answer. ending: the cancellation or the timeout of a run."`
	Label       string           `json:"label"`
	Description string           `json:"description,omitempty"`
	Plugin      string           `json:"plugin,omitempty" doc:"Serves the step."`
	Step        string           `json:"step,omitempty" doc:"The name that the step has in journals."`
	Declared    Value            `json:"declared,omitempty" api:"object" doc:"The step as the manifest of its plugin declares it, such as workers, timeout and retry."`
	Config      Value            `json:"config,omitempty" api:"object" doc:"The step's configuration by the settings of the workflow."`
	Parent      string           `json:"parent,omitempty" doc:"In a flow: the node that contains this node."`
	Form        string           `json:"form,omitempty" doc:"In a flow: what the node does, such as loop."`
	EventKind   string           `json:"event_kind,omitempty" doc:"Of an event; absent for a plain event."`
	Resource    string           `json:"resource,omitempty" doc:"The kind of a resource. Only the code of the steps says which of them call it."`
	Optional    bool             `json:"optional,omitempty" doc:"The plugins can do without the resource."`
}

// DiagramEdge leads from one node to another; see [diagram.Edge].
type DiagramEdge struct {
	_      struct{}         `doc:"Leads from one node to another."`
	Source string           `json:"source"`
	Target string           `json:"target"`
	Kind   diagram.EdgeKind `json:"kind" api:"enum=accepts|emits|waits|asks|answers|catches|runs|leads" doc:"catches: from the step that failed, or from an ending, to the step that takes over."`
	Label  string           `json:"label,omitempty" doc:"list for a fan-out, collects or collects N for a step that takes a list, joins for a step that takes several types together."`
}

// Drawing is a workflow's graph.
type Drawing struct {
	Graph Graph `json:"graph"`
}

// Graph is the drawing of a workflow; see [diagram.Graph].
type Graph struct {
	_           struct{} `doc:"A drawing of the workflow."`
	Name        string   `json:"name" fill:"-"`
	Nodes       []Node   `json:"nodes" fill:"-"`
	Edges       []Edge   `json:"edges"`
	Description OrNull   `json:"description" fill:"-"`
}

// Node is a step, an event or an external node; see [diagram.GraphNode].
type Node struct {
	_     struct{} `doc:"A step, an event, or what is outside."`
	ID    string   `json:"id"`
	Label string   `json:"label"`
	Kind  string   `json:"node_type"`
	*StepNode
	*EventNode
}

// StepNode has the additional fields of a step's node.
type StepNode struct {
	Description OrNull `json:"description"`
}

// EventNode has the additional fields of an event's node.
type EventNode struct {
	EventType  string   `json:"event_type"`
	EventTypes []string `json:"event_types" doc:"The type and its ancestors."`
	Schema     Value    `json:"event_schema" api:"object"`
	ProducedBy []string `json:"produced_by"`
}

// Edge is an edge of a graph; see [diagram.GraphEdge].
type Edge struct {
	Source string `json:"source"`
	Target string `json:"target"`
	Label  OrNull `json:"label"`
}

// Graph returns the graph that a drawing shows.
func (g *Graph) Graph() diagram.Graph {
	var out diagram.Graph
	Fill(&out, g)
	for i := range g.Nodes {
		n := &g.Nodes[i]
		var node diagram.GraphNode
		Fill(&node, n)
		if n.StepNode != nil {
			Fill(&node, n.StepNode)
		}
		if n.EventNode != nil {
			Fill(&node, n.EventNode)
		}
		out.Nodes = append(out.Nodes, node)
	}
	return out
}
