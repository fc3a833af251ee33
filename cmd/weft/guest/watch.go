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
	// lookEvery is how often a folder is examined for changes. This costs one system call
	// for each file; a project has some dozens.
	lookEvery = 250 * time.Millisecond
	// mostFiles limits the number of files, in case the user names the wrong folder.
	mostFiles = 20_000
)

// built are folders that builds and tools write to.
var built = map[string]bool{"build": true, "target": true, ".weft": true, ".git": true, "node_modules": true, "__pycache__": true, ".venv": true}

// Seen is the state of a project's files at one time.
type Seen map[string]stamp

type stamp struct {
	size     int64
	modified time.Time
}

// Look reads the state of the project's files.
func (p Project) Look() (Seen, error) {
	seen := Seen{}
	err := filepath.WalkDir(p.Dir, func(name string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // the file was deleted meanwhile
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

// passing reports whether a file is a temporary file of an editor.
func passing(name string) bool {
	return strings.HasSuffix(name, "~") || strings.HasSuffix(name, ".swp") || strings.HasSuffix(name, ".new") || strings.HasPrefix(name, ".#")
}

// Changed waits until the files differ from before and no longer change: an editor, or a
// switch of branches, writes several files. It returns their new state and one of the
// changed files.
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

// difference names a file that differs between the two states, "" if they are equal.
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
