//go:build !race

package rewrite

const raced = false
