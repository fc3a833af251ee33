package abi

import (
	"bytes"
	"encoding/binary"
)

// SectionManifest is the custom section for a module that does not describe itself. It
// contains the manifest given with the module, as JSON. The section is part of the
// module's bytes, and so of its digest.
const SectionManifest = "weft.manifest"

// WithManifest returns a module with a manifest as its last section. A module that
// already ends with exactly that section is returned unchanged. WithManifest checks
// nothing: the upload does.
func WithManifest(wasm, manifest []byte) []byte {
	payload := binary.AppendUvarint(nil, uint64(len(SectionManifest)))
	payload = append(append(payload, SectionManifest...), manifest...)
	section := binary.AppendUvarint([]byte{0}, uint64(len(payload))) // 0: a custom section
	section = append(section, payload...)
	if bytes.HasSuffix(wasm, section) {
		return wasm
	}
	return append(wasm[:len(wasm):len(wasm)], section...)
}
