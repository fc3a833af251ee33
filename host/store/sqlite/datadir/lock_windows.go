package datadir

import (
	"errors"
	"os"
	"syscall"
)

// errSharingViolation is the system's error for opening a file that another process has
// opened without sharing.
const errSharingViolation = syscall.Errno(32)

// lockFile opens the file without sharing. A second attempt to open it fails until the
// file is closed.
func lockFile(path string) (*os.File, error) {
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	h, err := syscall.CreateFile(name, syscall.GENERIC_READ|syscall.GENERIC_WRITE, 0, nil,
		syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	if errors.Is(err, errSharingViolation) {
		return nil, ErrInUse
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(h), path), nil
}
