package admission

// Demand is the work that accepted runs still need, in units, by tenants: what a
// client's start would have to wait for. It is kept in memory only and decides who is
// admitted and in which class an attempt waits; nothing that is journaled depends on it.
//
// How much a run takes is estimated from the runs of the same workflow version that
// have ended: the mean of what they added to their tenant's clock, children left out.

// UnknownRun is the estimate of a run while the server has seen none end, in units.
const UnknownRun = 1_000_000

// HeldByStart is about what a run holds in memory that has not had a core, beside the
// event that it starts with, in bytes.
const HeldByStart = 6 << 10

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
	// A weight of 1/8 forgets old runs, and one odd run does not decide the mean.
	off := units - e.mean
	e.mean += off / 8
	e.dev += (max(off, -off) - e.dev) / 8
}

// surely is what a run takes at least, as far as one can tell.
func (e *estimate) surely() int64 { return max(e.mean-e.dev, 0) }

// Demand is that of all tenants. The caller holds its lock.
type Demand struct {
	tenants map[string]*tenant
	total   int64    // units, of all tenants
	bytes   int64    // held by runs that have not had a core, of all tenants
	all     estimate // of all runs
}

// tenant is what the accepted runs of a tenant need.
type tenant struct {
	units    int64 // of runs that have not ended and do not wait for anything outside
	fresh    int   // runs that have not had a core, and starts that were let in
	bytes    int64 // that they hold
	own      estimate
	versions map[string]*Version
	promised promises
	gone     bool // forgotten: what comes late no longer counts
}

// Version is that of one version of a workflow.
type Version struct {
	of    *tenant
	takes estimate
	fresh int // runs that add a whole mean to the demand
	users int // runs that refer to it
}

// mostVersions bounds the versions of a tenant whose estimates are remembered while
// no run refers to them.
const mostVersions = 256

// Run is what is known of an active run.
type Run struct {
	Age   int64 // when it, or the run at the top of its tree, first started
	Child bool
	Begun bool   // it has had a core
	Used  uint64 // units
	Bytes int64  // that it holds while it has not had a core

	v     *Version
	open  int   // attempts in memory: none if the run waits for something outside
	units int64 // that it adds to the demand beside v.fresh
	fresh bool  // it is counted in v.fresh
	over  bool  // it has ended, or its session is no longer in memory
}

// Init begins with no demand.
func (d *Demand) Init() { d.tenants = map[string]*tenant{} }

func (d *Demand) of(name string) *tenant {
	t := d.tenants[name]
	if t == nil {
		t = &tenant{versions: map[string]*Version{}}
		d.tenants[name] = t
	}
	return t
}

// Units is the work that accepted runs of all tenants still need.
func (d *Demand) Units() int64 { return d.total }

// Starts is the number of runs that have not had a core, starts that were admitted included.
func (d *Demand) Starts() (n int) {
	for _, t := range d.tenants {
		n += t.fresh
	}
	return n
}

// Version finds the demand of a version.
func (d *Demand) Version(of, version string) *Version {
	t := d.of(of)
	v := t.versions[version]
	if v == nil {
		if len(t.versions) >= mostVersions {
			t.prune()
		}
		v = &Version{of: t}
		t.versions[version] = v
	}
	// What is guessed improves with each run of the tenant that ends.
	if !v.takes.seen {
		d.guess(v)
	}
	return v
}

// prune forgets versions that no run refers to.
func (t *tenant) prune() {
	for name, v := range t.versions {
		if v.users == 0 {
			delete(t.versions, name)
		}
	}
}

// guess estimates what the runs of a version take of which none has ended.
func (d *Demand) guess(v *Version) {
	switch {
	case v.of.own.seen:
		d.set(v, v.of.own)
	case d.all.seen:
		d.set(v, d.all)
	default:
		d.set(v, estimate{mean: UnknownRun, dev: UnknownRun / 2})
	}
	// The first run that ends replaces the guess.
	v.takes.seen = false
}

// set gives a version another estimate.
func (d *Demand) set(v *Version, takes estimate) {
	// Runs that have not begun count with the mean, so the sums move with it.
	by := int64(v.fresh) * (takes.mean - v.takes.mean)
	v.takes = takes
	v.of.units += by
	d.total += by
}

// Run makes the demand of a run that nothing is known of yet.
func (d *Demand) Run(of, version string, age int64, child bool) *Run {
	v := d.Version(of, version)
	v.users++
	return &Run{v: v, Age: age, Child: child}
}

// Opened counts an attempt of a run that is in memory from now on. A run
// without any waits for something outside, and needs nothing.
func (d *Demand) Opened(w *Run) {
	w.open++
	d.update(w)
}

// Closed counts an attempt that is no longer in memory.
func (d *Demand) Closed(w *Run) {
	w.open--
	d.update(w)
}

// Used counts units that a run has used, on a core.
func (d *Demand) Used(w *Run, units uint64) {
	if w == nil {
		return
	}
	w.Begun = true
	w.Used += units
	d.update(w)
}

// update counts anew what a run adds to the demand.
func (d *Demand) update(w *Run) {
	fresh, units := false, int64(0)
	switch {
	case w.over || w.open == 0:
	case !w.Begun:
		fresh = true
	default:
		// A run that has used the mean already is assumed to need a quarter of the mean.
		units = max(w.v.takes.mean-int64(w.Used), w.v.takes.mean/4)
	}
	if fresh != w.fresh {
		w.fresh = fresh
		d.count(w.v, w.Bytes, fresh)
	}
	if !w.v.of.gone {
		w.v.of.units += units - w.units
		d.total += units - w.units
	}
	w.units = units
}

// count counts a run that has not had a core, or one less.
func (d *Demand) count(v *Version, bytes int64, more bool) {
	// A forgotten tenant has left the totals with all that it had.
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

// Ended takes a run out, and learns from it what runs take.
func (d *Demand) Ended(w *Run) {
	d.Gone(w)
	if !w.Begun {
		return // it was cancelled before it began, and tells nothing
	}
	took := int64(w.Used)
	// The sums change with the estimate, so the new estimate is set as a whole.
	takes := w.v.takes
	takes.add(took)
	d.set(w.v, takes)
	w.v.of.own.add(took)
	d.all.add(took)
}

// Gone removes a run that is no longer in memory.
func (d *Demand) Gone(w *Run) {
	if w.over {
		return
	}
	// From here on update counts nothing for the run.
	w.over = true
	d.update(w)
	w.v.users--
}

// Forget takes a tenant out that has no runs.
func (d *Demand) Forget(name string) {
	if t := d.tenants[name]; t != nil {
		d.total -= t.units
		d.bytes -= t.bytes
		t.gone = true
		delete(d.tenants, name)
	}
}
