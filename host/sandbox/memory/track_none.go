//go:build !linux || !(amd64 || arm64)

package memory

import "errors"

// tracker is not available here: resets compare all pages.
type tracker struct{}

type scan struct{}

type part struct{ from, to int }

func newTracker() (*tracker, error) { return nil, errors.ErrUnsupported }

func (*tracker) close() {}

func (*tracker) register([]byte) (*scan, error) { return nil, errors.ErrUnsupported }

func (*tracker) scan(*scan, []byte) ([]part, int, error) { return nil, 0, errors.ErrUnsupported }

func (*tracker) unprotect([]byte) error { return errors.ErrUnsupported }

func (*tracker) protect(*scan, []byte) error { return errors.ErrUnsupported }
