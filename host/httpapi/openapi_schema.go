package httpapi

import "github.com/weftrun/weft/host"

// schema is a JSON Schema (2020-12), or another part of the description.
type schema map[string]any

// member is one of an object.
type member struct {
	name   string
	schema schema
	needed bool
}

// must is a member that is always there.
func must(name string, s schema, about string) member { return member{name, described(s, about), true} }

// may is one that may be absent.
func may(name string, s schema, about string) member { return member{name, described(s, about), false} }

// described is a copy of a schema with a text.
func described(s schema, about string) schema {
	out := schema{}
	for k, v := range s {
		out[k] = v
	}
	if about != "" {
		out["description"] = about
	}
	return out
}

// object is one with those members, and no others that the server knows of.
func object(about string, members ...member) schema {
	props, needed := schema{}, []string{}
	for _, m := range members {
		props[m.name] = m.schema
		if m.needed {
			needed = append(needed, m.name)
		}
	}
	out := schema{"type": "object", "description": about, "properties": props}
	if len(needed) > 0 {
		out["required"] = needed
	}
	return out
}

func ref(name string) schema       { return schema{"$ref": "#/components/schemas/" + name} }
func listOf(s schema) schema       { return schema{"type": "array", "items": s} }
func mapOf(s schema) schema        { return schema{"type": "object", "additionalProperties": s} }
func oneOf(names ...string) schema { return schema{"type": "string", "enum": names} }
func either(list ...schema) schema { return schema{"anyOf": list} }
func orNull(s schema) schema       { return schema{"anyOf": []schema{s, {"type": "null"}}} }
func countFrom(least int) schema   { return schema{"type": "integer", "minimum": least} }
func between(least, most, def int) schema {
	return schema{"type": "integer", "minimum": least, "maximum": most, "default": def}
}

var (
	aText         = schema{"type": "string"}
	aTextOrNull   = schema{"type": []string{"string", "null"}}
	aJSONText     = schema{"type": "string", "contentMediaType": "application/json"}
	aFlag         = schema{"type": "boolean"}
	someSeconds   = schema{"type": "number", "minimum": 0}
	aMoment       = schema{"type": "string", "format": "date-time"}
	aMomentOrNull = schema{"type": []string{"string", "null"}, "format": "date-time"}
	anyValue      = schema{}
	anyObject     = schema{"type": "object", "additionalProperties": true}
	aRole         = oneOf(string(host.RoleRead), string(host.RoleRun), string(host.RoleDeploy), string(host.RoleAdmin))
	aStatus       = oneOf(string(host.StatusRunning), string(host.StatusCompleted), string(host.StatusFailed), string(host.StatusCancelled))
	aCursor       = orNull(schema{"type": "string"})
)

const cursorText = "Where the next page begins; null at the end."

// aFlagOff is a flag of a query that is false unless it is given.
var aFlagOff = schema{"type": "boolean", "default": false}

// aFlagOn is one that is true unless it is given.
var aFlagOn = schema{"type": "boolean", "default": true}

// open is an object that may have members that nobody knows, as older servers get
// them from newer clients; closed is one of which such members are refused.
func open(s schema) schema { return allowing(s, true) }

func closed(s schema) schema { return allowing(s, false) }

func allowing(s schema, others bool) schema {
	s["additionalProperties"] = others
	return s
}

// orNot is what a member of a request may be that need not be given: null, an empty
// text and an empty object count as nothing.
func orNot(s schema) schema {
	return either(s, schema{"type": "null"}, schema{"const": ""}, schema{"type": "object", "maxProperties": 0})
}

// both is a body in JSON or CBOR.
func both(s schema) *content {
	return &content{types: []string{"application/json", cborType}, schema: s}
}

// needed is a body that has to be there.
func needed(b *content) *content {
	b.needed = true
	return b
}

