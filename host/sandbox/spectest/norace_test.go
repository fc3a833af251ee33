//go:build !race

package spectest

const raced = false
