package host

import (
	"context"
	"slices"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/kv"
)

// ResourceMode says when a call of a resource is made, and whether it is repeated if its
// outcome is unknown: after a crash, or if its attempt ended before the answer.
type ResourceMode string

// The values of ResourceMode.
const (
	// ResourceReadOnly: the call has no effects. It need not wait until its intent is
	// durable, and may be repeated.
	ResourceReadOnly ResourceMode = "read_only"
	// ResourceRepeat: the call is repeated with the same key.
	ResourceRepeat ResourceMode = "repeat"
	// ResourceFail: the call is made at most once; an unknown outcome is an error for the
	// step.
	ResourceFail ResourceMode = "fail"
)

// Valid reports whether the mode is one of the constants.
func (m ResourceMode) Valid() bool {
	return m == ResourceReadOnly || m == ResourceRepeat || m == ResourceFail
}

// ResourceGrant says how a workflow of a tenant may use a resource.
type ResourceGrant struct {
	Mode ResourceMode
	// Pool names the calls that share InFlight, the number of concurrent calls (at least
	// 1). Further calls wait in order of arrival.
	Pool     string
	InFlight int
	// Reads names methods without effects: their mode is ResourceReadOnly.
	Reads []string
	// Space is not zero if the resource's data is in the journal's own store: its calls
	// are made by Operate, each together with its answer.
	Space kv.Space
}

// ModeOf returns the mode of a method's calls.
func (g *ResourceGrant) ModeOf(method string) ResourceMode {
	if slices.Contains(g.Reads, method) {
		return ResourceReadOnly
	}
	return g.Mode
}

// ResourceUser identifies the workflow that uses a resource.
type ResourceUser struct {
	Tenant   string
	Workflow string
	Digest   string // of the workflow's module
}

// ResourceCall is a call of a resource.
type ResourceCall struct {
	User     ResourceUser
	Step     string
	RunID    string
	Resource string
	Method   string
	Payload  abi.Raw // one encoded value, not modified
	// Key is the same whenever this call is made, and differs from the keys of all other
	// calls: 32 hex digits.
	Key  string
	Mode ResourceMode
	// Trace is nil, or the trace context for a service that is called over HTTP: Parent
	// names the call. It is not part of the call: neither of its key nor of its answer.
	Trace *Trace
	// Stream receives parts of the answer before the whole answer; nil: nothing does.
	Stream *ResourceStream
	// Waits is called before each wait for the network, and back after it, so that the
	// server knows when it works on the call itself. It may be nil.
	Waits func() (back func())
}

// ResourceStream receives parts of the answer to a call, for the stream of its run.
type ResourceStream struct {
	// Published is the number of bytes that an earlier call has published; Hash is their
	// SHA-256.
	Published int
	Hash      [32]byte
	// Publish adds a part. It returns when it is certain that the part precedes
	// everything that follows it, including the answer.
	Publish func(ctx context.Context, d ResourceDelta) error
}

// ResourceDelta is a part of an answer's text.
type ResourceDelta struct {
	Offset int    // in bytes
	Text   string // text at the offset
	Reset  bool   // the earlier published text is not valid any more; Offset is 0
	// Hash is the SHA-256 of the text including this part.
	Hash [32]byte
}

// Resources are the granted resources. All methods may be called from any goroutine.
type Resources interface {
	// Grant returns how a user may use a resource that its manifest asks for.
	//
	// # Errors
	//
	// [*Error] with CodePermissionDenied: it is not granted, or is of another kind.
	Grant(user ResourceUser, decl abi.ResourceDecl) (ResourceGrant, error)
	// Call makes a call and waits for its answer for a limited time. When ctx ends, the
	// answer is no longer needed. Call checks again that the call is still granted.
	Call(ctx context.Context, call ResourceCall) (abi.Raw, *abi.Error)
	// Operate makes a call of a resource whose grant has a Space. It changes nothing
	// itself: the caller writes the change in the answer together with the answer.
	// Operate checks again that the call is still granted for this space.
	Operate(call ResourceCall, space kv.Space, data kv.Data) kv.Answer
}
