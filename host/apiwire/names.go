package apiwire

// Headers of the API.
const (
	// HeaderOnce has the key under which a request counts once.
	HeaderOnce = "Idempotency-Key"
	// HeaderTenant names the tenant in which the server's own key acts.
	HeaderTenant = "Weft-Tenant"
	// HeaderManifest has the manifest of a module that does not describe itself, such as
	// a plugin for Extism: JSON, or base64 of JSON.
	HeaderManifest = "X-Weft-Manifest"
	// HeaderProgress has "true" in an upload whose client wants interim answers (102), and
	// in these the stage of the upload.
	HeaderProgress = "X-Weft-Progress"
)

// Media types of the API, beside JSON.
const (
	TypeCBOR       = "application/cbor"
	TypeMergePatch = "application/merge-patch+json"
	TypeEdits      = "application/vnd.weft.edits+json"
)

// Bounds of requests.
const (
	MaxOnce         = 255  // bytes of the key in HeaderOnce
	MaxPage         = 1000 // records of a listing, also by default
	DefaultKeys     = 100  // keys of a listing of what a resource keeps; MaxPage at most
	DefaultMigrated = 100  // runs that one request for a migration looks at
	MaxMigrated     = 1000 // likewise, at most
)

// SnapshotFormat is the format of a run's snapshot.
const SnapshotFormat = "weft run"
