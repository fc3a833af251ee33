package limit

import "time"

// Table says which limits apply to whom: the built-in defaults, changed for all, for a
// plugin by its name in all tenants, for a tenant, and for a plugin of a tenant. Later
// places in this order take precedence, field by field; a place that does not set a field
// leaves it unchanged.
//
// A tenant's own settings take precedence over those of a plugin's name, because the
// uploader of a plugin chooses its name: a tenant with lower limits must not raise them
// with a name.
//
// A table does not change. Its methods may be called from any goroutine, and on nil,
// which has the built-in defaults for all.
type Table struct {
	base    Limits // complete
	all     limitLayer
	plugins map[string]limitLayer
	tenants map[string]tenantLayer
}

// limitLayer has the settings of one place; zero fields inherit.
type limitLayer struct {
	limits Limits
	tenant tenantValues
}

// tenantLayer has the settings of a tenant.
type tenantLayer struct {
	limitLayer
	plugins map[string]limitLayer
}

// NewTable creates a table with the same limits for all. Zero fields mean their defaults.
func NewTable(l Limits) *Table {
	return &Table{base: l.Complete(), all: limitLayer{limits: l}}
}

// Limits returns the limits for a plugin of a tenant: for its upload, and for a run of
// its workflow that starts now. They are complete.
func (t *Table) Limits(tenant, plugin string) Limits {
	if t == nil {
		return Default()
	}
	l := t.base
	if p, ok := t.plugins[plugin]; ok {
		l = p.limits.over(l)
	}
	if own, ok := t.tenants[tenant]; ok {
		l = own.limits.over(l)
		if p, ok := own.plugins[plugin]; ok {
			l = p.limits.over(l)
		}
	}
	return l
}

// Least returns the limits for a run whose steps come from several plugins of a tenant:
// the minimum of the plugins' limits. Without plugins they are the limits of a plugin
// without settings.
func (t *Table) Least(tenant string, plugins ...string) Limits {
	if len(plugins) == 0 {
		return t.Limits(tenant, "")
	}
	least := t.Limits(tenant, plugins[0])
	for _, plugin := range plugins[1:] {
		l := t.Limits(tenant, plugin)
		for i := range limitSettings {
			s := &limitSettings[i]
			s.set(&least, min(s.get(&least), s.get(&l)))
		}
	}
	return least
}

// Composed returns the limits for a run of a workflow that is composed of plugins, such
// as a flow: the minimum of the plugins' limits and of the limits set for the workflow's
// own name. A workflow without plugins has the limits of its name.
func (t *Table) Composed(tenant, workflow string, plugins ...string) Limits {
	own := t.Limits(tenant, workflow)
	if len(plugins) == 0 {
		return own
	}
	least := t.Least(tenant, plugins...)
	if t == nil {
		return least
	}
	named := []limitLayer{t.plugins[workflow], t.tenants[tenant].plugins[workflow]}
	for i := range limitSettings {
		s := &limitSettings[i]
		if s.get(&named[0].limits) != 0 || s.get(&named[1].limits) != 0 { // otherwise the name does not set the limit
			s.set(&least, min(s.get(&least), s.get(&own)))
		}
	}
	return least
}

// TenantFuel returns the fuel budget of a tenant, in units a second for all its runs;
// 0: no budget.
func (t *Table) TenantFuel(tenant string) uint64 {
	return uint64(t.ofTenant(tenant, tenantFuel))
}

// TenantInvocations returns how many invocations of a tenant may run at a time; 0: as
// many as there are cores.
func (t *Table) TenantInvocations(tenant string) int {
	return int(t.ofTenant(tenant, tenantInvocations))
}

// DefaultTenant is the only tenant of a server without keys.
const DefaultTenant = "default"

// DefaultWaitingStarts is the default of waiting_starts.
const DefaultWaitingStarts = 10_000

// WaitingStarts returns how many runs of a tenant may wait for their first core; further
// starts are refused.
func (t *Table) WaitingStarts(tenant string) int {
	return int(t.ofTenant(tenant, waitingStarts))
}

// Retention returns how long a tenant's ended runs are kept, and how many of them. Runs
// that ended longer ago than age are deleted, and all but the newest runs. A result of 0
// sets no limit.
func (t *Table) Retention(tenant string) (age time.Duration, runs int) {
	return time.Duration(t.ofTenant(tenant, retentionAge)), int(t.ofTenant(tenant, retentionRuns))
}

