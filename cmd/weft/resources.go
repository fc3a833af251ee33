package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/weftrun/weft/host/resource"
)

// The most that a file of resources and one of a secret may have, in bytes.
const (
	maxResourceFile = 4 << 20
	maxSecretFile   = 64 << 10
)

// readResources reads a file of resources; "" is one without any.
func readResources(file string) (*resource.Table, error) {
	text := []byte("{}")
	if file != "" {
		var err error
		if text, err = readBounded(file, maxResourceFile); err != nil {
			return nil, fmt.Errorf("--resources: %w", err)
		}
	}
	t, err := resource.ParseFile(text, resource.Sources{
		Env:      os.LookupEnv,
		ReadFile: func(name string) ([]byte, error) { return readBounded(name, maxSecretFile) },
	})
	if err != nil {
		return nil, fmt.Errorf("--resources %s: %w", file, err)
	}
	return t, nil
}

// readResourceKeys reads the keys that seal secrets, from a file or the environment;
// nil: there are none.
func readResourceKeys(file string) (*resource.Keys, error) {
	text, where := os.Getenv("WEFT_RESOURCE_KEY"), "WEFT_RESOURCE_KEY"
	if file != "" {
		b, err := readBounded(file, maxSecretFile)
		if err != nil {
			return nil, fmt.Errorf("--resource-key-file: %w", err)
		}
		text, where = string(b), "--resource-key-file "+file
	}
	if text == "" && file == "" {
		return nil, nil
	}
	keys, err := resource.ParseKeys(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	return keys, nil
}

// readBounded reads a file that has at most so many bytes.
func readBounded(name string, most int64) ([]byte, error) {
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
