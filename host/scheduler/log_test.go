package scheduler

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/scheduler/runlog"
	"github.com/weftrun/weft/host/traced"
)

// Every line says whose it is, by the same keys.
func TestLogLinesHaveTheSameKeys(t *testing.T) {
	var out bytes.Buffer
	s := newScheduler(t.Context(), Config{Log: slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	ss := &session{s: s, key: host.SessionKey{Tenant: "acme", Session: "s1"}}
	at := &attempt{ss: ss, view: engine.Invocation{Workflow: "w", HandlerID: "h", RunID: "r", Step: "one"}}
	run := &host.Run{Tenant: "acme", SessionID: "s1", Workflow: "w", HandlerID: "h", RunID: "r", Status: host.StatusFailed, ErrorCode: "boom"}
	ctx := traced.WithOrigin(t.Context(), traced.Origin{Request: "r1"})
	for _, tt := range []struct {
		name string
		tell func()
		want map[string]any
	}{
		{"session", func() { ss.log(ctx, slog.LevelError, "m", "error", errors.New("e")) }, map[string]any{"tenant": "acme", "session": "s1", "request": "r1", "error": "e"}},
		{"attempt", func() { at.say(slog.LevelWarn, "m") }, map[string]any{"tenant": "acme", "workflow": "w", "handler": "h", "run": "r", "step": "one"}},
		{"guest", func() { at.log([]engine.LogRecord{{Message: "m"}}) }, map[string]any{"tenant": "acme", "workflow": "w", "handler": "h", "run": "r", "step": "one"}},
		{"begun", func() { s.log.Began(ctx, run) }, map[string]any{"tenant": "acme", "session": "s1", "workflow": "w", "handler": "h", "run": "r", "request": "r1"}},
		{"ended", func() { s.log.Ended(run) }, map[string]any{"tenant": "acme", "session": "s1", "workflow": "w", "handler": "h", "run": "r", "status": "failed", "code": "boom", "steps": 0.0, "fuel": 0.0}},
	} {
		out.Reset()
		tt.tell()
		var got map[string]any
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatalf("%s: %v: %s", tt.name, err, &out)
		}
		for _, key := range []string{"time", "level", "msg"} {
			delete(got, key)
		}
		if len(got) != len(tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
		for key, want := range tt.want {
			if got[key] != want {
				t.Errorf("%s: %s is %v, want %v", tt.name, key, got[key], want)
			}
		}
	}
	s.cfg.Log = slog.New(slog.DiscardHandler)
	s.log = runlog.Logger{Logger: s.cfg.Log}
	if n := testing.AllocsPerRun(100, func() { s.log.Ended(run); s.log.Began(context.Background(), run) }); n != 0 {
		t.Errorf("a line that is not written costs %v allocations", n)
	}
}
