package wire

import (
	"context"
	"fmt"
	"sync"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/flow"
)

// flows runs the steps of flows natively, and hands all others to the sandbox.
type flows struct {
	host.Sandbox
	source source

	mu   sync.Mutex // guards read
	read map[string]*flow.Document
}

// mostFlows bounds the documents that are kept; beyond it they are read again.
const mostFlows = 256

// Ready implements host.Sandbox: a flow has no code.
func (f *flows) Ready(inv *host.Invocation) bool {
	return inv.ImageHash == flow.ImageHash || f.Sandbox.Ready(inv)
}

// Invoke implements host.Sandbox.
func (f *flows) Invoke(ctx context.Context, inv host.Invocation) (res host.InvocationResult, err error) {
	if inv.ImageHash != flow.ImageHash {
		return f.Sandbox.Invoke(ctx, inv)
	}
	if err := ctx.Err(); err != nil {
		return res, err
	}
	doc, err := f.document(ctx, inv.Digest)
	if err != nil {
		return res, err
	}
	defer func() { // whatever a flow says, the server stays up
		if fault := recover(); fault != nil {
			err = fmt.Errorf("the flow %s could not be walked: %v", inv.Digest, fault)
		}
	}()
	return flow.Run(doc, inv)
}

func (f *flows) document(ctx context.Context, digest string) (*flow.Document, error) {
	f.mu.Lock()
	doc := f.read[digest]
	f.mu.Unlock()
	if doc != nil {
		return doc, nil
	}
	bytes, err := f.source.Wasm(ctx, digest)
	if err != nil {
		return nil, host.Errorf(host.CodeUnavailable, "flow %s could not be read: %w", digest, err)
	}
	if doc, err = flow.Open(bytes); err != nil {
		return nil, host.Errorf(host.CodeInternal, "flow %s: %w", digest, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.read) >= mostFlows {
		f.read = nil
	}
	if f.read == nil {
		f.read = map[string]*flow.Document{}
	}
	f.read[digest] = doc
	return doc, nil
}
