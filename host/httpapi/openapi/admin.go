package openapi

import "github.com/weftrun/weft/host/apiwire"

// Headers of conditional requests.
var (
	matchHeader = parameter{name: "If-Match", schema: aText, text: "The ETag that the value must have, or * if the value must exist; otherwise 412."}
	newHeader   = parameter{name: "If-None-Match", schema: schema{"type": "string", "const": "*"}, text: "*: the session must not exist; otherwise 412."}
	stateTag    = map[string]string{"ETag": "The tag of the state; JSON and CBOR have different tags."}
)

var sessionOperations = map[string]operation{
	"GET /sessions": {
		group: "Sessions", id: "listSessions", summary: "List sessions, newest first",
		query:   []parameter{limitQuery(apiwire.MaxPage, apiwire.MaxPage), cursorQuery},
		answers: []answer{ok("Sessions", "A part of them.")},
	},
	"GET /sessions/:id": {
		group: "Sessions", id: "getSession", summary: "Show a session",
		answers: []answer{ok("Session", "Its runs and times.")},
	},
	"PUT /sessions/:id": {
		group: "Sessions", id: "putSession", summary: "Make a session, or replace its state",
		headers: []parameter{onceHeader, matchHeader, newHeader}, body: both(inline[apiwire.PutSession]()),
		fails: []int{409, 412, 422, 429},
		answers: []answer{
			ok("Session", "It was there."),
			{status: 201, text: "The session was made.", body: both(ref("Session")), headers: map[string]string{"Location": "Its path."}},
		},
	},
	"DELETE /sessions/:id": {
		group: "Sessions", id: "deleteSession", summary: "Delete a session with everything that belongs to it",
		fails: []int{409}, answers: []answer{gone("It is deleted.")},
	},
	"POST /sessions/:id/release": {
		group: "Sessions", id: "releaseSession", summary: "Take a session out of quarantine",
		text:    "Loads the session now. If it does not load, the answer is the reason, and the session is quarantined again.",
		answers: []answer{ok("Session", "It is loaded.")},
	},
	"GET /sessions/:id/state": {
		group: "Sessions", id: "getState", summary: "The value at a path of a state",
		query:   []parameter{{name: "path", schema: aText, text: "Names and indexes with dots between them. Without it, the whole state."}},
		headers: []parameter{{name: "If-None-Match", schema: aText, text: "ETags that the client has."}},
		answers: []answer{
			{status: 200, text: "The bare value.", body: both(anyValue), headers: stateTag},
			{status: 304, text: "The value has not changed.", headers: stateTag},
		},
	},
	"PATCH /sessions/:id/state": {
		group: "Sessions", id: "patchState", summary: "Edit a state",
		text:    "With a merge patch (RFC 7396), also as plain JSON or CBOR, or with a list of edits like those of plugins. With a path, the edit, If-Match and the answer concern only the value at the path.",
		query:   []parameter{{name: "path", schema: aText, text: "Names and indexes with dots between them. Without it, the whole state."}},
		headers: []parameter{onceHeader, matchHeader, newHeader},
		body: needed(&content{types: []string{apiwire.TypeMergePatch, apiwire.TypeEdits, "application/json", apiwire.TypeCBOR},
			schema: either(anyObject, listOf(schema{"type": "array", "description": `Such as ["set", "user.name", "Ada"].`}))}),
		fails:   []int{409, 412, 422, 429},
		answers: []answer{{status: 200, text: "The state, or the value at the path, after the edit; null if the value was deleted.", body: both(anyValue), headers: stateTag}},
	},
}

