package state

import (
	"github.com/weftrun/weft/host/work"
)

// The prices of work on trees, in units of package work. Functions on a meter stop
// soon after it ends, with a result of no use: the caller looks at its error.
const (
	nodeUnits    = 210   // to check an item of an encoding and make a node of it
	decodeBytes  = 4     // likewise, 8 bytes of the encoding
	itemUnits    = 60    // to check an item only
	levelUnits   = 1_000 // to make a page of each level of a changed path
	encodeUnits  = 30    // to encode a node, or to look at one of two that are compared
	copyBytes    = 1     // to copy or compare 8 bytes
	lookUnits    = 60    // a schema looks at a value; a key is looked for
	textBytes    = 48    // to count the characters of 8 bytes
	boundUnits   = 300   // the bounds of a number
	mergeUnits   = 700   // a key that is merged, or an element that is compared and kept
	journalUnits = 6_000
	journalBytes = 24 // 8 bytes of a change
)

// Prices is the version of the table of what host calls cost beyond their flat price.
// An attempt keeps the version that it began with; 0 is without a table.
const Prices = 1

// CheckPrice is what it takes to check an encoding of so many items and bytes.
func CheckPrice(items, bytes int) uint64 {
	return itemUnits*uint64(items) + work.Bytes(bytes, decodeBytes)
}

// JournalPrice is what it takes to keep an entry of so many bytes.
func JournalPrice(bytes int) uint64 { return journalUnits + work.Bytes(bytes, journalBytes) }

// JournalPrice is the part of an entry's price that these changes are.
func journalPrice(changes []Change) uint64 {
	bytes := 0
	for _, c := range changes {
		bytes += c.encodedSize()
	}
	return JournalPrice(bytes)
}

// walkPrice is what it takes to go through a node of a tree and copy it.
func walkPrice(n *Node) uint64 { return encodeUnits + work.Bytes(len(n.enc), copyBytes) }
