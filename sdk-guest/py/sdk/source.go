// Package sdk carries the sources of the SDK for Python, so that a program can put them
// into a new project and compare a project's SDK with them.
//
// It must not know what they say: the engine holds them as bytecode.
package sdk

import "embed"

// Source is the SDK: the package weft.
//
//go:embed weft/*.py README.md
var Source embed.FS
