package access

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/weftrun/weft/host"
)

// Removal of a tenant, in stages:
//
//  1. The gate closes: requests that come are refused, those under way end, and it is
//     waited for them. What has no request can start nothing.
//  2. If runs are active all the same, the gate opens again: nothing has happened.
//  3. The tenant's record says that it is being deleted. From here on there is no way
//     back: a server that stops goes on with it at its next start.
//  4. Handlers go through the scheduler, as it may have their sessions in memory,
//     workflows and plugins through their service; what is left goes row by row, a
//     bounded number in each transaction, with the tenant's record and keys as the last.

const (
	drainWithin  = 10 * time.Second // for requests under way
	clearRows    = 500              // that a transaction deletes
	purgePage    = 200              // handlers that are looked at
	purgeAtOnce  = 16               // handlers that are deleted at a time, so that they share commits
	removeAgain  = time.Second      // after a failure
	usedInterval = time.Minute      // in which a key's last use is written once at most
)

// removal is a tenant that is being removed.
type removal struct {
	name string
	done chan struct{} // closed at the end; nil: nobody waits
}

// DeleteTenant implements [host.Access].
func (s *Service) DeleteTenant(ctx context.Context, by *host.Grant, name string) (err error) {
	defer func() { s.noteFailure(ctx, by, "tenant.delete", name, err) }()
	t, err := s.tenant(by, name)
	switch {
	case err != nil:
		return err
	case !by.Server && !s.keyless:
		return errNotServer
	case name == host.DefaultTenant:
		return host.Errorf(host.CodeFailedPrecondition, "The tenant %q is part of the server, and cannot be deleted", name)
	}
	own := int64(0)
	if by.Tenant == name { // this very request would have to end
		own, ctx = 1, context.WithoutCancel(ctx)
	}
	if err := s.inactive(ctx, name); err != nil {
		return err
	}
	if !t.closed.CompareAndSwap(false, true) {
		return errNoTenant // somebody else deletes it
	}
	if err := s.condemn(ctx, by, t, own); err != nil {
		s.reopen(t)
		return err
	}
	r := &removal{name: name, done: make(chan struct{})}
	s.mu.Lock()
	s.queueRemoval(r)
	s.mu.Unlock()
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// inactive refuses while runs of a tenant are active.
func (s *Service) inactive(ctx context.Context, name string) error {
	if err := s.cfg.Settled(ctx); err != nil {
		return unavailable(err)
	}
	runs, _, err := s.cfg.Runs.List(ctx, host.RunQuery{Tenant: name, Statuses: []string{string(host.StatusRunning)}, Limit: 1})
	switch {
	case err != nil:
		return err
	case len(runs) > 0:
		return host.Errorf(host.CodeConflict, "The tenant %q has active runs: cancel them first, or wait for their end", name)
	}
	return nil
}

// condemn does stages 1 to 3, behind the gate that the caller has closed. own are
// the requests under way that are the caller's.
func (s *Service) condemn(ctx context.Context, by *host.Grant, t *tenant, own int64) error {
	s.mu.RLock()
	end, name := t.end, t.record.Name
	s.mu.RUnlock()
	end(errDeleting)
	timer := time.NewTimer(drainWithin)
	defer timer.Stop()
	for t.under.Load() > own {
		select {
		case <-t.left:
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			return host.Errorf(host.CodeConflict, "Requests of the tenant %q are still under way: try again", name)
		}
	}
	if err := s.inactive(ctx, name); err != nil {
		return err
	}
	s.changing.Lock()
	defer s.changing.Unlock()
	record := t.record
	record.Deleting = true
	c := host.AccessChange{Tenants: []host.TenantRecord{record}, Audit: []host.AuditEntry{s.entry(by, "", "tenant.delete", name, "")}}
	if err := s.store(ctx, c); err != nil {
		return err
	}
	s.mu.Lock()
	t.record = record
	s.mu.Unlock()
	return nil
}

// reopen lets a tenant be used again whose removal did not begin. Requests that were
// ended stay so; keys get a context that has not.
func (s *Service) reopen(t *tenant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.done, t.end = context.WithCancelCause(context.Background())
	for _, k := range s.keys {
		if k.tenant == t {
			k.done, k.end = context.WithCancelCause(t.done)
		}
	}
	t.closed.Store(false)
}

// queueRemoval gives Run a tenant to remove. Called with mu held.
func (s *Service) queueRemoval(r *removal) {
	s.removals = append(s.removals, r)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Run removes tenants that are being deleted, and writes down when keys were used.
// It returns when ctx ends, after the latter; the service is of no use then.
func (s *Service) Run(ctx context.Context) {
	tick := time.NewTicker(usedInterval)
	defer tick.Stop()
	for {
		s.removeAll(ctx)
		select {
		case <-ctx.Done():
			s.Flush(context.WithoutCancel(ctx))
			s.stopExpiries()
			return
		case <-tick.C:
			s.Flush(ctx)
		case <-s.wake:
		}
	}
}

// stopExpiries stops the timers of all keys, which would keep the service in memory.
func (s *Service) stopExpiries() {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, k := range s.keys {
		k.stopExpiry()
	}
}

// removeAll removes what tenants there are to remove, one after the other; one that
// cannot be is tried again later.
func (s *Service) removeAll(ctx context.Context) {
	for ctx.Err() == nil {
		s.mu.RLock()
		var r *removal
		if len(s.removals) > 0 {
			r = s.removals[0]
		}
		s.mu.RUnlock()
		if r == nil {
			return
		}
		if err := s.remove(ctx, r.name); err != nil {
			if ctx.Err() == nil {
				s.cfg.Log.Error("a tenant cannot be removed, which is tried again", "tenant", r.name, "error", err)
			}
			s.pause(ctx)
			continue
		}
		s.mu.Lock()
		s.removals = s.removals[1:]
		s.mu.Unlock()
		if r.done != nil {
			close(r.done)
		}
	}
}

func (s *Service) pause(ctx context.Context) {
	timer := time.NewTimer(removeAgain)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// remove does stage 4.
func (s *Service) remove(ctx context.Context, name string) error {
	if err := s.purgeHandlers(ctx, name); err != nil {
		return err
	}
	if err := s.deletePlugins(ctx, name); err != nil {
		return err
	}
	if err := s.cfg.Forget(ctx, name); err != nil {
		return fmt.Errorf("let go of its sessions: %w", err)
	}
	for more := true; more; {
		var err error
		if more, err = s.cfg.Store.ClearTenant(ctx, name, clearRows); err != nil {
			return err
		}
	}
	s.changing.Lock()
	defer s.changing.Unlock()
	if err := s.cfg.Store.ChangeAccess(ctx, host.AccessChange{DropTenant: name}); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tenants[name]
	for id, k := range s.keys {
		if k.tenant == t {
			s.dropKey(id)
		}
	}
	delete(s.tenants, name)
	return nil
}

// purgeHandlers deletes a tenant's handlers. One that cannot be read stays for the
// rows to be cleared.
func (s *Service) purgeHandlers(ctx context.Context, name string) error {
	q := host.RunQuery{Tenant: name, Limit: purgePage}
	for more := true; more; {
		var runs []host.Run
		var err error
		if runs, more, err = s.cfg.Runs.List(ctx, q); err != nil {
			return fmt.Errorf("list its handlers: %w", err)
		}
		if len(runs) == 0 {
			break
		}
		last := &runs[len(runs)-1]
		q.AfterStarted, q.AfterHandler = last.Started, last.HandlerID
		s.purge(ctx, name, runs)
	}
	return ctx.Err()
}

func (s *Service) purge(ctx context.Context, name string, runs []host.Run) {
	var busy sync.WaitGroup
	free := make(chan struct{}, purgeAtOnce)
	for i := range runs {
		free <- struct{}{}
		busy.Go(func() {
			defer func() { <-free }()
			_, err := s.cfg.Runs.Cancel(ctx, name, runs[i].HandlerID, true)
			if err != nil && host.CodeOf(err) != host.CodeNotFound && ctx.Err() == nil {
				s.cfg.Log.Warn("a handler of a tenant that is removed goes without being read", "tenant", name, "handler", runs[i].HandlerID, "error", err)
			}
		})
	}
	busy.Wait()
}

// deletePlugins deletes a tenant's composed workflows and then its plugins.
func (s *Service) deletePlugins(ctx context.Context, name string) error {
	names, err := s.cfg.Plugins.Workflows(ctx, name)
	if err != nil {
		return fmt.Errorf("list its workflows: %w", err)
	}
	for _, workflow := range names {
		info, err := s.cfg.Plugins.Workflow(ctx, name, workflow)
		if err == nil && info.Composed {
			err = s.cfg.Plugins.Decompose(ctx, name, workflow)
		}
		if err != nil && host.CodeOf(err) != host.CodeNotFound {
			return fmt.Errorf("delete its workflow %s: %w", workflow, err)
		}
	}
	plugins, err := s.cfg.Plugins.List(ctx, name)
	if err != nil {
		return fmt.Errorf("list its plugins: %w", err)
	}
	for i := range plugins {
		if err := s.cfg.Plugins.Delete(ctx, name, plugins[i].Name); err != nil && host.CodeOf(err) != host.CodeNotFound {
			return fmt.Errorf("delete its plugin %s: %w", plugins[i].Name, err)
		}
	}
	return nil
}
