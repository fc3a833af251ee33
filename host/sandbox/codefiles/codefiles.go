// Package codefiles keeps the files of compiled code on disk: it seals a folder, so that
// damage is found, copies and reads what a process has left that is not trusted, and counts.
//
// It must not depend on modules, or how they are compiled.
package codefiles

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weftrun/weft/host/sandbox/confine"
)

// SealName is the file that lists the digests of the other files. The compiler's runtime trusts
// most of what it reads: it checks only a sum of the machine code, and allocates by counts from
// the file. Therefore only sealed files are read.
const SealName = "seal"

// unfinished is the prefix of the names of folders that are being filled. The process id
// follows.
const unfinished = "unfinished-"

// Check compares the files of a folder with its seal.
func Check(folder string) error {
	seal, err := os.ReadFile(filepath.Join(folder, SealName))
	if err != nil {
		return fmt.Errorf("read the seal: %w", err)
	}
	actual, err := sealOf(folder)
	if err != nil {
		return err
	}
	if !bytes.Equal(seal, actual) {
		return errors.New("the files are not those that were sealed")
	}
	return nil
}

// Seal seals a folder.
func Seal(folder string) error {
	seal, err := sealOf(folder)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, SealName), seal, 0o600); err != nil {
		return fmt.Errorf("write the seal: %w", err)
	}
	return nil
}

// sealOf lists the files of a folder, one line each: SHA-256 in hex and path.
func sealOf(folder string) ([]byte, error) {
	names, err := sealable(folder)
	if err != nil {
		return nil, err
	}
	var seal []byte
	for _, name := range names {
		content, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return nil, fmt.Errorf("read compiled code: %w", err)
		}
		sum := sha256.Sum256(content)
		seal = append(seal, hex.EncodeToString(sum[:])+"  "+name+"\n"...)
	}
	return seal, nil
}

// sealable lists the files that a seal covers, sorted: all except the seal itself.
func sealable(folder string) (names []string, err error) {
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err == nil && name != SealName {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list compiled code: %w", err)
	}
	slices.Sort(names)
	return names, nil
}

// ReadRegular reads a regular file of at most so many bytes.
func ReadRegular(root *os.Root, name string, most int) ([]byte, error) {
	info, err := root.Lstat(name)
	if err != nil {
		return nil, fmt.Errorf("read what the compiler has left: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > int64(most) {
		return nil, fmt.Errorf("the compiler has left %s as %v of %d bytes", name, info.Mode(), info.Size())
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read what the compiler has left: %w", err)
	}
	defer func() { _ = f.Close() }()
	content, err := io.ReadAll(io.LimitReader(f, int64(most)))
	if err != nil {
		return nil, fmt.Errorf("read what the compiler has left: %w", err)
	}
	return content, nil
}

// Copy copies the files of a folder, and those below it, into the folder to of root.
// Copies, unlike links, leave the originals alone if a hostile process writes to them.
func Copy(root *os.Root, to, from string) error {
	if err := root.RemoveAll(to); err != nil {
		return fmt.Errorf("copy compiled code: %w", err)
	}
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := to + strings.TrimPrefix(path, from)
		if entry.IsDir() {
			return root.Mkdir(target, 0o700)
		}
		content, err := os.ReadFile(path)
		if err == nil {
			err = root.WriteFile(target, content, 0o600)
		}
		return err
	})
}

// Folder is the compiled code of a module on disk.
type Folder struct {
	Path  string
	Bytes int64
	Used  time.Time // when it was used last
}

// Kept lists the finished folders of compiled code in dir and their total bytes.
func Kept(dir string) (kept []Folder, total int64, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, 0, err
	}
	for _, entry := range entries {
		if !entry.IsDir() || strings.HasPrefix(entry.Name(), unfinished) {
			continue
		}
		k := Folder{Path: filepath.Join(dir, entry.Name())}
		info, err := entry.Info()
		if err != nil {
			return nil, 0, err
		}
		k.Used = info.ModTime()
		err = filepath.WalkDir(k.Path, func(_ string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			info, err := entry.Info()
			if err == nil {
				k.Bytes += info.Size()
			}
			return err
		})
		if err != nil {
			return nil, 0, err
		}
		kept, total = append(kept, k), total+k.Bytes
	}
	return kept, total, nil
}

// UnfinishedFor is how long an unfinished build may belong to a process that runs: longer
// than any build takes.
const UnfinishedFor = time.Hour

// RemoveUnfinished removes the unfinished builds of processes that have ended, and those
// that are older than UnfinishedFor: another process may have an old number by now.
func RemoveUnfinished(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("list the folder of compiled code: %w", err)
	}
	for _, entry := range entries {
		owner, of := strings.CutPrefix(entry.Name(), unfinished)
		if !of {
			continue
		}
		info, err := entry.Info()
		if err != nil { // the process has finished it meanwhile
			continue
		}
		owner, _, _ = strings.Cut(owner, "-")
		pid, err := strconv.Atoi(owner)
		if err != nil || !confine.Runs(pid) || time.Since(info.ModTime()) > UnfinishedFor {
			if err := os.RemoveAll(filepath.Join(folder, entry.Name())); err != nil {
				return fmt.Errorf("remove what an unfinished build has left: %w", err)
			}
		}
	}
	return nil
}

// UnfinishedHere is the prefix of the names of folders that this process fills.
func UnfinishedHere() string { return fmt.Sprintf("%s%d-", unfinished, os.Getpid()) }
