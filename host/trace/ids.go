package trace

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"strconv"

	api "go.opentelemetry.io/otel/trace"

	"github.com/weftrun/weft/host/traced"
)

// named holds the ids for the next span.
type named struct {
	trace api.TraceID
	span  api.SpanID
}

type namedKey struct{}

func withName(ctx context.Context, n named) context.Context {
	return context.WithValue(ctx, namedKey{}, n)
}

// ids gives spans predetermined ids. It implements sdk.IDGenerator.
type ids struct{}

// NewIDs implements sdk.IDGenerator.
func (ids) NewIDs(ctx context.Context) (api.TraceID, api.SpanID) {
	n, ok := ctx.Value(namedKey{}).(named)
	if !ok {
		return randomTrace(), randomSpan()
	}
	return n.trace, n.span
}

// NewSpanID implements sdk.IDGenerator.
func (ids) NewSpanID(ctx context.Context, _ api.TraceID) api.SpanID {
	n, ok := ctx.Value(namedKey{}).(named)
	if !ok {
		return randomSpan()
	}
	return n.span
}

func randomTrace() (id api.TraceID) {
	_, _ = rand.Read(id[:]) // never fails
	return id
}

func randomSpan() (id api.SpanID) {
	_, _ = rand.Read(id[:]) // never fails
	return id
}

// hash returns a digest of texts; different lists of texts have different digests.
func hash(what string, parts ...string) [32]byte {
	b := append(make([]byte, 0, 256), what...)
	for _, p := range parts {
		b = binary.AppendUvarint(b, uint64(len(p)))
		b = append(b, p...)
	}
	return sha256.Sum256(b)
}

func spanOf(h [32]byte) api.SpanID { return api.SpanID(h[:8]) }

// runSpan is the id of a run's span.
func runSpan(run *traced.Run) api.SpanID { return spanOf(hash("run", run.Tenant, run.RunID)) }

// runTrace returns the trace id of a run that does not belong to an existing trace.
func runTrace(run *traced.Run) api.TraceID {
	h := hash("trace", run.Tenant, run.RunID)
	return api.TraceID(h[:16])
}

// attemptSpan is the id of the span of an invocation's attempt.
func attemptSpan(at *traced.Attempt, number uint64) api.SpanID {
	return spanOf(hash("attempt", at.Run.Tenant, at.Run.RunID, strconv.FormatUint(at.Invocation, 10), strconv.FormatUint(number, 10)))
}

// callSpan returns the id of a call's span. A call repeated after a crash is a different
// span.
func callSpan(c *traced.Call) api.SpanID {
	return spanOf(hash("call", c.Attempt.Run.Tenant, c.Attempt.Run.RunID, c.Key, strconv.FormatInt(c.Started, 10)))
}
