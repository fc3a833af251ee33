package apiwire

// Headers of the API.
const (
	// HeaderOnce has the idempotency key of a request.
	HeaderOnce = "Idempotency-Key"
	// HeaderTenant names the tenant in which the server's own key acts.
	HeaderTenant = "Weft-Tenant"
	// HeaderManifest has the manifest of a module that does not describe itself, such as
	// a plugin for Extism. It is JSON, or JSON in base64.
	HeaderManifest = "X-Weft-Manifest"
	// HeaderProgress is "true" in an upload whose client wants interim answers (102). In
	// these answers it has the stage of the upload.
	HeaderProgress = "X-Weft-Progress"
)

// Media types of the API, besides JSON.
const (
	TypeCBOR       = "application/cbor"
	TypeMergePatch = "application/merge-patch+json"
	TypeEdits      = "application/vnd.weft.edits+json"
)

// Bounds of requests.
const (
	MaxOnce         = 255  // bytes of the key in HeaderOnce
	MaxPage         = 1000 // records of a listing, and the default
	DefaultKeys     = 100  // keys in a listing of a resource's data; MaxPage at most
	DefaultMigrated = 100  // runs that one request for a migration examines
	MaxMigrated     = 1000 // the same, at most
)

// SnapshotFormat is the format of a run's snapshot.
const SnapshotFormat = "weft run"