var pluginOperations = map[string]operation{
	"GET /plugins": {
		group: "Plugins", id: "listPlugins", summary: "List the plugins",
		answers: []answer{ok("Plugins", "The newest version of each.")},
	},
	"GET /plugins/:name/module": {
		group: "Plugins", id: "getModule", summary: "The module of a version of a plugin",
		query:   []parameter{{name: "sha256", schema: schema{"type": "string", "pattern": "^([0-9a-fA-F]{64})?$"}, text: "Of the version. Default: the newest."}},
		answers: []answer{{status: 200, text: "The bytes that were uploaded, with the manifest for Extism that came with them.", body: &content{types: []string{"application/wasm"}}}},
	},
	"PUT /plugins/:name": {
		group: "Plugins", id: "putPlugin", summary: "Upload a version of a plugin",
		text: "The server checks the module, rewrites it and asks it for its description. Uploading the same bytes again changes nothing. A refusal lists every problem.",
		query: []parameter{
			{name: "check", schema: aFlagOff, text: "Say also which runs in progress could move to the new version."},
			{name: "dry_run", schema: aFlagOff, text: "Check the module as an upload does, and say how it differs from the newest version; store nothing. Not with check."},
			{name: "replace_workflow", schema: aFlagOff, text: "Accept a version whose workflow has another name than before; the old workflow is removed."},
		},
		headers: []parameter{
			{name: apiwire.HeaderManifest, schema: aText,
				text: "For a plugin made for Extism: which export is which step, as JSON or as base64 of JSON. It becomes part of the module."},
			{name: apiwire.HeaderProgress, schema: aFlagOff,
				text: "Send interim answers (102) with this header: `waiting; ahead=N` while N other modules are compiled first, then `compiling`. Clients that take the first answer for the last one, as Python's http.client does, leave it out."},
		},
		body: needed(&content{types: []string{"application/wasm", "application/octet-stream", "application/x-www-form-urlencoded"},
			schema: nil}),
		fails:   []int{409, 422, 429},
		answers: []answer{ok("PluginDetails", "The plugin has this version already, or it is a dry run."), {status: 201, text: "A new plugin or version.", body: both(ref("PluginDetails"))}},
	},
	"GET /plugins/:name": {
		group: "Plugins", id: "getPlugin", summary: "The newest version of a plugin",
		answers: []answer{ok("PluginDetails", "With its manifest.")},
	},
	"DELETE /plugins/:name": {
		group: "Plugins", id: "deletePlugin", summary: "Remove a plugin, or one of its versions",
		query: []parameter{{name: "version", schema: countFrom(1), text: "Remove only this version."}},
		fails: []int{409}, answers: []answer{gone("It is removed.")},
	},
	"GET /plugins/:name/versions": {
		group: "Plugins", id: "listVersions", summary: "All versions of a plugin",
		answers: []answer{ok("Versions", "The versions.")},
	},
}

var accessOperations = map[string]operation{
	"GET /tenants": {
		group: "Tenants and keys", id: "listTenants", summary: "List the tenants that the key may see",
		answers: []answer{ok("Tenants", "The tenants.")},
	},
	"POST /tenants": {
		group: "Tenants and keys", id: "createTenant", summary: "Make a tenant", text: "With the server's own key.",
		body: needed(both(inline[apiwire.NewTenant]())), fails: []int{409, 429},
		answers: []answer{{status: 201, text: "The tenant was made.", body: both(ref("Tenant"))}},
	},
	"GET /tenants/:name": {
		group: "Tenants and keys", id: "getTenant", summary: "A tenant",
		answers: []answer{ok("Tenant", "The tenant.")},
	},
	"DELETE /tenants/:name": {
		group: "Tenants and keys", id: "deleteTenant", summary: "Remove a tenant with everything that it has", text: "With the server's own key.",
		fails: []int{409}, answers: []answer{gone("It is removed.")},
	},
	"GET /tenants/:name/usage": {
		group: "Tenants and keys", id: "tenantUsage", summary: "What a tenant stores, and has used",
		answers: []answer{ok("Usage", "Sums.")},
	},
	"GET /whoami": {
		group: "Tenants and keys", id: "whoAmI", summary: "Who the request is, and what it may do",
		answers: []answer{ok("Identity", "Its tenant, role and key.")},
	},
	"GET /keys": {
		group: "Tenants and keys", id: "listKeys", summary: "List the keys that the key may see",
		answers: []answer{ok("Keys", "The keys, without their secrets.")},
	},
	"POST /keys": {
		group: "Tenants and keys", id: "createKey", summary: "Make a key", text: "Only this answer contains the key itself.",
		body:  needed(both(inline[apiwire.KeyRequest]())),
		fails: []int{409, 429}, answers: []answer{{status: 201, text: "It is made.", body: both(ref("NewKey"))}},
	},
	"GET /keys/:id": {
		group: "Tenants and keys", id: "getKey", summary: "A key, without itself",
		answers: []answer{ok("Key", "The key.")},
	},
	"DELETE /keys/:id": {
		group: "Tenants and keys", id: "revokeKey", summary: "End a key",
		fails: []int{409}, answers: []answer{gone("The key is revoked.")},
	},
	"POST /keys/:id/rotate": {
		group: "Tenants and keys", id: "rotateKey", summary: "Give a key another secret",
		body:  both(inline[apiwire.Rotate]()),
		fails: []int{409, 429}, answers: []answer{ok("NewKey", "The key as it is now.")},
	},
	"GET /audit": {
		group: "Tenants and keys", id: "listAudit", summary: "The audit log of tenants, keys and plugins, newest first",
		query: []parameter{limitQuery(apiwire.MaxPage, apiwire.MaxPage), cursorQuery}, answers: []answer{ok("Audit", "A part of it.")},
	},
}

