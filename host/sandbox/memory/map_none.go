//go:build !unix

package memory

import "errors"

// canReserve is false: memories are taken from Go's heap.
const canReserve = false

func reserve(uint64) ([]byte, error) { return nil, errors.ErrUnsupported }

func unreserve([]byte) error { return errors.ErrUnsupported }

func populate([]byte) {}

func discard([]byte) error { return errors.ErrUnsupported }
