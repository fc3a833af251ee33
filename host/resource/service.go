package resource

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/kv"
	"github.com/weftrun/weft/host/limit"
)

// Store stores definitions, their use, and the values of resources.
type Store interface {
	host.ResourceStore
	kv.Store
}

// Config configures a [Service]. Store is required.
type Config struct {
	Store Store
	// File holds the operator's resources, which take precedence over tenants' resources.
	// The caller must close it. nil: none.
	File *Table
	// Keys seal the secrets of tenants. nil: definitions with secrets are refused.
	Keys *Keys
	// Freed is called with the tenant whose resource was deleted together with its
	// values. It may be nil.
	Freed func(tenant string)
	Log   *slog.Logger
	Now   func() time.Time // default: time.Now
}

// Service provides all resources of a server: the resources of the operator's file and
// those defined by tenants. Its methods may be called from any goroutine. It implements
// host.Resources and host.ResourceAdmin.
//
// A name that the file grants to a tenant refers to the file's resource for that tenant.
// The tenant cannot define the name, and an older definition of the tenant is inactive as
// long as the file has the name.
type Service struct {
	cfg Config
	mu  sync.RWMutex // guards tenants; not held during calls
	// tenants holds the definitions by tenant and name.
	tenants map[string]map[string]*defined
	changes sync.Mutex // held while a definition is written
	used    uses
}

// defined is a tenant's resource.
type defined struct {
	host.ResourceRecord
	*installed        // nil: unusable
	problem    string // why it is unusable
}

// NewService reads the definitions of tenants. It reports an unreadable definition in the
// log and with the resource; the other definitions work.
func NewService(ctx context.Context, cfg Config) (*Service, error) {
	if cfg.File == nil {
		cfg.File = &Table{byName: map[string]*installed{}}
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &Service{cfg: cfg, tenants: map[string]map[string]*defined{}, used: uses{now: map[useKey]*host.ResourceUse{}}}
	list, err := cfg.Store.ResourceRecords(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("read the resources: %w", err)
	}
	for _, r := range list {
		d := s.load(r)
		if d.problem != "" {
			cfg.Log.Warn("a resource cannot be used", "tenant", r.Tenant, "resource", r.Name, "problem", d.problem)
		}
		s.put(d)
	}
	return s, nil
}

// load prepares a stored definition for calls.
func (s *Service) load(r host.ResourceRecord) *defined {
	out := &defined{ResourceRecord: r}
	secrets := map[string]string{}
	if r.KeyID != "" {
		var err error
		if secrets, err = s.cfg.Keys.open(r.Tenant, r.Name, r.KeyID, r.Sealed); err != nil {
			out.problem = err.Error()
			return out
		}
	}
	d, err := parse(r.Name, r.Definition, parser{inline: true, tenant: r.Tenant, sealed: secrets})
	if err != nil {
		out.problem = "its definition cannot be read: " + err.Error()
		return out
	}
	out.installed = newInstalled(d)
	return out
}

// put activates a definition. A definition that it replaces closes its connections as
// calls end.
func (s *Service) put(d *defined) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.tenants[d.Tenant]
	if of == nil {
		of = map[string]*defined{}
		s.tenants[d.Tenant] = of
	}
	of[d.Name].close()
	of[d.Name] = d
}

func (d *defined) close() {
	if d != nil && d.installed != nil {
		d.kind.close()
	}
}

// find returns a tenant's resource, or nil.
func (s *Service) find(tenant, name string) *defined {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.tenants[tenant][name]
}

// Forget drops what is in memory of a deleted tenant.
func (s *Service) Forget(tenant string) {
	s.mu.Lock()
	for _, d := range s.tenants[tenant] {
		d.close()
	}
	delete(s.tenants, tenant)
	s.mu.Unlock()
	s.used.forget(tenant, "")
}

// Close closes connections kept for later calls.
func (s *Service) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range s.tenants {
		for _, d := range of {
			d.close()
		}
	}
}

// Grant implements host.Resources.
func (s *Service) Grant(user host.ResourceUser, decl abi.ResourceDecl) (host.ResourceGrant, error) {
	if s.cfg.File.has(user.Tenant, decl.Name) {
		return s.cfg.File.Grant(user, decl)
	}
	d := s.find(user.Tenant, decl.Name)
	switch {
	case d == nil:
		return s.cfg.File.Grant(user, decl) // the table returns the error
	case d.installed == nil:
		return host.ResourceGrant{}, refuse(user, decl, d.problem)
	}
	return d.grant(user, decl, d.Created)
}

