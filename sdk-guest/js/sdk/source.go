// Package sdk carries the sources of the SDK for TypeScript and JavaScript, so that a
// program can put them into a new project and into a bundle.
//
// It must not know what they say: the bundler reads them.
package sdk

import "embed"

// Source is the SDK: weft.ts is what steps import as "weft".
//
//go:embed *.ts README.md package.json
var Source embed.FS