// Retains reports whether the runs of any tenant are ever deleted; see Retention.
func (t *Table) Retains() bool {
	if t == nil {
		return false
	}
	set := func(v *tenantValues) bool { return v[retentionAge].value != 0 || v[retentionRuns].value != 0 }
	if set(&t.all.tenant) {
		return true
	}
	for _, own := range t.tenants {
		if set(&own.tenant) {
			return true
		}
	}
	return false
}

// ofTenant returns the value of one of tenantSettings.
func (t *Table) ofTenant(tenant string, setting int) int64 {
	if t != nil {
		if own := t.tenants[tenant].tenant[setting]; own.given {
			return own.value
		}
		if all := t.all.tenant[setting]; all.given {
			return all.value
		}
	}
	if tenant == DefaultTenant && setting >= firstQuota {
		return 0
	}
	return tenantSettings[setting].builtin
}

// Quota returns a quota of a tenant; 0: no quota. [DefaultTenant] has only the quotas in
// the settings: without keys it uses the whole server, and belongs to the operator.
func (t *Table) Quota(tenant string, q Quota) int64 {
	return t.ofTenant(tenant, firstQuota+int(q))
}

// Greatest returns the largest value of each limit for any tenant and plugin, for which
// the server itself must be prepared.
func (t *Table) Greatest() Limits {
	if t == nil {
		return Default()
	}
	most := t.base
	raise := func(l Limits) {
		for i := range limitSettings {
			s := &limitSettings[i]
			s.set(&most, max(s.get(&most), s.get(&l)))
		}
	}
	for _, l := range t.plugins {
		raise(l.limits)
	}
	for _, own := range t.tenants {
		raise(own.limits)
		for _, l := range own.plugins {
			raise(l.limits)
		}
	}
	return most
}

// Named returns the names of the tenants with settings, and of the plugins with settings
// in any tenant, in no order.
func (t *Table) Named() (tenants, plugins []string) {
	if t == nil {
		return nil, nil
	}
	names := map[string]bool{}
	for name := range t.plugins {
		names[name] = true
	}
	for tenant, own := range t.tenants {
		tenants = append(tenants, tenant)
		for name := range own.plugins {
			names[name] = true
		}
	}
	for name := range names {
		plugins = append(plugins, name)
	}
	return tenants, plugins
}

// InForce is the value of a setting for a plugin of a tenant.
type InForce struct {
	Name  string
	Value any    // in the form of a file of limits: an int64, or a string for times
	Text  string // the value for people: 64MiB, 30s, 10,000
	Most  string // the maximum, for people
	From  string // the place of the settings that sets it; "": built in
}

// InForce lists the value of every setting for a plugin of a tenant, in the order of the
// fields of [Limits], followed by the settings of the tenant as a whole.
func (t *Table) InForce(tenant, plugin string) []InForce {
	if t == nil {
		t = NewTable(Limits{})
	}
	own := t.tenants[tenant]
	layers := []struct {
		from string
		limitLayer
	}{
		{limitPath{"tenants", tenant, "plugins", plugin}.String(), own.plugins[plugin]},
		{limitPath{"tenants", tenant}.String(), own.limitLayer},
		{limitPath{"plugins", plugin}.String(), t.plugins[plugin]},
		{"defaults", t.all},
	}
	held := t.Limits(tenant, plugin)
	list := make([]InForce, 0, len(limitSettings)+len(tenantSettings))
	for i := range limitSettings {
		s := &limitSettings[i]
		v := s.get(&held)
		in := InForce{Name: s.name, Value: s.value(v), Text: s.show(v), Most: s.show(s.most)}
		for _, l := range layers {
			if s.get(&l.limits) != 0 {
				in.From = l.from
				break
			}
		}
		list = append(list, in)
	}
	for i := range tenantSettings {
		s, v := &tenantSettings[i], t.ofTenant(tenant, i)
		in := InForce{Name: s.name, Value: s.value(v), Text: s.show(v), Most: s.show(s.most)}
		if v == 0 {
			in.Text = "none"
		}
		for _, l := range layers {
			if l.tenant[i].given {
				in.From = l.from
				break
			}
		}
		list = append(list, in)
	}
	return list
}
