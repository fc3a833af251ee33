package host

import (
	"context"
	"time"

	"github.com/weftrun/weft/abi"
)

// DefaultRunTimeout is the timeout of a run whose manifest names none: serving time
// in which an attempt of the run is open.
const DefaultRunTimeout = 45 * time.Second

// MaxRequestBytes bounds the body of an HTTP request other than an upload.
const MaxRequestBytes = 16 << 20

// OnBusy says what a start does when another run of its session is active: it
// begins beside it, waits in the order of arrival until none is, or is refused.
type OnBusy string

// The values of OnBusy.
const (
	OnBusyShare  OnBusy = "share"
	OnBusyQueue  OnBusy = "queue"
	OnBusyReject OnBusy = "reject"
)

// StartRequest asks for a run.
type StartRequest struct {
	Tenant    string
	Workflow  string
	HandlerID string // "": the server makes one
	SessionID string // "": the handler's private one
	// Event is the start event; its Type "" means the workflow's start type.
	Event  abi.Event
	OnBusy OnBusy // "": share
	// Snapshot is nil, or what the run begins with: an unfinished one goes on, and
	// Event is not looked at; on the state of a finished one a new run starts. The
	// handler and the session must be new.
	Snapshot *RunSnapshot
	// Wait makes Start return when the run has ended, else when its start is
	// durable.
	Wait bool
	// Once, unless it is zero, makes a start that is repeated give the run of the
	// first one, as it is then: before anything is looked at that would refuse it.
	Once Once
	// Admitted is what [Admission] gave for this start: Start calls it when the run
	// counts itself, or does not begin. nil: Start asks by itself.
	Admitted func()
}

// StartAsk is what is known of a start before its body is read.
type StartAsk struct {
	Tenant    string
	Workflow  string // "": a run that goes on, such as a fork
	Wait      bool   // see StartRequest
	Once      Once   // without the hash of a body; zero: the start has no key
	Bytes     int64  // of the body, as announced; 0 or less: not known
	RequestID string
}

// Admission says whether there is room for a start. Its methods may be called from any
// goroutine.
type Admission interface {
	// AskStart admits a start, or refuses it with CodeOverloaded and a RetryAfter at
	// which there will be room. A repeat of a start that was accepted is admitted
	// always. What is admitted takes up room until release is called, which is to be
	// done in any case and may be done more than once. Other errors are those of
	// Runs.Start.
	AskStart(ctx context.Context, ask StartAsk) (release func(), err error)
}

// Once names a request that a client may send again, for 24 hours; the zero value
// names none.
type Once struct {
	Route string // that the key is for: the same key for another is another request
	Key   string
	Hash  string // of the request's body
}

// How an event was delivered.
const (
	DeliveredWaiter = "waiter"    // to steps that have waited for it
	DeliveredSteps  = "steps"     // to steps that accept it
	DeliveredKept   = "kept"      // to nobody yet: a step may wait for it
	DeliveredNobody = "unhandled" // to nobody
)

// Delivery says what became of an event that a client gave to a run.
type Delivery struct {
	How string   // one of the constants above; "": not known
	To  []string // the steps, each once, in the order in which they got it
}

