package host

import (
	"context"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/diagram"
	"github.com/weftrun/weft/host/position"
)

// DefaultRunTimeout is the timeout of a run whose manifest sets none. It counts serving
// time in which an attempt of the run is open.
const DefaultRunTimeout = 45 * time.Second

// OnBusy says what a start does when another run of its session is active: it begins
// concurrently, waits in order of arrival until no run is active, or is refused.
type OnBusy string

// The values of OnBusy.
const (
	OnBusyShare  OnBusy = "share"
	OnBusyQueue  OnBusy = "queue"
	OnBusyReject OnBusy = "reject"
)

// StartRequest describes a run to start.
type StartRequest struct {
	Tenant    string
	Workflow  string
	HandlerID string // "": the server generates one
	SessionID string // "": the handler's private one
	// Event is the start event; a Type of "" means the workflow's start type.
	Event  abi.Event
	OnBusy OnBusy // "": share
	// Snapshot is nil, or the run from which the new run continues. An unfinished run
	// continues, and Event is ignored; after a finished run, a new run starts on its
	// state. The handler and the session must be new.
	Snapshot *RunSnapshot
	// Wait makes Start return when the run has ended. Without it, Start returns when the
	// start is durable.
	Wait bool
	// Once, unless it is zero, makes a repeated start return the run of the first start
	// in its current state. This is checked before anything that could refuse the start.
	Once Once
	// Admitted comes from [Admission] for this start. Start calls it when the run is
	// counted, or does not begin. nil: Start asks for admission itself.
	Admitted func()
}

// StartAsk is what is known about a start before its body is read.
type StartAsk struct {
	Tenant    string
	Workflow  string // "": a run that continues, such as a fork
	Wait      bool   // see StartRequest
	Once      Once   // without the hash of a body; zero: the start has no idempotency key
	Bytes     int64  // announced length of the body; 0 or less: unknown
	RequestID string
}

// Admission decides whether there is room for a start. Its methods may be called from any
// goroutine.
type Admission interface {
	// AskStart admits a start, or refuses it with CodeOverloaded and a RetryAfter after
	// which there will be room. A repeat of an accepted start is always admitted. An
	// admitted start takes up room until release is called. The caller must call release,
	// and may call it more than once. Other errors are those of Runs.Start.
	AskStart(ctx context.Context, ask StartAsk) (release func(), err error)
}

// Once identifies a request that a client may repeat within 24 hours; the zero value
// identifies none.
type Once struct {
	Route string // scope of the key: the same key with another route is another request
	Key   string
	Hash  string // of the request's body
}

// How an event was delivered.
const (
	DeliveredWaiter = "waiter"    // to steps that have waited for it
	DeliveredSteps  = "steps"     // to steps that accept it
	DeliveredKept   = "kept"      // to nobody yet: a step may wait for it
	DeliveredNobody = "unhandled" // to no step
)

// Delivery says what happened to an event that a client sent to a run.
type Delivery struct {
	How string   // one of the constants above; "": unknown
	To  []string // the steps that received it, in order, without duplicates
}

