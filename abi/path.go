package abi

import "strings"

// EscapeKey returns a map's key as a segment of a path in the state: a dot becomes \.,
// and a backslash \\. The empty key has no path.
func EscapeKey(key string) string { return keyEscapes.Replace(key) }

var keyEscapes = strings.NewReplacer(`\`, `\\`, `.`, `\.`)