// Runs starts, shows and steers runs. All methods may be called from any
// goroutine. What they return is durable. Errors are [*Error]s.
type Runs interface {
	// Start begins a run, and with Wait waits for its end. When ctx ends
	// first, the run goes on and ctx's error is returned.
	//
	// # Errors
	//
	// CodeNotFound: no such workflow. CodeInvalidArgument: the start event
	// breaks its schema, or an id is not legal. CodeConflict: the handler is
	// active or belongs to another workflow or session.
	// CodeSchemaViolation: the session's state breaks the workflow's schema (a
	// run that queues fails of that when its turn comes). CodeLimitExceeded: too
	// many starts wait for the session.
	// CodeIdempotencyMismatch: the key was that of a request with another body.
	// CodePermissionDenied: a resource that the workflow needs is not granted.
	// CodeInvalidArgument: the snapshot does not read, or is of another workflow or
	// version.
	Start(ctx context.Context, req StartRequest) (Run, error)
	// Get reads the latest run of a handler, or any run by its run id.
	Get(ctx context.Context, tenant, id string) (Run, error)
	// List lists handlers' latest runs. more says whether others follow.
	List(ctx context.Context, q RunQuery) (runs []Run, more bool, err error)
	// SendOnce gives an event to a running run: to the step if one is named, else
	// to all that accept it. Under a key, if once is not zero, it counts once, and a
	// repetition is acknowledged alike, even after the run's end.
	//
	// # Errors
	//
	// CodeNotFound, CodeConflict (the run has ended, or not begun),
	// CodeInvalidArgument (unknown type or step, a type that may not be sent, fields
	// that break the type's schema; Problems empty), CodeLimitExceeded,
	// CodeIdempotencyMismatch.
	//
	// The delivery of a repetition is not known.
	SendOnce(ctx context.Context, tenant, id string, event abi.Event, step string, once Once) (Delivery, error)
	// Cancel ends a running run; with purge it deletes the handler, running or
	// not. Without purge an ended one is CodeNotFound. It returns when the run has
	// ended: if its steps clean up first, when they have; a second Cancel ends the
	// clean-up. When ctx ends first the clean-up goes on, and nothing is deleted.
	Cancel(ctx context.Context, tenant, id string, purge bool) (deleted bool, err error)
	// Pause lets a running run begin no steps until it is resumed: attempts under
	// way go on to their end or next wait, events that come are kept, and the
	// timeouts of the workflow and its steps stand still. One that is paused
	// stays so. It gives the run's record.
	//
	// # Errors
	//
	// CodeNotFound, CodeConflict (the run has ended, cleans up before it does, or
	// has not begun).
	Pause(ctx context.Context, tenant, id string) (Run, error)
	// Resume lets a run that is paused or blocked go on, and gives its record.
	//
	// # Errors
	//
	// CodeNotFound, CodeConflict (the run has ended, or is neither).
	Resume(ctx context.Context, tenant, id string) (Run, error)
	// Retry lets a run of a handler, its latest, go on that has failed: as a new run,
	// from the step that failed, on the state that the session has now, with the
	// version that it had or, if newest, with that of new runs. Of one that is
	// blocked the attempts that were cut off begin anew, in the same run.
	//
	// # Errors
	//
	// CodeNotFound. CodeConflict: it has not failed, there is a later run of its
	// handler, or the newest version does not fit it. CodeGone: the journal has been
	// cut behind the failure. CodeLimitExceeded: it holds too much.
	Retry(ctx context.Context, tenant, id string, newest bool) (Fork, error)
	// Migrate moves runs that wait to the newest version of their workflow, those
	// that it fits; of what they have done nothing is done again. Blocked ones go on
	// with it.
	//
	// # Errors
	//
	// CodeNotFound: no such workflow, or handler.
	Migrate(ctx context.Context, req MigrateRequest) (Migration, error)
	// Timeline reads what happened in the latest run of a handler, or in any run by
	// its run id, behind a position in its session's journal: at most limit entries
	// (1 to [MaxTimeline]), less when they are large.
	//
	// # Errors
	//
	// CodeNotFound. CodeGone: the journal has been cut behind that position.
	Timeline(ctx context.Context, tenant, id string, after uint64, limit int) (Timeline, error)
	// Fork lets the latest run of a handler, or any run by its run id, go on a second
	// time from just after a position of its session's journal, under a new handler
	// in a private session: with the state of then, its children of the same session,
	// and of its waits, sleeps and timeouts what remained.
	//
	// # Errors
	//
	// CodeNotFound. CodeInvalidArgument: the journal has no such position, or the run
	// had not begun. CodeConflict: no fork can begin there; the message names the
	// nearest position before. CodeGone: the journal has been cut behind it.
	// CodeLimitExceeded: it holds too much.
	Fork(ctx context.Context, tenant, id string, at uint64) (Fork, error)
	// Export returns what the latest run of a handler, or any run by its run id, is
	// made of now.
	//
	// # Errors
	//
	// CodeNotFound, CodeConflict (the run has not begun).
	Export(ctx context.Context, tenant, id string) (RunSnapshot, error)
	// Events opens a handler's stream. after is the sequence number behind
	// which it begins; see StreamFromNow and StreamFromRun.
	// Of a run id the stream has the events of that run alone.
	Events(ctx context.Context, tenant, id string, after int64) (Stream, error)
	// FamilyEvents opens the stream together with those of the run's children. Of
	// children that are under way and that from does not name it gives all events, or
	// what comes from now on if the run's own begin there.
	//
	// # Errors
	//
	// CodeNotFound. CodeInvalidArgument: from names a child without its parent.
	FamilyEvents(ctx context.Context, tenant, id string, from FamilyStart) (FamilyStream, error)
}

// Special values of the after argument of [Runs.Events].
const (
	StreamFromRun int64 = -1 // from the latest run's first event
	StreamFromNow int64 = -2 // what comes from now on
)

// Stream is an open subscription to a handler's durable events, those hidden
// by default included. One goroutine uses it.
type Stream interface {
	// Next returns the next events, at least one. It waits for at most wait;
	// with nothing by then it returns none and nil. After the terminal event
	// of the latest run it returns io.EOF. CodeNotFound when the handler was
	// purged meanwhile.
	Next(ctx context.Context, wait time.Duration) ([]StreamEvent, error)
	// Ended reports whether, when the stream was opened, the run had ended and
	// nothing was left behind the starting point.
	Ended() bool
	// Close gives the subscription back. It may be called twice.
	Close()
}

// WorkflowInfo is what the API shows of a workflow: the newest version.
type WorkflowInfo struct {
	Name        string
	Description string
	Plugins     []string // names of the plugins that make it up
	Digest      string   // of the plugin's module, or of the composition
	// Composed: the workflow was made by [Plugins.Compose]; Settings are those
	// given there.
	Composed    bool
	Settings    WorkflowSettings
	StartType   string
	StartSchema abi.Raw // with "title"; {} properties if undeclared
	StopTypes   []string
	StopSchema  abi.Raw
	// Events lists every event type, declared or of the runtime's base, that
	// the workflow knows: in order of name.
	Events []EventInfo
	// Graph has the nodes and edges of the representation.
	Graph Graph
	// Flow is the flow that the workflow is, as it was given, in canonical form: a
	// map. nil: it is none.
	Flow abi.Raw
	// Timeout is that of its runs.
	Timeout WorkflowTimeout
}

