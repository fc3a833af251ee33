// Package access decides who may do what. It keeps the tenants of a server, their API
// keys with a role each, and the audit log of changes to both.
//
// The package does not know HTTP, how a run is executed or how rows are stored. Requests
// reach it as texts, and it uses the data of tenants through the interfaces that it
// declares.
//
// # How it answers
//
// All tenants and keys are in memory, so that a request needs no SQL. A change is written
// to the store first and to memory second, so that an acknowledged change survives a
// crash. A revoked key is refused from the moment its revocation returns, and open
// requests with that key end. The server is the only one on its store. With several
// servers, each would have to read the others' changes from the store.
//
// A key is found by its first characters, which are not secret. It is compared by the
// SHA-256 of the whole key, in constant time. A key has 256 random bits. Guessing it is
// hopeless, so a slow hash would only make each request slow.
package access

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/limit"
)

// Runs is the part of [host.Runs] that the removal of a tenant needs.
type Runs interface {
	List(ctx context.Context, q host.RunQuery) (runs []host.Run, more bool, err error)
	Cancel(ctx context.Context, tenant, id string, purge bool) (deleted bool, err error)
}

// Plugins is the part of [host.Plugins] that the removal of a tenant needs.
type Plugins interface {
	List(ctx context.Context, tenant string) ([]host.PluginInfo, error)
	Delete(ctx context.Context, tenant, name string) error
	Workflows(ctx context.Context, tenant string) ([]string, error)
	Workflow(ctx context.Context, tenant, name string) (host.WorkflowInfo, error)
	Decompose(ctx context.Context, tenant, name string) error
}

