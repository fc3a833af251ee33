//go:build race

package hosttest

const raced = true