// Runs starts, shows and controls runs. All methods may be called from any goroutine.
// Their results are durable. Errors are [*Error]s.
type Runs interface {
	// Start starts a run, and with Wait waits for its end. If ctx ends first, the run
	// continues and ctx's error is returned.
	//
	// # Errors
	//
	// CodeNotFound: the workflow does not exist. CodeInvalidArgument: the start event
	// breaks its schema, an id is not valid, or the snapshot cannot be read or belongs to
	// another workflow or version. CodeConflict: the handler is active or belongs to
	// another workflow or session. CodeSchemaViolation: the session's state breaks the
	// workflow's schema (a queued run fails with this error when its turn comes).
	// CodeLimitExceeded: too many starts wait for the session. CodeIdempotencyMismatch:
	// the key belongs to a request with another body. CodePermissionDenied: a resource
	// that the workflow needs is not granted.
	Start(ctx context.Context, req StartRequest) (Run, error)
	// Get reads the latest run of a handler, or any run by its run id.
	Get(ctx context.Context, tenant, id string) (Run, error)
	// List lists handlers' latest runs. more says whether others follow.
	List(ctx context.Context, q RunQuery) (runs []Run, more bool, err error)
	// Rows lists runs, also those that are not the latest of their handlers. more says
	// whether others follow in the direction of the query.
	Rows(ctx context.Context, q RowQuery) (rows []RunRow, more bool, err error)
	// RunCounts counts all runs of a tenant, by workflow and phase in the order of these,
	// without zeros. The counts are kept: they take no longer if there are more runs.
	RunCounts(ctx context.Context, tenant string) ([]RunCount, error)
	// SendOnce sends an event to a running run: to the named step, or to all steps that
	// accept it. If once is not zero, the event counts once, and a repeated request is
	// acknowledged in the same way, even after the run's end.
	//
	// # Errors
	//
	// CodeNotFound, CodeConflict (the run has ended, or not begun), CodeInvalidArgument
	// (unknown type or step, a type that may not be sent, fields that break the type's
	// schema; Problems empty), CodeLimitExceeded, CodeIdempotencyMismatch.
	//
	// The delivery of a repeated request is unknown.
	SendOnce(ctx context.Context, tenant, id string, event abi.Event, step string, once Once) (Delivery, error)
	// Cancel cancels a running run; with purge it deletes the handler, running or not.
	// Without purge an ended run is CodeNotFound. Cancel returns when the run has ended,
	// including the clean-up of its steps; a second Cancel ends the clean-up. If ctx ends
	// first, the clean-up continues, and nothing is deleted.
	Cancel(ctx context.Context, tenant, id string, purge bool) (deleted bool, err error)
	// Pause stops a running run from starting steps until it is resumed: open attempts
	// continue to their end or next wait, incoming events are kept, and the timeouts of
	// the workflow and its steps stand still. A paused run stays paused. Pause returns
	// the run's record.
	//
	// # Errors
	//
	// CodeNotFound, CodeConflict (the run has ended, is cleaning up, or has not begun).
	Pause(ctx context.Context, tenant, id string) (Run, error)
	// Resume continues a run that is paused or blocked, and returns its record.
	//
	// # Errors
	//
	// CodeNotFound, CodeConflict (the run has ended, or is neither paused nor blocked).
	Resume(ctx context.Context, tenant, id string) (Run, error)
	// Retry continues the latest run of a handler, which has failed: as a new run, from
	// the step that failed, on the session's current state, with the version that it had
	// or, if newest is true, with the version of new runs. In a blocked run, the
	// interrupted attempts begin again, in the same run.
	//
	// # Errors
	//
	// CodeNotFound. CodeConflict: the run has not failed, its handler has a later run, or
	// the newest version does not fit the run. CodeGone: the journal has been cut after
	// the failure. CodeLimitExceeded: the run holds too much data.
	Retry(ctx context.Context, tenant, id string, newest bool) (Fork, error)
	// Migrate moves waiting runs to the newest version of their workflow, if the version
	// fits them. It repeats nothing that they have done. Blocked runs continue with the
	// new version.
	//
	// # Errors
	//
	// CodeNotFound: the workflow or the handler does not exist.
	Migrate(ctx context.Context, req MigrateRequest) (Migration, error)
	// Timeline reads a part of the history of the latest run of a handler, or of any run
	// by its run id. The part is shorter than the query's limit if its entries are large.
	//
	// # Errors
	//
	// CodeNotFound. CodeGone: the journal has been cut after the position at which the
	// part begins.
	Timeline(ctx context.Context, q TimelineQuery) (Timeline, error)
	// StateAt reads the value at a dotted path of the state that the session of a run had
	// just after the entry at a position of the session's journal. The entry may be of
	// another run of the session. id is a handler, or a run by its run id.
	//
	// # Errors
	//
	// CodeNotFound: the run or the value does not exist. CodeInvalidArgument: the path is
	// not valid, or the journal has no such position. CodeGone: the journal has been cut
	// after it.
	StateAt(ctx context.Context, tenant, id string, at uint64, path string) (StateValue, error)
	// Fork continues the latest run of a handler, or any run by its run id, a second time
	// from just after a position of its session's journal, under a new handler in a
	// private session. The fork has the state of that time, the run's children in the
	// same session, and the remaining times of its waits, sleeps and timeouts. What the
	// request changes is in the first entry of the fork's journal, like all the rest.
	//
	// # Errors
	//
	// CodeNotFound. CodeInvalidArgument: the journal has no such position, the run had
	// not begun, or an edit or the answer is not valid. CodeConflict: no fork can begin
	// there, and Nearest has the positions where one can. CodeGone: the journal has been
	// cut after it. CodeLimitExceeded: the run holds too much data. CodeSchemaViolation:
	// the edited state breaks the schema of a workflow.
	Fork(ctx context.Context, req ForkRequest) (Fork, error)
	// Export returns all data of the latest run of a handler, or of any run by its run
	// id.
	//
	// # Errors
	//
	// CodeNotFound, CodeConflict (the run has not begun).
	Export(ctx context.Context, tenant, id string) (RunSnapshot, error)
	// Events opens a handler's stream. The stream begins after the sequence number after;
	// see [position.FromNow] and [position.FromRun]. For a run id, the stream has only the events
	// of that run.
	Events(ctx context.Context, tenant, id string, after int64) (Stream, error)
	// FamilyEvents opens the stream together with those of the run's children. It
	// includes all events of active children that from does not name, or only new events
	// if the run's own events begin with new events.
	//
	// # Errors
	//
	// CodeNotFound. CodeInvalidArgument: from names a child without its parent.
	FamilyEvents(ctx context.Context, tenant, id string, from position.Family) (FamilyStream, error)
}

