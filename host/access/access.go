// Package access decides who may do what: it keeps the tenants of a server, their
// API keys with a role each, and the audit log of what was done to both.
//
// It must not know what HTTP is, how a run is executed or where rows lie: what a
// request brings comes as texts, what a tenant has goes by way of the interfaces
// that it declares.
//
// # How it answers
//
// All tenants and keys are in memory, so that a request costs no SQL. Whoever
// changes them writes the store first and the table then, so that what was
// acknowledged holds after a crash; a key that was revoked is refused from the
// moment its revocation returns, and requests under way that came with it end. For
// now one server is all there is: with several, the others' changes would have to
// come in by the store.
//
// A key is found by its first characters, which are no secret, and compared by the
// SHA-256 of the whole, in constant time. It is 256 random bits, so that nobody can
// try them, and a slow hash would only make each request slow.
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

// Runs is what a tenant's removal needs of [host.Runs].
type Runs interface {
	List(ctx context.Context, q host.RunQuery) (runs []host.Run, more bool, err error)
	Cancel(ctx context.Context, tenant, id string, purge bool) (deleted bool, err error)
}

// Plugins is what it needs of [host.Plugins].
type Plugins interface {
	List(ctx context.Context, tenant string) ([]host.PluginInfo, error)
	Delete(ctx context.Context, tenant, name string) error
	Workflows(ctx context.Context, tenant string) ([]string, error)
	Workflow(ctx context.Context, tenant, name string) (host.WorkflowInfo, error)
	Decompose(ctx context.Context, tenant, name string) error
}

// Config is what a Service is made of. Store, Runs and Plugins are needed.
type Config struct {
	Store   host.AccessStore
	Runs    Runs
	Plugins Plugins
	// AdminKey is the server's own key; "": it has none. Requests need no key if it
	// has none and no tenant has one.
	AdminKey string
	// Settled returns when everything is durable that was done before. nil: it
	// always is.
	Settled func(context.Context) error
	// Forget lets go of what is in memory of a tenant that nobody uses. nil: there is
	// nothing.
	Forget func(ctx context.Context, tenant string) error
	// Quotas says how much of each quota a tenant uses. nil: there are none.
	Quotas func(ctx context.Context, tenant string) ([]limit.Use, error)
	// Log takes what operators should know. nil: nothing is logged.
	Log *slog.Logger
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// Service implements [host.Access]. All methods may be called from any goroutine;
// Run by one.
type Service struct {
	cfg     Config
	admin   [32]byte // hash of the server's own key
	keyless bool

	// changing is held while a change is being stored, so that the table follows the
	// store. Enter does not wait for it.
	changing sync.Mutex

	mu       sync.RWMutex // guards what follows; nothing is called under it
	tenants  map[string]*tenant
	keys     map[string]*key   // by id
	prefixes map[string][]*key // by how they begin, or began
	removals []*removal        // tenants to remove
	wake     chan struct{}     // there is one; one in the buffer is enough
}

var _ host.Access = (*Service)(nil)

// tenant is a tenant in memory.
type tenant struct {
	record host.TenantRecord // guarded by Service.mu

	// gate counts the requests under way; who comes when it is closed is refused.
	closed atomic.Bool
	under  atomic.Int64
	left   chan struct{} // one in the buffer: somebody left while it was closed

	done context.Context // ends with the tenant; guarded by Service.mu, as end
	end  context.CancelCauseFunc
}

// key is a key in memory.
type key struct {
	record host.KeyRecord // guarded by Service.mu, but LastUsed is out of date
	tenant *tenant
	used   atomic.Int64    // when it was last used, Unix nanoseconds
	stored atomic.Int64    // what the store has of that
	done   context.Context // ends with the key; guarded by Service.mu, as what follows
	end    context.CancelCauseFunc
	expiry *time.Timer // ends requests under way when the key expires; nil: it does not
}

// New makes a service with the tenants and keys of the store. The default tenant is
// made if it is not there.
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
			return fmt.Errorf("read tenants and keys: key %s is of tenant %q, which is not there: %w", k.ID, k.Tenant, host.ErrUnreadable)
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

// putKey puts a key into the table in place of what was there. Called with mu held.
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

// expire ends the requests under way that came with a key.
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

// prefixes are how a key begins, and how it began before it was rotated.
func (k *key) prefixes() []string {
	if k.record.PreviousUntil == 0 || k.record.PreviousPrefix == k.record.Prefix {
		return []string{k.record.Prefix}
	}
	return []string{k.record.Prefix, k.record.PreviousPrefix}
}

// dropKey takes a key out of the table, if it is there. Called with mu held.
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

// now is the time in Unix nanoseconds.
func (s *Service) now() int64 { return s.cfg.Now().UnixNano() }

// Keyless implements [host.Access].
func (s *Service) Keyless() bool { return s.keyless }

// Errors of Enter. They say nothing of why a key is none: whoever tries keys learns
// nothing from them.
var (
	errNoKey     = &host.Error{Code: host.CodeUnauthenticated, Message: "This server asks for an API key: send it as 'Authorization: Bearer KEY'"}
	errWrongKey  = &host.Error{Code: host.CodeUnauthenticated, Message: "The API key is not known, or not in force any more"}
	errNoTenant  = &host.Error{Code: host.CodeNotFound, Message: "Tenant not found"}
	errKeyNone   = &host.Error{Code: host.CodeNotFound, Message: "Key not found"}
	errDeleting  = &host.Error{Code: host.CodeUnavailable, Message: "The tenant is being deleted", RetryAfter: time.Second}
	errKeylessOn = &host.Error{Code: host.CodeFailedPrecondition,
		Message: "This server asks for no keys, so that it serves one tenant: start it with an admin key (weft serve --admin-key-file FILE)"}
)

// Enter implements [host.Access].
func (s *Service) Enter(secret, name string) (host.Grant, error) {
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
	if s.cfg.AdminKey != "" && subtle.ConstantTimeCompare(hash[:], s.admin[:]) == 1 {
		return s.enterAsServer(name)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	k := s.match(secret, &hash)
	if k == nil || k.tenant.record.Deleting {
		return host.Grant{}, errWrongKey
	}
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

// match finds the key in force that a secret is, or nil. Called with mu held.
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
		if now < r.PreviousUntil && subtle.ConstantTimeCompare(hash[:], r.Previous[:]) == 1 {
			return k
		}
	}
	return nil
}

// enter counts a request in, unless the gate is closed. Whoever closes it looks at
// the count afterwards, so that one of both sees the other.
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
