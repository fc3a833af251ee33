package sandbox

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/weftrun/weft/host/sandbox/codefiles"
)

// trimCache removes compiled code, the least recently used modules first, until the rest
// is within the bound. It does nothing while a goroutine works in the folder: each
// builder trims afterwards.
func (s *Sandbox) trimCache() {
	if s.cacheDir == "" || s.cacheBytes <= 0 || !s.keeping.TryLock() {
		return
	}
	defer s.keeping.Unlock()
	kept, total, err := codefiles.Kept(s.cacheDir)
	if err != nil {
		s.log.Warn("compiled code cannot be counted", "folder", s.cacheDir, "error", err)
		return
	}
	slices.SortFunc(kept, func(a, b codefiles.Folder) int { return a.Used.Compare(b.Used) })
	for _, k := range kept {
		if total <= s.cacheBytes {
			return
		}
		if err := os.RemoveAll(k.Path); err != nil {
			s.log.Warn("compiled code cannot be removed", "folder", k.Path, "error", err)
			return
		}
		total -= k.Bytes
		s.log.Info("removed compiled code that was not used for the longest time", "folder", filepath.Base(k.Path), "bytes", k.Bytes, "used", k.Used)
	}
}