var serverOperations = map[string]operation{
	"GET /health": {
		group: "Server", id: "health", summary: "Whether the store works",
		answers: []answer{ok("Health", "It does."), {status: 503, text: "The store does not work, or the server is starting or stopping.", body: both(ref("Unhealthy"))}},
	},
	"GET /ready": {
		group: "Server", id: "ready", summary: "Whether the server takes work",
		answers: []answer{ok("Readiness", "It does."), {status: 503, text: "It does not.", body: both(ref("Unhealthy"))}},
	},
	"GET /cluster": {
		group: "Server", id: "listNodes", summary: "List the nodes of the cluster", text: "With the server's own key.",
		answers: []answer{ok("Nodes", "The nodes; none if the server has its store to itself.")},
	},
	"POST /cluster/:name/drain": {
		group: "Server", id: "drainNode", summary: "Move the sessions away from a node of the cluster",
		text: "With the server's own key. The node gives the sessions up to another one, goes on answering requests, and takes them again only if no other node can. " +
			"`GET /cluster` shows when another node has them.",
		fails: []int{409}, answers: []answer{gone("The node is drained.")},
	},
	"DELETE /cluster/:name/drain": {
		group: "Server", id: "undrainNode", summary: "Let a drained node take the sessions again", text: "With the server's own key.",
		answers: []answer{gone("The node is no longer drained.")},
	},
	"GET /metrics": {
		group: "Server", id: "metrics", summary: "Figures for Prometheus",
		answers: []answer{{status: 200, text: "Its text format.", body: &content{types: []string{plainType, metricsType}, schema: aText}}},
	},
	"GET " + PathDescription: {
		group: "Server", id: "openapi", summary: "This description, as OpenAPI 3.1",
		answers: []answer{{status: 200, text: "The document.", body: &content{types: []string{"application/json"}, schema: anyObject}}},
	},
	"GET /": {
		group: "Server", id: "root", summary: "Leads to the description",
		answers: []answer{{status: 302, text: "To " + PathDocs + "."}},
	},
	"GET " + PathDocs: {
		group: "Server", id: "docs", summary: "This description, as a page",
		answers: []answer{{status: 200, text: "The page.", body: &content{types: []string{htmlType}, schema: aText}}},
	},
}

var resourceOperations = map[string]operation{
	"GET /resources": {
		group: "Resources", id: "listResources", summary: "List the resources that the tenant may use", text: "Including the resources of the operator's file; secrets are never shown.",
		answers: []answer{ok("Resources", "The resources, with what workflows have used of them.")},
	},
	"GET /resources/:name": {
		group: "Resources", id: "getResource", summary: "A resource, without its secrets",
		answers: []answer{ok("Resource", "The resource.")},
	},
	"GET /resources/:name/keys": {
		group: "Resources", id: "listResourceKeys", summary: "What a resource of the kind kv keeps for the tenant",
		text: "In the order of the keys' bytes: what is durable. A page ends after 4 MiB.",
		query: []parameter{
			{name: "prefix", schema: aText, text: "The prefix of the keys."}, {name: "values", schema: aFlagOff, text: "With the values."},
			limitQuery(apiwire.MaxPage, apiwire.DefaultKeys), cursorQuery,
		},
		answers: []answer{ok("ResourceKeys", "A part of them.")},
	},
	"PUT /resources/:name": {
		group: "Resources", id: "putResource", summary: "Define a resource, or replace it",
		text: "The definition takes effect at once. Secrets are sealed, and must be given each time. Only the server's own key may name networks.",
		body: needed(&content{types: []string{"application/json"}, schema: anyObject}), fails: []int{409, 413, 429},
		answers: []answer{ok("Resource", "It was there."), {status: 201, text: "It is made.", body: both(ref("Resource"))}},
	},
	"DELETE /resources/:name": {
		group: "Resources", id: "deleteResource", summary: "Delete a resource",
		fails: []int{409}, answers: []answer{gone("The resource is deleted.")},
	},
}
