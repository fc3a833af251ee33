package openapi

import (
	"maps"
	"net/http"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/apiwire"
	"github.com/weftrun/weft/host/search"
)

// group is a section of the API.
type group struct{ name, text string }

var groups = []group{
	{"Workflows", "What can be run."},
	{"Runs", "Runs and the handlers that point to them."},
	{"Events", "Events from runs, and events to runs."},
	{"Sessions", "State that is carried across runs."},
	{"Plugins", "The modules that workflows are made of."},
	{"Tenants and keys", "Who may do what."},
	{"Resources", "External services that steps may call."},
	{"Server", "The server itself."},
}

// operations describes the routes. The keys are methods and paths, as in roles.
var operations = func() map[string]operation {
	all := map[string]operation{}
	for _, part := range []map[string]operation{workflowOperations, runOperations, sessionOperations, pluginOperations, accessOperations, resourceOperations, serverOperations} {
		maps.Copy(all, part)
	}
	return all
}()

// onceHeader is the header for an idempotency key.
var onceHeader = parameter{
	name: apiwire.HeaderOnce, schema: schema{"type": "string", "minLength": 1, "maxLength": apiwire.MaxOnce, "pattern": "^[!-~]+$"},
	text: "For 24 hours, a retry with the same key and body gets the answer of the first request; a retry with another body is a 422.",
}

// cursorQuery and limitQuery are the parameters of a listing.
// anEdge is a position or 0, which is no limit.
var anEdge = schema{"type": "integer", "format": "int64", "minimum": 0}

// journalQuery are the parameters of a run's timeline.
var journalQuery = []parameter{
	limitQuery(host.MaxTimeline, host.MaxTimeline), cursorQuery,
	{name: "after", schema: anEdge, text: "Only entries after this seq."},
	{name: "before", schema: anEdge, text: "Only entries before this seq."},
	{name: "order", schema: schema{"type": "string", "enum": []string{"asc", "desc"}, "default": "asc"}, text: "asc: the oldest entry first; desc: the newest first."},
	{name: "kind", schema: aText, many: true, text: "Only entries of this kind, such as edit or finish."},
	{name: "step", schema: aText, many: true, text: "Only entries of this step."},
	{name: "cut", schema: schema{"type": "integer", "minimum": 16, "maximum": 1 << 20},
		text: `Values of more bytes become {"cut": true, "bytes": N, "head": "..."}: the length of the value's JSON text, and its first bytes. GET /runs/{id}/journal/{seq} has them whole.`},
}

var cursorQuery = parameter{name: "cursor", schema: aText, text: "next_cursor of the page before, of a listing with the same filters."}

func limitQuery(most, def int) parameter {
	return parameter{name: "limit", schema: between(1, most, def), text: "The length of a page."}
}

// ok returns an answer with the status 200.
func ok(name, about string) answer {
	return answer{status: http.StatusOK, text: about, body: both(ref(name))}
}

// gone returns an answer without a body.
func gone(about string) answer { return answer{status: http.StatusNoContent, text: about} }

// ended are the answers with the record of a run that failed or was cancelled. The status
// is that of a failure of the server, which has an error as its body.
func ended(record string) answer {
	return answer{
		status: http.StatusInternalServerError, text: "The run has failed or was cancelled; or an error of the server.",
		body: both(either(ref(record), errorSchema(host.Codes(http.StatusInternalServerError)))),
	}
}

