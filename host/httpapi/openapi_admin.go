package httpapi

// Headers of conditional requests.
var (
	matchHeader = parameter{name: "If-Match", schema: aText, text: "The ETag that the value must have, or *: it must be there; else 412."}
	newHeader   = parameter{name: "If-None-Match", schema: schema{"type": "string", "const": "*"}, text: "*: the session must not be there; else 412."}
	stateTag    = map[string]string{"ETag": "The tag of the state, as JSON and as CBOR another."}
)

var sessionOperations = map[string]operation{
	"GET /sessions": {
		group: "Sessions", id: "listSessions", summary: "List sessions, the newest first",
		query:   []parameter{limitQuery(maxPage, maxPage), cursorQuery},
		answers: []answer{ok("Sessions", "A part of them.")},
	},
	"GET /sessions/:id": {
		group: "Sessions", id: "getSession", summary: "What is known of a session",
		answers: []answer{ok("Session", "Its runs and times.")},
	},
	"PUT /sessions/:id": {
		group: "Sessions", id: "putSession", summary: "Make a session, or replace its state",
		headers: []parameter{onceHeader, matchHeader, newHeader}, body: both(closed(object("", may("state", orNull(anyObject), "Left out: the state stays.")))),
		fails: []int{409, 412, 422, 429},
		answers: []answer{
			ok("Session", "It was there."),
			{status: 201, text: "It is made.", body: both(ref("Session")), headers: map[string]string{"Location": "Its path."}},
		},
	},
	"DELETE /sessions/:id": {
		group: "Sessions", id: "deleteSession", summary: "Delete a session with all that it has",
		fails: []int{409}, answers: []answer{gone("It is deleted.")},
	},
	"POST /sessions/:id/release": {
		group: "Sessions", id: "releaseSession", summary: "Take a session out of quarantine",
		text:    "Forgets why the session is quarantined and loads it now. If it does not load, the answer is the reason, and it is quarantined again.",
		answers: []answer{ok("Session", "It is loaded.")},
	},
	"GET /sessions/:id/state": {
		group: "Sessions", id: "getState", summary: "The value at a path of a state",
		query:   []parameter{{name: "path", schema: aText, text: "Names and indexes with dots between them; left out: the whole."}},
		headers: []parameter{{name: "If-None-Match", schema: aText, text: "ETags that are known already."}},
		answers: []answer{
			{status: 200, text: "The bare value.", body: both(anyValue), headers: stateTag},
			{status: 304, text: "It is as before.", headers: stateTag},
		},
	},
	"PATCH /sessions/:id/state": {
		group: "Sessions", id: "patchState", summary: "Edit a state",
		text:    "By a merge patch (RFC 7396), also in JSON or CBOR, or by a list of edits as plugins make them. With a path all of it, If-Match and the answer too, is of the value there.",
		query:   []parameter{{name: "path", schema: aText, text: "Names and indexes with dots between them; left out: the whole."}},
		headers: []parameter{onceHeader, matchHeader, newHeader},
		body: needed(&content{types: []string{mergePatchType, editsType, "application/json", cborType},
			schema: either(anyObject, listOf(schema{"type": "array", "description": `Such as ["set", "user.name", "Ada"].`}))}),
		fails:   []int{409, 412, 422, 429},
		answers: []answer{{status: 200, text: "The state, or the value at the path, as it is now; null if that is gone.", body: both(anyValue), headers: stateTag}},
	},
}