// Stream is an open subscription to a handler's durable events, including hidden events.
// One goroutine uses it.
type Stream interface {
	// Next returns the next events, at least one. It waits for at most wait; if no event
	// has arrived by then, it returns none and nil. After the terminal event of the
	// latest run it returns io.EOF; CodeNotFound if the handler was purged meanwhile.
	Next(ctx context.Context, wait time.Duration) ([]StreamEvent, error)
	// Ended reports whether the run had ended, and no events followed the starting point,
	// when the stream was opened.
	Ended() bool
	// Close ends the subscription. It may be called twice.
	Close()
}

// WorkflowInfo describes the newest version of a workflow for the API.
type WorkflowInfo struct {
	Name        string
	Description string
	Plugins     []string // names of its plugins
	Digest      string   // of the plugin's module, or of the composition
	// Composed says that the workflow was made by [Plugins.Compose], with these Settings.
	Composed    bool
	Settings    WorkflowSettings
	StartType   string
	StartSchema abi.Raw // has a "title"; its properties are {} if the event declares none
	StopTypes   []string
	StopSchema  abi.Raw
	// Events lists every event type of the workflow, including the base types that it
	// uses, by name.
	Events []EventInfo
	// Graph has the nodes and edges of the representation.
	Graph diagram.Graph
	// Flow is the document of the workflow's flow in canonical form: a map. nil: the
	// workflow is not a flow.
	Flow abi.Raw
	// Timeout is the timeout of its runs.
	Timeout WorkflowTimeout
}

// WorkflowSummary is what a list shows of a workflow.
type WorkflowSummary struct {
	Name        string
	Description string
	Plugins     []string // names of its plugins
	Version     int      // number of the newest version, from 1
	Digest      string   // of the newest version
	Composed    bool     // by [Plugins.Compose]
	Flow        bool
	Runs        int // running runs, of any version
}

