// Puppet is a guest of which every step does what it is told: its step config,
// or else its trigger's body, has under "ops" a list of operations.
//
//	["state_edit", [["set", "x", 1]]]   a host call, by its import, and its request
//	["commit_plus", 1]                  commits what the last state_begin gave, and so much more
//	["burn", 1000000]                   rounds of arithmetic
//	["trap"]                            ends by a trap
//	["output", [0, ["StopEvent", {}]]]  the step's output
//	["answers"]                         the output is a StopEvent, whose result is [status, response] of every call
//
// A host call that fails is no reason to stop: the next operation follows. A step
// that is told of no output returns nothing.
//
// It has no SDK: requests are CBOR as the ABI has it and go to the host as they
// are. Its manifest is a block of the data section that whoever runs it fills in;
// as it is built, it is that of one step for one event. See manifest.go.
package main

func main() {}

// answer is the answer of a host call.
type answer struct {
	status   uint32
	response []byte
}

// play does what the input says, and returns the output and the code.
func play(input []byte) ([]byte, int32) {
	ops := operations(input)
	var answers []answer
	for range length(&ops) {
		op := next(&ops)
		n := length(&op)
		name := text(next(&op))
		var arg []byte
		if n > 1 {
			arg = next(&op)
		}
		switch name {
		case "output":
			return arg, code(arg)
		case "answers":
			return report(answers), 0
		case "burn":
			burn(number(arg))
		case "trap":
			panic("told to")
		case "commit_plus":
			arg = appendHead([]byte{0x81}, 0, number(answers[len(answers)-1].response)+number(arg))
			answers = append(answers, call("state_commit", arg))
		default:
			answers = append(answers, call(name, arg))
		}
	}
	return []byte{0x82, 0, 0xf6}, 0
}

// operations finds the list: in the config, else in the trigger.
func operations(input []byte) []byte {
	n := length(&input)
	next(&input) // step
	trigger := next(&input)
	next(&input) // run
	if n > 3 {
		if ops := field(next(&input), "ops"); ops != nil {
			return ops
		}
	}
	if length(&trigger) == 0 {
		return []byte{0x80}
	}
	if trigger[0]>>5 == 4 { // a list of events: the first one's
		length(&trigger)
	}
	next(&trigger) // type
	if ops := field(next(&trigger), "ops"); ops != nil {
		return ops
	}
	return []byte{0x80}
}

// report is a StopEvent with the answers.
func report(answers []answer) []byte {
	b := []byte{0x82, 0, 0x82}
	b = appendText(b, "StopEvent")
	b = appendText(append(b, 0xa1), "result")
	b = appendHead(b, 4, uint64(len(answers)))
	for _, a := range answers {
		b = appendHead(append(b, 0x82), 0, uint64(a.status))
		if len(a.response) == 0 {
			b = append(b, 0xf6)
		}
		b = append(b, a.response...)
	}
	return b
}

// code returns the code for an output: its first item.
func code(output []byte) int32 {
	if length(&output) > 0 && len(output) > 0 && output[0] == 1 {
		return 1
	}
	return 0
}

var sum uint64

func burn(rounds uint64) {
	for i := range rounds {
		sum = sum*6364136223846793005 + i
	}
}