// WorkflowTimeout is the timeout of a workflow's runs.
type WorkflowTimeout struct {
	Span time.Duration // 0: none
	// Set: the workflow sets it, and it counts the waits of a run, too. Else it is the
	// server's default, which counts work; what makes a WorkflowInfo without knowing
	// the server's settings leaves Span at 0 then.
	Set bool
}

// EventInfo describes one event type of a workflow.
type EventInfo struct {
	Type   string
	Types  []string // declared ancestors, nearest first
	Kind   abi.EventKind
	Base   bool
	Schema abi.Raw
}

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
	// Label says how the event goes: "list" of a fan-out, "collects" or "collects N" of
	// a step that takes a list of it, "joins" of a step that takes several types at
	// once, "waits" of a step that waits for it while it works; else "".
	Label string
}

// Composition says what a workflow is to be made of.
type Composition struct {
	// Plugins names at most [MaxComposedPlugins] plugins, whose steps come in
	// this order. None: the plugin that makes a workflow of the name by itself.
	Plugins  []string
	Settings WorkflowSettings
	// Flow is a flow's document: a map, of at most [MaxFlowBytes]. It names the
	// functions of plugins, and Plugins is empty. nil: the workflow is no flow.
	Flow abi.Raw
}

// WorkflowSettings are what a workflow's operator adds to the manifests of its
// plugins.
type WorkflowSettings struct {
	// Timeout of runs, 0 for none. nil: what the plugins say, if those that say
	// something agree, else the host's default.
	Timeout     *time.Duration
	Description string // "": that of the only plugin
	// Config holds the configurations of steps, by step: maps. With Description
	// it takes at most [MaxSettingsBytes].
	Config map[string]abi.Raw
}

// Bounds of a [Composition].
const (
	MaxComposedPlugins = 32
	MaxSettingsBytes   = 1 << 20
	MaxFlowBytes       = 1 << 20
)

// Plugins stores and shows uploaded plugins and the workflows they make. All
// methods may be called from any goroutine; errors are [*Error]s.
type Plugins interface {
	// Put uploads a version of a plugin. created is false when the same bytes
	// are the newest version already. Composed workflows that have its steps are
	// remade with it.
	//
	// # Errors
	//
	// CodeInvalidPlugin with all Problems, those of a composed workflow that it
	// would break included; CodeConflict when another plugin or a composition
	// has that workflow; CodeInvalidArgument for a bad name; CodeTooLarge.
	Put(ctx context.Context, tenant, name string, wasm []byte) (info PluginInfo, created bool, err error)
	// Plugin returns the newest version.
	Plugin(ctx context.Context, tenant, name string) (PluginInfo, error)
	// List returns the newest version of each plugin, by name.
	List(ctx context.Context, tenant string) ([]PluginInfo, error)
	// Versions returns all versions, oldest first. Runs of each are those that hold
	// exactly this version.
	Versions(ctx context.Context, tenant, name string) ([]PluginInfo, error)
	// Delete removes a plugin with all its versions; CodeConflict while runs hold
	// any of them, or while a composed workflow has its steps. What journals need of
	// it stays stored as long as they do.
	Delete(ctx context.Context, tenant, name string) error
	// DeleteVersion removes a version that is not the newest, likewise.
	//
	// # Errors
	//
	// CodeNotFound. CodeConflict while runs hold it, if it is the newest, or if the
	// newest version of a composed workflow has it.
	DeleteVersion(ctx context.Context, tenant, name string, version int) error
	// Workflows lists the names of the workflows, sorted.
	Workflows(ctx context.Context, tenant string) ([]string, error)
	// Workflow describes one. What it gives is shared and must not be changed.
	Workflow(ctx context.Context, tenant, name string) (WorkflowInfo, error)
	// Compose makes a workflow of plugins, or gives one settings, in place of
	// what was composed under the name before. changed is false when that is the
	// same. New runs take it; those under way keep what they began with.
	//
	// # Errors
	//
	// CodeInvalidPlugin with all Problems; CodeConflict when a plugin that is
	// not among those named makes a workflow of that name by itself;
	// CodeInvalidArgument for a bad name or bad settings.
	Compose(ctx context.Context, tenant, name string, c Composition) (info WorkflowInfo, changed bool, err error)
	// Decompose removes a composed workflow; a plugin's own of that name comes
	// back. CodeNotFound if none is composed, CodeConflict while it has runs.
	Decompose(ctx context.Context, tenant, name string) error
}

// Health tells whether the server can serve.
type Health interface {
	// Healthy is nil when the store works; Ready also wants the server not to
	// be starting or draining.
	Healthy() error
	Ready() error
	// Reduced says in what way, and why, a ready server does less at a time than it
	// could; "": it does not.
	Reduced() string
}