var workflowOperations = map[string]operation{
	"GET /workflows": {
		group: "Workflows", id: "listWorkflows", summary: "List the workflows",
		query:   []parameter{{name: "details", schema: aFlagOff, text: "Say also what a list shows of each: plugins, version, running runs."}},
		answers: []answer{ok("Workflows", "Their names.")},
	},
	"GET /workflows/:name": {
		group: "Workflows", id: "getWorkflow", summary: "What a workflow is made of",
		answers: []answer{ok("Workflow", "Its plugins and settings.")},
	},
	"PUT /workflows/:name": {
		group: "Workflows", id: "putWorkflow", summary: "Compose a workflow of plugins, or change its settings",
		body: both(ref("Composition")), fails: []int{409, 422, 429},
		answers: []answer{ok("Workflow", "Nothing changed."), {status: 201, text: "The workflow was made or changed.", body: both(ref("Workflow"))}},
	},
	"DELETE /workflows/:name": {
		group: "Workflows", id: "deleteWorkflow", summary: "Remove a composed workflow",
		fails: []int{409}, answers: []answer{gone("It is removed.")},
	},
	"GET /workflows/:name/schema": {
		group: "Workflows", id: "workflowSchema", summary: "Schemas of the start and the stop event",
		answers: []answer{ok("StartStop", "JSON Schemas.")},
	},
	"GET /workflows/:name/events": {
		group: "Workflows", id: "workflowEvents", summary: "Schemas of all events",
		answers: []answer{ok("EventSchemas", "JSON Schemas.")},
	},
	"GET /workflows/:name/representation": {
		group: "Workflows", id: "workflowGraph", summary: "A drawing of the workflow",
		answers: []answer{ok("Graph", "Nodes and edges.")},
	},
	"GET /workflows/:name/graph": {
		group: "Workflows", id: "workflowDiagram", summary: "The steps of a workflow, and what leads from one to another",
		query:   []parameter{{name: "version", schema: schema{"type": "string", "pattern": "^([0-9a-fA-F]{64})?$"}, text: "The digest of a version. Default: the newest."}},
		answers: []answer{ok("Diagram", "Nodes and edges.")},
	},
	"POST /workflows/:name/migrate": {
		group: "Workflows", id: "migrateWorkflow", summary: "Move runs to the newest version",
		text:  "A run can move if the newest version repeats everything that is recorded of the run. No run moves without dry_run=false.",
		query: []parameter{{name: "dry_run", schema: aFlagOn, text: "Only say which runs would move. Give false to move them."}, limitQuery(apiwire.MaxMigrated, apiwire.DefaultMigrated), cursorQuery},
		body:  both(inline[apiwire.Migrate]()), fails: []int{409, 422, 429},
		answers: []answer{ok("Migration", "The result of the migration.")},
	},
	"POST /workflows/:name/run": {
		group: "Workflows", id: "run", summary: "Start a run and wait for its end",
		text: "With the id of a handler whose run has ended, a new run of the handler begins on its state. While the handler's run is active, this is a 409. " +
			"A start whose run would have to wait too long for a core is a 503 with the code overloaded, and Retry-After says when there will be room; a repeat with the same Idempotency-Key is answered.",
		headers: []parameter{onceHeader}, body: both(ref("Start")), fails: []int{409, 410, 422, 429},
		answers: []answer{
			ok("Record", "The run is completed."), {status: 202, text: "The run has not ended.", body: both(ref("Record"))}, ended("Record"),
		},
	},
	"POST /workflows/:name/run-nowait": {
		group: "Workflows", id: "runNoWait", summary: "Start a run",
		text:    "Like run, but the answer comes when the start is on disk. The run may wait for a core as long as its workflow's timeout, if its author has set one.",
		headers: []parameter{onceHeader}, body: both(ref("Start")), fails: []int{409, 410, 422, 429},
		answers: []answer{ok("Record", "The run has begun.")},
	},
}

var handlerFilters = []parameter{
	{name: "status", schema: aText, many: true, text: "running, completed, failed or cancelled; other values match nothing."},
	{name: "workflow_name", schema: aText, many: true, text: "A workflow."},
	{name: "session", schema: aText, text: "A session."},
	{name: "error_code", schema: aText, text: "The error code of failed runs."},
	{name: "q", schema: schema{"type": "string", "maxLength": search.MaxBytes},
		text: "Up to 8 words that must all occur in the error or the result of an ended run; WORD* matches the beginning of a word."},
	{name: "blocked", schema: aFlagOff, text: "Only runs that cannot continue without help."},
	{name: "version", schema: schema{"type": "string", "pattern": "^([0-9a-fA-F]{8,64})?$"}, text: "The digest of a version, or its first 8 digits or more."},
	{name: "since", schema: schema{"type": "string", "format": "date-time"}, text: "Updated at this time or later."},
	limitQuery(apiwire.MaxPage, apiwire.MaxPage), cursorQuery,
}

// aTime is the schema of a time.
var aTime = schema{"type": "string", "format": "date-time"}

