package abi

import (
	"fmt"

	"github.com/weftrun/weft/abi/cbor"
)

// editShape defines which values an operation takes.
type editShape struct {
	items int // of the array, including the operation
	value func(d *decoder, field string) Raw
	fault func(r Raw) string // of the value, when encoding
}

func anyFault(Raw) string { return "" }

func numberFault(r Raw) string {
	if m := cbor.Major(r[0]); m == cbor.Uint || m == cbor.Nint || r[0] >= cbor.Float16 && r[0] <= cbor.Float64 {
		return ""
	}
	return "must be a number"
}

func mapFault(r Raw) string {
	if cbor.Major(r[0]) != cbor.Map {
		return "must be a map"
	}
	return ""
}

// shape returns the shape of the operation. An unknown operation has no items.
func (op Op) shape() editShape {
	switch op {
	case OpSet, OpAppend, OpTest:
		return editShape{3, (*decoder).value, anyFault}
	case OpIncrement:
		return editShape{3, (*decoder).number, numberFault}
	case OpMerge:
		return editShape{3, (*decoder).mapValue, mapFault}
	case OpDelete:
		return editShape{items: 2}
	case OpClear:
		return editShape{items: 1}
	}
	return editShape{}
}

// opOf returns the operation with a name, or "" if unknown, without allocating.
func opOf(name []byte) Op {
	for _, op := range [...]Op{OpSet, OpDelete, OpAppend, OpIncrement, OpMerge, OpTest, OpClear} {
		if string(name) == string(op) {
			return op
		}
	}
	return ""
}

func unknownOp(name string) string {
	return fmt.Sprintf("unknown operation %q: needs a newer weft", clip(name))
}

func writeEdit(e *encoder, m *Edit) {
	shape := m.Op.shape()
	if shape.items == 0 {
		e.fail("op", unknownOp(string(m.Op)))
		return
	}
	e.array(shape.items)
	e.text("op", string(m.Op))
	if shape.items > 1 {
		e.statePath("path", m.Path)
	} else if m.Path != "" {
		e.fail("path", "must be absent")
	}
	switch {
	case shape.items < 3 && m.Value != nil:
		e.fail("value", "must be absent")
	case shape.items == 3 && len(m.Value) == 0:
		e.fail("value", "is missing")
	case shape.items == 3:
		e.check("value", shape.fault(m.Value))
		e.value("value", m.Value)
	}
}

func readEdit(d *decoder) Edit {
	var m Edit
	start := d.off
	n := d.openItem("", cbor.Array)
	defer d.close()
	if !d.failed() && n == 0 {
		d.failAt(start, "", tooFew(n, 1))
	}
	if !d.next(cbor.Text) {
		d.expected("op", "text")
		return m
	}
	at := d.off
	name, next, err := d.key(at)
	if err != nil {
		d.adopt("op", err)
		return m
	}
	d.off = next
	m.Op = opOf(name)
	shape := m.Op.shape()
	switch {
	case shape.items == 0:
		d.failAt(at, "op", unknownOp(string(name)))
	case n < shape.items:
		d.failAt(start, "", tooFew(n, shape.items))
	case n > shape.items:
		d.failAt(start, "", tooMany(n, shape.items))
	}
	if shape.items > 1 {
		m.Path = d.statePath("path")
	}
	if shape.items > 2 && !d.failed() {
		m.Value = shape.value(d, "value")
	}
	return m
}

// EncodeEdits writes a state_edit request, which has at least one edit. The error is a
// *[DataError].
func EncodeEdits(edits []Edit) ([]byte, error) {
	size := 9
	for i := range edits {
		size += 32 + len(edits[i].Path) + len(edits[i].Value)
	}
	return encode(edits, size, func(e *encoder, edits []Edit) {
		if len(edits) == 0 {
			e.fail("", tooFew(0, 1))
		}
		writeAll(e, "", edits, writeEdit)
	})
}

// DecodeEdits reads a state_edit request. The values share b's memory where b is
// canonical, so b must not be modified afterwards. The error is a *[DataError].
func DecodeEdits(b []byte) ([]Edit, error) {
	return decode(b, func(d *decoder) []Edit { return list(d, "", 1, readEdit) })
}
