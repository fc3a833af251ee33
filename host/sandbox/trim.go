package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// keptCode is the compiled code of a module on disk.
type keptCode struct {
	folder string
	bytes  int64
	used   time.Time
}

// trimCache removes compiled code, the least recently used modules first, until the rest
// is within the bound. It does nothing while a goroutine works in the folder: each
// builder trims afterwards.
func (s *Sandbox) trimCache() {
	if s.cacheDir == "" || s.cacheBytes <= 0 || !s.keeping.TryLock() {
		return
	}
	defer s.keeping.Unlock()
	kept, total, err := keptIn(s.cacheDir)
	if err != nil {
		s.log.Warn("compiled code cannot be counted", "folder", s.cacheDir, "error", err)
		return
	}
	slices.SortFunc(kept, func(a, b keptCode) int { return a.used.Compare(b.used) })
	for _, k := range kept {
		if total <= s.cacheBytes {
			return
		}
		if err := os.RemoveAll(k.folder); err != nil {
			s.log.Warn("compiled code cannot be removed", "folder", k.folder, "error", err)
			return
		}
		total -= k.bytes
		s.log.Info("removed compiled code that was not used for the longest time", "folder", filepath.Base(k.folder), "bytes", k.bytes, "used", k.used)
	}
}

// keptIn lists the finished folders of compiled code and their total bytes.
func keptIn(dir string) (kept []keptCode, total int64, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, 0, err
	}
	for _, entry := range entries {
		if !entry.IsDir() || strings.HasPrefix(entry.Name(), unfinished) {
			continue
		}
		k := keptCode{folder: filepath.Join(dir, entry.Name())}
		info, err := entry.Info()
		if err != nil {
			return nil, 0, err
		}
		k.used = info.ModTime()
		err = filepath.WalkDir(k.folder, func(_ string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			info, err := entry.Info()
			if err == nil {
				k.bytes += info.Size()
			}
			return err
		})
		if err != nil {
			return nil, 0, err
		}
		kept, total = append(kept, k), total+k.bytes
	}
	return kept, total, nil
}