// rowFilters are the parameters of the list of all runs.
var rowFilters = []parameter{
	{name: "phase", schema: schema{"type": "string", "enum": host.Phases}, many: true, text: "What the runs do."},
	{name: "status", schema: schema{"type": "string", "enum": []host.Status{host.StatusRunning, host.StatusCompleted, host.StatusFailed, host.StatusCancelled}},
		many: true, text: "Their status."},
	{name: "workflow_name", schema: aText, many: true, text: "A workflow."},
	{name: "handler", schema: aText, text: "All runs of this handler."},
	{name: "session", schema: aText, text: "All runs of this session."},
	{name: "parent", schema: aText, text: "The children of the run with this run id."},
	{name: "forked_from", schema: aText, text: "The forks of the run with this run id."},
	{name: "id", schema: aText, text: "The first characters of a run id or a handler id, 3 or more."},
	{name: "children", schema: aFlagOff, text: "List children of other runs, too. With handler, session, parent, forked_from or id they are listed anyway."},
	{name: "error_code", schema: aText, text: "The error code of failed runs."},
	{name: "q", schema: schema{"type": "string", "maxLength": search.MaxBytes},
		text: "Up to 8 words that must all occur in the error or the result of an ended run; WORD* matches the beginning of a word."},
	{name: "blocked", schema: aFlagOff, text: "Only runs that cannot continue without help."},
	{name: "version", schema: schema{"type": "string", "pattern": "^([0-9a-fA-F]{8,64})?$"}, text: "The digest of a version, or its first 8 digits or more."},
	{name: "since", schema: aTime, text: "Updated at this time or later."},
	{name: "until", schema: aTime, text: "Updated before this time."},
	{name: "started_after", schema: aTime, text: "Started at this time or later."},
	{name: "started_before", schema: aTime, text: "Started before this time."},
	limitQuery(apiwire.MaxRows, apiwire.DefaultRows),
	{name: "cursor", schema: aText, text: "next_cursor or prev_cursor of another page, of a list with the same filters."},
}

