//go:build !linux

package confine

// GoFirst does nothing on systems without such a request.
func GoFirst() {}
