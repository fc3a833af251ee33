package record

import (
	"bytes"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// zstdMagic begins each frame of Zstandard (RFC 8878, section 3.1.1). A WebAssembly module
// begins with "\0asm", so a module that was stored before modules were compressed differs.
var zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}

// maxModule is the most bytes that a stored module may unpack to. The setting module_bytes
// allows no more.
const maxModule = 256 << 20

// The coders are safe for concurrent use through EncodeAll and DecodeAll. A checksum of the
// content is part of each frame.
var (
	packer = sync.OnceValues(func() (*zstd.Encoder, error) {
		return zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true))
	})
	unpacker = sync.OnceValues(func() (*zstd.Decoder, error) {
		return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxModule))
	})
)

// PackModule returns what the column of a module's bytes holds: a frame of Zstandard. The
// bytes of a module are the longest that a commit writes, and other commits wait for them.
func PackModule(module []byte) ([]byte, error) {
	encoder, err := packer()
	if err != nil {
		return nil, fmt.Errorf("packing a module: %w", err)
	}
	return encoder.EncodeAll(module, nil), nil
}

// UnpackModule returns the module of a column that [PackModule] or an older release has
// written. The result may share memory with stored. A damaged frame, and a frame of more
// than 256 MiB, is an error.
func UnpackModule(stored []byte) ([]byte, error) {
	if !bytes.HasPrefix(stored, zstdMagic) {
		return stored, nil
	}
	decoder, err := unpacker()
	if err != nil {
		return nil, fmt.Errorf("unpacking a module: %w", err)
	}
	module, err := decoder.DecodeAll(stored, []byte{})
	if err != nil {
		return nil, fmt.Errorf("unpacking a module: %w", err)
	}
	return module, nil
}

// ShownModule is [UnpackModule] for a check of stored data: bytes that do not unpack are
// returned as they are, and do not match the module's digest. Nil stays nil.
func ShownModule(stored []byte) []byte {
	module, err := UnpackModule(stored)
	if err != nil {
		return stored
	}
	return module
}
