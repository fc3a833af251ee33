//go:build !unix

package main

// ignoreFileLimit does nothing: there is no such limit.
func ignoreFileLimit() {}
