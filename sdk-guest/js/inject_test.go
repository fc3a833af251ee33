package js_test

import (
	"encoding/binary"
	"fmt"
)

// inject puts a script and a map into the engine as cmd/weft's builder does, for tests
// that must not depend on the builder.
func inject(engine []byte, script string, lines []byte) []byte {
	wasm, out := engine, append([]byte{}, engine[:8]...)
	var address, base uint32
	sections := map[byte][]byte{}
	var order []byte
	for rest := wasm[8:]; len(rest) > 0; {
		size, n := binary.Uvarint(rest[1:])
		order = append(order, rest[0])
		sections[rest[0]] = rest[1+n:][:size]
		rest = rest[1+n+int(size):]
	}
	address = bundleAddress(sections[7], sections[6])
	bundle := append(append([]byte(script), 0), lines...)
	for _, id := range order {
		body := sections[id]
		switch id {
		case 5: // memory: one, without a maximum
			pages, n := binary.Uvarint(body[2:])
			base = uint32(pages) << 16
			more := uint64(len(bundle)+1<<16-1) >> 16
			body = append(binary.AppendUvarint(append([]byte{}, body[:2]...), pages+more), body[2+n:]...)
		case 11:
			count, n := binary.Uvarint(body)
			body = append(binary.AppendUvarint(nil, count+2), body[n:]...)
			body = appendSegment(body, base, bundle)
			header := binary.LittleEndian.AppendUint32(nil, base)
			header = binary.LittleEndian.AppendUint32(header, uint32(len(script)))
			header = binary.LittleEndian.AppendUint32(header, base+uint32(len(script))+1)
			header = binary.LittleEndian.AppendUint32(header, uint32(len(lines)))
			body = appendSegment(body, address, header)
		case 12:
			count, _ := binary.Uvarint(body)
			body = binary.AppendUvarint(nil, count+2)
		case 7:
			body = withoutBundle(body)
		}
		out = append(binary.AppendUvarint(append(out, id), uint64(len(body))), body...)
	}
	return out
}

func appendSegment(b []byte, address uint32, data []byte) []byte {
	b = append(b, 0, 0x41)
	b = appendSigned(b, int64(int32(address)))
	b = append(b, 0x0b)
	return append(binary.AppendUvarint(b, uint64(len(data))), data...)
}

func appendSigned(b []byte, v int64) []byte {
	for {
		low := byte(v & 0x7f)
		v >>= 7
		if v == 0 && low&0x40 == 0 || v == -1 && low&0x40 != 0 {
			return append(b, low)
		}
		b = append(b, low|0x80)
	}
}

func signed(b []byte) (v int64, n int) {
	shift := 0
	for {
		low := b[n]
		n++
		v |= int64(low&0x7f) << shift
		if shift += 7; low&0x80 == 0 {
			if low&0x40 != 0 {
				v -= 1 << shift
			}
			return v, n
		}
	}
}

const bundleExport = "user_bundle"

// eachExport calls f with each export's bytes, name, kind and index.
func eachExport(exports []byte, f func(raw []byte, name string, kind byte, index uint64)) {
	count, n := binary.Uvarint(exports)
	rest := exports[n:]
	for range count {
		size, n := binary.Uvarint(rest)
		name := string(rest[n:][:size])
		at := n + int(size)
		index, m := binary.Uvarint(rest[at+1:])
		f(rest[:at+1+m], name, rest[at], index)
		rest = rest[at+1+m:]
	}
}

func bundleAddress(exports, globals []byte) (address uint32) {
	found := -1
	eachExport(exports, func(_ []byte, name string, kind byte, index uint64) {
		if name == bundleExport && kind == 3 {
			found = int(index)
		}
	})
	count, n := binary.Uvarint(globals)
	rest := globals[n:]
	for i := range int(count) {
		v, n := signed(rest[3:])
		if rest[2] != 0x41 || rest[3+n] != 0x0b {
			panic(fmt.Sprintf("global %d of the engine is not a number", i))
		}
		if i == found {
			return uint32(v)
		}
		rest = rest[3+n+1:]
	}
	panic("the engine does not export user_bundle")
}

func withoutBundle(exports []byte) []byte {
	var kept []byte
	n := uint64(0)
	eachExport(exports, func(raw []byte, name string, _ byte, _ uint64) {
		if name != bundleExport {
			kept = append(kept, raw...)
			n++
		}
	})
	return append(binary.AppendUvarint(nil, n), kept...)
}
