package main

// The manifest stands in the data section, in a block that can be found in the
// module: the text "puppet manifest:", five decimal digits for the length of the
// CBOR, the CBOR, and what fills the block up.
const (
	fill = "................................................................"
	kib  = fill + fill + fill + fill + fill + fill + fill + fill + fill + fill + fill + fill + fill + fill + fill + fill

	mark = "puppet manifest:"
	// {"abi": 1, "workflow": "puppet", "events": {}, "steps": [{"name": "play", "accepts": ["StartEvent"], "emits": ["StopEvent"]}]}
	plain = "\xa4cabi\x01esteps\x81\xa3dnamedplayeemits\x81iStopEventgaccepts\x81jStartEventfevents\xa0hworkflowfpuppet"
)

var block = mark + "00085" + plain + kib + kib + kib + kib + kib + kib + kib + kib + kib + kib + kib + kib + kib + kib + kib + kib

// zero is nothing, but no compiler can know that: what it knows of the block it
// may have put elsewhere.
var zero int

// manifest is the CBOR in the block.
func manifest() []byte {
	n := 0
	for i := range 5 {
		n = n*10 + int(block[zero+len(mark)+i]-'0')
	}
	out := make([]byte, n)
	for i := range out {
		out[i] = block[zero+len(mark)+5+i]
	}
	return out
}
