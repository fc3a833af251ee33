package wire

import (
	"context"
	"os"
	"path/filepath"
)

// scratchCacheBytes bounds the compile cache of the user, which holds one module for each
// build of a project in Go (15 MB), and one interpreter for all projects in Python.
const scratchCacheBytes = 1 << 30

// UserCode returns the folder in which the commands of this user share compiled code:
// the one that the environment variable WEFT_CACHE names, or weft/code in the user's
// cache directory ($XDG_CACHE_HOME, or ~/.cache). It returns "" if the folder cannot be
// made. Its caller then compiles without a cache.
func UserCode() string {
	folder := os.Getenv("WEFT_CACHE")
	if folder == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return ""
		}
		folder = filepath.Join(user, "weft", "code")
	}
	if os.MkdirAll(folder, 0o700) != nil {
		return ""
	}
	probe, err := os.CreateTemp(folder, "probe-")
	if err != nil {
		return ""
	}
	name := probe.Name()
	if probe.Close() != nil || os.Remove(name) != nil {
		return ""
	}
	return folder
}

// OpenScratch opens a host in memory for one command, with the user's compile cache. Of
// cfg it sets Data, Code and CacheBytes.
func OpenScratch(ctx context.Context, cfg Config) (*Host, error) {
	cfg.Data, cfg.Code, cfg.CacheBytes = InMemory, UserCode(), scratchCacheBytes
	return Open(ctx, cfg)
}
