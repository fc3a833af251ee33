package scheduler_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// waiting is a workflow whose first step edits, asks and waits, three times.
const waiting = `{"abi": 1, "workflow": "two", "timeout": 0,
  "events": {"Ask": {"kind": "input_required"}, "Answer": {"kind": "human_response"}, "Other": {"kind": "human_response"}},
  "steps": [
    {"name": "ask", "accepts": ["StartEvent"], "emits": ["StopEvent"], "waits": ["Answer"]}]}`

const waitingToo = `{"abi": 1, "workflow": "two", "timeout": 0,
  "events": {"Ask": {"kind": "input_required"}, "Answer": {"kind": "human_response"}, "Other": {"kind": "human_response"}},
  "steps": [
    {"name": "new", "accepts": ["Other"], "emits": ["StopEvent"]},
    {"name": "ask", "accepts": ["StartEvent"], "emits": ["StopEvent"], "waits": ["Answer", "Other"]}]}`

// asks is its guest: it waits n times, of version @2 perhaps otherwise.
func asks(other func(g *call, turn int) (handled bool, err error)) func(context.Context, *call) (abi.StepOutput, error) {
	return func(_ context.Context, g *call) (abi.StepOutput, error) {
		for turn := range 3 {
			if strings.HasSuffix(g.inv.Digest, "@2") {
				if handled, err := other(g, turn); err != nil {
					return abi.StepOutput{}, err
				} else if handled {
					continue
				}
			}
			if _, err := g.do(abi.ImportStateEdit, []any{[]any{"increment", "n", 1}}); err != nil {
				return abi.StepOutput{}, err
			}
			if _, err := g.do(abi.ImportWait, map[string]any{"type": "Answer", "waiter_id": fmt.Sprint(turn)}); err != nil {
				return abi.StepOutput{}, err
			}
		}
		v, err := g.do(abi.ImportStateGet, []any{"n", 0})
		if err != nil {
			return abi.StepOutput{}, err
		}
		body, err := abi.EncodeValue(map[string]any{"n": v, "by": g.inv.Digest})
		return abi.StepOutput{Events: []abi.Event{{Type: abi.TypeStop, Body: body}}}, err
	}
}