// Config configures a Service. Store, Runs and Plugins are required.
type Config struct {
	Store   host.AccessStore
	Runs    Runs
	Plugins Plugins
	// AdminKey is the server's own key; "": none. If the server has no key and no tenant
	// has one, requests need no key.
	AdminKey string
	// Settled returns when everything done before the call is durable. nil: it always is.
	Settled func(context.Context) error
	// Forget drops the memory of a tenant that nobody uses. nil: there is nothing to
	// drop.
	Forget func(ctx context.Context, tenant string) error
	// Quotas returns how much of each quota a tenant uses. nil: there are no quotas.
	Quotas func(ctx context.Context, tenant string) ([]limit.Use, error)
	// Log receives messages for operators. nil: nothing is logged.
	Log *slog.Logger
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// Service implements [host.Access]. Its methods are safe for concurrent use, except that
// only one goroutine may call Run.
type Service struct {
	cfg     Config
	admin   [32]byte // hash of the server's own key
	keyless bool

	// changing is held while a change is stored and applied, so that memory changes in
	// the order of the store. Enter does not take it.
	changing sync.Mutex

	mu       sync.RWMutex // guards the fields below; nothing is called under it
	tenants  map[string]*tenant
	keys     map[string]*key   // by id
	prefixes map[string][]*key // by the first characters of the present and the previous secret
	removals []*removal        // tenants to remove
	wake     chan struct{}     // capacity 1: there is a removal
}

var _ host.Access = (*Service)(nil)

// tenant is a tenant in memory.
type tenant struct {
	record host.TenantRecord // guarded by Service.mu

	// closed, under and left are the gate. under counts the open requests. A request that
	// arrives while the gate is closed is refused.
	closed atomic.Bool
	under  atomic.Int64
	left   chan struct{} // capacity 1: a request left while the gate was closed

	done context.Context // ends with the tenant; guarded by Service.mu, like end
	end  context.CancelCauseFunc
}

// key is a key in memory.
type key struct {
	record host.KeyRecord // guarded by Service.mu; its LastUsed is out of date
	tenant *tenant
	used   atomic.Int64    // time of last use, Unix nanoseconds
	stored atomic.Int64    // the value of used in the store
	done   context.Context // ends with the key; guarded by Service.mu, like the fields below
	end    context.CancelCauseFunc
	expiry *time.Timer // ends open requests when the key expires; nil: the key does not expire
}

// New returns a service with the tenants and keys of the store. It creates the default
// tenant if necessary.
func New(ctx context.Context, cfg Config) (*Service, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Settled == nil {
		cfg.Settled = func(context.Context) error { return nil }
	}
	if cfg.Forget == nil {
		cfg.Forget = func(context.Context, string) error { return nil }
	}
	s := &Service{cfg: cfg, wake: make(chan struct{}, 1)}
	if cfg.AdminKey != "" {
		s.admin = sha256.Sum256([]byte(cfg.AdminKey))
	}
	if err := s.load(ctx); err != nil {
		return nil, err
	}
	s.keyless = cfg.AdminKey == "" && len(s.keys) == 0
	if _, ok := s.tenants[host.DefaultTenant]; ok {
		return s, nil
	}
	record := host.TenantRecord{Name: host.DefaultTenant, Created: s.now()}
	if err := cfg.Store.ChangeAccess(ctx, host.AccessChange{Tenants: []host.TenantRecord{record}}); err != nil {
		return nil, fmt.Errorf("make the default tenant: %w", err)
	}
	s.tenants[record.Name] = newTenant(record)
	return s, nil
}

// load reads all tenants and keys.
func (s *Service) load(ctx context.Context) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	tenants, keys, err := s.cfg.Store.Access(ctx)
	if err != nil {
		return fmt.Errorf("read tenants and keys: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tenants, s.keys, s.prefixes = map[string]*tenant{}, map[string]*key{}, map[string][]*key{}
	for _, t := range tenants {
		if t.Deleting {
			s.queueRemoval(&removal{name: t.Name})
		}
		s.tenants[t.Name] = newTenant(t)
	}
	for _, k := range keys {
		if s.tenants[k.Tenant] == nil {
			return fmt.Errorf("read tenants and keys: key %s belongs to tenant %q, which does not exist: %w", k.ID, k.Tenant, host.ErrUnreadable)
		}
		s.putKey(k)
	}
	return nil
}

func newTenant(record host.TenantRecord) *tenant {
	t := &tenant{record: record, left: make(chan struct{}, 1)}
	t.done, t.end = context.WithCancelCause(context.Background())
	t.closed.Store(record.Deleting)
	return t
}

// putKey puts a key into the table and replaces an older record. mu is held.
func (s *Service) putKey(record host.KeyRecord) *key {
	s.dropKey(record.ID)
	k := &key{record: record, tenant: s.tenants[record.Tenant]}
	k.used.Store(record.LastUsed)
	k.stored.Store(record.LastUsed)
	k.done, k.end = context.WithCancelCause(k.tenant.done)
	if record.Expires != 0 && record.Revoked == 0 {
		k.expiry = time.AfterFunc(time.Duration(record.Expires-s.now()), func() { s.expire(k) })
	}
	s.keys[record.ID] = k
	for _, prefix := range k.prefixes() {
		s.prefixes[prefix] = append(s.prefixes[prefix], k)
	}
	return k
}

// expire ends the open requests of a key.
func (s *Service) expire(k *key) {
	s.mu.RLock()
	end := k.end
	s.mu.RUnlock()
	end(errWrongKey)
}

func (k *key) stopExpiry() {
	if k.expiry != nil {
		k.expiry.Stop()
	}
}

// prefixes are the first characters of the key's present secret and, during a rotation,
// of its previous one.
func (k *key) prefixes() []string {
	if k.record.PreviousUntil == 0 || k.record.PreviousPrefix == k.record.Prefix {
		return []string{k.record.Prefix}
	}
	return []string{k.record.Prefix, k.record.PreviousPrefix}
}

// dropKey removes a key from the table, if it is there. mu is held.
func (s *Service) dropKey(id string) {
	k := s.keys[id]
	if k == nil {
		return
	}
	k.stopExpiry()
	delete(s.keys, id)
	for _, prefix := range k.prefixes() {
		var rest []*key
		for _, other := range s.prefixes[prefix] {
			if other != k {
				rest = append(rest, other)
			}
		}
		if s.prefixes[prefix] = rest; rest == nil {
			delete(s.prefixes, prefix)
		}
	}
}

// now returns the time in Unix nanoseconds.
func (s *Service) now() int64 { return s.cfg.Now().UnixNano() }

// Keyless implements [host.Access].
func (s *Service) Keyless() bool { return s.keyless }

// Errors of Enter. They do not say why a key is wrong, so that attempts to guess keys
// learn nothing.
var (
	errNoKey     = &host.Error{Code: host.CodeUnauthenticated, Message: "This server asks for an API key: send it as 'Authorization: Bearer KEY'"}
	errWrongKey  = &host.Error{Code: host.CodeUnauthenticated, Message: "The API key is unknown, or no longer valid"}
	errNoTenant  = &host.Error{Code: host.CodeNotFound, Message: "Tenant not found"}
	errKeyNone   = &host.Error{Code: host.CodeNotFound, Message: "Key not found"}
	errDeleting  = &host.Error{Code: host.CodeUnavailable, Message: "The tenant is being deleted", RetryAfter: time.Second}
	errKeylessOn = &host.Error{Code: host.CodeFailedPrecondition,
		Message: "This server needs no keys and serves only one tenant: start it with an admin key (weft serve --admin-key-file FILE)"}
)

// Enter implements [host.Access].
func (s *Service) Enter(secret, name string) (host.Grant, error) {
	// Without keys there is one tenant, and everybody is its admin.
	if s.keyless {
		if name != "" && name != host.DefaultTenant {
			return host.Grant{}, errNoTenant
		}
		return host.Grant{Tenant: host.DefaultTenant, Role: host.RoleAdmin}, nil
	}
	if secret == "" {
		return host.Grant{}, errNoKey
	}
	hash := sha256.Sum256([]byte(secret))
	// Compare before any look-up by name: the server's key belongs to no tenant.
	if s.cfg.AdminKey != "" && subtle.ConstantTimeCompare(hash[:], s.admin[:]) == 1 {
		return s.enterAsServer(name)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	k := s.match(secret, &hash)
	if k == nil || k.tenant.record.Deleting {
		return host.Grant{}, errWrongKey
	}
	// A key of one tenant must not show that another tenant exists.
	if name != "" && name != k.record.Tenant {
		return host.Grant{}, errNoTenant
	}
	if !k.tenant.enter() {
		return host.Grant{}, errDeleting
	}
	k.touch(s.now())
	return host.Grant{Tenant: k.record.Tenant, Role: k.record.Role, KeyID: k.record.ID, Done: k.done, Leave: k.tenant.leave}, nil
}

func (s *Service) enterAsServer(name string) (host.Grant, error) {
	g := host.Grant{Tenant: name, Role: host.RoleAdmin, Server: true, Named: name != ""}
	if name == "" {
		g.Tenant = host.DefaultTenant
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	t := s.tenants[g.Tenant]
	if t == nil || t.record.Deleting {
		return host.Grant{}, errNoTenant
	}
	if !t.enter() {
		return host.Grant{}, errDeleting
	}
	g.Done, g.Leave = t.done, t.leave
	return g, nil
}

// match returns the valid key with the given secret, or nil. mu is held.
func (s *Service) match(secret string, hash *[32]byte) *key {
	prefix, ok := prefixOf(secret)
	if !ok {
		return nil
	}
	now := s.now()
	for _, k := range s.prefixes[prefix] {
		r := &k.record
		if r.Revoked != 0 || r.Expires != 0 && r.Expires <= now {
			continue
		}
		if subtle.ConstantTimeCompare(hash[:], r.Hash[:]) == 1 {
			return k
		}
		// After a rotation the old secret stays valid for the grace period.
		if now < r.PreviousUntil && subtle.ConstantTimeCompare(hash[:], r.Previous[:]) == 1 {
			return k
		}
	}
	return nil
}

// enter counts a request, unless the gate is closed. The code that closes the gate reads
// the count after closing it, so at least one of the two notices the other.
func (t *tenant) enter() bool {
	t.under.Add(1)
	if t.closed.Load() {
		t.leave()
		return false
	}
	return true
}

func (t *tenant) leave() {
	t.under.Add(-1)
	if t.closed.Load() {
		select {
		case t.left <- struct{}{}:
		default:
		}
	}
}