// recordMembers are those of a run's record, with a result of that schema.
func recordMembers(result schema) []member {
	return []member{
		must("handler_id", aText, "What clients hold: it points to its latest run."),
		must("workflow_name", aText, ""),
		must("run_id", aText, ""),
		must("error", aTextOrNull, "Why the run failed, for people."),
		must("result", result, "What the run ended with; null before."),
		must("result_unreadable", schema{"type": "boolean", "const": false}, "For older clients."),
		must("status", aStatus, ""),
		must("started_at", aMoment, ""),
		must("updated_at", aMoment, ""),
		must("completed_at", aMomentOrNull, ""),
		must("session_id", aText, "The session on whose state the run works."),
		may("version", aText, "The digest of the workflow's version that the run has."),
		may("error_code", aText, "Why the run failed, for programs: the step's own code, or one of the runtime."),
		may("error_step", aText, "The step that failed; of a run that timed out the steps that were at work."),
		may("error_attempt", countFrom(1), "How many attempts the step has had."),
		may("error_remedy", aText, "What to do about a run that failed or is blocked, as docs/reference/errors.md says for the code."),
		must("paused", aFlag, "The run queues what comes until it is resumed."),
		may("blocked", ref("Blocked"), "Why the run cannot go on without help."),
		may("waiting_for", listOf(ref("Waiting")), "What the run waits for, the longest first."),
		may("kept", listOf(ref("Kept")), "Events that are kept for a later wait, by type."),
		must("steps", countFrom(0), "How many invocations of steps have ended."),
	}
}

// pluginMembers are those of a version of a plugin in a listing.
var pluginMembers = []member{
	must("name", aText, ""),
	must("workflow", aTextOrNull, "That it makes by itself; null: it is a part of others."),
	must("version", countFrom(1), "1 for the first upload, counting up."),
	must("sha256", aText, "Of the bytes that were uploaded."),
	must("size", countFrom(0), "In bytes."),
	must("created_at", aMoment, ""),
	must("runs", countFrom(0), "Running runs that hold it."),
	may("held_by", listOf(object("", must("workflow", aText, ""), must("version", aTextOrNull, ""), must("runs", countFrom(0), ""))),
		"On which versions of which workflows those runs are."),
	must("composed_in", listOf(aText), "Composed workflows that have its steps."),
}

// detailMembers are those of one plugin.
var detailMembers = append(pluginMembers[:len(pluginMembers):len(pluginMembers)],
	must("rewritten_sha256", aText, "Of the module that runs: the upload with the host's checks in it."),
	must("manifest", described(anyValue, ""), "What the plugin says of itself."),
	must("imports", listOf(aText), "What it asks of the host."),
)

// keyMembers are those of a key, without itself.
var keyMembers = []member{
	must("id", aText, ""),
	must("prefix", aText, "How the key begins."),
	must("tenant", aText, ""),
	must("role", aRole, ""),
	must("name", aText, ""),
	must("created_at", aMomentOrNull, ""),
	must("expires_at", aMomentOrNull, ""),
	must("last_used_at", aMomentOrNull, ""),
	must("revoked_at", aMomentOrNull, ""),
	may("previous_prefix", aText, "How the key began that it was before, which is good for a while still."),
	may("previous_until", aMoment, ""),
}

