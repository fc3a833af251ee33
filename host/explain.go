package host

import (
	"slices"
	"strings"
)

// Where says in what an error code is met.
type Where string

// The places of codes.
const (
	InAnswer  Where = "answer"  // of a request: "code" in the body, and an HTTP status
	InRun     Where = "run"     // that has failed: "error_code" of its record
	InBlocked Where = "blocked" // run: "blocked" of its record
	InPlugin  Where = "plugin"  // that was refused: "problems" of the answer
	InCall    Where = "call"    // of a host function: the error that a step gets
)

// Explanation says what an error code means, and what to do.
type Explanation struct {
	Code  string
	Where Where
	What  string
	Do    string
}

// Explain gives the explanations of a code, one for each place where it is met; none
// for a code that is not weft's own, as those of failed steps may be.
func Explain(code string) []Explanation {
	var found []Explanation
	for _, e := range explanations {
		if e.Code == code {
			found = append(found, e)
		}
	}
	return found
}

// ownRemedy is what to do about an error that a step gave itself, under whatever code.
const ownRemedy = "The step gave this error itself: `weft logs ID` shows what it logged, `weft journal ID` what it was given; `weft retry ID` goes on from there."

// Remedy says in a sentence or two what to do about a run that failed (InRun) or is
// blocked (InBlocked) with a code. Where the message says that the step has tried to use
// files, the network or a clock that waits, it is what to use instead. Of a code that is a
// step's own it says where to look; that of a run is never "", but for one that somebody
// cancelled.
func Remedy(where Where, code, message string) string {
	if instead := hint(message); where == InRun && instead != "" {
		return instead
	}
	own := code == "" || code == "error"
	for _, e := range explanations {
		if e.Code == code && e.Where == where && !own {
			return e.Do
		}
	}
	if where == InRun {
		return ownRemedy
	}
	return ""
}

// Explanations gives all of them: by place, in the order of the places above, then by
// code.
func Explanations() []Explanation {
	places := []Where{InAnswer, InRun, InBlocked, InPlugin, InCall}
	list := slices.Clone(explanations)
	slices.SortStableFunc(list, func(a, b Explanation) int {
		if d := slices.Index(places, a.Where) - slices.Index(places, b.Where); d != 0 {
			return d
		}
		return strings.Compare(a.Code, b.Code)
	})
	return list
}

// explanations is the one table of what codes mean. A test holds it to the codes that
// the host's packages use.
var explanations = slices.Concat(answerCodes, runCodes, pluginCodes, callCodes)

var answerCodes = []Explanation{
	{string(CodeInvalidMessage), InAnswer, "The body is not what its content type says, or nests too deep.", "Look at the place that the message names."},
	{string(CodeInvalidArgument), InAnswer, "A field, a parameter or an id is not one that the route takes.", "The message names the field and what it may be; /docs shows the route."},
	{string(CodeUnauthenticated), InAnswer, "There is no key, or none that is valid: unknown, expired or revoked.", "Send `Authorization: Bearer KEY`; `weft login` remembers it."},
	{string(CodePermissionDenied), InAnswer, "The key's role does not reach so far, or a resource that the workflow needs is not granted.", "Use a key of the role that the message names, or have the operator grant the resource."},
	{string(CodeNotFound), InAnswer, "There is no such thing, or it is another tenant's.", "Lists (`weft runs`, `weft plugins`, `weft sessions`) show what there is."},
	{string(CodeMethodNotAllowed), InAnswer, "The path is there, but not for this method.", "The header Allow lists the methods."},
	{string(CodeConflict), InAnswer, "What is there now does not allow it: a run is active, has ended, or somebody was first.", "Read it again and decide anew."},
	{string(CodeFailedPrecondition), InAnswer, "An edit does not fit the state: something else than a list, a number or a map is at its path.", "Read the state at that path."},
	{string(CodeGone), InAnswer, "That part of the journal has been cut away.", "Begin at a later position; `--keep-journal` keeps more."},
	{string(CodePreconditionFailed), InAnswer, "If-Match or If-None-Match does not hold: the state has changed.", "Read it again, with its ETag, and repeat the edit on that."},
	{string(CodeTooLarge), InAnswer, "The body, the module, or what would be stored is larger than a limit.", "The message names the limit; docs/limits.md says who can raise it."},
	{string(CodeUnsupportedMediaType), InAnswer, "The route does not read that content type.", "Send JSON or CBOR, a module as application/wasm."},
	{string(CodeInvalidPlugin), InAnswer, "The module or the composed workflow was refused.", "`problems` lists everything that is wrong, each with a code of its own."},
	{string(CodeSchemaViolation), InAnswer, "The session's state breaks the workflow's schema, or the edit would make it.", "The message names the path; migrate the state, or use another session."},
	{string(CodeIdempotencyMismatch), InAnswer, "The Idempotency-Key was that of a request with another body.", "Use a new key for a new request."},
	{string(CodeLimitExceeded), InAnswer, "A limit or a quota of the tenant is reached.", "Try again after Retry-After; the message names the limit."},
	{string(CodeInternal), InAnswer, "The server is at fault.", "Look for the request's id in the server's log."},
	{string(CodeOverloaded), InAnswer, "The server has more requests, streams or bytes under way than it takes at a time, or a new run would have to wait too long for a core.", "Try again after Retry-After."},
	{string(CodeUnavailable), InAnswer, "The server is starting, draining or without its store.", "Try again after Retry-After."},
}

