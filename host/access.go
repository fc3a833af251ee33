package host

import (
	"context"
	"time"

	"github.com/weftrun/weft/host/limit"
	"github.com/weftrun/weft/host/usage"
)

// Role says what a key may do. Each role includes the roles below it.
type Role string

// The roles of a tenant's keys, from the lowest to the highest.
const (
	RoleRead   Role = "read"   // read everything but keys
	RoleRun    Role = "run"    // start and control runs, and send them events
	RoleDeploy Role = "deploy" // upload plugins, compose workflows, migrate runs
	RoleAdmin  Role = "admin"  // manage the tenant's keys, and read its audit log
)

// roleRanks orders the roles.
var roleRanks = map[Role]int{RoleRead: 1, RoleRun: 2, RoleDeploy: 3, RoleAdmin: 4}

// Known reports whether the role exists.
func (r Role) Known() bool { return roleRanks[r] > 0 }

// May reports whether a key with this role may do what requires the role least. It is
// false if one of the roles does not exist.
func (r Role) May(least Role) bool {
	return least.Known() && roleRanks[r] >= roleRanks[least]
}

// MaxAudit is how many entries the audit log keeps for each tenant and for the server.
const MaxAudit = 10_000

// TenantRecord is a tenant in a store.
type TenantRecord struct {
	Name    string
	Created int64 // Unix nanoseconds
	// Deleting says that the tenant is being removed with all its data. It cannot be used
	// any more.
	Deleting bool
}

// KeyRecord is an API key in a store, which has only a hash of the key. A key is 256
// random bits, which nobody can guess, so a plain SHA-256 is enough; slow hashes are for
// passwords that people choose.
type KeyRecord struct {
	ID     string // names the key, and reveals nothing about it
	Tenant string
	Role   Role
	Name   string // for people; may be empty
	// Prefix is the beginning of the key, by which people recognise it.
	Prefix string
	Hash   [32]byte // SHA-256 of the whole key
	// Previous is the hash of the key before its rotation. The old key is valid until
	// PreviousUntil.
	Previous       [32]byte
	PreviousPrefix string
	PreviousUntil  int64 // Unix nanoseconds; 0: no previous key
	// Times are Unix nanoseconds; 0: never.
	Created  int64
	Expires  int64
	LastUsed int64 // up to a minute too early; less exact after a crash
	Revoked  int64
}

// AuditEntry is one administrative act.
type AuditEntry struct {
	ID   int64 // assigned by the store, increasing
	Time int64 // Unix nanoseconds
	// Who is the id of the key that was used, [AuditServerAdmin], "no key" on a
	// server that needs no keys, or "wrong key".
	Who     string
	Tenant  string // "": the act concerns the server
	Act     string // such as key.create
	Target  string // id or name of the object of the act
	Detail  string // additional text; may be empty
	Outcome string // AuditOK, or the code of the error
}

// Values of Who and Outcome in audit entries.
const (
	AuditServerAdmin = "server admin"
	auditNobody      = "no key"
	AuditOK          = "ok"
)

// AuditQuery selects a page of the audit log, newest entry first.
type AuditQuery struct {
	Tenant string // "": entries about the server
	All    bool   // all tenants and the server; Tenant is ignored
	Before int64  // only smaller ids; 0: from the newest
	Limit  int    // 1 to MaxListed
}

// AccessChange is one transaction on tenants, keys and the audit log.
type AccessChange struct {
	Tenants    []TenantRecord // new or changed, by name
	DropTenant string         // also drops its keys and its audit log; "": none
	Keys       []KeyRecord    // new or changed, by id
	DropKeys   []string       // ids
	// Used says when keys were last used, by id. Unknown ids are ignored.
	Used  map[string]int64
	Audit []AuditEntry // without ids; entries beyond [MaxAudit] are dropped, oldest first
}

// AccessStore is the part of a [Store] that keeps tenants, keys and the audit log. The
// rules of [Store] apply.
type AccessStore interface {
	// Access reads all tenants and all keys, by name and by id.
	Access(ctx context.Context) ([]TenantRecord, []KeyRecord, error)
	// ChangeAccess writes all of a change, or nothing.
	ChangeAccess(ctx context.Context, c AccessChange) error
	// Audit lists entries of the audit log.
	Audit(ctx context.Context, q AuditQuery) (list []AuditEntry, more bool, err error)
	// TenantUsage counts what a tenant has stored.
	TenantUsage(ctx context.Context, tenant string) (TenantUsage, error)
	// ClearTenant deletes, in one transaction, about rows rows of a tenant's data, except
	// keys and the audit log. more says whether rows are left. Nobody may write for the
	// tenant meanwhile.
	ClearTenant(ctx context.Context, tenant string, rows int) (more bool, err error)
}

