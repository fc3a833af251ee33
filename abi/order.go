package abi

import (
	"slices"
	"strconv"

	"github.com/weftrun/weft/abi/cbor"
)

// Ordering maps takes two passes over checked bytes. Each pass is linear except for
// sorting keys, however deep the maps nest. The first pass (index, or the JSON reader)
// records, for every map, the sorted order of its pairs as offsets into the source. The
// second pass (emitter) writes the source in that order, with every head in its shortest
// form. Sorting the written pairs of each map in place would instead copy a value once
// for each level above it.

// ordering is what the first pass records.
type ordering struct {
	maps  []mapOrder // of every map, in the order of their heads
	pairs []pair     // of the maps that were not in order, sorted
	open  []pair     // of the maps still open
}

// mapOrder says how to write one map.
type mapOrder struct {
	first, count uint32 // its pairs in ordering.pairs; count 0: it was already in order
	next         uint32 // the index in ordering.maps after it and all maps in it
	end          uint32 // the source offset after it
}

// pair is a key with its value: source[key:value] is the key's content.
type pair struct {
	key, value uint32
	inner      uint32 // the index in ordering.maps of the first map in the value
	origin     uint32 // the offset for an error about the key
}

// begin records a map's head. Pass its results to end.
func (o *ordering) begin() (slot, base int) {
	o.maps = append(o.maps, mapOrder{})
	return len(o.maps) - 1, len(o.open)
}

// add records a pair of the last map begun; value is the offset of the value.
func (o *ordering) add(key, value, origin int) {
	o.open = append(o.open, pair{
		key: uint32(key), value: uint32(value), inner: uint32(len(o.maps)), origin: uint32(origin),
	})
}

// end closes a map that ends at off, and reports a duplicate key.
func (o *ordering) end(b []byte, slot, base, off int) *DataError {
	pairs := o.open[base:]
	o.open = o.open[:base]
	m := &o.maps[slot]
	m.next, m.end = uint32(len(o.maps)), uint32(off)

	compare := func(x, y pair) int {
		return compareKeys(b[x.key:x.value], b[y.key:y.value])
	}
	inOrder := true
	for i := 1; i < len(pairs) && inOrder; i++ {
		inOrder = compare(pairs[i-1], pairs[i]) < 0
	}
	if inOrder {
		return nil
	}
	slices.SortFunc(pairs, compare)
	for i := 1; i < len(pairs); i++ {
		if compare(pairs[i-1], pairs[i]) == 0 {
			at := max(pairs[i-1].origin, pairs[i].origin)
			return duplicateKey(b[pairs[i].key:pairs[i].value], int(at))
		}
	}
	m.first, m.count = uint32(len(o.pairs)), uint32(len(pairs))
	o.pairs = append(o.pairs, pairs...)
	return nil
}

// index runs the first pass over the checked item at off. The only possible error is a
// duplicate key.
func (o *ordering) index(b []byte, off int) (int, *DataError) {
	arg, next := cbor.Head(b, off)
	switch cbor.Major(b[off]) {
	case cbor.Bytes, cbor.Text:
		return next + int(arg), nil
	case cbor.Array:
		for i := range int(arg) {
			var err *DataError
			if next, err = o.index(b, next); err != nil {
				return 0, err.under(strconv.Itoa(i))
			}
		}
	case cbor.Map:
		return o.indexMap(b, next, int(arg))
	}
	return next, nil
}

func (o *ordering) indexMap(b []byte, next, n int) (int, *DataError) {
	slot, base := o.begin()
	for range n {
		origin := next
		size, key := cbor.Head(b, origin)
		value := key + int(size)
		o.add(key, value, origin)
		var err *DataError
		if next, err = o.index(b, value); err != nil {
			return 0, err.under(segmentOf(b[key:value]))
		}
	}
	return next, o.end(b, slot, base, next)
}

// emitter runs the second pass.
type emitter struct {
	src  []byte
	o    *ordering
	next int // the index in o.maps of the next map in the source
	dst  []byte
}

// item writes the item at off and returns the source offset after it.
func (e *emitter) item(off int) int {
	major := cbor.Major(e.src[off])
	arg, next := cbor.Head(e.src, off)
	if major == cbor.Other {
		if next-off == 1 {
			e.dst = append(e.dst, e.src[off])
		} else {
			e.dst = cbor.AppendFloat(e.dst, cbor.Float(e.src[off], arg))
		}
		return next
	}
	e.dst = cbor.AppendHead(e.dst, major, arg)
	switch major {
	case cbor.Bytes, cbor.Text:
		end := next + int(arg)
		e.dst = append(e.dst, e.src[next:end]...)
		return end
	case cbor.Array:
		for range arg {
			next = e.item(next)
		}
	case cbor.Map:
		return e.mapping(next, arg)
	}
	return next
}

func (e *emitter) mapping(next int, n uint64) int {
	m := e.o.maps[e.next]
	e.next++
	if m.count == 0 {
		for range n {
			next = e.item(next) // the key
			next = e.item(next)
		}
		return next
	}
	for _, p := range e.o.pairs[m.first : m.first+m.count] {
		e.dst = cbor.AppendHead(e.dst, cbor.Text, uint64(p.value-p.key))
		e.dst = append(e.dst, e.src[p.key:p.value]...)
		e.next = int(p.inner)
		e.item(int(p.value))
	}
	e.next = int(m.next)
	return int(m.end)
}

// reencode returns a checked item in Core Deterministic Encoding. It fails if a key is
// duplicate.
func reencode(b []byte) (Raw, *DataError) {
	var o ordering
	if _, err := o.index(b, 0); err != nil {
		return nil, err
	}
	e := emitter{src: b, o: &o, dst: make([]byte, 0, len(b))}
	e.item(0)
	return e.dst, nil
}
