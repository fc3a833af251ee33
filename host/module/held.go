package module

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"

	"github.com/weftrun/weft/host"
)

// Runs stay on the version that they began with, so a version may only go when none
// runs on it, and stays stored as long as a journal needs it, which is the store's
// business. Between the two is a start that has taken a version and is not in the
// store yet: a deletion takes the name away, waits for the starts that were under
// way and for the journal, and then looks.

// usage says which versions the running runs of a tenant hold.
type usage struct {
	modules map[string][]host.VersionRuns       // runs on a module, by its digest
	parts   map[recordPlugin][]host.VersionRuns // runs on compositions that have a plugin's version
	records map[string]int                      // runs on compositions, by workflow
	older   map[string]int                      // runs of which it is not known, by workflow
}

// usage asks the store what is held.
func (s *Service) usage(ctx context.Context, tenant string) (*usage, error) {
	counts, err := s.store.CountRuns(ctx, tenant)
	if err != nil {
		return nil, storeError("the runs could not be counted", err)
	}
	u := &usage{modules: map[string][]host.VersionRuns{}, parts: map[recordPlugin][]host.VersionRuns{}, records: map[string]int{}, older: map[string]int{}}
	for _, n := range counts {
		if n.Version == "" {
			u.older[n.Workflow] += n.Runs
			continue
		}
		v, err := s.version(ctx, n.Version)
		switch {
		case host.CodeOf(err) == host.CodeUnavailable || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
			return nil, err
		case err != nil || v.record == nil: // with an error it may be a module that this server does not take any more
			u.modules[n.Version] = append(u.modules[n.Version], n)
		default:
			u.records[v.record.Name] += n.Runs
			for _, p := range v.record.Plugins {
				u.parts[p] = append(u.parts[p], n)
			}
		}
	}
	return u, nil
}

// none reports whether nothing runs.
func (u *usage) none() bool { return len(u.modules)+len(u.records)+len(u.older) == 0 }

// of gives the runs that hold a version of a plugin, by what they are on.
func (u *usage) of(v host.PluginVersion) []host.VersionRuns {
	held := slices.Clone(u.parts[recordPlugin{v.Name, v.Digest}])
	if v.Workflow != "" {
		held = append(held, u.modules[v.Digest]...)
	}
	return held
}

// ofPlugin gives the runs that hold any version of a plugin, each once.
func (u *usage) ofPlugin(versions []host.PluginVersion) []host.VersionRuns {
	held := u.unknown(versions)
	for i, v := range versions {
		if !slices.ContainsFunc(versions[:i], func(w host.PluginVersion) bool { return w.Digest == v.Digest }) {
			held = append(held, u.of(v)...)
		}
	}
	return held
}

// unknown gives the runs of a plugin's workflows of which it is not known which
// version they hold.
func (u *usage) unknown(versions []host.PluginVersion) []host.VersionRuns {
	var held []host.VersionRuns
	for i, v := range versions {
		known := slices.ContainsFunc(versions[:i], func(w host.PluginVersion) bool { return w.Workflow == v.Workflow })
		if n := u.older[v.Workflow]; n > 0 && !known {
			held = append(held, host.VersionRuns{Workflow: v.Workflow, Runs: n})
		}
	}
	return held
}

func sum(held []host.VersionRuns) int {
	n := 0
	for i := range held {
		n += held[i].Runs
	}
	return n
}

// heldBy is the error of a deletion that runs stand against.
func heldBy(n int, what, name string) error {
	if n == 0 {
		return nil
	}
	hold := " hold "
	if n == 1 {
		hold = " holds "
	}
	return host.Errorf(host.CodeConflict, "%s%s%s %s: cancel them, or let them end", counted(n, "run"), hold, what, name)
}

// starts are those under way: they have taken a version, perhaps, and its first
// entry is not in the journal's queue yet. All methods may be called from any
// goroutine.
type starts struct {
	mu    sync.Mutex // guards what follows, generations too
	now   *generation
	older []*generation // that have not ended
}

// generation is the starts between two deletions.
type generation struct {
	n    int
	gone chan struct{} // closed when n is 0 and nobody enters any more
}

// enter begins a start; leave ends it, and may be called twice.
func (s *starts) enter() (leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == nil {
		s.now = &generation{gone: make(chan struct{})}
	}
	g := s.now
	g.n++
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if g.n--; g.n == 0 && g != s.now {
			close(g.gone)
		}
	})
}