var runOperations = map[string]operation{
	"GET /runs": {
		group: "Runs", id: "listRuns", summary: "List all runs, newest first", query: rowFilters,
		text:    "Also runs that are not the latest of their handlers. Errors and results are cut.",
		answers: []answer{ok("Rows", "A part of them.")},
	},
	"GET /runs/counts": {
		group: "Runs", id: "countRuns", summary: "Count all runs by workflow and phase",
		text:    "The counts are kept, so they take no longer if there are more runs. A handler with the id counts is found by GET /handlers/counts.",
		answers: []answer{ok("PhaseCounts", "The counts.")},
	},
	"GET /runs/:id": {
		group: "Runs", id: "getRun", summary: "A run, and the runs that are connected with it",
		text:    "The id is a run, or a handler, which stands for its latest run. The status of the answer is 200, also for a run that has failed.",
		answers: []answer{ok("RunDetails", "The run.")},
	},
	"GET /handlers": {
		group: "Runs", id: "listHandlers", summary: "List handlers, newest first", query: handlerFilters,
		answers: []answer{ok("Records", "The latest run of each.")},
	},
	"GET /handlers/:id": {
		group: "Runs", id: "getHandler", summary: "The record of a run",
		answers: []answer{ok("Record", "The run is completed."), {status: 202, text: "The run has not ended.", body: both(ref("Record"))}, ended("Record")},
	},
	"GET /results/:id": {
		group: "Runs", id: "getResult", summary: "The record of a run with its bare result", text: "For older clients.",
		answers: []answer{ok("BareRecord", "The run is completed."), {status: 202, text: "The run has not ended.", body: both(ref("BareRecord"))}, ended("BareRecord")},
	},
	"GET /handlers/:id/journal": {
		group: "Runs", id: "handlerJournal", summary: "The timeline of a run", text: "The same as GET /runs/{id}/journal.",
		query: journalQuery, fails: []int{410},
		answers: []answer{ok("Journal", "A part of it.")},
	},
	"GET /runs/:id/journal": {
		group: "Runs", id: "runJournal", summary: "The timeline of a run",
		text:  "To follow a run, give the seq of the last entry that the client has as after.",
		query: journalQuery, fails: []int{410},
		answers: []answer{ok("Journal", "A part of it.")},
	},
	"GET /runs/:id/journal/:seq": {
		group: "Runs", id: "runEntry", summary: "An entry of a journal", text: "With its values whole.",
		fails: []int{410}, answers: []answer{ok("Entry", "The entry.")},
	},
	"GET /runs/:id/state": {
		group: "Runs", id: "runState", summary: "The state just after an entry of a journal",
		text: "The id is a run, or a handler, which stands for its latest run. The state is that of the run's session, which other runs and clients may edit too.",
		query: []parameter{
			{name: "at", schema: aPosition, text: "The seq of the entry. It may be of another run of the session.", needed: true},
			{name: "path", schema: aText, text: "Names and indexes with dots between them. Without it, the whole state."},
		},
		headers: []parameter{{name: "If-None-Match", schema: aText, text: "ETags that the client has."}},
		fails:   []int{410},
		answers: []answer{
			{status: 200, text: "The bare value.", body: both(anyValue), headers: stateTag},
			{status: 304, text: "The client has the value.", headers: stateTag},
		},
	},
	"GET /handlers/:id/snapshot": {
		group: "Runs", id: "handlerSnapshot", summary: "A snapshot: all data of a run", text: "Give it as context to a start.",
		fails: []int{409, 410, 429}, answers: []answer{ok("Snapshot", "The run with its state.")},
	},
	"POST /handlers/:id/cancel": {
		group: "Runs", id: "cancelHandler", summary: "End a run, or delete its handler",
		query: []parameter{{name: "purge", schema: aFlagOff, text: "Delete the handler with everything that belongs to it, even if its run has ended."}}, fails: []int{409},
		answers: []answer{{status: 200, text: "The run has ended, or the handler is deleted.", body: both(inline[apiwire.Cancelled]())}},
	},
	"POST /handlers/:id/pause": {
		group: "Runs", id: "pauseHandler", summary: "Pause a run",
		fails: []int{409, 429}, answers: []answer{ok("Record", "It is paused.")},
	},
	"POST /handlers/:id/resume": {
		group: "Runs", id: "resumeHandler", summary: "Continue a paused or blocked run",
		fails: []int{409, 410, 429}, answers: []answer{ok("Record", "The run continues.")},
	},
	"POST /handlers/:id/retry": {
		group: "Runs", id: "retryHandler", summary: "Run a failed or blocked run again from its failed step",
		body:  both(inline[apiwire.Retry]()),
		fails: []int{409, 410, 422, 429}, answers: []answer{ok("Fork", "The run continues, as a new run if it had failed.")},
	},
	"POST /handlers/:id/fork": {
		group: "Runs", id: "forkHandler", summary: "Continue a copy of a run from an entry of its journal", text: "The same as POST /runs/{id}/fork.",
		body:  needed(both(inline[apiwire.ForkAt]())),
		fails: []int{409, 410, 422, 429}, answers: []answer{ok("Fork", "The run of a new handler.")},
	},
	"POST /runs/:id/fork": {
		group: "Runs", id: "forkRun", summary: "Continue a copy of a run from an entry of its journal",
		text:  "The copy may begin with another state and with an answer. All of that is in the first entry of its journal: it takes effect together, or not at all. A refusal with 409 names the nearest entries at which a copy can begin.",
		body:  needed(both(inline[apiwire.ForkAt]())),
		fails: []int{409, 410, 422, 429}, answers: []answer{ok("Fork", "The run of a new handler, or what it would be.")},
	},
	"GET /events/:id": {
		group: "Events", id: "streamEvents", summary: "The events of a run as they happen",
		text: "The stream ends after the event that ends the run. Ids number all events of the handler, including hidden ones. " +
			"As server-sent events each has an id and an envelope as data, and comments keep a silent stream open; as NDJSON each line is an envelope.",
		query: []parameter{
			{name: "sse", schema: schema{"type": "boolean", "default": true}, text: "true: server-sent events; false: NDJSON."},
			{name: "after_sequence", schema: schema{"type": "string", "default": "now", "pattern": `^(?i:now)$|^\s*[+-]?[0-9]+\s*$|^[0-9]+(/[^/=]+=-?[0-9]+)+$`},
				text: "The id of the last event that the client has, -1 for the beginning of the latest run, or now."},
			{name: "include_internal", schema: aFlagOff, text: "Also events of the runtime."},
			{name: "include_children", schema: aFlagOff,
				text: "Also the events of children, each marked with its handler and the handler of its parent. " +
					"After a lost connection, give the position of the last event as after_sequence to continue exactly there."},
			{name: "include_qualified_name", schema: schema{"type": "boolean", "default": true}, text: "false: qualified_name is null."},
		},
		headers: []parameter{{name: "Last-Event-ID", schema: aText, text: "For server-sent events, instead of after_sequence."}},
		answers: []answer{
			{status: 200, text: "A stream.", body: &content{types: []string{sseType, ndjsonType}, schema: aText, items: ref("Envelope")}},
			gone("The run has ended, and no events follow."),
		},
	},
	"POST /events/:id": {
		group: "Events", id: "sendEvent", summary: "Send an event to a run",
		headers: []parameter{onceHeader}, body: needed(both(ref("Send"))), fails: []int{409, 422, 429},
		answers: []answer{{status: 200, text: "The event is on disk.", body: both(inline[apiwire.Sent]())}},
	},
}