// WorkflowTimeout is the timeout of a workflow's runs.
type WorkflowTimeout struct {
	Span time.Duration // 0: none
	// Set says that the workflow sets the timeout, which then includes the waits of a
	// run. Otherwise it is the server's default, which counts only work; Span is 0 if the
	// server's settings are not known where the WorkflowInfo is made.
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

// Composition describes the parts of a workflow.
type Composition struct {
	// Plugins names at most 32 plugins, whose steps have this order.
	// None: the plugin that defines a workflow of the same name.
	Plugins  []string
	Settings WorkflowSettings
	// Flow is a flow's document: a map of at most [limit.MaxFlowBytes]. It names the functions
	// of plugins, and Plugins is empty. nil: the workflow is not a flow.
	Flow abi.Raw
}

// WorkflowSettings are an operator's additions to the manifests of a workflow's plugins.
type WorkflowSettings struct {
	// Timeout of runs, 0 for none. nil: the timeout of the plugins, if all plugins with a
	// timeout agree, otherwise the host's default.
	Timeout     *time.Duration
	Description string // "": the description of the only plugin
	// Config has the configurations of steps, by step: maps. Together with Description it
	// has at most 1 MiB.
	Config map[string]abi.Raw
}

// Plugins stores and describes uploaded plugins and their workflows. All methods may be
// called from any goroutine; errors are [*Error]s.
type Plugins interface {
	// Put uploads a version of a plugin. created is false if the newest version already
	// has the same bytes. Composed workflows with the plugin's steps are composed again
	// with the new version.
	//
	// # Errors
	//
	// CodeInvalidPlugin with all Problems, including those of a composed workflow that it
	// would break; CodeConflict if another plugin or a composition has that workflow;
	// CodeInvalidArgument for an invalid name; CodeTooLarge.
	Put(ctx context.Context, tenant, name string, wasm []byte) (info PluginInfo, created bool, err error)
	// Plugin returns the newest version.
	Plugin(ctx context.Context, tenant, name string) (PluginInfo, error)
	// List returns the newest version of each plugin, by name.
	List(ctx context.Context, tenant string) ([]PluginInfo, error)
	// Versions returns all versions, oldest first. Runs of each version counts the runs
	// that use exactly this version.
	Versions(ctx context.Context, tenant, name string) ([]PluginInfo, error)
	// Delete removes a plugin with all its versions; CodeConflict while runs use any of
	// them, or while a composed workflow has its steps. Modules that journals need stay
	// stored as long as the journals.
	Delete(ctx context.Context, tenant, name string) error
	// DeleteVersion does the same for a version that is not the newest.
	//
	// # Errors
	//
	// CodeNotFound. CodeConflict while runs use the version, if it is the newest, or if
	// the newest version of a composed workflow has it.
	DeleteVersion(ctx context.Context, tenant, name string, version int) error
	// Module returns the bytes of the version of a plugin that has the digest; "" is the
	// newest version. The caller owns them. CodeNotFound if the plugin has no such version.
	Module(ctx context.Context, tenant, name, digest string) (wasm []byte, version int, err error)
	// Workflows lists the names of the workflows, sorted.
	Workflows(ctx context.Context, tenant string) ([]string, error)
	// Summaries describes all workflows in short, by name.
	Summaries(ctx context.Context, tenant string) ([]WorkflowSummary, error)
	// Workflow describes a workflow. The result is shared and must not be changed.
	Workflow(ctx context.Context, tenant, name string) (WorkflowInfo, error)
	// Diagram describes the steps of the version of a workflow that has the digest; "" is
	// the newest version. CodeNotFound if the workflow has no such version.
	Diagram(ctx context.Context, tenant, name, digest string) (diagram.Diagram, error)
	// Compose composes a workflow of plugins, or sets the settings of a workflow. It
	// replaces an earlier composition of the same name. changed is false if both are the
	// same. New runs use the new version; active runs keep their version.
	//
	// # Errors
	//
	// CodeInvalidPlugin with all Problems; CodeConflict if a plugin that is not among the
	// named plugins defines a workflow of that name; CodeInvalidArgument for an invalid
	// name or invalid settings.
	Compose(ctx context.Context, tenant, name string, c Composition) (info WorkflowInfo, changed bool, err error)
	// Decompose removes a composed workflow; a plugin's own workflow of the same name
	// becomes available again. CodeNotFound if the name is not composed, CodeConflict
	// while it has runs.
	Decompose(ctx context.Context, tenant, name string) error
}

// Health reports whether the server can serve.
type Health interface {
	// Healthy returns nil if the store works. Ready also returns an error while the
	// server is starting or draining.
	Healthy() error
	Ready() error
	// Reduced says in what way, and why, a ready server does less work at a time than it
	// could; "": it does not.
	Reduced() string
}
