// Package module keeps the plugins of all tenants: it takes uploads, has them
// checked and described by the sandbox, compiles what they declare, keeps every
// version, and checks events against the schemas that a version declares.
//
// The package must not know how guests run, how a workflow is executed, or what
// HTTP is.
package module

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/limit"
	"github.com/weftrun/weft/host/work"
)

// Config is what a Service is made of. Store and Sandbox are needed.
type Config struct {
	Store   host.Store
	Sandbox host.Sandbox
	// Limits has the limits of uploads by tenant and plugin; nil: the defaults.
	Limits *limit.Table
	// Quota refuses a version of so many bytes that would be more than a tenant may
	// have. nil: nobody does.
	Quota func(ctx context.Context, tenant string, size int) error
	// Settled returns when everything is durable that was given to the journal
	// before. nil: it always is.
	Settled func(context.Context) error
	// Work begins the host's work on a request of a tenant that may be long; done is
	// called at its end. nil: the work is on nobody's clock.
	Work func(ctx context.Context, tenant string) (m *work.Meter, done func())
	// Log takes what operators should know. nil: nothing is logged.
	Log *slog.Logger
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// Service implements [host.Plugins], gives the scheduler its versions and the
// sandbox its modules. All methods may be called from any goroutine.
type Service struct {
	store   host.Store
	sandbox host.Sandbox
	limits  *limit.Table
	quota   func(ctx context.Context, tenant string, size int) error
	settled func(context.Context) error
	work    func(context.Context, string) (*work.Meter, func())
	log     *slog.Logger
	now     func() time.Time
	starts  starts

	// changing is held while an upload or a deletion is being stored, so that
	// the table below follows the store. Reading does not wait for it.
	changing sync.Mutex

	mu      sync.RWMutex // guards tenants; nothing is called under it
	tenants map[string]*tenant

	compiled cache
}

var _ host.Plugins = (*Service)(nil)

// tenant is the name space of one tenant.
type tenant struct {
	plugins   map[string]host.PluginVersion // the newest version, by name
	workflows map[string]string             // plugin by the workflow that it makes by itself
	composed  map[string]composition        // the newest version, by workflow; goes before those
}

// New makes a service with the plugins of the store. Nothing is compiled until
// it is asked for.
func New(c Config) (*Service, error) {
	s := &Service{
		store:   c.Store,
		sandbox: c.Sandbox,
		limits:  c.Limits,
		quota:   c.Quota,
		settled: c.Settled, work: c.Work,
		log:     c.Log,
		now:     c.Now,
		tenants: map[string]*tenant{},
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.work == nil {
		s.work = func(context.Context, string) (*work.Meter, func()) { return nil, func() {} }
	}
	if s.quota == nil {
		s.quota = func(context.Context, string, int) error { return nil }
	}
	stored, err := s.store.Plugins(context.Background(), "")
	if err != nil {
		return nil, host.Errorf(host.CodeUnavailable, "the plugins cannot be loaded: %w", err)
	}
	for _, v := range stored {
		s.set(v)
	}
	composed, err := s.store.Compositions(context.Background(), "")
	if err != nil {
		return nil, host.Errorf(host.CodeUnavailable, "the composed workflows cannot be loaded: %w", err)
	}
	for i := range composed {
		c, err := opened(&composed[i])
		if err != nil {
			return nil, err
		}
		s.setCompositions(composed[i].Tenant, c)
	}
	return s, nil
}

// of gives a tenant's name space, and makes it if need be. s.mu is held.
func (s *Service) of(name string) *tenant {
	t := s.tenants[name]
	if t == nil {
		t = &tenant{plugins: map[string]host.PluginVersion{}, workflows: map[string]string{}, composed: map[string]composition{}}
		s.tenants[name] = t
	}
	return t
}

// set makes a version the newest of its plugin, and with it those of the
// workflows that are remade of it.
func (s *Service) set(v host.PluginVersion, remade ...composition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.of(v.Tenant)
	if old, ok := t.plugins[v.Name]; ok {
		delete(t.workflows, old.Workflow)
	}
	t.plugins[v.Name] = v
	if v.Workflow != "" {
		t.workflows[v.Workflow] = v.Name
	}
	for _, c := range remade {
		t.composed[c.record.Name] = c
	}
}

// setCompositions makes versions the newest of their workflows.
func (s *Service) setCompositions(tenant string, list ...composition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range list {
		s.of(tenant).composed[c.record.Name] = c
	}
}

// unsetComposition forgets a composed workflow.
func (s *Service) unsetComposition(tenant, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.of(tenant).composed, name)
}

// composition finds the newest version of a composed workflow.
func (s *Service) composition(tenant, name string) (composition, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if t := s.tenants[tenant]; t != nil {
		c, ok := t.composed[name]
		return c, ok
	}
	return composition{}, false
}

// compositionsOf finds the newest versions of the composed workflows that have
// a plugin, by name.
func (s *Service) compositionsOf(tenant, plugin string) []composition {
	s.mu.RLock()
	defer s.mu.RUnlock()
	t := s.tenants[tenant]
	if t == nil {
		return nil
	}
	var list []composition
	for _, name := range slices.Sorted(maps.Keys(t.composed)) {
		if c := t.composed[name]; c.record.uses(plugin) {
			list = append(list, c)
		}
	}
	return list
}

// unset forgets a plugin.
func (s *Service) unset(v host.PluginVersion) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tenants[v.Tenant]
	delete(t.plugins, v.Name)
	delete(t.workflows, v.Workflow)
	if len(t.plugins)+len(t.composed) == 0 {
		delete(s.tenants, v.Tenant)
	}
}