var runCodes = []Explanation{
	{RunTrap, InRun, "A step's WebAssembly trapped and said nothing before: an unreachable instruction, an access outside its memory, an exit.", "The message says where, as far as the module tells: `weft dev` names file and line. Return an error in the place of an exit; `weft journal ID` shows the input."},
	{RunFuelExhausted, InRun, "An invocation burnt more than its `fuel`.", "Look for a loop that does not end, split the work into steps, or raise the limit."},
	{RunDeadlineExceeded, InRun, "An invocation was on a core for longer than `wall_time`.", "Look for a loop that does not end, split the work into steps, or raise the limit."},
	{RunLimitExceeded, InRun, "An invocation, its run or its session went beyond a limit.", "The message names the limit: do less at a time, or have the operator raise it (docs/limits.md)."},
	{RunInvalidOutput, InRun, "A step gave nothing, twice, or what is not an event that it declares to emit.", "Declare the type among what the step emits, or return the type that is declared."},
	{RunSchemaViolation, InRun, "An event or the state would have broken its schema.", "The message names the field and the rule."},
	{RunTimeout, InRun, "The workflow's timeout, or a step's, was over.", "Set a timeout that fits, 0 for none; `weft retry` goes on from where it stood."},
	{RunStalled, InRun, "Nothing was left to do: no step was at work or waited, and none accepts an event from outside. No step had given a stop event.", "The message names the step that gave nothing last: return an event there, or a stop event. Declare an event that comes from outside with the kind `human_response`."},
	{"flow_failed", InRun, "A node of a flow failed, for a reason that has no code of its own.", "The message names the node; `on_error` and `retries` say what a failure means there."},
	{RunCancelled, InRun, "Somebody cancelled the run, or the run that it was a child of.", ""},
	{RunPermissionDenied, InRun, "A resource that the step asked for is not granted.", "Have the operator grant it: docs/resources.md."},
	{"error", InRun, "A step returned an error without a code.", "Return an error with a code of your own, so that retry policies and people can tell it from others."},
	{RunPanic, InRun, "A step panicked: an index out of range, a nil map, a division by zero, or by its own will.", "The message is the panic's text, with its place where the language knows it; `weft journal ID` shows the input."},
	{BlockedReplayMismatch, InBlocked, "Replayed, a step asked for something else than it had: it is not the code that began.", "`weft migrate` moves it to a version that fits; `weft retry --blocked` begins the step anew."},
	{BlockedHostCrash, InBlocked, "The server ended, again and again, while this step alone ran.", "Look at the log of those ends; `weft resume` tries again, `weft cancel` gives up."},
	{BlockedHostError, InBlocked, "The host could not run the step: its module is missing or cannot be made.", "Mend what the message says, then `weft resume`."},
	{BlockedUnreadable, InBlocked, "A part of the stored record does not read.", "`weft check` says what is damaged; restore a backup."},
}

