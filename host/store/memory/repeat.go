package memory

import (
	"cmp"
	"context"
	"slices"

	"github.com/weftrun/weft/host"
)

// Repeat implements [host.Store].
func (s *Store) Repeat(ctx context.Context, tenant, route, key string) (r host.Repeat, err error) {
	err = s.view(ctx, func() error {
		stored, ok := s.repeats[repeatKey{tenant, route, key}]
		if !ok {
			return notFound("request", key)
		}
		r = *stored
		return nil
	})
	return r, err
}

// ForgetRepeats implements [host.Store].
func (s *Store) ForgetRepeats(ctx context.Context, before int64, limit int) (n int, err error) {
	err = s.update(ctx, func() error {
		var old []repeatKey
		for key, r := range s.repeats {
			if r.Made < before {
				old = append(old, key)
			}
		}
		slices.SortFunc(old, func(a, b repeatKey) int { return cmp.Compare(s.repeats[a].Made, s.repeats[b].Made) })
		for _, key := range old[:min(limit, len(old))] {
			delete(s.repeats, key)
			n++
		}
		return nil
	})
	return n, err
}
