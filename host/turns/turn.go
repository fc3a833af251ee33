// Package turns carries the place of a module in the line of builds from who builds to who
// waits.
//
// It must not know how modules are built, or in which order.
package turns

import (
	"context"
	"sync/atomic"
)

// Stages of a [Turn].
const (
	StageWaiting   = "waiting"   // other modules are compiled first
	StageCompiling = "compiling" // the module is compiled
)

// Stage says how far the building of a module is. The zero value says nothing: the
// module is looked at, or it is built for somebody else as well.
type Stage struct {
	Name  string // StageWaiting, StageCompiling or ""
	Ahead int    // while it waits: how many builds go before, as things stand now
}

// Turn is the place of a module in the line of those that are built. Who builds the
// module sets the turn, and who waits for the module reads it. The zero value is ready
// for use. All methods may be called from any goroutine.
type Turn struct {
	stage atomic.Pointer[func() Stage]
}

// Set has the turn ask for its stage from now on. The function may be called from any
// goroutine, also after the module is built. A nil turn takes no notice.
func (t *Turn) Set(stage func() Stage) {
	if t != nil {
		t.stage.Store(&stage)
	}
}

// Stage returns the stage of this moment.
func (t *Turn) Stage() Stage {
	if stage := t.stage.Load(); stage != nil {
		return (*stage)()
	}
	return Stage{}
}

// turnKey is the key of a context's turn.
type turnKey struct{}

// With returns a context whose builds set the turn.
func With(ctx context.Context, t *Turn) context.Context {
	return context.WithValue(ctx, turnKey{}, t)
}

// Of returns the turn of a context that [With] gave, else nil.
func Of(ctx context.Context) *Turn {
	t, _ := ctx.Value(turnKey{}).(*Turn)
	return t
}
