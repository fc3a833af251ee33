package host

// Trace is a place in a distributed trace, in the terms of W3C Trace Context. Its text
// comes from clients and has been checked.
type Trace struct {
	// Parent is the traceparent of the span that caused this: a request, or the attempt
	// of a step.
	Parent string `cbor:"1,keyasint"`
	State  string `cbor:"2,keyasint,omitempty"` // the tracestate received with it
	// Link is the traceparent of what this continues, in the same trace or another: the
	// original run of a fork or a retry; "": none.
	Link string `cbor:"3,keyasint,omitempty"`
}
