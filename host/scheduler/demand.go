package scheduler

import "github.com/weftrun/weft/host"

// Demand is the work that accepted runs still need, in units, by tenants: what a
// client's start would have to wait for. It is kept in memory only and decides who is
// admitted (admission.go) and in which class an attempt waits (order.go); nothing that
// is journaled depends on it.
//
// How much a run takes is estimated from the runs of the same workflow version that
// have ended: the mean of what they added to their tenant's clock, children left out.

// unknownRun is the estimate of a run while the server has seen none end, in units.
const unknownRun = 1_000_000

// heldByStart is about what a run holds in memory that has not had a core, beside the
// event that it starts with, in bytes.
const heldByStart = 6 << 10

// estimate is a mean and its mean deviation, in units, over what was seen last.
type estimate struct {
	mean, dev int64
	seen      bool
}

// add counts one more, at a weight of 1/8.
func (e *estimate) add(units int64) {
	if !e.seen {
		*e = estimate{mean: units, dev: units / 2, seen: true}
		return
	}
	off := units - e.mean
	e.mean += off / 8
	e.dev += (max(off, -off) - e.dev) / 8
}

// surely is what a run takes at least, as far as one can tell.
func (e *estimate) surely() int64 { return max(e.mean-e.dev, 0) }

// demand is that of all tenants. Scheduler.mu guards it and all that it holds.
type demand struct {
	tenants map[string]*tenantDemand
	total   int64    // units, of all tenants
	bytes   int64    // held by runs that have not had a core, of all tenants
	all     estimate // of all runs
}

// tenantDemand is what the accepted runs of a tenant need.
type tenantDemand struct {
	units    int64 // of runs that have not ended and do not wait for anything outside
	fresh    int   // runs that have not had a core, and starts that were let in
	bytes    int64 // that they hold
	own      estimate
	versions map[string]*versionDemand
	promised promises
	gone     bool // forgotten: what comes late counts no more
}

// versionDemand is that of one version of a workflow.
type versionDemand struct {
	of    *tenantDemand
	takes estimate
	fresh int // runs that add a whole mean to the demand
	users int // runs that refer to it
}

// mostVersions bounds the versions of a tenant whose estimates are remembered while
// no run refers to them.
const mostVersions = 256

// runDemand is what is known of an active run.
type runDemand struct {
	tenant string
	v      *versionDemand
	age    int64 // when it, or the run at the top of its tree, first started
	child  bool
	begun  bool   // it has had a core
	used   uint64 // units
	open   int    // attempts in memory: none if the run waits for something outside
	units  int64  // that it adds to the demand beside v.fresh
	fresh  bool   // it is counted in v.fresh
	bytes  int64  // that it holds while it has not had a core
	over   bool   // it has ended, or its session is in memory no more
}

func (d *demand) init() { d.tenants = map[string]*tenantDemand{} }

func (d *demand) of(tenant string) *tenantDemand {
	t := d.tenants[tenant]
	if t == nil {
		t = &tenantDemand{versions: map[string]*versionDemand{}}
		d.tenants[tenant] = t
	}
	return t
}

// version finds the demand of a version.
func (d *demand) version(tenant, version string) *versionDemand {
	t := d.of(tenant)
	v := t.versions[version]
	if v == nil {
		if len(t.versions) >= mostVersions {
			t.prune()
		}
		v = &versionDemand{of: t}
		t.versions[version] = v
	}
	if !v.takes.seen {
		d.guess(v)
	}
	return v
}

// prune forgets versions that no run refers to.
func (t *tenantDemand) prune() {
	for name, v := range t.versions {
		if v.users == 0 {
			delete(t.versions, name)
		}
	}
}

// guess estimates what the runs of a version take of which none has ended.
func (d *demand) guess(v *versionDemand) {
	switch {
	case v.of.own.seen:
		d.set(v, v.of.own)
	case d.all.seen:
		d.set(v, d.all)
	default:
		d.set(v, estimate{mean: unknownRun, dev: unknownRun / 2})
	}
	v.takes.seen = false
}

// set gives a version another estimate.
func (d *demand) set(v *versionDemand, takes estimate) {
	by := int64(v.fresh) * (takes.mean - v.takes.mean)
	v.takes = takes
	v.of.units += by
	d.total += by
}