// schemas are those that have names.
var schemas = map[string]schema{
	"Record":     object("A run of a handler.", recordMembers(orNull(ref("Envelope")))...),
	"BareRecord": object("A run of a handler, its result without an envelope.", recordMembers(anyValue)...),
	"Records":    pageOf("handlers", "Record"),
	"Fork":       object("A run that continues, and the work that was begun again for it.", append(recordMembers(orNull(ref("Envelope"))), must("anew", listOf(ref("Renewed")), ""))...),
	"Renewed": object("Work outside of the session that was begun again.",
		must("kind", aText, "child or call."), may("step", aText, ""), may("workflow_name", aText, ""),
		may("resource", aText, ""), may("handler_id", aText, ""), may("was", aText, "The handler that it was before.")),
	"Blocked": object("Why something stands still until somebody helps.", must("code", aText, ""), may("message", aText, "")),
	"Waiting": object("Something that a run waits for.",
		may("step", aText, "The step that waits, or that accepts the event."), may("reason", oneOf(host.WaitsForRetry, host.WaitsForTurn), ""),
		may("child", aText, "The handler for whose run it waits."), may("resource", aText, "The resource for whose answer it waits."),
		may("until", aMoment, "When the wait ends by itself."), may("type", aText, "The type of the event for which it waits."),
		may("requirements", anyObject, "Fields that the event must have."),
		may("waiter_id", aText, ""), must("since", aMoment, "")),
	"Kept": object("An event that no step has waited for yet.", must("type", aText, ""), may("step", aText, "The only step that may get it.")),
	"Envelope": object("An event as clients read it.",
		must("value", anyObject, "Its fields."), must("qualified_name", aTextOrNull, "Its type with the name space."),
		must("type", aText, ""), must("types", orNull(listOf(aText)), "Declared ancestors, the nearest first; null for none."),
		may("handler_id", aText, "With include_children: the handler of the event."), may("run_id", aText, ""),
		may("parent_handler_id", aTextOrNull, "The handler whose run began this run as its child; null for the run itself."),
		may("sequence", countFrom(0), "The event's number among those of its handler."),
		may("position", aText, "Give this as after_sequence to continue a stream with children just after the event.")),
	"Problem": object("One fault.", must("code", aText, ""), must("message", aText, ""), may("step", aText, ""), may("event", aText, "")),
	"Health":  object("The server takes requests.", must("status", schema{"const": "healthy"}, "")),
	"Readiness": object("The server takes work.", must("status", schema{"const": "healthy"}, ""),
		may("reduced", aText, "How and why the server works with reduced capacity.")),
	"Unhealthy": object("The server does not take requests.", must("status", schema{"const": "unhealthy"}, ""),
		must("detail", aText, ""), must("code", schema{"type": "string", "enum": host.Codes(503)}, "")),

	"Plugin":        object("A version of a plugin.", pluginMembers...),
	"PluginDetails": object("A version of a plugin, with its manifest.", append(detailMembers[:len(detailMembers):len(detailMembers)], may("check", listOf(ref("Migration")), "With check=true: which runs in progress could move to the new version."))...),
	"Plugins":       object("", must("plugins", listOf(ref("Plugin")), "The newest version of each.")),
	"Versions":      object("", must("versions", listOf(ref("Plugin")), "")),

	"Workflows": object("", must("workflows", listOf(aText), "Their names.")),
	"Workflow": object("What a workflow is made of.", must("name", aText, ""), must("plugins", listOf(aText), ""),
		must("settings", ref("Settings"), ""), must("sha256", aText, "Its version."), must("composed", aFlag, "The workflow was composed, or has settings."),
		must("timeout", orNull(object("Of a run; null for none.", must("seconds", someSeconds, ""),
			must("set", aFlag, "true: the workflow sets the timeout, which counts waits too. false: it is the server's default, which counts only work."))), ""),
		may("flow", anyObject, "The flow, if the workflow is one, as it was uploaded.")),
	"Settings": closed(object("Settings of a workflow.", may("timeout", orNull(someSeconds), "Of a run, in seconds; 0: none."), may("description", orNot(aText), ""),
		may("config", orNot(mapOf(anyObject)), "Configurations of steps, by name."))),
	"Composition": closed(object("A composition of plugins, or a flow.",
		may("plugins", orNull(listOf(aText)), "Default: the plugin that makes the workflow by itself."),
		may("flow", orNull(anyObject), "A tree over functions of plugins, instead of plugins."),
		may("settings", orNot(ref("Settings")), ""), may("timeout", orNull(someSeconds), "settings.timeout, for short."), may("name", orNot(aText), "The same as in the path."))),
	"StartStop":    object("JSON Schemas of the start and the stop event.", must("start", anyObject, ""), must("stop", anyObject, "")),
	"EventSchemas": object("", must("events", listOf(anyObject), "JSON Schemas, with the type as title.")),
	"Graph": object("", must("graph", object("A drawing of the workflow.", must("name", aText, ""), must("nodes", listOf(ref("Node")), ""),
		must("edges", listOf(object("", must("source", aText, ""), must("target", aText, ""), must("label", aTextOrNull, ""))), ""),
		must("description", aTextOrNull, "")), "")),
	"Node": object("A step, an event, or what is outside.", must("id", aText, ""), must("label", aText, ""), must("node_type", aText, ""),
		may("description", aTextOrNull, ""), may("event_type", aText, ""), may("event_types", listOf(aText), "The type and its ancestors."),
		may("event_schema", anyObject, ""), may("produced_by", listOf(aText), "")),
	"Start": closed(object("How a run starts. What is null, empty or absent is not given.",
		may("start_event", orNot(either(anyObject, aJSONText)), "Plain fields or an envelope, or one of them as a text of JSON."),
		may("kwargs", orNot(anyObject), "More fields; those of start_event win."),
		may("handler_id", orNot(aText), "The id of a new handler, or of a handler whose run has ended."),
		may("session", orNot(aText), "The session on whose state the run works, made at its first use. Default: the handler's private session."),
		may("on_busy", orNot(oneOf(string(host.OnBusyShare), string(host.OnBusyQueue), string(host.OnBusyReject))), "What to do if the session has an active run."),
		may("context", orNot(anyObject), "A snapshot from which the run continues."))),
	"Send": open(object("An event for a run.", must("event", either(anyObject, aJSONText), "An envelope: type or qualified_name, with value; or the same as a text of JSON."),
		may("step", orNot(aText), "The step that gets the event. Default: the steps that wait for it or accept it."))),
	"Migration": object("The result of a migration.", must("workflow", aText, ""), may("version", aText, "The newest."), must("dry_run", aFlag, ""),
		must("checked", countFrom(0), ""), must("fit", countFrom(0), ""), must("moved", countFrom(0), ""),
		must("departed", listOf(ref("Departed")), "Runs that do not fit: the new version would make other calls."),
		must("running", listOf(aText), "Handlers whose runs have steps at work; they are not moved."), must("next_cursor", aCursor, cursorText)),
	"Departed": object("A run that does not fit the newest version.", must("handler_id", aText, ""), may("run_id", aText, ""), may("version", aText, "Its current version."),
		may("code", aText, ""), may("message", aText, ""), may("step", aText, ""), may("call", countFrom(0), "The first host call that differs."), may("import", aText, "")),

	"Journal": pageOf("entries", "Entry"),
	"Entry":   journalEntry,
	"Snapshot": object("All data of a run.", must("format", schema{"const": snapshotFormat}, ""), must("version", countFrom(1), ""),
		must("workflow_name", aText, ""), may("handler_id", aText, ""), may("run_id", aText, ""), may("status", aStatus, ""),
		must("modules", listOf(aText), "Digests of the modules that the run uses."), must("session", aText, "Base64."), must("held", aText, "Base64.")),

	"Session": object("State that is carried across runs.", must("session_id", aText, ""), must("created_at", aMomentOrNull, ""),
		must("updated_at", aMomentOrNull, ""), must("runs", countFrom(0), ""), must("active", countFrom(0), "Runs that have not ended.")),
	"Sessions": pageOf("sessions", "Session"),

	"Tenant":  object("", must("name", aText, ""), must("created_at", aMoment, "")),
	"Tenants": object("", must("tenants", listOf(ref("Tenant")), "")),
	"Usage": object("What a tenant stores, and has used.", must("tenant", aText, ""),
		must("runs", object("By status.", must("running", countFrom(0), ""), must("completed", countFrom(0), ""), must("failed", countFrom(0), ""), must("cancelled", countFrom(0), "")), ""),
		must("steps", countFrom(0), ""), must("fuel", countFrom(0), ""), must("handlers", countFrom(0), ""), must("sessions", countFrom(0), ""), must("plugins", countFrom(0), ""),
		must("plugin_versions", countFrom(0), ""), must("plugin_bytes", countFrom(0), ""), must("journal_bytes", countFrom(0), ""), must("stream_bytes", countFrom(0), ""),
		must("runs_started", countFrom(0), "In all, like fuel and log_bytes."), must("log_bytes", countFrom(0), ""),
		must("months", listOf(object("A month of UTC.", must("month", aText, "Such as 2026-11."), must("runs_started", countFrom(0), ""),
			must("fuel", countFrom(0), ""), must("log_bytes", countFrom(0), ""))), "The newest first."),
		must("quotas", listOf(object("A limit of the tenant.", must("name", aText, ""), must("limit", orNull(countFrom(1)), "null: none."),
			must("used", orNull(countFrom(0)), "null for a rate."))), "")),
	"Breach":    object("The limit that was exceeded.", must("name", aText, "As a file of limits has it."), must("value", countFrom(1), ""), must("used", countFrom(0), "")),
	"Key":       object("A key, without itself.", keyMembers...),
	"NewKey":    object("A key.", append(keyMembers[:len(keyMembers):len(keyMembers)], must("key", aText, "The key itself; it is not shown again."))...),
	"Keys":      object("", must("keys", listOf(ref("Key")), "")),
	"Resources": object("", must("resources", listOf(ref("Resource")), "")),
	"Resource": object("A resource, without its secrets.", must("name", aText, ""), must("kind", aText, ""),
		must("source", schema{"type": "string", "enum": []string{"file", "api"}}, "file: defined by the operator; its definition is not shown."),
		may("definition", anyObject, "As it was given, without secrets."), may("key_id", orNull(aText), "Of the key that seals the secrets; null: there are none."),
		may("problem", orNull(aText), "Why the resource cannot be used at the moment."), may("created_at", aMoment, ""), may("updated_at", aMoment, ""),
		must("usage", listOf(ref("ResourceUse")), "By workflow.")),
	"ResourceUse": object("What a workflow has used of a resource.", must("workflow", aText, ""), must("calls", countFrom(0), ""), must("failed", countFrom(0), ""),
		must("sent_bytes", countFrom(0), ""), must("received_bytes", countFrom(0), ""), must("input_tokens", countFrom(0), ""), must("output_tokens", countFrom(0), "")),
	"ResourceKeys": object("A part of what a resource keeps.", must("keys", listOf(ref("ResourceKey")), ""), must("next_cursor", aCursor, cursorText),
		must("total_keys", countFrom(0), "The number of all its keys."), must("total_bytes", countFrom(0), "The size of all its keys and values.")),
	"ResourceKey": object("A key.", must("key", aText, ""), must("version", countFrom(1), "The version of its value, which is unique."),
		may("value", schema{}, "If values were asked for.")),
	"Audit": pageOf("entries", "Act"),
	"Act": object("An entry of the audit log.", must("id", countFrom(1), ""), must("time", aMoment, ""), must("who", aText, ""), must("tenant", aText, ""),
		must("act", aText, ""), must("target", aText, ""), must("detail", aText, ""), must("outcome", aText, "")),
}

