package abi

import (
	"bytes"
	"encoding/binary"
)

// SectionManifest is the custom section of a module that does not describe
// itself, with the manifest that was given with it, as JSON. It is part of the
// module's bytes, and so of its digest.
const SectionManifest = "weft.manifest"

// WithManifest gives a module with a manifest as its last section. A module that
// ends with just that section is given back as it is. Nothing is checked: the
// upload does that.
func WithManifest(wasm, manifest []byte) []byte {
	payload := binary.AppendUvarint(nil, uint64(len(SectionManifest)))
	payload = append(append(payload, SectionManifest...), manifest...)
	section := binary.AppendUvarint([]byte{0}, uint64(len(payload))) // 0: custom
	section = append(section, payload...)
	if bytes.HasSuffix(wasm, section) {
		return wasm
	}
	return append(wasm[:len(wasm):len(wasm)], section...)
}
