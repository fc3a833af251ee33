//go:build !unix

package serve

// ignoreFileLimit does nothing: this system has no limit on the size of files.
func ignoreFileLimit() {}
