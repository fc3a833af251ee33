package scheduler

import (
	"context"
	"log/slog"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/traced"
)

// The keys of log lines are the same everywhere: tenant, session, workflow, handler,
// run, step and, of what a request has asked for, request (see docs/operations.md).

// logger writes the lines of the server's log.
type logger struct{ *slog.Logger }

// log writes a line about a session. The names of the tenant and the session come first.
func (ss *session) log(ctx context.Context, level slog.Level, message string, args ...any) {
	ss.s.log.session(ctx, level, message, ss.key, args)
}

// session is session.log for one that is not in memory.
func (l logger) session(ctx context.Context, level slog.Level, message string, key host.SessionKey, args []any) {
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

// say writes a line about the attempt.
func (at *attempt) say(level slog.Level, message string, args ...any) {
	log := at.ss.s.cfg.Log
	if !log.Enabled(context.Background(), level) {
		return
	}
	line := []any{
		"tenant", at.ss.key.Tenant, "workflow", at.view.Workflow, "handler", at.view.HandlerID, "run", at.view.RunID, "step", at.view.Step,
	}
	log.Log(context.Background(), level, message, append(line, args...)...)
}

// run writes a line about a run.
func (l logger) run(ctx context.Context, level slog.Level, message string, run *host.Run, args ...any) {
	if !l.Enabled(ctx, level) {
		return
	}
	line := []any{"tenant", run.Tenant, "workflow", run.Workflow, "handler", run.HandlerID, "run", run.RunID}
	l.Log(ctx, level, message, append(withRequest(ctx, line), args...)...)
}

// began tells who began a run, at debug level.
func (l logger) began(ctx context.Context, run *host.Run) {
	if !l.Enabled(ctx, slog.LevelDebug) {
		return
	}
	l.run(ctx, slog.LevelDebug, "run begins", run, "session", run.SessionID)
}

// ended tells how a run has ended, at debug level.
func (l logger) ended(run *host.Run) {
	if !l.Enabled(context.Background(), slog.LevelDebug) {
		return
	}
	l.run(context.Background(), slog.LevelDebug, "run has ended", run, "session", run.SessionID, "status", string(run.Status),
		"code", run.ErrorCode, "steps", run.Steps, "fuel", run.Fuel)
}
