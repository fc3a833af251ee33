package access

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/weftrun/weft/host"
)

// A tenant is removed in stages:
//
//  1. The gate closes. New requests are refused, and open requests end. The removal waits
//     until no request is left: nothing else can start work for the tenant.
//  2. If runs are still active, the gate opens again, and nothing has changed.
//  3. The tenant's record is marked as being deleted. The removal cannot be undone from
//     here on. A server that stops continues it at its next start.
//  4. The scheduler purges handlers, because their sessions may be in memory. The plugin
//     service deletes workflows and plugins. The rest is deleted row by row, with a
//     bounded number of rows in each transaction. The tenant's record and keys are last.

const (
	drainWithin  = 10 * time.Second // for open requests
	clearRows    = 500              // deleted in one transaction
	purgePage    = 200              // handlers listed at a time
	purgeAtOnce  = 16               // handlers purged at the same time, so that they share commits
	removeAgain  = time.Second      // delay after a failure
	usedInterval = time.Minute      // a key's last use is written at most once in this time
)

// removal is a tenant to be removed.
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
	if by.Tenant == name { // this request is one of the tenant's, and must not end
		own, ctx = 1, context.WithoutCancel(ctx)
	}
	if err := s.inactive(ctx, name); err != nil {
		return err
	}
	if !t.closed.CompareAndSwap(false, true) {
		return errNoTenant // another request deletes the tenant
	}
	if err := s.markDeleting(ctx, by, t, own); err != nil {
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

// inactive returns an error if the tenant has active runs.
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

// markDeleting performs stages 1 to 3 after the caller has closed the gate. own is the number
// of open requests that belong to the caller.
func (s *Service) markDeleting(ctx context.Context, by *host.Grant, t *tenant, own int64) error {
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

// reopen makes a tenant usable again when its removal has not begun. Requests that were
// ended stay ended, and keys get a new context.
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

// queueRemoval queues a removal for Run. mu is held.
func (s *Service) queueRemoval(r *removal) {
	s.removals = append(s.removals, r)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Run removes tenants that are being deleted, and writes the times of last use of keys.
// It returns when ctx ends, after writing the times a last time. The service must not be
// used afterwards.
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

// removeAll removes the queued tenants, one after the other. After a failure it tries the
// same tenant again.
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
				s.cfg.Log.Error("a tenant cannot be removed; the server tries again", "tenant", r.name, "error", err)
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

// remove performs stage 4.
func (s *Service) remove(ctx context.Context, name string) error {
	if err := s.purgeHandlers(ctx, name); err != nil {
		return err
	}
	if err := s.deletePlugins(ctx, name); err != nil {
		return err
	}
	if err := s.cfg.Forget(ctx, name); err != nil {
		return fmt.Errorf("drop its sessions from memory: %w", err)
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

// purgeHandlers purges a tenant's handlers. The rows of a handler that cannot be read are
// cleared later.
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
				s.cfg.Log.Warn("a handler of a removed tenant cannot be purged; its rows are deleted unread", "tenant", name, "handler", runs[i].HandlerID, "error", err)
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