// newest finds the newest version of a plugin.
func (s *Service) newest(tenant, name string) (host.PluginVersion, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if t := s.tenants[tenant]; t != nil {
		v, ok := t.plugins[name]
		return v, ok
	}
	return host.PluginVersion{}, false
}

// ofWorkflow finds the newest version of the plugin that makes a workflow by
// itself.
func (s *Service) ofWorkflow(tenant, workflow string) (host.PluginVersion, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	t := s.tenants[tenant]
	if t == nil {
		return host.PluginVersion{}, false
	}
	name, ok := t.workflows[workflow]
	if !ok {
		return host.PluginVersion{}, false
	}
	return t.plugins[name], true
}

// current says which version of a workflow is the newest.
type current struct {
	digest string // of a module or a composition
	plugin string // the only one, else ""
	number int
}

// current finds the newest version of a workflow, composed or not.
func (s *Service) current(tenant, workflow string) (current, bool) {
	if c, ok := s.composition(tenant, workflow); ok {
		made := current{digest: c.digest, number: c.number}
		if names := c.record.names(); len(names) == 1 {
			made.plugin = names[0]
		}
		return made, true
	}
	v, ok := s.ofWorkflow(tenant, workflow)
	return current{v.Digest, v.Name, v.Version}, ok
}

// Version is a version of a workflow, to run.
type Version struct {
	Plugin    string // the only one; "": it is composed of several, or was asked for by its digest
	Number    int    // 1 for the first version, counting up; 0 if it was asked for by its digest
	Digest    string // of the original module, or of the composition
	Rewritten string // of what runs
	ImageHash string
	Graph     *engine.Graph
	// Steps says by step which module serves it, and Plugins names those of all.
	// They are nil if the module of Digest serves all, else Rewritten and
	// ImageHash are empty. Nobody may change them.
	Steps   map[string]Step
	Plugins []string
}

func (v *version) export() *Version {
	return &Version{Digest: v.digest, Rewritten: v.rewritten, ImageHash: v.imageHash, Graph: v.graph, Steps: v.steps, Plugins: v.plugins}
}

// Newest gives the version that new runs of a workflow take.
//
// # Errors
//
// [*host.Error] with CodeNotFound; with CodeInternal when the stored version
// cannot be used any more.
func (s *Service) Newest(tenant, workflow string) (*Version, error) {
	c, ok := s.current(tenant, workflow)
	if !ok {
		return nil, workflowNotFound()
	}
	out, err := s.ByDigest(c.digest)
	if err != nil {
		return nil, err
	}
	out.Plugin, out.Number = c.plugin, c.number
	return out, nil
}

func workflowNotFound() *host.Error {
	return host.Errorf(host.CodeNotFound, "Workflow not found")
}

// ByDigest gives any stored version, by the digest of its module or of the
// composition.
//
// # Errors
//
// As Newest.
func (s *Service) ByDigest(digest string) (*Version, error) {
	v, err := s.version(context.Background(), digest)
	if err != nil {
		return nil, err
	}
	return v.export(), nil
}

// Wasm reads the original bytes of a module: the service is the sandbox's
// source. The caller owns them.
//
// # Errors
//
// [*host.Error] with CodeNotFound or CodeUnavailable.
func (s *Service) Wasm(ctx context.Context, digest string) ([]byte, error) {
	m, err := s.store.Module(ctx, digest)
	if err != nil {
		return nil, moduleError(digest, err)
	}
	return m.Bytes, nil
}

func moduleError(digest string, err error) error {
	if errors.Is(err, host.ErrNotFound) {
		return host.Errorf(host.CodeNotFound, "module %s is not stored: %w", digest, err)
	}
	return host.Errorf(host.CodeUnavailable, "module %s cannot be read: %w", digest, err)
}

// PrepareEvent checks the body of an event against the schema that a version
// declares for its type, or inherits. A field that is null and need not be
// there counts as absent. Types without a schema take anything. What the check takes
// is charged to the meter.
//
// It gives the body without the fields that count as absent. It fills in no defaults.
// The result may be body itself.
//
// # Errors
//
// [*host.Error] with CodeInvalidArgument, which names each field and what is wrong
// with it, as in "start_event.n: must be an integer, got a string", or says that the
// check takes more than the meter has; as Newest for a version that cannot be used;
// the error of the meter's hook.
func (s *Service) PrepareEvent(m *work.Meter, digest, typ string, body abi.Raw) (abi.Raw, error) {
	c, err := s.version(context.Background(), digest)
	if err != nil {
		return nil, asHostError(err)
	}
	schema := c.events[typ]
	if schema == nil {
		return body, nil
	}
	root := "event"
	if kind, _ := c.graph.Kind(typ); kind == abi.KindStart {
		root = "start_event"
	}
	return prepare(schema, m, body, root)
}

// asHostError gives the [*host.Error] in err, or makes one.
func asHostError(err error) *host.Error {
	var e *host.Error
	if errors.As(err, &e) {
		return e
	}
	return host.Errorf(host.CodeInternal, "internal error: %w", err)
}

// Workflows implements [host.Plugins].
func (s *Service) Workflows(_ context.Context, tenant string) ([]string, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if t := s.tenants[tenant]; t != nil {
		names := slices.AppendSeq(slices.Collect(maps.Keys(t.workflows)), maps.Keys(t.composed))
		slices.Sort(names)
		return slices.Compact(names), nil
	}
	return nil, nil
}
