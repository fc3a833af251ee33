package host

import (
	"context"
	"slices"

	"github.com/weftrun/weft/abi"
)

// ResourceMode says when a call of a resource is made, and whether again if its
// outcome is not known: after a crash, or an attempt that ended before the answer.
type ResourceMode string

// The values of ResourceMode.
const (
	// ResourceReadOnly: the call changes nothing outside. It need not wait until
	// its intent is durable, and is made again.
	ResourceReadOnly ResourceMode = "read_only"
	// ResourceRepeat: the call is made again, under the same key.
	ResourceRepeat ResourceMode = "repeat"
	// ResourceFail: the call is made at most once; an outcome that is not known is
	// an error to the step.
	ResourceFail ResourceMode = "fail"
)

// Valid reports whether the mode is one of these.
func (m ResourceMode) Valid() bool {
	return m == ResourceReadOnly || m == ResourceRepeat || m == ResourceFail
}

// ResourceGrant is how a workflow of a tenant may use a resource.
type ResourceGrant struct {
	Mode ResourceMode
	// Pool names those who share InFlight, the calls under way at a time (at least
	// 1). The surplus waits, first come, first served.
	Pool     string
	InFlight int
	// Reads names methods that change nothing: their mode is ResourceReadOnly.
	Reads []string
	// Space is not the zero value if the resource is kept in the journal's own store:
	// its calls are made by Operate, each together with its answer.
	Space KVSpace
}

// ModeOf is the mode of a method's calls.
func (g *ResourceGrant) ModeOf(method string) ResourceMode {
	if slices.Contains(g.Reads, method) {
		return ResourceReadOnly
	}
	return g.Mode
}

// ResourceUser is who wants to use a resource.
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
	// Key is the same whenever this call is made, and no other call's: 32 hex
	// digits.
	Key  string
	Mode ResourceMode
	// Trace is nil, or what a service that is called over HTTP is told of the call's
	// trace: Parent names the call. It is no part of the call: neither of its key nor
	// of its answer.
	Trace *Trace
	// Stream takes what comes of an answer before the whole; nil: nobody does.
	Stream *ResourceStream
	// Waits is called before each wait for the network, and back after it, so that
	// the server knows when it works on the call itself. It may be nil.
	Waits func() (back func())
}

// ResourceStream takes parts of the answer to a call, for the stream of its run.
type ResourceStream struct {
	// Published are the bytes that are there already, from when the call was made
	// before; Hash is their SHA-256.
	Published int
	Hash      [32]byte
	// Publish adds a part. It returns when the part will surely be there before what
	// comes after it, the answer included.
	Publish func(ctx context.Context, d ResourceDelta) error
}

// ResourceDelta is a part of an answer's text.
type ResourceDelta struct {
	Offset int    // in bytes
	Text   string // from there on
	Reset  bool   // what was published before holds no more; Offset is 0
	// Hash is the SHA-256 of the text with this part.
	Hash [32]byte
}

// Resources is what operators have granted. All methods may be called from any
// goroutine.
type Resources interface {
	// Grant says how someone may use a resource that its manifest asks for.
	//
	// # Errors
	//
	// [*Error] with CodePermissionDenied: it is not granted, or is of another kind.
	Grant(user ResourceUser, decl abi.ResourceDecl) (ResourceGrant, error)
	// Call makes a call and waits for its answer, which is bounded in time. When
	// ctx ends, nobody wants the answer any more. Whether the call is still granted
	// is checked again.
	Call(ctx context.Context, call ResourceCall) (abi.Raw, *abi.Error)
	// Operate makes a call of a resource whose grant has a Space. It changes nothing
	// itself: the caller makes the write of the answer, with the answer. Whether the
	// call is still granted, for this space, is checked again.
	Operate(call ResourceCall, space KVSpace, data KVData) KVAnswer
}
