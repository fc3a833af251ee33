package host

import (
	"context"
	"time"

	"github.com/weftrun/weft/host/limit"
	"github.com/weftrun/weft/host/usage"
)

// Role says what a key may do. Each role may do what those below it may.
type Role string

// The roles of a tenant's keys, from the least to the greatest.
const (
	RoleRead   Role = "read"   // look at everything but keys
	RoleRun    Role = "run"    // start, steer and speak to runs
	RoleDeploy Role = "deploy" // upload plugins, compose workflows, migrate runs
	RoleAdmin  Role = "admin"  // keys of the tenant, and its audit log
)

// roleRanks orders the roles.
var roleRanks = map[Role]int{RoleRead: 1, RoleRun: 2, RoleDeploy: 3, RoleAdmin: 4}

// Known reports whether there is such a role.
func (r Role) Known() bool { return roleRanks[r] > 0 }

// May reports whether a key with this role may do what needs the other: never,
// if either is none.
func (r Role) May(least Role) bool {
	return least.Known() && roleRanks[r] >= roleRanks[least]
}

// MaxAudit is how many entries of the audit log are kept, of a tenant and of the server
// each.
const MaxAudit = 10_000

// TenantRecord is a tenant as a store has it.
type TenantRecord struct {
	Name    string
	Created int64 // Unix nanoseconds
	// Deleting: the tenant is being removed with all that it has. Nobody can use it
	// any more, and it never comes back.
	Deleting bool
}

// KeyRecord is an API key as a store has it: of the key itself there is a hash
// only. A key is 256 random bits, which nobody can guess and no dictionary has, so
// that a plain SHA-256 is all it takes; slow hashes are for what people choose.
type KeyRecord struct {
	ID     string // names the key, and tells nothing of it
	Tenant string
	Role   Role
	Name   string // for people; may be empty
	// Prefix is how the key begins, by which people recognise it.
	Prefix string
	Hash   [32]byte // SHA-256 of the whole key
	// Previous is what the key was before it was rotated; it works until
	// PreviousUntil.
	Previous       [32]byte
	PreviousPrefix string
	PreviousUntil  int64 // Unix nanoseconds; 0: there is none
	// Times are Unix nanoseconds; 0: never.
	Created  int64
	Expires  int64
	LastUsed int64 // at most a minute too early, or less exact after a crash
	Revoked  int64
}

// AuditEntry tells of one administrative act.
type AuditEntry struct {
	ID   int64 // given by the store, increasing
	Time int64 // Unix nanoseconds
	// Who did it: the id of a key, [AuditServerAdmin], "no key" on a server
	// that asks for no keys, or "wrong key".
	Who     string
	Tenant  string // "": it is about the server
	Act     string // such as key.create
	Target  string // the id or the name of what it was done to
	Detail  string // what else is worth knowing; may be empty
	Outcome string // AuditOK, or the code of the error
}

// Who and outcome of audit entries.
const (
	AuditServerAdmin = "server admin"
	auditNobody      = "no key"
	AuditOK          = "ok"
)

// AuditQuery asks for a page of the audit log, the newest first.
type AuditQuery struct {
	Tenant string // "" is what is about the server
	All    bool   // of all tenants and the server; Tenant is not looked at
	Before int64  // ids less than this; 0: from the newest
	Limit  int    // 1 to MaxListed
}

// AccessChange is what one transaction writes of tenants, keys and the audit log.
type AccessChange struct {
	Tenants    []TenantRecord // new or changed, by name
	DropTenant string         // with its keys and its part of the audit log; "": none
	Keys       []KeyRecord    // new or changed, by id
	DropKeys   []string       // ids
	// Used says when keys were last used, by id; of those that are not there it says
	// nothing.
	Used  map[string]int64
	Audit []AuditEntry // without ids; the oldest go beyond [MaxAudit]
}

// AccessStore is the part of a [Store] that keeps tenants, keys and the audit log.
// What holds for a store holds here.
type AccessStore interface {
	// Access reads all tenants and all keys, by name and by id.
	Access(ctx context.Context) ([]TenantRecord, []KeyRecord, error)
	// ChangeAccess writes a change, all or nothing.
	ChangeAccess(ctx context.Context, c AccessChange) error
	// Audit lists entries of the audit log.
	Audit(ctx context.Context, q AuditQuery) (list []AuditEntry, more bool, err error)
	// TenantUsage counts what a tenant has stored.
	TenantUsage(ctx context.Context, tenant string) (TenantUsage, error)
	// ClearTenant deletes, in one transaction, some of what a tenant has besides
	// keys and the audit log: about so many rows. more: there is more. Nobody may be
	// writing for the tenant.
	ClearTenant(ctx context.Context, tenant string, rows int) (more bool, err error)
}

