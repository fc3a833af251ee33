package host

// Trace is where something stands in a distributed trace, in the words of W3C Trace
// Context. The text of it comes from clients: it has been checked when it is here.
type Trace struct {
	// Parent is the traceparent of what began this: a request, or the attempt of a
	// step.
	Parent string `cbor:"1,keyasint"`
	State  string `cbor:"2,keyasint,omitempty"` // the tracestate that came with it
	// Link is the traceparent of what this goes on from, in the same trace or
	// another: of a fork or a retry the run that was; "": nothing.
	Link string `cbor:"3,keyasint,omitempty"`
}
