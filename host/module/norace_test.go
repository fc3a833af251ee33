//go:build !race

package module

const raced = false
