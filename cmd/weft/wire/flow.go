package wire

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/flow"
)

// flows runs the steps of flows natively, and passes all other steps to the sandbox.
type flows struct {
	host.Sandbox
	source source

	mu   sync.Mutex // guards read
	read map[string]*flow.Document
}

// mostFlows limits the documents in memory; beyond it, documents are read again.
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
	defer func() { // whatever a flow contains, the server must not crash
		if fault := recover(); fault != nil {
			err = fmt.Errorf("the flow %s could not be walked: %v", inv.Digest, fault)
		}
	}()
	t := &timed{Token: inv.Token, began: time.Now()}
	inv.Token = t
	return flow.Run(doc, inv, func() error { return t.stopped(ctx, &inv) })
}

// timed is a token that measures how long its run has had it.
type timed struct {
	host.Token
	began  time.Time
	waited time.Duration
}

// Checkpoint implements host.Token.
func (t *timed) Checkpoint(units uint64) error {
	began := time.Now()
	err := t.Token.Checkpoint(units)
	t.waited += time.Since(began)
	return err
}

// Work implements host.Worker.
func (t *timed) Work(units uint64) error {
	w, ok := t.Token.(host.Worker)
	if !ok {
		return nil
	}
	began := time.Now()
	err := w.Work(units)
	t.waited += time.Since(began)
	return err
}

// Worked implements host.Worker.
func (t *timed) Worked(charged uint64) {
	if w, ok := t.Token.(host.Worker); ok {
		w.Worked(charged)
	}
}

// stopped says why a run must end: it was cancelled, or its time on a core is up. The
// time of a replay does not count.
func (t *timed) stopped(ctx context.Context, inv *host.Invocation) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if r, ok := inv.Calls.(host.Replayer); ok && r.Replaying() {
		t.began, t.waited = time.Now(), 0
	}
	if most := inv.Limits.WallTime; most > 0 && time.Since(t.began)-t.waited > most {
		return flow.ErrOverdue
	}
	return nil
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
