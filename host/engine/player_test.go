package engine

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/state"
)

// player plays ticks on one session, and the resulting entries on another.
type player struct {
	t      reporter
	live   *Session
	copied *Session
	stages map[string]stage
	atomic map[uint64]*staged
	now    int64
	bases  map[string]base
	out    strings.Builder
	past   past
	after  func() // each move
	// restored are sessions restored from snapshots of each live session.
	restored map[*Session]*restored
	keepAll  bool // keep a session for every snapshot, not only for the newest
}

// base is the value of a begin, for a later commit.
type base struct {
	path state.Path
	node *state.Node
}

// onlyNeeded finds workflows, and expects each version to be among those that the entry
// needs.
func onlyNeeded(t reporter, s *Session, e *Entry, find func(string) (*Graph, error)) func(string) (*Graph, error) {
	needs := s.Needs(e)
	return func(version string) (*Graph, error) {
		if !slices.Contains(needs, version) {
			t.Fatalf("entry %d (%s) needs %q, and version %q is asked for", e.Seq, e.Kind, needs, version)
		}
		return find(version)
	}
}

func newPlayer(t reporter, graphs map[string]*Graph) *player {
	find := func(version string) (*Graph, error) {
		if g, ok := graphs[version]; ok {
			return g, nil
		}
		return nil, fmt.Errorf("no version %q", version)
	}
	key := host.SessionKey{Tenant: "t", Session: "s"}
	return &player{t: t, live: New(key, find), copied: New(key, find), stages: make(map[string]stage), atomic: make(map[uint64]*staged), bases: make(map[string]base), restored: make(map[*Session]*restored)}
}

// play plays one line:
//
//	[@TIME] start RUN HANDLER EVENT [version=V] [timeout=D] [work=1] [events=N] [stream=N] [state=N] [inbox=N] [suspensions=N] [depth=N] [record=N] [cleanup=D] [busy=queue] [queued=N]
//	[@TIME] turn
//	[@TIME] post RUN EVENT [step=NAME]
//	[@TIME] finish INVOCATION null | EVENT | [EVENT...] | error CODE "MESSAGE" [final] [attempt=N] [fuel=N]
//	[@TIME] edit INVOCATION OP PATH [VALUE] [; OP PATH [VALUE]]...
//	[@TIME] begin NAME PATH
//	[@TIME] commit INVOCATION NAME VALUE
//	[@TIME] send INVOCATION EVENT [step=NAME]
//	[@TIME] write INVOCATION EVENT
//	[@TIME] collect INVOCATION EVENT TYPE,TYPE... [buffer=NAME]
//	[@TIME] wait INVOCATION TYPE [id=ID] [need=JSON] [ask=EVENT] [for=D] [broadcast=1] [n=N] [attempt=N]
//	[@TIME] sleep INVOCATION DURATION [n=N] [attempt=N]
//	[@TIME] timer
//	[@TIME] cancel RUN
//	[@TIME] block RUN CODE MESSAGE
//	[@TIME] pause RUN
//	[@TIME] resume RUN [anew]
//	[@TIME] rerun RUN as NEW [version=V]: see [player.failedAgain]
//	[@TIME] migrate RUN VERSION
//	[@TIME] shift DURATION
//	[@TIME] extend RUN TIMER DURATION [invocation=N]
//	[@TIME] outside put JSON | patch JSON | edit OP PATH... [; OP PATH...]... | make: see [player.outside]
//	snap INVOCATION, try INVOCATION get PATH | VERB...: see [player.try]
//	ask INVOCATION RESOURCE METHOD JSON [ordinal=N] [mode=M] [n=N] [attempt=N]
//	[@TIME] answer INVOCATION JSON | error CODE "MESSAGE" [final] [n=N] [attempt=N]
//	in SESSION, carry SESSION [again], run INVOCATION...: see [player.child]
//
// EVENT is TYPE, #ID and a JSON object, the last two optional; TIME is a
// duration since the epoch.
func (p *player) play(line string) {
	p.t.Helper()
	fmt.Fprintf(&p.out, "> %s\n", line)
	in := &scanner{t: p.t, rest: line}
	verb := in.word()
	if at, ok := strings.CutPrefix(verb, "@"); ok {
		p.now = int64(in.duration(at))
		verb = in.word()
	}
	if p.stageVerb(verb, in) {
		return
	}
	if verb == "begin" {
		name := in.word()
		path, err := state.ParsePath(in.word())
		if err != nil {
			p.t.Fatal(err)
		}
		node, _ := state.Get(p.live.State(), path)
		p.bases[name] = base{path, node}
		p.remember(move{line: line, name: name, path: path})
		return
	}
	m := move{line: line}
	if verb == "commit" {
		m.name = strings.Fields(in.rest)[1]
	}
	m.tick = p.read(verb, in)
	_, _ = p.do(m)
}

// do makes a move and records its outcome.
func (p *player) do(m move) (Result, error) {
	p.t.Helper()
	m.now = p.now
	m.res, m.err = p.tick(m.tick)
	p.remember(m)
	if p.after != nil {
		p.after()
	}
	return m.res, m.err
}

