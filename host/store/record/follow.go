package record

import (
	"context"
	"time"

	"github.com/weftrun/weft/host"
)

const (
	// readDelay is the least time that words wait, so that many runs share a transaction.
	readDelay = 250 * time.Millisecond
	// readShare is how many times as long as its work Follow then rests.
	readShare = 15
)

// Follow keeps an index of words up to date until ctx ends. It calls read at first, for
// notes that an earlier server has left, and after each signal of noted. read processes
// some notes; more reports that notes are left. After an error it is called again.
func Follow(ctx context.Context, noted <-chan struct{}, read func(context.Context) (more bool, err error)) {
	rest := time.NewTimer(readDelay)
	defer rest.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-rest.C:
		}
		begun := time.Now()
		more, err := read(ctx)
		if more {
			rest.Reset(max(readShare*time.Since(begun), readDelay))
			continue
		}
		if err == nil {
			select {
			case <-ctx.Done():
				return
			case <-noted:
			}
		}
		rest.Reset(readDelay)
	}
}

// Named are the methods of a store that [ClearNames] uses; see [host.Store].
type Named interface {
	Plugins(ctx context.Context, tenant string) ([]host.PluginVersion, error)
	DeletePlugin(ctx context.Context, tenant, name string, version int) error
	Compositions(ctx context.Context, tenant string) ([]host.CompositionVersion, error)
	DeleteComposition(ctx context.Context, tenant, name string) error
}

// ClearNames deletes one plugin or composed workflow of a tenant. more reports that there
// may be others.
func ClearNames(ctx context.Context, s Named, tenant string) (more bool, err error) {
	composed, err := s.Compositions(ctx, tenant)
	if err != nil {
		return false, err
	}
	if len(composed) > 0 {
		return true, s.DeleteComposition(ctx, tenant, composed[0].Name)
	}
	plugins, err := s.Plugins(ctx, tenant)
	if err != nil || len(plugins) == 0 {
		return false, err
	}
	return true, s.DeletePlugin(ctx, tenant, plugins[0].Name, 0)
}
