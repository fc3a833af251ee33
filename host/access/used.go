package access

import (
	"context"

	"github.com/weftrun/weft/host"
)

// The last use of a key is recorded in memory with each request. Run writes it to the
// store once a minute, so a crash loses at most that minute.

// touch records that a key is used now.
func (k *key) touch(now int64) {
	if used := k.used.Load(); now-used >= int64(usedInterval)/60 {
		k.used.CompareAndSwap(used, now)
	}
}

// Flush writes the last use of the keys that were used since the last Flush.
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
		s.cfg.Log.Warn("the times of last use of keys cannot be written; the server tries again", "error", err)
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