// Call implements host.Resources.
func (s *Service) Call(ctx context.Context, call host.ResourceCall) (abi.Raw, *abi.Error) {
	value, fail := s.call(ctx, &call)
	if ctx.Err() == nil {
		s.used.add(&call, value, fail)
	}
	return value, fail
}

func (s *Service) call(ctx context.Context, call *host.ResourceCall) (abi.Raw, *abi.Error) {
	if s.cfg.File.has(call.User.Tenant, call.Resource) {
		return s.cfg.File.Call(ctx, *call)
	}
	d := s.find(call.User.Tenant, call.Resource)
	switch {
	case d == nil:
		return nil, denied("the resource %s no longer exists", clip(call.Resource))
	case d.installed == nil:
		return nil, &abi.Error{Code: abi.StatusUnavailable.Code(), Message: fmt.Sprintf("the resource %s cannot be used: %s", clip(call.Resource), d.problem)}
	}
	return d.make(ctx, *call)
}

// Operate implements host.Resources.
func (s *Service) Operate(call host.ResourceCall, space kv.Space, data kv.Data) kv.Answer {
	a := s.operate(&call, space, data)
	s.used.add(&call, a.Value, a.Err)
	return a
}

func (s *Service) operate(call *host.ResourceCall, space kv.Space, data kv.Data) kv.Answer {
	if s.cfg.File.has(call.User.Tenant, call.Resource) {
		return s.cfg.File.Operate(*call, space, data)
	}
	d := s.find(call.User.Tenant, call.Resource)
	switch {
	case d == nil || d.Created != space.Made:
		return kv.Answer{Err: denied("the resource %s no longer exists", clip(call.Resource))}
	case d.installed == nil:
		return kv.Answer{Err: &abi.Error{Code: abi.StatusUnavailable.Code(), Message: fmt.Sprintf("the resource %s cannot be used: %s", clip(call.Resource), d.problem)}}
	}
	return d.operate(*call, data)
}

// PutResource implements host.ResourceAdmin.
func (s *Service) PutResource(ctx context.Context, c host.ResourceChange) (host.ResourceInfo, bool, error) {
	s.changes.Lock()
	defer s.changes.Unlock()
	old := s.find(c.Tenant, c.Name)
	r, err := s.record(&c, old)
	if err != nil {
		return host.ResourceInfo{}, false, err
	}
	d := s.load(r)
	if d.problem != "" {
		return host.ResourceInfo{}, false, host.Errorf(host.CodeInvalidArgument, "The resource '%s' cannot be used: %s", clip(c.Name), d.problem)
	}
	if err := s.cfg.Store.PutResource(ctx, r); err != nil {
		return host.ResourceInfo{}, false, host.Errorf(host.CodeUnavailable, "The resource could not be stored: %w", err)
	}
	s.put(d)
	info, err := s.Resource(ctx, c.Tenant, c.Name)
	return info, old == nil, err
}

// record checks a definition and extracts its secrets.
func (s *Service) record(c *host.ResourceChange, old *defined) (r host.ResourceRecord, err error) {
	if s.cfg.File.has(c.Tenant, c.Name) {
		return r, ofFile(c.Name)
	}
	if len(c.Text) > limit.MaxResourceDefinition {
		return r, host.Errorf(host.CodeLimitExceeded, "The definition has more than %d bytes", limit.MaxResourceDefinition)
	}
	d, err := parse(c.Name, c.Text, parser{inline: true, tenant: c.Tenant})
	if err != nil {
		return r, host.Errorf(host.CodeInvalidArgument, "The resource '%s' has an invalid definition: %w", clip(c.Name), err)
	}
	if old != nil && d.Kind != KindKV && old.kindName() == KindKV {
		return r, host.Errorf(host.CodeConflict, "The resource '%s' is of the kind kv: delete it first, with what it keeps", clip(c.Name))
	}
	if len(d.http.networks) > 0 && !c.Operator {
		return r, host.Errorf(host.CodePermissionDenied, "Only the server's own admin may let a resource reach special addresses (networks of its settings)")
	}
	s.mu.RLock()
	n := len(s.tenants[c.Tenant])
	s.mu.RUnlock()
	if old == nil && n >= MaxResources {
		return r, host.Errorf(host.CodeLimitExceeded, "The tenant has %d resources, the maximum: delete some", n)
	}
	now := s.cfg.Now().UnixNano()
	r = host.ResourceRecord{Tenant: c.Tenant, Name: c.Name, Created: now, Updated: now}
	if old != nil {
		r.Created = old.Created
	}
	if r.Definition, err = withoutSecrets(c.Text); err != nil {
		return r, host.Errorf(host.CodeInvalidArgument, "The resource '%s' has an invalid definition: %w", clip(c.Name), err)
	}
	if len(d.secrets) == 0 {
		return r, nil
	}
	if s.cfg.Keys == nil {
		return r, host.Errorf(host.CodeFailedPrecondition, "The resource has secrets, and the server has no key to seal them under: start it with --resource-key-file FILE, or WEFT_RESOURCE_KEY")
	}
	secrets := map[string]string{}
	for _, secret := range d.secrets {
		secrets[secret.name] = secret.value
	}
	if r.KeyID, r.Sealed, err = s.cfg.Keys.seal(c.Tenant, c.Name, secrets); err != nil {
		return r, host.Errorf(host.CodeInternal, "the secrets cannot be sealed: %w", err)
	}
	return r, nil
}

