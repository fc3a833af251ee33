package memory_test

import (
	"testing"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/store/memory"
	"github.com/weftrun/weft/host/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) host.Store {
		s := memory.New()
		t.Cleanup(func() { _ = s.Close() })
		return s
	})
}

// The handles are one: what counts is the epoch.
func TestPeers(t *testing.T) {
	storetest.RunPeers(t, func(t *testing.T) func() host.Store {
		s := memory.New()
		t.Cleanup(func() { _ = s.Close() })
		return func() host.Store { return s }
	})
}
