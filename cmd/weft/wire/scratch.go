package wire

import (
	"context"

	"github.com/weftrun/weft/cmd/weft/cli"
)

// scratchCacheBytes bounds the compile cache of the user, which holds one module for each
// build of a project in Go (15 MB), and one interpreter for all projects in Python.
const scratchCacheBytes = 1 << 30

// OpenScratch opens a host in memory for one command, with the user's compile cache. Of
// cfg it sets Data, Code and CacheBytes.
func OpenScratch(ctx context.Context, cfg Config) (*Host, error) {
	cfg.Data, cfg.Code, cfg.CacheBytes = InMemory, cli.UserCode(), scratchCacheBytes
	return Open(ctx, cfg)
}
