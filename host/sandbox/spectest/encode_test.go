package spectest

import (
	"encoding/binary"
	"math"
)

// Value types, as their bytes.
const (
	tI32       = 0x7f
	tI64       = 0x7e
	tF32       = 0x7d
	tF64       = 0x7c
	tV128      = 0x7b
	tFuncref   = 0x70
	tExternref = 0x6f
)

// Kinds of imports and exports.
const (
	kFunc   = 0
	kTable  = 1
	kMemory = 2
	kGlobal = 3
)

// code is WebAssembly in the making: instructions, or a section.
type code []byte

func (c *code) bytes(b ...byte) { *c = append(*c, b...) }

// u32 appends an unsigned number in LEB128.
func (c *code) u32(n uint32) { *c = binary.AppendUvarint(*c, uint64(n)) }

// op appends an instruction: the opcode and its immediates.
func (c *code) op(opcode byte, immediates ...uint32) {
	c.bytes(opcode)
	for _, n := range immediates {
		c.u32(n)
	}
}

// signed appends a signed number in LEB128.
func (c *code) signed(n int64) {
	for {
		low := byte(n & 0x7f)
		n >>= 7
		if n == 0 && low&0x40 == 0 || n == -1 && low&0x40 != 0 {
			c.bytes(low)
			return
		}
		c.bytes(low | 0x80)
	}
}

func (c *code) i32(n int32) {
	c.bytes(0x41)
	c.signed(int64(n))
}

func (c *code) i64(n int64) {
	c.bytes(0x42)
	c.signed(n)
}

func (c *code) f32(f float32) {
	c.bytes(0x43)
	*c = binary.LittleEndian.AppendUint32(*c, math.Float32bits(f))
}

func (c *code) f64(f float64) {
	c.bytes(0x44)
	*c = binary.LittleEndian.AppendUint64(*c, math.Float64bits(f))
}

func (c *code) v128(low, high uint64) {
	c.bytes(0xfd, 12)
	*c = binary.LittleEndian.AppendUint64(*c, low)
	*c = binary.LittleEndian.AppendUint64(*c, high)
}

// name appends a length and the bytes.
func (c *code) name(s string) {
	c.u32(uint32(len(s)))
	c.bytes([]byte(s)...)
}

// limits appends those of a memory or table; no maximum if it is negative.
func (c *code) limits(least uint32, most int) {
	if most < 0 {
		c.bytes(0)
		c.u32(least)
		return
	}
	c.bytes(1)
	c.u32(least)
	c.u32(uint32(most))
}

// signature appends a function type.
func (c *code) signature(params, results string) {
	c.bytes(0x60)
	c.name(params)
	c.name(results)
}

// vector is the content of most sections: a count, and so many items.
type vector struct {
	n    uint32
	body code
}

// item counts one more, which the caller appends to what it returns.
func (v *vector) item() *code {
	v.n++
	return &v.body
}

// export appends one to an export section.
func (v *vector) export(name string, kind byte, index uint32) {
	c := v.item()
	c.name(name)
	c.op(kind, index)
}

// section appends a section unless it would be empty.
func (c *code) section(id byte, v vector) {
	if v.n > 0 {
		c.rawSection(id, append(binary.AppendUvarint(nil, uint64(v.n)), v.body...))
	}
}

func (c *code) rawSection(id byte, payload []byte) {
	c.bytes(id)
	c.u32(uint32(len(payload)))
	c.bytes(payload...)
}

// header begins every module.
func header() code { return code("\x00asm\x01\x00\x00\x00") }
