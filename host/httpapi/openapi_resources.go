package httpapi

var resourceOperations = map[string]operation{
	"GET /resources": {
		group: "Resources", id: "listResources", summary: "List the resources that the tenant may use", text: "Those of the operator's file among them; secrets are shown by nobody.",
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
			{name: "prefix", schema: aText, text: "How the keys begin."}, {name: "values", schema: aFlagOff, text: "With the values."},
			limitQuery(maxPage, defaultKeys), cursorQuery,
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
		fails: []int{409}, answers: []answer{gone("Nobody may use it any more.")},
	},
}