// TenantUsage is what a tenant stores, and what its runs have used.
type TenantUsage struct {
	Runs         map[Status]int // by status, without zeros
	Steps        uint64         // finished invocations of those runs
	Fuel         uint64         // burnt in all months
	Handlers     int
	Sessions     int
	Plugins      int // names
	Versions     int // of plugins
	PluginBytes  int64
	JournalBytes int64
	StreamBytes  int64
	RunsStarted  uint64 // in all months
	LogBytes     uint64 // in all months
	// Months is what was spent in each month, newest first.
	Months []usage.MonthSpent
	// Quotas says how much of each quota is used; a store does not set it.
	Quotas []limit.Use
}

// Grant is what a request may do: its tenant and its role. The caller calls Leave once,
// when the request has been answered.
type Grant struct {
	Tenant string
	Role   Role
	KeyID  string // "": the server's own key, or no key
	// Server says that the request has the server's own key, and may manage tenants.
	Server bool
	// Named says that the server's own key named the tenant; otherwise it is for all
	// tenants.
	Named bool
	// Done ends when the key or the tenant is removed; nil: never.
	Done context.Context
	// Leave may be nil.
	Leave func()
}

// Who returns the grant's name in the audit log.
func (g *Grant) Who() string {
	switch {
	case g.KeyID != "":
		return g.KeyID
	case g.Server:
		return AuditServerAdmin
	}
	return auditNobody
}

// Identity is who asks, as the server sees it.
type Identity struct {
	Keyless bool // the server needs no keys
	// Server says that the request may do what needs the server's own key.
	Server bool
	Tenant string
	Role   Role
	Key    *KeyRecord // ID, Prefix, Name and Expires; nil: the server's own key, or none
	// Version is the server's version, "" if it has none, and Started when it began to
	// serve, in Unix nanoseconds.
	Version string
	Started int64
}

// KeyRequest describes a key to create.
type KeyRequest struct {
	Tenant  string // "": the tenant of the grant
	Role    Role
	Name    string
	Expires int64 // Unix nanoseconds; 0: never
}

// Access decides what requests may do, and manages tenants and keys. All methods may be
// called from any goroutine. Errors are [*Error]s. The data of another tenant counts as
// missing: CodeNotFound.
//
// No result contains a key or its hash, except the secret that CreateKey and RotateKey
// return once.
type Access interface {
	// Keyless reports whether requests need no key. It never changes.
	Keyless() bool
	// Enter returns what a request with a key ("": none) and the name of a tenant ("":
	// none) may do. It only reads memory.
	//
	// # Errors
	//
	// CodeUnauthenticated: there is no key, or it is not valid. CodeNotFound: the tenant
	// does not exist, or is not the tenant of the key.
	Enter(key, tenant string) (Grant, error)

	// CreateTenant creates a tenant. CodeInvalidArgument, CodeConflict,
	// CodePermissionDenied (not the server's own key), CodeFailedPrecondition (the server
	// needs no keys), CodeLimitExceeded.
	CreateTenant(ctx context.Context, by *Grant, name string) (TenantRecord, error)
	// Tenants lists the tenants that the grant may see, by name.
	Tenants(ctx context.Context, by *Grant) ([]TenantRecord, error)
	// Tenant reads a tenant. CodeNotFound.
	Tenant(ctx context.Context, by *Grant, name string) (TenantRecord, error)
	// DeleteTenant removes a tenant with all its data. Once begun, the removal continues
	// when ctx ends, and after a restart of the server. CodeNotFound,
	// CodePermissionDenied, CodeConflict (runs are active, or it is the default tenant).
	DeleteTenant(ctx context.Context, by *Grant, name string) error
	// Usage returns what a tenant stores and has used. CodeNotFound.
	Usage(ctx context.Context, by *Grant, name string) (TenantUsage, error)

	// CreateKey creates a key. CodeNotFound (the tenant), CodeInvalidArgument,
	// CodeFailedPrecondition (the server needs no keys), CodeLimitExceeded.
	CreateKey(ctx context.Context, by *Grant, req KeyRequest) (key KeyRecord, secret string, err error)
	// Keys lists keys, including revoked keys, by tenant and time.
	Keys(ctx context.Context, by *Grant) ([]KeyRecord, error)
	// Key reads a key. CodeNotFound.
	Key(ctx context.Context, by *Grant, id string) (KeyRecord, error)
	// RevokeKey revokes a key at once, and ends the requests in progress that use it.
	// CodeNotFound, also if the key is already revoked.
	RevokeKey(ctx context.Context, by *Grant, id string) error
	// RotateKey gives a key a new secret. The old secret remains valid for grace, 0 to 30
	// days. CodeNotFound, as for RevokeKey; CodeFailedPrecondition: the key has expired.
	RotateKey(ctx context.Context, by *Grant, id string, grace time.Duration) (key KeyRecord, secret string, err error)

	// Audit lists a page of the audit log, newest entry first. The grant determines
	// Tenant and All of the query. more says whether other entries follow.
	Audit(ctx context.Context, by *Grant, before int64, limit int) (list []AuditEntry, more bool, err error)
	// Note adds an act of another package to the audit log of the grant's tenant.
	Note(ctx context.Context, by *Grant, act, target string, outcome error)
}
