//go:build unix && !linux

package memory

import "errors"

// noReserve is nothing: these systems count what is touched.
const noReserve = 0

func smallPages([]byte) {}

func populate([]byte) {}

// discard is not available: MADV_DONTNEED promises no zeroes here.
func discard([]byte) error { return errors.ErrUnsupported }
