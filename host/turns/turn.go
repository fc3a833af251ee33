// Package turns reports the place of a module in the queue of builds to those who wait
// for the module.
//
// It does not depend on how modules are built, or in which order.
package turns

import (
	"context"
	"sync/atomic"
)

// Stages of a [Turn].
const (
	StageWaiting   = "waiting"   // other modules are compiled first
	StageCompiling = "compiling" // the module is being compiled
)

// Stage says how far the build of a module is. The zero value says nothing: the module is
// being checked, or it is also built for another tenant.
type Stage struct {
	Name  string // StageWaiting, StageCompiling or ""
	Ahead int    // while it waits: the number of earlier builds in the queue
}

// Turn is the place of a module in the queue of builds. The builder of the module sets
// the turn, and those who wait for the module read it. The zero value is ready for use.
// All methods may be called from any goroutine.
type Turn struct {
	stage atomic.Pointer[func() Stage]
}

// Set sets the function that returns the stage from now on. The function may be called
// from any goroutine, even after the module is built. A nil turn ignores the call.
func (t *Turn) Set(stage func() Stage) {
	if t != nil {
		t.stage.Store(&stage)
	}
}

// Stage returns the current stage.
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

// Of returns the turn of a context from [With], or nil.
func Of(ctx context.Context) *Turn {
	t, _ := ctx.Value(turnKey{}).(*Turn)
	return t
}
