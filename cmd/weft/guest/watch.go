package guest

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"time"
)

const (
	// lookEvery is how often a folder is looked at for changes. Looking costs one
	// call for each file; a project has some dozens.
	lookEvery = 250 * time.Millisecond
	// mostFiles bounds what is looked at, where somebody names the wrong folder.
	mostFiles = 20_000
)

// built are folders that builds and tools write to.
var built = map[string]bool{"build": true, "target": true, ".weft": true, ".git": true, "node_modules": true}

// Seen is how the files of a project were when they were looked at.
type Seen map[string]stamp

type stamp struct {
	size     int64
	modified time.Time
}

// Look notes how the project's files are.
func (p Project) Look() (Seen, error) {
	seen := Seen{}
	err := filepath.WalkDir(p.Dir, func(name string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // it has gone meanwhile
			return nil
		case err != nil:
			return err
		case d.IsDir() && name != p.Dir && built[d.Name()]:
			return filepath.SkipDir
		case !d.Type().IsRegular() || passing(d.Name()):
			return nil
		case len(seen) == mostFiles:
			return errors.New("there are too many files in the folder to watch them")
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		seen[name] = stamp{info.Size(), info.ModTime()}
		return nil
	})
	return seen, err
}

// passing files are those that editors keep beside the file they change.
func passing(name string) bool {
	return strings.HasSuffix(name, "~") || strings.HasSuffix(name, ".swp") || strings.HasSuffix(name, ".new") || strings.HasPrefix(name, ".#")
}

// Changed waits until the files differ from how they were seen, and have settled:
// an editor, or a change of branch, writes several. It gives how they are then and
// one of those that differ.
func (p Project) Changed(ctx context.Context, before Seen) (now Seen, file string, err error) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	last := before
	for {
		select {
		case <-ctx.Done():
			return nil, "", ctx.Err()
		case <-tick.C:
		}
		if now, err = p.Look(); err != nil {
			return nil, "", err
		}
		still := now.difference(last) == ""
		last = now
		if file = now.difference(before); file != "" && still {
			if rel, err := filepath.Rel(p.Dir, file); err == nil {
				file = rel
			}
			return now, file, nil
		}
	}
}

// difference names a file that is not the same in both, "" if there is none.
func (s Seen) difference(o Seen) string {
	for name, a := range s {
		if b, ok := o[name]; !ok || a.size != b.size || !a.modified.Equal(b.modified) {
			return name
		}
	}
	for name := range o {
		if _, ok := s[name]; !ok {
			return name
		}
	}
	return ""
}
