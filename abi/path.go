package abi

import "strings"

// EscapeKey gives a key of a map as a segment of a path in the state: a dot is written
// as \., and a backslash as \\. The empty key has no path.
func EscapeKey(key string) string { return keyEscapes.Replace(key) }

var keyEscapes = strings.NewReplacer(`\`, `\\`, `.`, `\.`)
