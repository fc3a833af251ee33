package resource

import (
	"context"
	"fmt"
	"slices"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/kv"
)

// Table holds the resources of an operator's file. Its methods may be called from any
// goroutine. It implements host.Resources.
type Table struct {
	byName map[string]*installed
}

// installed is a definition with the kind that makes its calls.
type installed struct {
	*Definition
	kind kind
}

// kind makes the calls of resources of one kind.
type kind interface {
	call(ctx context.Context, rules []rule, call host.ResourceCall) (abi.Raw, *abi.Error)
	close()
}

// newInstalled prepares a definition for calls.
func newInstalled(d *Definition) *installed {
	if d.Kind == KindKV {
		return &installed{d, kvKind{d.kv}}
	}
	web := newHTTP(d.http, d.secrets, d.trusted)
	if d.Kind == KindLLM {
		return &installed{d, newLLM(web, d.llm)}
	}
	return &installed{d, web}
}

func (t *Table) install(d *Definition) { t.byName[d.Name] = newInstalled(d) }

// has reports whether the table has a resource with a grant that may apply to a tenant.
func (t *Table) has(tenant, name string) bool {
	r := t.byName[name]
	return r != nil && slices.ContainsFunc(r.grants, func(g grant) bool { return g.tenant == "*" || g.tenant == tenant })
}

// Names returns the names of the resources.
func (t *Table) Names() []string {
	names := make([]string, 0, len(t.byName))
	for name := range t.byName {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Grant implements host.Resources. The first grant that admits the user applies.
func (t *Table) Grant(user host.ResourceUser, decl abi.ResourceDecl) (host.ResourceGrant, error) {
	r := t.byName[decl.Name]
	if r == nil {
		return host.ResourceGrant{}, refuse(user, decl, "there is no resource of this name")
	}
	return r.grant(user, decl, 0)
}

// grant returns how a user may use the resource. made is when the resource was defined;
// 0: by the operator.
func (r *installed) grant(user host.ResourceUser, decl abi.ResourceDecl, made int64) (host.ResourceGrant, error) {
	if r.Kind != decl.Kind {
		return host.ResourceGrant{}, refuse(user, decl, "the resource of this name is of the kind "+r.Kind)
	}
	i, g := r.grantOf(user)
	if g == nil {
		return host.ResourceGrant{}, refuse(user, decl, "none of its grants admits it")
	}
	out := host.ResourceGrant{Mode: g.mode, InFlight: g.inFlight, Pool: fmt.Sprintf("%q %q %d", user.Tenant, r.Name, i)}
	if r.Kind == KindKV {
		out.Mode, out.Reads = host.ResourceRepeat, kvReads
		out.Space = kv.Space{Tenant: user.Tenant, Resource: r.Name, Made: made}
	}
	return out, nil
}

// grantOf returns the grant that applies to a user, or nil.
func (r *installed) grantOf(user host.ResourceUser) (int, *grant) {
	for i := range r.grants {
		if r.grants[i].admits(user) {
			return i, &r.grants[i]
		}
	}
	return 0, nil
}

// Call implements host.Resources.
func (t *Table) Call(ctx context.Context, call host.ResourceCall) (abi.Raw, *abi.Error) {
	r := t.byName[call.Resource]
	if r == nil {
		return nil, denied("the resource %s no longer exists", clip(call.Resource))
	}
	return r.make(ctx, call)
}

// make makes a call, if the user still has a grant.
func (r *installed) make(ctx context.Context, call host.ResourceCall) (abi.Raw, *abi.Error) {
	_, g := r.grantOf(call.User)
	if g == nil {
		return nil, denied("the resource %s is not granted any more", r.Name)
	}
	return r.kind.call(ctx, g.rules, call)
}

// Operate implements host.Resources.
func (t *Table) Operate(call host.ResourceCall, space kv.Space, data kv.Data) kv.Answer {
	r := t.byName[call.Resource]
	if r == nil || space.Made != 0 {
		return kv.Answer{Err: denied("the resource %s no longer exists", clip(call.Resource))}
	}
	return r.operate(call, data)
}

// operate makes a call of a resource of the kind kv, if the user still has a grant.
func (r *installed) operate(call host.ResourceCall, data kv.Data) kv.Answer {
	of, ok := r.kind.(kvKind)
	_, g := r.grantOf(call.User)
	if g == nil || !ok {
		return kv.Answer{Err: denied("the resource %s is not granted any more", r.Name)}
	}
	return of.operate(&call, data)
}

// Close closes connections kept for later calls.
func (t *Table) Close() {
	for _, r := range t.byName {
		r.kind.close()
	}
}
