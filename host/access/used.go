package access

import (
	"context"

	"github.com/weftrun/weft/host"
)

// When a key was last used is noted in memory as requests come, and written by the
// runner, once a minute: what a crash loses of it is that minute.

// touch notes that a key is used now.
func (k *key) touch(now int64) {
	if used := k.used.Load(); now-used >= int64(usedInterval)/60 {
		k.used.CompareAndSwap(used, now)
	}
}

// Flush writes down when keys were last used, of those that were since the last time.
func (s *Service) Flush(ctx context.Context) {
	used := map[string]int64{}
	s.mu.RLock()
	for id, k := range s.keys {
		if at := k.used.Load(); at != k.stored.Load() {
			used[id] = at
		}
	}
	s.mu.RUnlock()
	if len(used) == 0 {
		return
	}
	if err := s.cfg.Store.ChangeAccess(ctx, host.AccessChange{Used: used}); err != nil {
		s.cfg.Log.Warn("when keys were last used cannot be written, which is tried again", "error", err)
		return
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for id, at := range used {
		if k := s.keys[id]; k != nil {
			k.stored.Store(at)
		}
	}
}