var pluginCodes = []Explanation{
	{"accepts_runtime_type", InPlugin, "A step accepts a type that never reaches one, or StepFailedEvent without catching.", "Leave it out, or name the steps in `catches`."},
	{"accepts_stop", InPlugin, "A step accepts the stop event, which ends the run.", "Accept the event before."},
	{"atomic_waits", InPlugin, "An atomic step waits.", "Leave its waits out, or atomic."},
	{"bad_duration", InPlugin, "A time in a flow is none, or not above 0.", "Write a text such as `30s` or `24h`, or a number of seconds."},
	{"base_extends", InPlugin, "A base type is declared as extending another.", "Declare a type of your own that extends it."},
	{"base_kind", InPlugin, "A base type is declared with another kind.", "Leave the kind out."},
	{"catch_without_slot", InPlugin, "A step catches failures but does not accept StepFailedEvent.", "Accept it."},
	{"catches_itself", InPlugin, "A step catches its own failures.", "Give it a retry policy."},
	{"collector_without_producer", InPlugin, "A step collects a list, but no step emits one of that type.", "Return a list from a step before it."},
	{"command_module", InPlugin, "It is a command with `_start`, which runs once and ends.", "Build a reactor: `-buildmode=c-shared` in Go and TinyGo, a `cdylib` in Rust, `--no-entry` in C."},
	{"compile_bytes", InPlugin, "Compiling took more memory than `compile_bytes`.", "As for compile_time."},
	{"compile_fault", InPlugin, "The compiler failed.", "The server's log says more; it is a fault to report."},
	{"compile_time", InPlugin, "Compiling took more CPU time than `compile_time`.", "Make functions smaller, nest loops less, or raise the limit."},
	{"component", InPlugin, "It is a component, not a core module.", "Build a core module: target wasm32-unknown-unknown or wasip1, not wasip2."},
	{"cyclic_extends", InPlugin, "A type extends itself in a circle, or through too many.", "Let one of them extend nothing."},
	{"dead_end", InPlugin, "From a step nothing leads to a stop event.", "Emit an event that does; often the stop event was forgotten."},
	{"describes_itself", InPlugin, "A manifest was given with a plugin that has one of its own.", "Leave it out: it is for plugins made for Extism."},
	{"duplicate_name", InPlugin, "Two nodes of a flow that are side by side have one name.", "Rename one of them."},
	{"duplicate_plugin", InPlugin, "A composed workflow names a plugin twice.", "Name it once."},
	{"duplicate_step", InPlugin, "Two steps have one name.", "Rename one of them."},
	{"emits_runtime_type", InPlugin, "A step emits a type that only the server makes.", "Emit a type of your own."},
	{"emits_start", InPlugin, "A step emits the start event.", "Emit a type of your own, and let the first step accept that too."},
	{"emits_stop_list", InPlugin, "A step emits a list of stop events.", "Emit one: a run ends once."},
	{"event_clash", InPlugin, "Plugins of a workflow declare an event type differently.", "Declare it alike, or rename it in one."},
	{"forbidden_import", InPlugin, "The module imports what no host function is.", "Leave it out; in Go it comes from a package that needs files, sockets or a browser."},
	{"imported_memory", InPlugin, "The memory is imported.", "Define and export it in the module (no `--import-memory`)."},
	{"invalid_expression", InPlugin, "A CEL expression of a flow has a fault in syntax, names or types.", "Look at the line and column that the message names."},
	{"invalid_flow", InPlugin, "A flow is no object that can be read.", "Give an object with the field `steps`."},
	{"invalid_manifest", InPlugin, "weft_describe, or the manifest of a plugin made for Extism, gave something that is no manifest.", "The message names the place. An SDK cannot do this; docs/extism.md has the fields of the other."},
	{"invalid_module", InPlugin, "The module does not validate, or cannot be metered.", "The message has the place; features beyond WebAssembly 2.0 have to be off."},
	{"invalid_name", InPlugin, "A name is empty or too long.", "The message has the bounds."},
	{"invalid_schema", InPlugin, "A schema of an event type is no JSON Schema, or uses what cannot be checked.", "The message names the type and the place."},
	{"join_with_list", InPlugin, "A step joins a list with other events.", "Collect the list in a step of its own."},
	{"kind_mismatch", InPlugin, "A type has another kind than the one that it extends.", "Leave its kind out."},
	{"limit_exceeded", InPlugin, "The manifest has more of something than a workflow may, or describing it went beyond a limit.", "The message says of what."},
	{"malformed", InPlugin, "The module's binary format is wrong at the place that is named.", "Build it again; `wasm-validate` says more."},
	{"memory_kind", InPlugin, "The memory is shared or of 64 bits.", "Build without threads and memory64."},
	{"missing_export", InPlugin, "A function or the memory that weft calls is not exported.", "Export it; with an SDK, import the SDK and define a workflow."},
	{"missing_field", InPlugin, "A node of a flow lacks a field that it needs.", "Add the field that the message names."},
	{"missing_manifest", InPlugin, "A plugin made for Extism has several functions, or none, that can be a step.", "Say which in a manifest: `weft push --manifest FILE`."},
	{"more_problems", InPlugin, "There are more problems than are listed.", "Mend the first ones."},
	{"never_accepted", InPlugin, "A step emits a type that no step accepts.", "Accept it, or only write it to the stream."},
	{"never_produced", InPlugin, "A step accepts a type that no step emits.", "Emit it, or give it the kind human_response if it comes from outside."},
	{"no_start", InPlugin, "No step accepts a start event.", "Let the first step accept StartEvent, or a type that embeds the SDK's Start."},
	{"no_stop", InPlugin, "No step emits a stop event, so no run would ever end.", "Let the last step give StopEvent."},
	{"not_wasm", InPlugin, "The file is no WebAssembly module.", "Build for WebAssembly: `GOOS=wasip1 GOARCH=wasm`, `--target wasm32-unknown-unknown`."},
	{"out_of_range", InPlugin, "A number in the manifest is out of its bounds.", "The message has the bounds."},
	{"reserved_name", InPlugin, "The name is weft's own.", "Choose another one."},
	{"resource_clash", InPlugin, "Plugins of a workflow ask for a resource as different kinds.", "Rename it in one of them."},
	{"resource_kinds", InPlugin, "A resource is asked for as two kinds.", "Use two names."},
	{"retry_policy", InPlugin, "A retry policy cannot be used.", "The message names the rule."},
	{"runtime_type", InPlugin, "A declared type has the name of one of the runtime's own.", "Choose another name."},
	{"several_catchers", InPlugin, "Two steps catch the failures of one.", "Let one of them name it."},
	{"several_memories", InPlugin, "The module has more than one memory.", "Build without the multi-memory feature."},
	{"several_starts", InPlugin, "Steps accept several start events.", "A workflow has one: let the first step take it and emit the others."},
	{"state_clash", InPlugin, "Plugins of a workflow declare the state differently.", "Make the property alike, or rename it in one."},
	{"state_default", InPlugin, "The state's defaults do not fit its schema.", "Give every required field a default that fits."},
	{"state_schema", InPlugin, "The state's schema cannot be used.", "The message names the place."},
	{"too_large", InPlugin, "The module is larger than `module_bytes`.", "Build without debug information (`-ldflags='-s -w'`, `-no-debug`, `strip = true`), or raise the limit."},
	{"too_many", InPlugin, "The module has more of something than can be taken.", "The message says of what, and how many."},
	{"truncated", InPlugin, "The file ends in the middle.", "Upload it whole: `curl --data-binary`, not `-d`."},
	{"unknown_catch_target", InPlugin, "A step catches the failures of one that is not there.", "Correct the name, or catch all with \"*\"."},
	{"unknown_export", InPlugin, "A manifest names a function that the module does not export.", "Name one of those that the message lists."},
	{"unknown_field", InPlugin, "A flow has a field that is not known there.", "Take it out, or correct its name."},
	{"unknown_form", InPlugin, "A manifest names a form of input or output that there is not.", "Use one that the message lists."},
	{"unknown_function", InPlugin, "A flow names a function that its plugin does not have.", "Correct the name, or upload a version of the plugin that has it."},
	{"unknown_plugin", InPlugin, "A composed workflow names a plugin that is not there.", "Upload it first."},
	{"unknown_step", InPlugin, "There is a configuration for a step that is not there.", "Take it out, or correct the name."},
	{"unknown_type", InPlugin, "A type is used that is not declared.", "Declare it in `events`."},
	{"unknown_workflow", InPlugin, "A flow runs a workflow that is not there.", "Make that workflow first, or correct the name."},
	{"unreachable_step", InPlugin, "Nothing leads from the start event to a step.", "Emit what it accepts, or take it out."},
	{"waits_for_ends", InPlugin, "A step waits for a start or stop event.", "Wait for a type of your own."},
	{"waits_runtime_type", InPlugin, "A step waits for a type that never reaches one.", "Wait for a type of your own."},
	{"wrong_kind", InPlugin, "A flow names, or asks for, something of a kind that does not go there.", "See which kind the message asks for."},
	{"wrong_signature", InPlugin, "An export or import has another type than the ABI says.", "abi/abi.cddl has the types."},
	{"wrong_type", InPlugin, "A field of a flow has a value of another type.", "Give the type that the message names."},
	{"wrong_value", InPlugin, "A field of a flow has a value that it cannot have.", "Use one of those that the message names."},
}

var callCodes = []Explanation{
	{"invalid_message", InCall, "The request is no message of that call.", "An SDK cannot do this; abi/abi.cddl has the forms."},
	{"not_found", InCall, "There is nothing at the path, or no such step, workflow or resource.", "Give a default, or name one that is there."},
	{"conflict", InCall, "A test edit failed, an id is taken, or the value of a kv resource has another version.", "Read again and decide anew; inside ctx.Edit the host does, weft.UpdateKey does for a key."},
	{"failed_precondition", InCall, "The edit does not fit the value at its path or key, or the call is not allowed there.", "The message says why."},
	{"permission_denied", InCall, "The resource is not granted, or what was asked of it is not.", "Have the operator grant it: docs/resources.md."},
	{"limit_exceeded", InCall, "The call would go beyond a limit.", "The message names it: docs/limits.md."},
	{"timeout", InCall, "What was waited for did not come in time.", "Handle it, or wait longer."},
	{"schema_violation", InCall, "The event or the state would break its schema.", "The message names the field and the rule."},
	{"unavailable", InCall, "A resource could not be reached, or the outcome of a call is not known.", "Retry: it carries a stable key."},
	{"internal", InCall, "The host is at fault.", "The server's log says more."},
}
