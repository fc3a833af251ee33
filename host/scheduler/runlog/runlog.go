// Package runlog writes the lines of the server's log about sessions and runs, with the same
// keys everywhere.
//
// It must not depend on what is logged.
package runlog

import (
	"context"
	"log/slog"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/traced"
)

// The keys of log lines are the same everywhere: tenant, session, workflow, handler,
// run, step and, of what a request has asked for, request (see docs/operations.md).

// Logger writes the lines. Its methods may be called from any goroutine.
type Logger struct{ *slog.Logger }

// Session writes a line about a session. The names of the tenant and the session come first.
func (l Logger) Session(ctx context.Context, level slog.Level, message string, key host.SessionKey, args []any) {
	if !l.Enabled(ctx, level) {
		return
	}
	line := []any{"tenant", key.Tenant, "session", key.Session}
	l.Log(ctx, level, message, append(withRequest(ctx, line), args...)...)
}

func withRequest(ctx context.Context, line []any) []any {
	if id := traced.OriginOf(ctx).Request; id != "" {
		return append(line, "request", id)
	}
	return line
}

// Run writes a line about a run.
func (l Logger) Run(ctx context.Context, level slog.Level, message string, run *host.Run, args ...any) {
	if !l.Enabled(ctx, level) {
		return
	}
	line := []any{"tenant", run.Tenant, "workflow", run.Workflow, "handler", run.HandlerID, "run", run.RunID}
	l.Log(ctx, level, message, append(withRequest(ctx, line), args...)...)
}

// Began says who began a run, at debug level.
func (l Logger) Began(ctx context.Context, run *host.Run) {
	if !l.Enabled(ctx, slog.LevelDebug) {
		return
	}
	l.Run(ctx, slog.LevelDebug, "run begins", run, "session", run.SessionID)
}

// Ended says how a run has ended, at debug level.
func (l Logger) Ended(run *host.Run) {
	if !l.Enabled(context.Background(), slog.LevelDebug) {
		return
	}
	l.Run(context.Background(), slog.LevelDebug, "run has ended", run, "session", run.SessionID, "status", string(run.Status),
		"code", run.ErrorCode, "steps", run.Steps, "fuel", run.Fuel)
}
