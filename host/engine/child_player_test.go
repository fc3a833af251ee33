package engine

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weftrun/weft/host"
)

// Histories with children use several sessions: "in NAME" switches to a session, "carry
// NAME" carries the present session's messages to it ("carry NAME again" without
// recording the delivery, as after a crash), and "run" makes a child.

// stage is one of the sessions of a player.
type stage struct {
	live, copied *Session
	past         past
}

// in switches to a session, which is created when it is first named.
func (p *player) in(name string) {
	here := p.live.key.Session
	p.stages[here] = stage{p.live, p.copied, p.past}
	to, ok := p.stages[name]
	if !ok {
		key := host.SessionKey{Tenant: "t", Session: name}
		to = stage{live: New(key, p.live.graphs), copied: New(key, p.live.graphs)}
		p.stages[name] = to
	}
	p.live, p.copied, p.past = to.live, to.copied, to.past
}

// carry delivers the messages of this session to another session.
func (p *player) carry(to string, again bool) {
	p.t.Helper()
	from := p.live.key.Session
	messages := slices.Clone(p.live.Mail(to, 100))
	p.in(to)
	for _, m := range messages {
		fmt.Fprintf(&p.out, "  %s > %s: %s\n", from, to, m.show())
		if _, err := p.do(move{line: m.show(), tick: m.Tick()}); err != nil && m.Start != nil && !errors.Is(err, ErrStale) {
			p.t.Fatalf("a child does not begin: %v", err)
		}
	}
	p.in(from)
	if len(messages) > 0 && !again {
		_, _ = p.do(move{line: "delivered to " + to, tick: Delivered{To: to, ID: messages[len(messages)-1].ID}})
	}
}

// stageVerb plays the verbs that are not ticks. It returns false for other verbs.
func (p *player) stageVerb(verb string, in *scanner) bool {
	switch verb {
	case "in":
		p.in(in.word())
	case "carry":
		to := in.word()
		p.carry(to, strings.TrimSpace(in.rest) == "again")
	case "snap", "try":
		p.try(verb, in)
	default:
		return false
	}
	return true
}

// child parses a run_workflow:
//
//	run INVOCATION VERSION EVENT [id=ID] [session=NAME | shared=1] [stream=1] [depth=N] [timeout=D] [unresolved=1]
func (p *player) child(in *scanner) Request {
	version := in.word()
	req := RunWorkflow{
		Workflow: "w-" + version, ID: in.option("id", ""), Session: in.option("session", ""),
		Shared: in.option("shared", "") != "", Stream: in.option("stream", "") != "",
	}
	start := StartRun{Version: version, Timeout: int64(in.duration(in.option("timeout", "0s"))), Limits: host.Limits{ChildDepth: int(in.uintOption("depth", 0))}}
	if in.option("unresolved", "") == "" {
		req.Start = &start
	}
	start.Event = in.event()
	return req
}

// dumps returns the dumps of all sessions, or of the only session.
func (p *player) dumps() string {
	p.in(p.live.key.Session)
	if len(p.stages) == 1 {
		return p.live.Dump()
	}
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(p.stages)) {
		out.WriteString(p.stages[name].live.Dump())
	}
	return out.String()
}

// auditChildren checks the invariants of children and messages.
func auditChildren(t reporter, s *Session) {
	t.Helper()
	open := 0
	for _, inv := range s.invocations {
		for key, c := range inv.children {
			if c.key != key || c.inv != inv {
				t.Fatalf("the child %s is not where it should be", key)
			}
			if c.ended() {
				continue
			}
			open++
			if s.children[c.run] != c {
				t.Fatalf("the child %s has not ended and is not listed", c.run)
			}
			if r := s.runs[c.run]; c.session == "" && (r == nil || r.parent == nil || r.parent.session != s.key.Session) {
				t.Fatalf("the child %s is none of the session's runs", c.run)
			}
		}
		if on := inv.suspended; on != nil && on.child != nil && on.child.ended() {
			t.Fatalf("invocation %d waits for a child that has ended", inv.id)
		}
	}
	if open != len(s.children) {
		t.Fatalf("%d children have not ended, %d are listed", open, len(s.children))
	}
	size := 0
	for to, messages := range s.outbox.byTarget {
		size += len(messages)
		if len(messages) == 0 || to == s.key.Session {
			t.Fatalf("%d messages to %s", len(messages), to)
		}
	}
	if size != s.outbox.size {
		t.Fatalf("%d messages, %d counted", size, s.outbox.size)
	}
}