// TenantUsage is what a tenant has stored, and what its runs have used.
type TenantUsage struct {
	Runs         map[Status]int // by status, those that there are
	Steps        uint64         // finished invocations of those runs
	Fuel         uint64         // that was ever burnt, as Months has it
	Handlers     int
	Sessions     int
	Plugins      int // names
	Versions     int // of plugins
	PluginBytes  int64
	JournalBytes int64
	StreamBytes  int64
	RunsStarted  uint64 // ever, as Months has it
	LogBytes     uint64 // likewise
	// Months is what was spent in each month, the newest first.
	Months []usage.MonthSpent
	// Quotas says how much of each quota is used; a store does not know.
	Quotas []limit.Use
}

// Grant is what a request may do: in which tenant, and with which role. It is
// given back by Leave, once, when the request has been answered.
type Grant struct {
	Tenant string
	Role   Role
	KeyID  string // "": the server's own key, or none
	// Server: the request comes with the server's own key, and may manage tenants.
	Server bool
	// Named: the server's own key named the tenant; else it speaks of all.
	Named bool
	// Done ends when the key or the tenant is taken away; nil: that cannot be.
	Done context.Context
	// Leave may be nil.
	Leave func()
}

// Who is the grant in the audit log.
func (g *Grant) Who() string {
	switch {
	case g.KeyID != "":
		return g.KeyID
	case g.Server:
		return AuditServerAdmin
	}
	return auditNobody
}

// KeyRequest asks for a key.
type KeyRequest struct {
	Tenant  string // "": that of the grant
	Role    Role
	Name    string
	Expires int64 // Unix nanoseconds; 0: never
}

// Access decides who may do what, and manages tenants and keys. All methods may be
// called from any goroutine. Errors are [*Error]s; what another tenant has does not
// exist: CodeNotFound.
//
// Nothing that a method gives holds a key or its hash, but for the secret that
// CreateKey and RotateKey give once.
type Access interface {
	// Keyless reports whether requests need no key. It never changes.
	Keyless() bool
	// Enter says what a request may do that comes with a key ("": none) and names
	// a tenant ("": none). It asks memory only.
	//
	// # Errors
	//
	// CodeUnauthenticated: no key, or none that is in force. CodeNotFound: the
	// tenant is not there, or not that of the key.
	Enter(key, tenant string) (Grant, error)

	// CreateTenant makes a tenant. CodeInvalidArgument, CodeConflict,
	// CodePermissionDenied (not the server's own key), CodeFailedPrecondition (the
	// server asks for no keys), CodeLimitExceeded.
	CreateTenant(ctx context.Context, by *Grant, name string) (TenantRecord, error)
	// Tenants lists those that the grant may see, by name.
	Tenants(ctx context.Context, by *Grant) ([]TenantRecord, error)
	// Tenant reads one. CodeNotFound.
	Tenant(ctx context.Context, by *Grant, name string) (TenantRecord, error)
	// DeleteTenant removes a tenant with all that it has. Once it has begun, it goes
	// on when ctx ends or the server stops, at the next start. CodeNotFound,
	// CodePermissionDenied, CodeConflict (runs are active, or it is the default
	// tenant).
	DeleteTenant(ctx context.Context, by *Grant, name string) error
	// Usage counts what a tenant has stored and used. CodeNotFound.
	Usage(ctx context.Context, by *Grant, name string) (TenantUsage, error)

	// CreateKey makes a key. CodeNotFound (the tenant), CodeInvalidArgument,
	// CodeFailedPrecondition (the server asks for no keys), CodeLimitExceeded.
	CreateKey(ctx context.Context, by *Grant, req KeyRequest) (key KeyRecord, secret string, err error)
	// Keys lists keys, those that are revoked too, by tenant and time.
	Keys(ctx context.Context, by *Grant) ([]KeyRecord, error)
	// Key reads one. CodeNotFound.
	Key(ctx context.Context, by *Grant, id string) (KeyRecord, error)
	// RevokeKey ends a key, at once, with the requests under way that came with it.
	// CodeNotFound; one that is revoked already too.
	RevokeKey(ctx context.Context, by *Grant, id string) error
	// RotateKey gives a key a new secret. The old one works for as long as grace
	// says: 0 to its bound, 30 days. CodeNotFound, as RevokeKey;
	// CodeFailedPrecondition: the key has expired.
	RotateKey(ctx context.Context, by *Grant, id string, grace time.Duration) (key KeyRecord, secret string, err error)

	// Audit lists a page of the audit log, the newest first: Tenant and All of the
	// query are the grant's. more: others follow.
	Audit(ctx context.Context, by *Grant, before int64, limit int) (list []AuditEntry, more bool, err error)
	// Note adds an act of another room to the audit log of the grant's tenant.
	Note(ctx context.Context, by *Grant, act, target string, outcome error)
}
