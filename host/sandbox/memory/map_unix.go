//go:build unix

package memory

import (
	"errors"
	"math"

	"golang.org/x/sys/unix"
)

// canReserve is true: address space can be reserved.
const canReserve = true

// reserve maps size bytes of zeroes that use memory only when touched.
func reserve(size uint64) ([]byte, error) {
	if size > math.MaxInt {
		return nil, errors.New("more than there are addresses")
	}
	base, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|noReserve)
	if err != nil {
		return nil, err
	}
	smallPages(base)
	return base, nil
}

// unreserve undoes reserve.
func unreserve(base []byte) error { return unix.Munmap(base) }