var pluginOperations = map[string]operation{
	"GET /plugins": {
		group: "Plugins", id: "listPlugins", summary: "List the plugins",
		answers: []answer{ok("Plugins", "The newest version of each.")},
	},
	"PUT /plugins/:name": {
		group: "Plugins", id: "putPlugin", summary: "Upload a version of a plugin",
		text: "The module is checked, rewritten and asked what it is. The same bytes again change nothing. What is wrong is listed as a whole.",
		query: []parameter{
			{name: "check", schema: aFlagOff, text: "Say also what the upload means for runs under way."},
			{name: "replace_workflow", schema: aFlagOff, text: "Take a version that makes another workflow than the one before, whose workflow goes."},
		},
		headers: []parameter{
			{name: headerManifest, schema: aText,
				text: "Of a plugin of Extism's: which export is which step, as JSON or base64 of it. It becomes part of the module."},
			{name: headerProgress, schema: aFlagOff,
				text: "Send interim answers (102) with this header: `waiting; ahead=N` while N other modules are compiled first, then `compiling`. Clients that take the first answer for the last one, as Python's http.client does, leave it out."},
		},
		body: needed(&content{types: []string{"application/wasm", "application/octet-stream", "application/x-www-form-urlencoded"},
			schema: nil}),
		fails:   []int{409, 422, 429},
		answers: []answer{ok("PluginDetails", "It was there."), {status: 201, text: "A new plugin or version.", body: both(ref("PluginDetails"))}},
	},
	"GET /plugins/:name": {
		group: "Plugins", id: "getPlugin", summary: "The newest version of a plugin",
		answers: []answer{ok("PluginDetails", "With its manifest.")},
	},
	"DELETE /plugins/:name": {
		group: "Plugins", id: "deletePlugin", summary: "Remove a plugin, or one of its versions",
		query: []parameter{{name: "version", schema: countFrom(1), text: "This version alone."}},
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
		body: needed(both(closed(object("", must("name", schema{"type": "string", "minLength": 1, "maxLength": 64}, ""))))), fails: []int{409, 429},
		answers: []answer{{status: 201, text: "It is made.", body: both(ref("Tenant"))}},
	},
	"GET /tenants/:name": {
		group: "Tenants and keys", id: "getTenant", summary: "A tenant",
		answers: []answer{ok("Tenant", "The tenant.")},
	},
	"DELETE /tenants/:name": {
		group: "Tenants and keys", id: "deleteTenant", summary: "Remove a tenant with all that it has", text: "With the server's own key.",
		fails: []int{409}, answers: []answer{gone("It is removed.")},
	},
	"GET /tenants/:name/usage": {
		group: "Tenants and keys", id: "tenantUsage", summary: "What a tenant has, and has used",
		answers: []answer{ok("Usage", "Sums.")},
	},
	"GET /keys": {
		group: "Tenants and keys", id: "listKeys", summary: "List the keys that the key may see",
		answers: []answer{ok("Keys", "The keys, without themselves.")},
	},
	"POST /keys": {
		group: "Tenants and keys", id: "createKey", summary: "Make a key", text: "The answer is the only one that has it.",
		body: needed(both(closed(object("", may("tenant", orNot(aText), "Left out: that of the request."), must("role", aRole, ""),
			may("name", orNot(aText), "What it is for."), may("expires_at", orNot(aMoment), "Left out: never."))))),
		fails: []int{409, 429}, answers: []answer{{status: 201, text: "It is made.", body: both(ref("NewKey"))}},
	},
	"GET /keys/:id": {
		group: "Tenants and keys", id: "getKey", summary: "A key, without itself",
		answers: []answer{ok("Key", "The key.")},
	},
	"DELETE /keys/:id": {
		group: "Tenants and keys", id: "revokeKey", summary: "End a key",
		fails: []int{409}, answers: []answer{gone("It opens nothing any more.")},
	},
	"POST /keys/:id/rotate": {
		group: "Tenants and keys", id: "rotateKey", summary: "Give a key another secret",
		body:  both(closed(object("", may("grace", orNull(someSeconds), "For so long, in seconds, the key is good as it was, too.")))),
		fails: []int{409, 429}, answers: []answer{ok("NewKey", "The key as it is now.")},
	},
	"GET /audit": {
		group: "Tenants and keys", id: "listAudit", summary: "What was done to tenants, keys and plugins, the newest first",
		query: []parameter{limitQuery(maxPage, maxPage), cursorQuery}, answers: []answer{ok("Audit", "A part of it.")},
	},
}

var serverOperations = map[string]operation{
	"GET /health": {
		group: "Server", id: "health", summary: "Whether the store works",
		answers: []answer{ok("Health", "It does."), {status: 503, text: "It does not, or the server starts or ends.", body: both(ref("Unhealthy"))}},
	},
	"GET /ready": {
		group: "Server", id: "ready", summary: "Whether the server takes work",
		answers: []answer{ok("Readiness", "It does."), {status: 503, text: "It does not.", body: both(ref("Unhealthy"))}},
	},
	"GET /metrics": {
		group: "Server", id: "metrics", summary: "Figures for Prometheus",
		answers: []answer{{status: 200, text: "Its text format.", body: &content{types: []string{plainType, metricsType}, schema: aText}}},
	},
	"GET " + pathDescription: {
		group: "Server", id: "openapi", summary: "This description, as OpenAPI 3.1",
		answers: []answer{{status: 200, text: "The document.", body: &content{types: []string{"application/json"}, schema: anyObject}}},
	},
	"GET /": {
		group: "Server", id: "root", summary: "Leads to the description",
		answers: []answer{{status: 302, text: "To " + pathDocs + "."}},
	},
	"GET " + pathDocs: {
		group: "Server", id: "docs", summary: "This description, as a page",
		answers: []answer{{status: 200, text: "The page.", body: &content{types: []string{htmlType}, schema: aText}}},
	},
}
