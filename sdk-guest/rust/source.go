// Package sdk carries the sources of the SDK for Rust, and of the crates that it
// needs, so that a program can put them into a new project, which then builds
// without a network.
//
// It does not depend on their content: cargo reads them.
package sdk

import "embed"

// Source is the workspace of the crates weft and weft-macros, and in crates a
// registry for cargo (local-registry) with the other crates that they need: as
// crates.io gives them, each under its licence. serde_derive is in its index
// alone: no build takes it, but cargo wants to know what it would need.
//
//go:embed Cargo.toml README.md
//go:embed weft/Cargo.toml weft/src
//go:embed weft-macros/Cargo.toml weft-macros/src
//go:embed crates
var Source embed.FS
