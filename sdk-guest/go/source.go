// Package sdk carries the SDK's own sources, so that a program can put them
// into a new project, which then builds without a network.
//
// It must not be imported by plugins: it is for the tool that makes projects.
package sdk

import "embed"

// Source is the module: go.mod, README.md and the packages' files, tests among
// them.
//
//go:embed go.mod README.md weft wefttest internal
var Source embed.FS
