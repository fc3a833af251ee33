// Package codes is the catalogue of error codes: where each code occurs, what it means,
// and what to do about it.
//
// It does not depend on what causes an error, or on how it is sent.
package codes

import (
	"slices"
	"strings"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/missing"
)

// Where says where an error code occurs.
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

// Explain returns the explanations of a code, one for each place where it occurs; none
// for a code that is not weft's own, such as the codes of steps.
func Explain(code string) []Explanation {
	var found []Explanation
	for _, e := range explanations {
		if e.Code == code {
			found = append(found, e)
		}
	}
	return found
}

// ownRemedy is what to do about an error that a step returned itself, with any code.
const ownRemedy = "The step returned this error itself: `weft logs ID` shows what it logged, `weft journal ID` shows its input; `weft retry ID` continues from this step."

// Remedy says in a sentence or two what to do about a run that failed (InRun) or is
// blocked (InBlocked) with a code. If the message says that the step has tried to use
// files, the network or a clock that waits, the remedy names the replacement. For a code
// of a step's own it says where to look. It is never "" for a failed run, except if
// somebody cancelled the run.
func Remedy(where Where, code, message string) string {
	if instead := missing.Hint(message); where == InRun && instead != "" {
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

// Explanations returns all explanations: by place, in the order of the places above, then
// by code.
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

// explanations is the only table of the meanings of codes. A test compares it with the
// codes in the host's packages.
var explanations = slices.Concat(answerCodes, runCodes, pluginCodes, callCodes)

var answerCodes = []Explanation{
	{string(host.CodeInvalidMessage), InAnswer, "The body does not match its content type, or is nested too deeply.", "Look at the place that the message names."},
	{string(host.CodeInvalidArgument), InAnswer, "The route does not accept a field, a parameter or an id of the request.", "The message names the field and its valid values; /docs describes the route."},
	{string(host.CodeUnauthenticated), InAnswer, "The request has no key, or its key is unknown, expired or revoked.", "Send `Authorization: Bearer KEY`; `weft login` remembers it."},
	{string(host.CodePermissionDenied), InAnswer, "The key's role does not allow this, or a resource that the workflow needs is not granted.", "Use a key of the role that the message names, or ask the operator to grant the resource."},
	{string(host.CodeNotFound), InAnswer, "The thing does not exist, or belongs to another tenant.", "List what exists: `weft runs`, `weft plugins`, `weft sessions`."},
	{string(host.CodeMethodNotAllowed), InAnswer, "The path exists, but not for this method.", "The header Allow lists the methods."},
	{string(host.CodeConflict), InAnswer, "The current state does not allow the request: a run is active or has ended, or another request was first.", "Read the current state and decide again."},
	{string(host.CodeFailedPrecondition), InAnswer, "An edit does not fit the state: the value at its path is not the list, number or map that the edit needs.", "Read the state at that path."},
	{string(host.CodeGone), InAnswer, "That part of the journal has been deleted.", "Begin at a later position; `--keep-journal` keeps more."},
	{string(host.CodePreconditionFailed), InAnswer, "If-Match or If-None-Match does not hold: the state has changed.", "Read the state again with its ETag, and repeat the edit with that ETag."},
	{string(host.CodeTooLarge), InAnswer, "The body, the module, or the data to be stored is larger than a limit.", "The message names the limit; docs/limits.md says who can raise it."},
	{string(host.CodeUnsupportedMediaType), InAnswer, "The route does not read that content type.", "Send JSON or CBOR, or a module as application/wasm."},
	{string(host.CodeInvalidPlugin), InAnswer, "The server refused the module or the composed workflow.", "`problems` lists every problem, each with its own code."},
	{string(host.CodeSchemaViolation), InAnswer, "The session's state breaks the workflow's schema, or the edit would break it.", "The message names the path; change the state there, or use another session."},
	{string(host.CodeIdempotencyMismatch), InAnswer, "The Idempotency-Key belongs to a request with another body.", "Use a new key for a new request."},
	{string(host.CodeLimitExceeded), InAnswer, "A limit or a quota of the tenant is reached.", "Try again after Retry-After; the message names the limit."},
	{string(host.CodeInternal), InAnswer, "The server is at fault.", "Look for the request's id in the server's log."},
	{string(host.CodeOverloaded), InAnswer, "The server has too many requests, streams or bytes in progress, or a new run would wait too long for a core.", "Try again after Retry-After."},
	{string(host.CodeUnavailable), InAnswer, "The server is starting or stopping, or its store is not available.", "Try again after Retry-After."},
}

var runCodes = []Explanation{
	{host.RunTrap, InRun, "A step's WebAssembly trapped without printing a reason: an unreachable instruction, an access outside its memory, an exit.", "The message says where, as far as the module has this information: `weft dev` names file and line. Return an error instead of exiting; `weft journal ID` shows the input."},
	{host.RunFuelExhausted, InRun, "An invocation burnt more than its `fuel`.", "Look for an endless loop, split the work into steps, or raise the limit."},
	{host.RunDeadlineExceeded, InRun, "An invocation was on a core for longer than `wall_time`.", "Look for an endless loop, split the work into steps, or raise the limit."},
	{host.RunLimitExceeded, InRun, "An invocation, its run or its session exceeded a limit.", "The message names the limit: do less at a time, or ask the operator to raise the limit (docs/limits.md)."},
	{host.RunInvalidOutput, InRun, "A step returned nothing, returned two results, or returned an event that it does not declare.", "Declare the type among those that the step emits, or return a declared type."},
	{string(host.CodeSchemaViolation), InRun, "An event or the state would have broken its schema.", "The message names the field and the rule."},
	{host.RunTimeout, InRun, "The timeout of the workflow or of a step has passed.", "Set a longer timeout, or 0 for none; `weft retry` continues from the step that failed."},
	{host.RunStalled, InRun, "Nothing was left to do: no step was working or waiting, no step accepts an event from outside, and no step had returned a stop event.", "The message names the last step that returned nothing: return an event there, or a stop event. Declare an event that comes from outside with the kind `human_response`."},
	{"flow_failed", InRun, "A node of a flow failed for a reason without a code of its own.", "The message names the node; `on_error` and `retries` in the flow say what happens after a failure."},
	{host.RunCancelled, InRun, "Somebody cancelled the run, or its parent was cancelled.", ""},
	{string(host.CodePermissionDenied), InRun, "A resource that the step asked for is not granted.", "Ask the operator to grant it: docs/resources.md."},
	{"error", InRun, "A step returned an error without a code.", "Return an error with your own code, so that retry policies and people can tell it from others."},
	{host.RunPanic, InRun, "A step panicked: an index out of range, a nil map, a division by zero, or a call of panic.", "The message is the panic's text, with its place if the language knows it; `weft journal ID` shows the input."},
	{host.BlockedReplayMismatch, InBlocked, "At replay, a step made another call than the recorded one: its code is not the code that began.", "`weft migrate` moves the run to a version that fits; `weft retry --blocked` begins the step anew."},
	{host.BlockedHostCrash, InBlocked, "The server crashed repeatedly while only this step ran.", "Read the server's log before the crashes; `weft resume` tries again, `weft cancel` gives up."},
	{host.BlockedHostError, InBlocked, "The host could not run the step: its module is missing or cannot be instantiated.", "Fix what the message says, then `weft resume`."},
	{host.BlockedUnreadable, InBlocked, "A part of the stored record cannot be read.", "`weft check` says what is damaged; restore a backup."},
}

var pluginCodes = []Explanation{
	{"accepts_runtime_type", InPlugin, "A step accepts a runtime type that steps never get, or accepts StepFailedEvent without catching.", "Leave the type out, or name the steps in `catches`."},
	{"accepts_stop", InPlugin, "A step accepts the stop event, which ends the run.", "Accept the event before it."},
	{"atomic_waits", InPlugin, "An atomic step waits.", "Remove the wait, or `atomic`."},
	{"bad_duration", InPlugin, "A time in a flow is not a valid time, or is not above 0.", "Write a text such as `30s` or `24h`, or a number of seconds."},
	{"base_extends", InPlugin, "The declaration of a base type extends another type.", "Declare your own type, and let it extend the base type."},
	{"base_kind", InPlugin, "A base type is declared with another kind.", "Leave the kind out."},
	{"catch_without_slot", InPlugin, "A step catches failures but does not accept StepFailedEvent.", "Accept StepFailedEvent."},
	{"catches_itself", InPlugin, "A step catches its own failures.", "Give the step a retry policy instead."},
	{"collector_without_producer", InPlugin, "A step collects a list, but no step emits a list of that type.", "Return a list from an earlier step."},
	{"command_module", InPlugin, "The module is a command with `_start`, which runs once and ends.", "Build a reactor: `-buildmode=c-shared` in Go and TinyGo, a `cdylib` in Rust, `--no-entry` in C."},
	{"compile_bytes", InPlugin, "Compiling took more memory than `compile_bytes`.", "Make functions smaller, nest loops less, or raise the limit."},
	{"compile_fault", InPlugin, "The compiler failed.", "Please report this; the server's log has details."},
	{"compile_time", InPlugin, "Compiling took more CPU time than `compile_time`.", "Make functions smaller, nest loops less, or raise the limit."},
	{"component", InPlugin, "The file is a component, not a core module.", "Build a core module: target wasm32-unknown-unknown or wasip1, not wasip2."},
	{"cyclic_extends", InPlugin, "A type extends itself in a circle, or through too many types.", "Remove one of the extensions."},
	{"dead_end", InPlugin, "No path leads from a step to a stop event.", "Emit an event that leads to one; often the stop event was forgotten."},
	{"describes_itself", InPlugin, "The upload has a manifest, but the plugin has its own.", "Leave the manifest out: it is only for plugins made for Extism."},
	{"duplicate_name", InPlugin, "Two neighbouring nodes of a flow have the same name.", "Rename one of them."},
	{"duplicate_plugin", InPlugin, "A composed workflow names a plugin twice.", "Name it once."},
	{"duplicate_step", InPlugin, "Two steps have the same name.", "Rename one of them."},
	{"emits_runtime_type", InPlugin, "A step emits a type that only the server makes.", "Emit your own type."},
	{"emits_start", InPlugin, "A step emits the start event.", "Emit your own type, and let the first step accept it too."},
	{"emits_stop_list", InPlugin, "A step emits a list of stop events.", "Emit one stop event: a run ends once."},
	{"event_clash", InPlugin, "Plugins of a workflow declare an event type differently.", "Use the same declaration, or rename the type in one plugin."},
	{"forbidden_import", InPlugin, "The module imports a function that the host does not have.", "Remove the import; in Go it comes from a package that needs files, sockets or a browser."},
	{"imported_memory", InPlugin, "The module imports its memory.", "Define and export the memory in the module (no `--import-memory`)."},
	{"invalid_expression", InPlugin, "A CEL expression of a flow has an error in its syntax, names or types.", "Look at the line and column that the message names."},
	{"invalid_flow", InPlugin, "The flow is not an object that can be read.", "Give an object with the field `steps`."},
	{"invalid_manifest", InPlugin, "weft_describe, or the manifest of a plugin made for Extism, did not give a valid manifest.", "The message names the place. SDKs always give valid manifests; docs/extism.md describes the manifest of an Extism plugin."},
	{"invalid_module", InPlugin, "The module is not valid, or cannot be metered.", "The message has the place; turn off features beyond WebAssembly 2.0."},
	{"invalid_name", InPlugin, "A name is empty or too long.", "The message has the bounds."},
	{"invalid_schema", InPlugin, "The schema of an event type is not a JSON Schema, or uses a feature that cannot be checked.", "The message names the type and the place."},
	{"join_with_list", InPlugin, "A step joins a list with other events.", "Collect the list in a separate step."},
	{"kind_mismatch", InPlugin, "A type has another kind than the type that it extends.", "Leave its kind out."},
	{"limit_exceeded", InPlugin, "The manifest has more of something than a workflow may have, or describing the plugin exceeded a limit.", "The message says what exceeds the limit."},
	{"malformed", InPlugin, "The module's binary format is wrong.", "The message names the byte. Build the module again; `wasm-validate` says more."},
	{"memory_kind", InPlugin, "The memory is shared, or has 64-bit addresses.", "Build without threads and memory64."},
	{"missing_export", InPlugin, "The module does not export a function or the memory that weft needs.", "Export it; with an SDK, import the SDK and define a workflow."},
	{"missing_field", InPlugin, "A node of a flow lacks a required field.", "Add the field that the message names."},
	{"missing_manifest", InPlugin, "A plugin made for Extism has several functions that can be a step, or none.", "Say in a manifest which functions are steps: `weft push --manifest FILE`."},
	{"more_problems", InPlugin, "There are more problems than the list shows.", "Fix the listed problems first."},
	{"never_accepted", InPlugin, "A step emits a type that no step accepts.", "Accept the type in a step, or only write the event to the stream."},
	{"never_produced", InPlugin, "A step accepts a type that no step emits.", "Emit it, or give it the kind human_response if it comes from outside."},
	{"no_start", InPlugin, "No step accepts a start event.", "Let the first step accept StartEvent, or a type that embeds the SDK's Start."},
	{"no_stop", InPlugin, "No step emits a stop event, so no run would ever end.", "Return a StopEvent from the last step."},
	{"not_wasm", InPlugin, "The file is not a WebAssembly module.", "Build for WebAssembly: `GOOS=wasip1 GOARCH=wasm`, `--target wasm32-unknown-unknown`."},
	{"out_of_range", InPlugin, "A number in the manifest is out of range.", "The message has the range."},
	{"reserved_name", InPlugin, "weft uses this name itself.", "Choose another name."},
	{"resource_clash", InPlugin, "Plugins of a workflow ask for a resource as different kinds.", "Rename the resource in one of them."},
	{"resource_kinds", InPlugin, "The plugin asks for one resource as two kinds.", "Use two names."},
	{"retry_policy", InPlugin, "A retry policy is not valid.", "The message names the rule."},
	{"runtime_type", InPlugin, "A declared type has the name of a type of the runtime.", "Choose another name."},
	{"several_catchers", InPlugin, "Two steps catch the failures of the same step.", "Let only one of them name it."},
	{"several_memories", InPlugin, "The module has more than one memory.", "Build without the multi-memory feature."},
	{"several_starts", InPlugin, "Steps accept several start events.", "A workflow has one start event: let the first step take it and emit the others."},
	{"state_clash", InPlugin, "Plugins of a workflow declare the state differently.", "Use the same declaration of the property, or rename it in one plugin."},
	{"state_default", InPlugin, "The state's defaults do not match its schema.", "Give every required field a valid default."},
	{"state_schema", InPlugin, "The state's schema is not valid.", "The message names the place."},
	{"too_large", InPlugin, "The module is larger than `module_bytes`.", "Build without debug information (`-ldflags='-s -w'`, `-no-debug`, `strip = true`), or raise the limit."},
	{"too_many", InPlugin, "The module has more of something than the server accepts.", "The message says what, and how many are allowed."},
	{"truncated", InPlugin, "The file ends in the middle.", "Upload the whole file: `curl --data-binary`, not `-d`."},
	{"unknown_catch_target", InPlugin, "A step catches the failures of a step that does not exist.", "Correct the name, or catch all steps with \"*\"."},
	{"unknown_export", InPlugin, "A manifest names a function that the module does not export.", "Use a name that the message lists."},
	{"unknown_field", InPlugin, "A flow has an unknown field.", "Remove the field, or correct its name."},
	{"unknown_form", InPlugin, "A manifest names an unknown form of input or output.", "Use a form that the message lists."},
	{"unknown_function", InPlugin, "A flow names a function that its plugin does not have.", "Correct the name, or upload a version of the plugin that has it."},
	{"unknown_plugin", InPlugin, "A composed workflow names a plugin that does not exist.", "Upload the plugin first."},
	{"unknown_step", InPlugin, "There is a configuration for a step that does not exist.", "Remove the configuration, or correct the name."},
	{"unknown_type", InPlugin, "A type is used but not declared.", "Declare it in `events`."},
	{"unknown_workflow", InPlugin, "A flow runs a workflow that does not exist.", "Make that workflow first, or correct the name."},
	{"unreachable_step", InPlugin, "No path leads from the start event to a step.", "Emit an event that the step accepts, or remove the step."},
	{"waits_for_ends", InPlugin, "A step waits for a start or stop event.", "Wait for your own type."},
	{"waits_runtime_type", InPlugin, "A step waits for a runtime type that steps never get.", "Wait for your own type."},
	{"wrong_kind", InPlugin, "A flow names something of the wrong kind.", "The message says which kind is needed."},
	{"wrong_signature", InPlugin, "An export or import has another type than the ABI requires.", "abi/abi.cddl has the types."},
	{"wrong_type", InPlugin, "A field of a flow has a value of the wrong type.", "Use the type that the message names."},
	{"wrong_value", InPlugin, "A field of a flow has a value that is not allowed.", "Use a value that the message names."},
}

var callCodes = []Explanation{
	{"invalid_message", InCall, "The request is not a valid message for that call.", "SDKs always send valid messages; abi/abi.cddl has the forms."},
	{"not_found", InCall, "The state has no value at the path, or the step, workflow or resource does not exist.", "Give a default, or use a name that exists."},
	{"conflict", InCall, "A test edit failed, an id is taken, or the value of a kv resource has another version.", "Read again and decide again; ctx.Edit and, for a key, weft.UpdateKey do this by themselves."},
	{"failed_precondition", InCall, "The edit does not fit the value at its path or key, or the call is not allowed there.", "The message says why."},
	{"permission_denied", InCall, "The resource, or this use of it, is not granted.", "Ask the operator to grant it: docs/resources.md."},
	{"limit_exceeded", InCall, "The call would exceed a limit.", "The message names the limit: docs/limits.md."},
	{"timeout", InCall, "What the step waited for did not come in time.", "Handle the error, or wait longer."},
	{"schema_violation", InCall, "The event or the state would break its schema.", "The message names the field and the rule."},
	{"unavailable", InCall, "A resource could not be reached, or the outcome of a call is not known.", "Retry: the call carries a stable key."},
	{"internal", InCall, "The host is at fault.", "The server's log has details."},
}
