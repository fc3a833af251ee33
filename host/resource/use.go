package resource

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

type useKey struct{ tenant, resource, workflow string }

// uses counts use that is not stored yet.
type uses struct {
	mu  sync.Mutex
	now map[useKey]*host.ResourceUse
}

// add counts a call that was answered or failed.
func (u *uses) add(call *host.ResourceCall, value abi.Raw, fail *abi.Error) {
	use := host.ResourceUse{
		Tenant: call.User.Tenant, Resource: call.Resource, Workflow: call.User.Workflow,
		Calls: 1, Sent: uint64(len(call.Payload)), Received: uint64(len(value)),
	}
	if fail != nil {
		use.Failed = 1
	}
	use.InputTokens, use.OutputTokens = tokensOf(value)
	u.merge(use)
}

func (u *uses) merge(use host.ResourceUse) {
	u.mu.Lock()
	defer u.mu.Unlock()
	key := useKey{use.Tenant, use.Resource, use.Workflow}
	if sum := u.now[key]; sum != nil {
		sum.Add(use)
		return
	}
	u.now[key] = &use
}

// forget drops a tenant's use of a resource; "" means of all resources.
func (u *uses) forget(tenant, resource string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	maps.DeleteFunc(u.now, func(k useKey, _ *host.ResourceUse) bool {
		return k.tenant == tenant && (resource == "" || k.resource == resource)
	})
}

// with returns a tenant's total use by resource.
func (u *uses) with(tenant string, stored []host.ResourceUse) map[string][]host.ResourceUse {
	sums := map[useKey]host.ResourceUse{}
	for _, s := range stored {
		sums[useKey{s.Tenant, s.Resource, s.Workflow}] = s
	}
	u.mu.Lock()
	for key, now := range u.now {
		if key.tenant == tenant {
			sum := *now
			sum.Add(sums[key])
			sums[key] = sum
		}
	}
	u.mu.Unlock()
	out := map[string][]host.ResourceUse{}
	for _, key := range slices.SortedFunc(maps.Keys(sums), func(a, b useKey) int {
		return cmp.Or(strings.Compare(a.resource, b.resource), strings.Compare(a.workflow, b.workflow))
	}) {
		out[key.resource] = append(out[key.resource], sums[key])
	}
	return out
}

// storeUse is how often use is stored. A crash loses at most the use of this time.
const storeUse = 2 * time.Second

// Run stores use until ctx ends, and then stores the rest.
func (s *Service) Run(ctx context.Context) {
	tick := time.NewTicker(storeUse)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
		s.storeUse(context.WithoutCancel(ctx))
	}
}

// storeUse stores the collected use. Use that cannot be stored is kept for the next time.
func (s *Service) storeUse(ctx context.Context) {
	s.used.mu.Lock()
	now := s.used.now
	s.used.now = map[useKey]*host.ResourceUse{}
	s.used.mu.Unlock()
	if len(now) == 0 {
		return
	}
	list := make([]host.ResourceUse, 0, len(now))
	for _, u := range now {
		list = append(list, *u)
	}
	if err := s.cfg.Store.AddResourceUse(ctx, list); err != nil {
		s.cfg.Log.Warn("the use of resources cannot be stored, and is kept", "error", err)
		for _, u := range list {
			s.used.merge(u)
		}
	}
}
