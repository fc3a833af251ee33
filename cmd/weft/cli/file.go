package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/weftrun/weft/host/limit"
)

// ReplaceFile replaces a file atomically.
func ReplaceFile(file string, text []byte) error {
	if err := os.WriteFile(file+".new", text, 0o666); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// ReadText reads a file whose content is sent as text.
func ReadText(ctx context.Context, path string, in io.Reader) (string, error) {
	if path != "-" {
		b, err := ReadAtMost(path, limit.MaxRequestBytes)
		return string(b), err
	}
	type input struct {
		text []byte
		err  error
	}
	read := make(chan input, 1)
	// A read from a terminal cannot be cancelled: when ctx ends, the read continues in
	// the background, and ends with the program.
	go func() {
		b, err := ReadSome(in, "the standard input", limit.MaxRequestBytes)
		read <- input{b, err}
	}()
	select {
	case got := <-read:
		return string(got.text), got.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// ReadAtMost reads a file of at most limit bytes.
func ReadAtMost(file string, limit int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	b, err := ReadSome(f, file, limit)
	return b, errors.Join(err, f.Close())
}

// ReadSome reads to the end of a reader that may hold at most limit bytes.
func ReadSome(from io.Reader, name string, limit int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(from, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("%s is longer than the %d MiB that a request may have", name, limit>>20)
	}
	return b, err
}

// ReadBounded reads a file of at most most bytes.
func ReadBounded(name string, most int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if int64(len(b)) > most {
		return nil, fmt.Errorf("%s is longer than %d KiB", name, most>>10)
	}
	return b, nil
}