// pageOf is a part of a listing.
func pageOf(name, item string) schema {
	return object("A part of a listing.", must(name, listOf(ref(item)), ""), must("next_cursor", aCursor, cursorText))
}

// journalEntry is one of a run's timeline.
var journalEntry = object("One entry of a run's journal.",
	must("seq", countFrom(1), "Its position."), may("time", aMoment, "With nanoseconds."), may("run_id", aText, ""), must("kind", aText, ""),
	must("forkable", aFlag, "A fork may begin just after this entry."), may("step", aText, ""), may("invocation", countFrom(1), ""), may("attempt", countFrom(1), ""),
	may("call", countFrom(1), "The number of the host call."),
	may("events", listOf(object("", may("type", aText, ""), may("value", anyValue, ""))), "The events that came or that the step sent, wrote, asked, collected or returned."),
	may("list", aFlag, "The events were returned as a list."), may("to", aText, "The step that gets the events."),
	may("edits", listOf(object("", must("path", aText, ""), may("old", anyValue, ""), may("new", anyValue, ""))), "Of the state."),
	may("fuel", countFrom(0), "What the attempt burnt."), may("duration_seconds", schema{"type": "number"}, "From when the attempt began, waits included."),
	may("error", object("", may("code", aText, ""), may("message", aText, "")), ""), may("retry_at", aMoment, ""), may("status", aStatus, "With which the run ended."),
	may("blocked", ref("Blocked"), ""), may("timer", aText, "That fired."), may("until", aMoment, ""),
	may("wait", object("", may("waiter_id", aText, ""), may("type", aText, ""), may("requirements", anyValue, ""), may("broadcast", aFlag, ""), may("answered", aFlag, "")), ""),
	may("child", object("", may("workflow_name", aText, ""), may("run_id", aText, ""), may("handler_id", aText, ""), may("session_id", aText, "")), ""),
	may("called", object("", may("resource", aText, ""), may("method", aText, ""), may("payload", anyValue, ""), may("answer", anyValue, "")), ""),
	may("began", listOf(object("", may("step", aText, ""), may("invocation", countFrom(1), ""), may("attempt", countFrom(1), ""))), "Attempts that got a worker."),
	may("logs", listOf(object("", may("time", aMoment, ""), must("level", schema{"type": "integer"}, ""), must("message", aText, ""), may("attrs", anyValue, ""))), ""),
)
