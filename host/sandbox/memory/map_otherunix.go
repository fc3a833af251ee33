//go:build unix && !linux

package memory

import "errors"

// noReserve is 0: these systems count only touched memory.
const noReserve = 0

func smallPages([]byte) {}

func populate([]byte) {}

// discard is not available: MADV_DONTNEED does not guarantee zeroes on these systems.
func discard([]byte) error { return errors.ErrUnsupported }
