//go:build !linux

package sandbox

func goFirst() {}
