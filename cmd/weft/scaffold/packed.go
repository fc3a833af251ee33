package scaffold

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// packed holds go.mod and the folder sdk of a project in Go, in two versions. If 'make
// build' made the program, go.tar.gz has the same sources as the program. release.tar.gz
// has the sources of the last release, for programs that 'go install' makes. The SDK's
// tests run the server's own engine, and go:embed reaches neither other modules nor their
// dependencies, so .ci/pack-sdk collects the files.
//
//go:embed packed
var packed embed.FS

// ErrNotPacked is returned by a program that was built without the SDK for Go.
var ErrNotPacked = errors.New("this weft was built without the SDK for Go: build it with 'make build', or install a release")

// addPacked adds go.mod and the folder sdk of a project in Go.
//
// # Errors
//
// [ErrNotPacked].
func addPacked(name string, files map[string][]byte) error {
	archive, err := packed.ReadFile("packed/go.tar.gz")
	if errors.Is(err, fs.ErrNotExist) {
		archive, err = packed.ReadFile("packed/release.tar.gz")
	}
	if errors.Is(err, fs.ErrNotExist) {
		return ErrNotPacked
	}
	if err != nil {
		return err
	}
	if err := unpack(archive, files); err != nil {
		return fmt.Errorf("the SDK in this program cannot be read: %w", err)
	}
	files["go.mod"] = bytes.Replace(files["go.mod"], []byte("module project\n"), []byte("module example.com/"+name+"\n"), 1)
	return nil
}

// unpack adds the files of a tar.gz.
func unpack(archive []byte, files map[string][]byte) error {
	flat, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return err
	}
	entries := tar.NewReader(flat)
	for {
		entry, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if entry.Typeflag != tar.TypeReg {
			continue
		}
		if files[entry.Name], err = io.ReadAll(entries); err != nil {
			return err
		}
	}
}
