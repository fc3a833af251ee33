//go:build !race

package hosttest

const raced = false