// run makes the demand of a run that nothing is known of yet.
func (d *demand) run(tenant, version string, age int64, child bool) *runDemand {
	v := d.version(tenant, version)
	v.users++
	return &runDemand{tenant: tenant, v: v, age: age, child: child}
}

// opened counts an attempt of a run that is in memory from now on, and closed one that
// is not any more. A run without any waits for something outside, and needs nothing.
func (d *demand) opened(w *runDemand) {
	w.open++
	d.update(w)
}

func (d *demand) closed(w *runDemand) {
	w.open--
	d.update(w)
}

// used counts units that a run has used, on a core.
func (d *demand) used(w *runDemand, units uint64) {
	if w == nil {
		return
	}
	w.begun = true
	w.used += units
	d.update(w)
}

// update counts anew what a run adds to the demand.
func (d *demand) update(w *runDemand) {
	fresh, units := false, int64(0)
	switch {
	case w.over || w.open == 0:
	case !w.begun:
		fresh = true
	default:
		units = max(w.v.takes.mean-int64(w.used), w.v.takes.mean/4)
	}
	if fresh != w.fresh {
		w.fresh = fresh
		d.count(w.v, w.bytes, fresh)
	}
	if !w.v.of.gone {
		w.v.of.units += units - w.units
		d.total += units - w.units
	}
	w.units = units
}

// count counts a run that has not had a core, or one less.
func (d *demand) count(v *versionDemand, bytes int64, more bool) {
	if v.of.gone {
		return
	}
	n := 1
	if !more {
		n = -1
	}
	v.fresh += n
	v.of.fresh += n
	v.of.bytes += int64(n) * bytes
	d.bytes += int64(n) * bytes
	v.of.units += int64(n) * v.takes.mean
	d.total += int64(n) * v.takes.mean
}

// ended takes a run out, and learns from it what runs take.
func (d *demand) ended(w *runDemand) {
	d.gone(w)
	if !w.begun {
		return // it was cancelled before it began, and tells nothing
	}
	took := int64(w.used)
	takes := w.v.takes
	takes.add(took)
	d.set(w.v, takes)
	w.v.of.own.add(took)
	d.all.add(took)
}

// gone takes a run out that is in memory no more.
func (d *demand) gone(w *runDemand) {
	if w.over {
		return
	}
	w.over = true
	d.update(w)
	w.v.users--
}

// forget takes a tenant out that has no runs.
func (d *demand) forget(tenant string) {
	if t := d.tenants[tenant]; t != nil {
		d.total -= t.units
		d.bytes -= t.bytes
		t.gone = true
		delete(d.tenants, tenant)
	}
}

// demands counts an attempt that is in memory from now on. Called with mu held.
func (ss *session) demands(at *attempt) {
	s := ss.s
	w := ss.needs[at.view.RunID]
	rec, _ := ss.eng.Record(at.view.RunID)
	s.mu.Lock()
	defer s.mu.Unlock()
	if w == nil {
		w = s.demand.run(ss.key.Tenant, at.view.Version, at.view.FirstStart, at.view.Child)
		w.begun, w.used = rec.Steps > 0 || rec.Fuel > 0, rec.Fuel
		w.bytes = heldByStart
		for i := range at.view.Trigger {
			w.bytes += int64(len(at.view.Trigger[i].Body))
		}
		ss.needs[at.view.RunID] = w
	}
	w.begun = w.begun || at.replay
	at.work, at.counts = w, true
	s.demand.opened(w)
}

// undemand counts an attempt that is over, or to be dropped. Called with mu held.
func (ss *session) undemand(at *attempt) {
	if !at.counts {
		return
	}
	at.counts = false
	ss.s.mu.Lock()
	ss.s.demand.closed(at.work)
	ss.s.mu.Unlock()
}

// met takes a run out of the demand that has ended. Called with mu held.
func (ss *session) met(runID string, status host.Status) {
	w := ss.needs[runID]
	if w == nil {
		return
	}
	delete(ss.needs, runID)
	ss.s.mu.Lock()
	defer ss.s.mu.Unlock()
	if status == host.StatusCancelled {
		ss.s.demand.gone(w) // how far it came says nothing
		return
	}
	ss.s.demand.ended(w)
}