func (b *bench) migrate(t *testing.T, req host.MigrateRequest) host.Migration {
	t.Helper()
	req.Tenant, req.Workflow = "t", "two"
	if req.Limit == 0 {
		req.Limit = 100
	}
	m, err := await(b, func() (host.Migration, error) { return b.sched.Migrate(t.Context(), req) })
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// second adds the second version.
func (b *bench) second(t *testing.T) {
	b.modules["two@2"] = newSimModules(t, map[string]string{"x": waitingToo})["x"]
}

// TestMigrate: runs that wait go on with the newest version if it makes the calls of
// their records; the others are listed with the call at which they would depart. A
// dry run moves none.
func TestMigrate(t *testing.T) {
	b := &bench{tokens: 2, modules: newSimModules(t, map[string]string{"two": waiting})}
	plays := 0
	b.guest = asks(func(g *call, turn int) (bool, error) {
		plays++
		if turn != 1 { // the second version does something else in its second turn
			return false, nil
		}
		_, err := g.do(abi.ImportStateEdit, []any{[]any{"increment", "n", 100}})
		if err == nil {
			_, err = g.do(abi.ImportWait, map[string]any{"type": "Other", "waiter_id": "1"})
		}
		return true, err
	})
	b.open(t)
	for i := range 5 {
		b.start(fmt.Sprintf("h%d", i), "")
		b.rest()
		b.advance(1)
	}
	for _, id := range []string{"h1", "h3"} {
		b.send(t, id) // it is in its second turn
		b.rest()
	}
	if m := b.migrate(t, host.MigrateRequest{}); m.Checked != 0 || m.Version != "two" {
		t.Errorf("without another version: %+v", m)
	}
	b.second(t)
	b.open(t)
	want := "it was state_edit"
	check := func(m host.Migration, moved int) {
		t.Helper()
		if m.Checked != 5 || m.Fit != 3 || m.Moved != moved || len(m.Departed) != 2 || len(m.Running) != 0 || m.NextHandler != "" || m.Version != "two@2" {
			t.Fatalf("%+v", m)
		}
		for i, id := range []string{"h3", "h1"} {
			d := m.Departed[i]
			if d.HandlerID != id || d.Step != "ask" || d.Call != 3 || d.Import != "state_edit" || d.Version != "two" || d.Code != host.BlockedReplayMismatch || !strings.Contains(d.Message, want) {
				t.Errorf("%+v", d)
			}
		}
	}
	check(b.migrate(t, host.MigrateRequest{DryRun: true}), 0)
	if run := b.record(t, "h0"); run.Version != "two" || plays == 0 {
		t.Errorf("after a dry run: %+v", run)
	}
	check(b.migrate(t, host.MigrateRequest{}), 3)
	b.open(t)
	if m := b.migrate(t, host.MigrateRequest{}); m.Checked != 2 || m.Fit != 0 {
		t.Errorf("once more: %+v", m)
	}
	for id, version := range map[string]string{"h0": "two@2", "h1": "two", "h4": "two@2"} {
		if run := b.record(t, id); run.Version != version || run.Status != host.StatusRunning {
			t.Errorf("%s: %+v", id, run)
		}
	}
	// h0 goes on as the second version does, h1 as the first.
	finish := func(id, want string, answers ...string) {
		t.Helper()
		for _, typ := range answers {
			ev := abi.Event{Type: typ, Body: abi.EmptyMap}
			if _, err := await(b, func() (struct{}, error) { return struct{}{}, b.sched.Send(t.Context(), "t", id, ev, "") }); err != nil {
				t.Fatal(err)
			}
			b.rest()
		}
		run := b.record(t, id)
		if run.Status != host.StatusCompleted {
			t.Fatalf("%s: %+v", id, run)
		}
		if got, err := abi.ToJSON(run.Result.Body); err != nil || string(got) != want {
			t.Errorf("%s comes to %s, want %s", id, got, want)
		}
	}
	finish("h0", `{"n":102,"by":"two@2"}`, "Answer", "Other", "Answer")
	finish("h1", `{"n":3,"by":"two"}`, "Answer", "Answer")
}

// TestMigratePages: a page at a time, and one run alone.
func TestMigratePages(t *testing.T) {
	b := &bench{tokens: 2, modules: newSimModules(t, map[string]string{"two": waiting})}
	b.guest = asks(func(*call, int) (bool, error) { return false, nil })
	b.open(t)
	for i := range 5 {
		b.start(fmt.Sprintf("h%d", i), "shared")
		b.rest()
		b.advance(1)
	}
	b.second(t)
	if m := b.migrate(t, host.MigrateRequest{HandlerID: "h2"}); m.Moved != 1 || m.Checked != 1 {
		t.Errorf("one: %+v", m)
	}
	moved, req := 0, host.MigrateRequest{Limit: 2}
	for pages := 1; ; pages++ {
		m := b.migrate(t, req)
		if moved += m.Moved; m.NextHandler == "" {
			if pages != 3 || moved != 4 {
				t.Errorf("%d pages, %d moved", pages, moved)
			}
			break
		}
		req.AfterStarted, req.AfterHandler = m.NextStarted, m.NextHandler
	}
	for _, bad := range []host.MigrateRequest{{Workflow: "nothing"}, {Workflow: "two", HandlerID: "nobody"}} {
		bad.Tenant, bad.Limit = "t", 1
		if _, err := b.sched.Migrate(t.Context(), bad); host.CodeOf(err) != host.CodeNotFound {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// TestMigrateMeanwhile: a run to which something happens while its record is played
// is looked at again; one that is at work is not moved.
func TestMigrateMeanwhile(t *testing.T) {
	b := &bench{tokens: 2, modules: newSimModules(t, map[string]string{"two": waiting})}
	answered := 0
	b.guest = asks(func(g *call, turn int) (bool, error) {
		if turn == 0 && answered == 0 {
			answered++
			before := b.record(t, "h").WaitingFor
			ev := abi.Event{Type: "Answer", Body: abi.EmptyMap}
			if err := b.sched.Send(context.Background(), "t", "h", ev, ""); err != nil {
				return false, err
			}
			for { // until it waits again
				if now := b.record(t, "h").WaitingFor; len(now) == 1 && now[0] != before[0] {
					return false, nil
				}
				runtime.Gosched()
			}
		}
		if turn == 1 {
			_, err := g.do(abi.ImportStateGet, []any{"n", 0}) // the first does not
			return false, err
		}
		return false, nil
	})
	b.open(t)
	b.start("h", "s")
	b.rest()
	b.second(t)
	// When its record is played it fits; when it is to be moved it has done more.
	if m := b.migrate(t, host.MigrateRequest{}); m.Checked != 1 || m.Moved != 0 || len(m.Departed) != 1 || m.Departed[0].Call != 3 || answered != 1 {
		t.Fatalf("%+v, %d answers", m, answered)
	}
	for b.record(t, "h").Status == host.StatusRunning {
		b.send(t, "h")
		b.rest()
	}
	if run := b.record(t, "h"); run.Status != host.StatusCompleted || run.Version != "two" {
		t.Errorf("%+v", run)
	}
}

// TestMigrateBlocked: a run that departed from its record goes on with a version that
// does not.
func TestMigrateBlocked(t *testing.T) {
	b := &bench{tokens: 1, modules: newSimModules(t, map[string]string{"two": waiting})}
	odd := false
	plain := asks(func(*call, int) (bool, error) { return false, nil })
	b.guest = func(ctx context.Context, g *call) (abi.StepOutput, error) {
		if odd && g.inv.Digest == "two" {
			if _, err := g.do(abi.ImportStateEdit, []any{[]any{"set", "odd", true}}); err != nil {
				return abi.StepOutput{}, err
			}
		}
		return plain(ctx, g)
	}
	b.open(t)
	b.start("h", "s")
	b.rest()
	odd = true
	b.send(t, "h")
	b.rest()
	if run := b.record(t, "h"); run.Blocked == nil {
		t.Fatalf("%+v", run)
	}
	b.second(t)
	if m := b.migrate(t, host.MigrateRequest{DryRun: true}); m.Fit != 1 || b.record(t, "h").Blocked == nil {
		t.Fatalf("%+v", m)
	}
	if m := b.migrate(t, host.MigrateRequest{}); m.Moved != 1 {
		t.Fatalf("%+v", m)
	}
	b.rest()
	for range 2 {
		b.send(t, "h")
		b.rest()
	}
	run := b.record(t, "h")
	if run.Status != host.StatusCompleted {
		t.Fatalf("%+v", run)
	}
	if got, err := abi.ToJSON(run.Result.Body); err != nil || string(got) != `{"n":3,"by":"two@2"}` { // nothing was done again
		t.Errorf("it comes to %s", got)
	}
}

// TestRetryNewest: a run that failed goes on with the newest version, if what else is
// open in it goes on with that.
func TestRetryNewest(t *testing.T) {
	b := &bench{tokens: 1, modules: newSimModules(t, map[string]string{"two": failing})}
	departs := false
	inner := branches(func() bool { return false })
	b.guest = func(ctx context.Context, g *call) (abi.StepOutput, error) {
		if g.in.Step == "work" && g.in.Run.Invocation == 4 && g.inv.Digest == "two" {
			return abi.StepOutput{Err: &abi.Error{Code: "broken", Message: "in the first version"}}, nil
		}
		if departs && g.inv.Digest == "two@2" && g.in.Run.Invocation == 2 {
			if _, err := g.do(abi.ImportStateEdit, []any{[]any{"set", "odd", true}}); err != nil {
				return abi.StepOutput{}, err
			}
		}
		return inner(ctx, g)
	}
	b.open(t)
	b.start("h", "s")
	b.rest()
	b.advance(time.Second)
	b.rest()
	if run := b.record(t, "h"); run.Status != host.StatusFailed {
		t.Fatalf("%+v", run)
	}
	b.modules["two@2"] = newSimModules(t, map[string]string{"x": failing})["x"]
	departs = true
	if _, err := b.retry(t, "h", true); host.CodeOf(err) != host.CodeConflict || !strings.Contains(err.Error(), "Step work") {
		t.Errorf("a version that departs: %v", err)
	}
	departs = false
	if again, err := b.retry(t, "h", true); err != nil || again.Run.Version != "two@2" {
		t.Fatalf("%+v, %v", again, err)
	}
	b.rest()
	b.open(t)
	b.send(t, "h")
	b.advance(20e9)
	b.rest()
	if run := b.record(t, "h"); run.Status != host.StatusCompleted {
		t.Errorf("%+v", run)
	}
}

// TestRetryTakenMeanwhile: a handler that is purged, and begun in another session,
// while it is being retried, is not there to be retried any more.
func TestRetryTakenMeanwhile(t *testing.T) {
	b := &bench{tokens: 2, modules: newSimModules(t, map[string]string{"two": failing})}
	taken := false
	inner := branches(func() bool { return true })
	b.guest = func(ctx context.Context, g *call) (abi.StepOutput, error) {
		if g.inv.Digest == "two@2" && !taken && g.in.Run.Invocation == 2 { // it is played to
			taken = true
			if _, err := b.sched.Cancel(ctx, "t", "h", true); err != nil {
				t.Error(err)
			}
			if _, err := b.sched.Start(ctx, host.StartRequest{Tenant: "t", Workflow: "two", HandlerID: "h", SessionID: "other"}); err != nil {
				t.Error(err)
			}
		}
		return inner(ctx, g)
	}
	b.open(t)
	b.start("h", "s")
	b.rest()
	b.start("neighbour", "s") // the session stays
	b.rest()
	b.advance(time.Second)
	b.rest()
	b.modules["two@2"] = newSimModules(t, map[string]string{"x": failing})["x"]
	if _, err := b.retry(t, "h", true); !taken || host.CodeOf(err) != host.CodeConflict && host.CodeOf(err) != host.CodeNotFound {
		t.Errorf("%v", err)
	}
	b.rest()
	b.advance(time.Second)
	b.rest()
	if run := b.record(t, "h"); run.SessionID != "other" || run.Status != host.StatusFailed {
		t.Errorf("%+v", run)
	}
}
