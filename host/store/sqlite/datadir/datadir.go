// Package datadir creates and locks data directories, makes their files and names durable,
// and says in one sentence why a directory cannot be used. It does not use the database.
package datadir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// LockName is the file whose lock marks the directory as used by a server. It is a
// separate file, because closing any other descriptor of the database file would release
// SQLite's own locks on it.
const LockName = "weft.lock"

// ErrInUse reports that another server holds the lock of the data directory.
var ErrInUse = errors.New("in use by another weft server")

// Prepare creates the data directory if it is missing, readable only by its owner.
func Prepare(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case err == nil && !info.IsDir():
		return fmt.Errorf("data directory %s is not a directory", dir)
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return Error(dir, err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Error(dir, err)
	}
	// The name of the directory must survive a power loss too.
	return Sync(filepath.Dir(filepath.Clean(dir)))
}

// Lock locks the directory. The kernel releases the lock when the process ends, for
// whatever reason.
func Lock(dir string) (*os.File, error) {
	f, err := lockFile(filepath.Join(dir, LockName))
	if errors.Is(err, ErrInUse) {
		return nil, fmt.Errorf("data directory %s is %w", dir, ErrInUse)
	}
	if err != nil {
		return nil, Error(dir, err)
	}
	return f, nil
}

// Create creates a file of a directory, readable only by its owner. SQLite gives the
// files that it creates beside a database the mode of the database.
func Create(dir, path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return Error(dir, err)
	}
	if err := f.Close(); err != nil {
		return Error(dir, err)
	}
	return Sync(dir)
}

// Rewrite writes a file's bytes again, in place, and syncs the file. A missing file is
// left alone.
func Rewrite(path string) (err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	buf := make([]byte, 1<<20)
	for at := int64(0); ; {
		n, err := f.ReadAt(buf, at)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if n == 0 {
			return f.Sync()
		}
		if _, err := f.WriteAt(buf[:n], at); err != nil {
			return err
		}
		at += int64(n)
	}
}

// Sync makes the names in a directory durable. Where directories cannot be opened or
// synced (some file systems, Windows), the system makes names durable by itself.
func Sync(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return nil // not readable, so there is nothing to sync
	}
	defer func() { _ = d.Close() }()
	if err := d.Sync(); err != nil && errors.Is(err, syscall.EIO) {
		return Error(dir, err)
	}
	return nil
}

// Error says in one sentence why a data directory cannot be used.
func Error(dir string, err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("data directory %s is not writable: %w", dir, err)
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("data directory %s is not a directory: %w", dir, err)
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("data directory %s has no space left: %w", dir, err)
	}
	return fmt.Errorf("data directory %s cannot be used: %w", dir, err)
}

// Replace writes a file under another name, syncs and verifies it (nil: no verification),
// and then renames it. After an error nothing is left behind.
func Replace(file string, write, verify func(temp string) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*.partial")
	if err != nil {
		return err
	}
	temp := f.Name()
	defer func() {
		if err != nil {
			err = errors.Join(err, removeFile(temp))
		}
	}()
	if err := f.Close(); err != nil {
		return err
	}
	if err := write(temp); err != nil {
		return err
	}
	if err := syncFile(temp); err != nil {
		return err
	}
	if verify != nil {
		if err := verify(temp); err != nil {
			return err
		}
	}
	return move(temp, file)
}

// Rename syncs a file and gives it another name, which then is durable.
func Rename(from, to string) error {
	if err := syncFile(from); err != nil {
		return err
	}
	return move(from, to)
}

func move(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return Sync(filepath.Dir(to))
}

func removeFile(name string) error {
	if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func syncFile(name string) error {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