// tick reduces a tick, writes its outcome down and replays it.
func (p *player) tick(tick Tick) (Result, error) {
	p.t.Helper()
	before := p.live.Dump()
	copies := p.translated(tick)
	res, err := p.live.Reduce(p.now, tick)
	if errors.Is(err, errCorrupt) {
		p.t.Fatalf("%T is decided but cannot be folded: %v", tick, err)
	}
	audit(p.t, p.live)
	p.checkRestored(copies, res, err)
	p.show(res, err)
	if res.Entry == nil {
		if after := p.live.Dump(); after != before {
			diffText(p.t, "session after a tick without an entry", before, after)
		}
		return res, err
	}
	find := p.copied.graphs
	p.copied.graphs = onlyNeeded(p.t, p.live, res.Entry, find)
	commands, ferr := p.copied.Fold(recoded(p.t, res.Entry))
	p.copied.graphs = find
	if ferr != nil {
		p.t.Fatalf("fold: %v", ferr)
	}
	if !reflect.DeepEqual(commands, res.Commands) {
		p.t.Fatalf("replay gives other commands:\n got %v\nwant %v", commands, res.Commands)
	}
	diffText(p.t, "replayed session", p.live.Dump(), p.copied.Dump())
	p.forkAll()
	return res, err
}

// recoded returns the entry after encoding and decoding.
func recoded(t reporter, e *Entry) *Entry {
	t.Helper()
	b, err := abi.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	var out Entry
	if err := abi.Unmarshal(b, &out); err != nil {
		t.Fatalf("%v: %x", err, b)
	}
	again, err := abi.Marshal(&out)
	if err != nil || !bytes.Equal(b, again) {
		t.Fatalf("entry changes on its way through the journal: %x, %x, %v", b, again, err)
	}
	return &out
}

func (p *player) read(verb string, in *scanner) Tick {
	switch verb {
	case "start":
		s := StartRun{RunID: in.word(), HandlerID: in.word(), Event: in.event(), Seed: [32]byte{7}}
		s.Version = in.option("version", "v1")
		s.Timeout = int64(in.duration(in.option("timeout", "0s")))
		s.Limits = host.Limits{RunEvents: int(in.uintOption("events", 0)), StreamBytes: int(in.uintOption("stream", 0)), StateBytes: int(in.uintOption("state", 0)), RecordBytes: int(in.uintOption("record", 0)),
			ChildDepth: int(in.uintOption("depth", 0)), InboxEvents: int(in.uintOption("inbox", 0)), Suspensions: int(in.uintOption("suspensions", 0)),
			CleanupTime: in.duration(in.option("cleanup", "0s")), QueuedStarts: int(in.uintOption("queued", 0))}
		s.Queue, s.Work = in.option("busy", "") == "queue", in.option("work", "") != ""
		return s
	case "turn":
		return BeginRun{}
	case "post":
		return PostEvent{RunID: in.word(), Event: in.event(), Step: in.option("step", "")}
	case "finish":
		f := Finish{Invocation: in.uint(), Attempt: 1}
		f.Output = in.output()
		f.Attempt = in.uintOption("attempt", 1)
		f.Fuel = in.uintOption("fuel", 0)
		if st := p.atomic[f.Invocation]; st != nil {
			f.Stage = &st.done
			delete(p.atomic, f.Invocation)
		}
		return f
	case "timer":
		return Timer{}
	case "cancel":
		return Cancel{RunID: in.word()}
	case "pause":
		return Pause{RunID: in.word()}
	case "answer":
		return in.answer()
	case "extend":
		of := Timeout{RunID: in.word(), Timer: in.uint()}
		by := in.duration(in.word())
		return Extend{Of: Timeout{RunID: of.RunID, Timer: of.Timer, Invocation: in.uintOption("invocation", 0)}, By: int64(by)}
	case "shift":
		return Shift{Lost: int64(in.duration(in.word()))}
	}
	if t := p.moreVerbs(verb, in); t != nil {
		return t
	}
	c := Call{Invocation: in.uint()}
	c.Attempt, c.N = in.uintOption("attempt", 1), in.uintOption("n", 1)
	c.Request = p.request(verb, in)
	return c
}

func (p *player) request(verb string, in *scanner) Request {
	switch verb {
	case "edit":
		return EditState{Edits: in.edits()}
	case "commit":
		b := p.bases[in.word()]
		value, err := state.Decode(in.json())
		if err != nil {
			p.t.Fatal(err)
		}
		return CommitState{Path: b.path, Base: b.node, Value: value}
	case "send":
		return SendEvent{Event: in.event(), Step: in.option("step", "")}
	case "write":
		return WriteStream{Event: in.event()}
	case "wait":
		w := WaitForEvent{Type: in.word(), ID: in.option("id", "w"), Timeout: int64(in.duration(in.option("for", "0s"))), Broadcast: in.option("broadcast", "") != ""}
		if need := in.option("need", ""); need != "" {
			w.Requirements = (&scanner{t: p.t, rest: need}).json()
		}
		if ask := in.option("ask", ""); ask != "" {
			ev := (&scanner{t: p.t, rest: ask}).event()
			w.Ask = &ev
		}
		return w
	case "ask":
		c := CallResource{Resource: in.word(), Method: in.word(), Ordinal: in.uintOption("ordinal", 1), Mode: host.ResourceMode(in.option("mode", string(host.ResourceRepeat)))}
		if c.Mode == "unresolved" {
			c.Mode = ""
		}
		c.Payload = in.json()
		return c
	case "run":
		return p.child(in)
	case "sleep":
		return Sleep{Duration: int64(in.duration(in.word()))}
	case "collect":
		c := CollectEvents{Event: in.event()}
		if list := in.word(); list != "-" {
			c.Expected = strings.Split(list, ",")
		}
		c.Buffer = in.option("buffer", "")
		return c
	}
	p.t.Fatalf("unknown verb %q", verb)
	return nil
}