func ofFile(name string) error {
	return host.Errorf(host.CodeConflict, "The resource '%s' is defined in the operator's file of resources: change it there", clip(name))
}

// withoutSecrets returns a checked definition without the values of secrets.
func withoutSecrets(text []byte) ([]byte, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	if all["secrets"] != nil {
		var secrets map[string]map[string]json.RawMessage
		if err := json.Unmarshal(all["secrets"], &secrets); err != nil {
			return nil, err
		}
		for _, s := range secrets {
			delete(s, "value")
		}
		var err error
		if all["secrets"], err = json.Marshal(secrets); err != nil {
			return nil, err
		}
	}
	return json.Marshal(all)
}

// DeleteResource implements host.ResourceAdmin.
func (s *Service) DeleteResource(ctx context.Context, tenant, name string) error {
	s.changes.Lock()
	defer s.changes.Unlock()
	d := s.find(tenant, name)
	switch {
	case d == nil && s.cfg.File.has(tenant, name):
		return ofFile(name)
	case d == nil:
		return noResource(name)
	}
	if err := s.cfg.Store.DeleteResource(ctx, tenant, name); err != nil {
		return host.Errorf(host.CodeUnavailable, "The resource could not be deleted: %w", err)
	}
	s.mu.Lock()
	delete(s.tenants[tenant], name)
	s.mu.Unlock()
	s.used.forget(tenant, name)
	if s.cfg.Freed != nil {
		s.cfg.Freed(tenant)
	}
	d.close()
	return nil
}

func noResource(name string) error {
	return host.Errorf(host.CodeNotFound, "There is no resource '%s'", clip(name))
}

// Resource implements host.ResourceAdmin.
func (s *Service) Resource(ctx context.Context, tenant, name string) (host.ResourceInfo, error) {
	list, err := s.Resources(ctx, tenant)
	if err != nil {
		return host.ResourceInfo{}, err
	}
	i := slices.IndexFunc(list, func(r host.ResourceInfo) bool { return r.Name == name })
	if i < 0 {
		return host.ResourceInfo{}, noResource(name)
	}
	return list[i], nil
}

// Resources implements host.ResourceAdmin.
func (s *Service) Resources(ctx context.Context, tenant string) ([]host.ResourceInfo, error) {
	stored, err := s.cfg.Store.ResourceUses(ctx, tenant)
	if err != nil {
		return nil, host.Errorf(host.CodeUnavailable, "The use of resources cannot be read: %w", err)
	}
	uses := s.used.with(tenant, stored)
	var list []host.ResourceInfo
	for _, name := range s.cfg.File.Names() {
		if s.cfg.File.has(tenant, name) {
			list = append(list, host.ResourceInfo{Name: name, Kind: s.cfg.File.byName[name].Kind, File: true, Uses: uses[name]})
		}
	}
	s.mu.RLock()
	for name, d := range s.tenants[tenant] {
		if s.cfg.File.has(tenant, name) {
			continue
		}
		list = append(list, d.info(uses[name]))
	}
	s.mu.RUnlock()
	slices.SortFunc(list, func(a, b host.ResourceInfo) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

func (d *defined) info(uses []host.ResourceUse) host.ResourceInfo {
	r := host.ResourceInfo{
		Name: d.Name, Definition: d.ResourceRecord.Definition, KeyID: d.KeyID, Problem: d.problem, Created: d.Created, Updated: d.Updated, Uses: uses,
	}
	r.Kind = d.kindName()
	return r
}

// kindName returns the kind of a resource, even if the resource is unusable.
func (d *defined) kindName() string {
	var of struct {
		Kind string `json:"kind"`
	}
	_ = json.Unmarshal(d.ResourceRecord.Definition, &of) // the definition was checked when it was stored
	return of.Kind
}