// drain waits for the starts that are under way, and for none that begin
// afterwards.
func (s *starts) drain(ctx context.Context) error {
	s.mu.Lock()
	if g := s.now; g != nil && g.n > 0 {
		s.older = append(s.older, g)
		s.now = nil
	}
	s.older = slices.DeleteFunc(s.older, func(g *generation) bool { return g.n == 0 })
	waiting := slices.Clone(s.older)
	s.mu.Unlock()
	for _, g := range waiting {
		select {
		case <-g.gone:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Starting says that a run is about to begin, until done is called: versions that
// [Service.Newest] gives meanwhile stay stored until the journal's queue has the
// run's first entry, if that is before done.
func (s *Service) Starting() (done func()) { return s.starts.enter() }

// settle waits until every run that began with what Newest gave before is in the
// store.
func (s *Service) settle(ctx context.Context) error {
	err := s.starts.drain(ctx)
	if err == nil && s.settled != nil {
		err = s.settled(ctx)
	}
	if err != nil {
		return storeError("the runs that are being started could not be waited for", err)
	}
	return nil
}

// Delete implements [host.Plugins].
func (s *Service) Delete(ctx context.Context, tenant, name string) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	v, ok := s.newest(tenant, name)
	if !ok {
		return pluginNotFound()
	}
	if used := s.compositionsOf(tenant, name); len(used) > 0 {
		return host.Errorf(host.CodeConflict, "workflow %s has steps of plugin %s: compose it without them, or delete it first", used[0].record.Name, name)
	}
	if err := s.unheld(ctx, v, 0); err != nil { // while its workflow can still be begun
		return err
	}
	s.unset(v) // so that no run starts any more
	if err := s.remove(ctx, v, 0); err != nil {
		s.set(v)
		return err
	}
	s.log.Info("deleted a plugin", "tenant", tenant, "plugin", name)
	return nil
}

// DeleteVersion implements [host.Plugins].
func (s *Service) DeleteVersion(ctx context.Context, tenant, name string, number int) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	newest, ok := s.newest(tenant, name)
	if !ok {
		return pluginNotFound()
	}
	if number == newest.Version {
		return host.Errorf(host.CodeConflict, "version %d is the newest of plugin %s: upload another, or delete the plugin", number, name)
	}
	if number <= 0 {
		return versionNotFound(name, number)
	}
	if err := s.remove(ctx, newest, number); err != nil {
		return err
	}
	s.log.Info("deleted a version of a plugin", "tenant", tenant, "plugin", name, "version", number)
	return nil
}

func versionNotFound(name string, number int) error {
	return host.Errorf(host.CodeNotFound, "Plugin %s has no version %d", name, number)
}

// remove takes a version of a plugin, or with 0 all, out of the store. No run can
// begin with it any more. s.changing is held.
func (s *Service) remove(ctx context.Context, newest host.PluginVersion, number int) error {
	if err := s.settle(ctx); err != nil {
		return err
	}
	if err := s.unheld(ctx, newest, number); err != nil {
		return err
	}
	err := s.store.DeletePlugin(ctx, newest.Tenant, newest.Name, number)
	if err != nil && !errors.Is(err, host.ErrNotFound) {
		return storeError("the plugin could not be deleted", err)
	}
	return nil
}

// unheld refuses to delete a version of a plugin, or with 0 all, while it is held
// by runs, or by what new runs would take.
func (s *Service) unheld(ctx context.Context, newest host.PluginVersion, number int) error {
	versions, err := s.store.PluginVersions(ctx, newest.Tenant, newest.Name)
	if err != nil {
		return storeError("the versions could not be read", err)
	}
	u, err := s.usage(ctx, newest.Tenant)
	if err != nil {
		return err
	}
	if number == 0 {
		return heldBy(sum(u.ofPlugin(versions)), "plugin", newest.Name)
	}
	i := slices.IndexFunc(versions, func(v host.PluginVersion) bool { return v.Version == number })
	if i < 0 {
		return versionNotFound(newest.Name, number)
	}
	for _, c := range s.compositionsOf(newest.Tenant, newest.Name) {
		if slices.Contains(c.record.Plugins, recordPlugin{newest.Name, versions[i].Digest}) {
			return host.Errorf(host.CodeConflict, "workflow %s is composed of version %d of plugin %s: compose it anew first", c.record.Name, number, newest.Name)
		}
	}
	return heldBy(sum(u.of(versions[i]))+u.older[versions[i].Workflow], "version "+strconv.Itoa(number)+" of plugin", newest.Name)
}
