package mail

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
)

var errGone = errors.New("gone")

// office is the sessions of one tenant. told says what they received, in order.
type office struct {
	Mailer
	boxes  map[string]map[string][]engine.Message // session -> receiver -> messages
	broken map[string]error                       // of loading
	gone   map[string]int                         // so often a session is purged as it receives
	store  error                                  // of reading a version
	told   []string
	next   uint64
}

func newOffice(names ...string) *office {
	o := &office{boxes: map[string]map[string][]engine.Message{}, broken: map[string]error{}, gone: map[string]int{}}
	for _, n := range names {
		o.boxes[n] = map[string][]engine.Message{}
	}
	o.Init(Config{
		Acquire: o.acquire, Gone: errGone, Signal: func() {},
		RetryAfter: func(_ host.SessionKey, after time.Duration) time.Time { return start.Add(after) },
		Readable:   func(string) error { return o.store },
		Log:        func(_ slog.Level, _ string, from host.SessionKey, _ ...any) { o.say("log of %s", from.Session) },
	})
	return o
}

var start = time.Unix(1_800_000_000, 0)

func (o *office) say(format string, args ...any) {
	o.told = append(o.told, fmt.Sprintf(format, args...))
}

func key(name string) host.SessionKey { return host.SessionKey{Tenant: "t", Session: name} }

// send puts a message into an outbox, and returns it.
func (o *office) send(from, to string, m engine.Message) {
	o.next++
	m.ID, m.To = o.next, to
	o.boxes[from][to] = append(o.boxes[from][to], m)
}

func (o *office) acquire(_ context.Context, k host.SessionKey, create bool) (Session, error) {
	if err := o.broken[k.Session]; err != nil {
		return nil, err
	}
	if o.boxes[k.Session] == nil {
		if !create {
			return nil, &host.Error{Code: host.CodeNotFound}
		}
		o.boxes[k.Session] = map[string][]engine.Message{}
	}
	return box{o, k.Session}, nil
}

type box struct {
	*office
	name string
}

func (b box) Mail(to string, most int) []engine.Message {
	all := b.boxes[b.name][to]
	return all[:min(len(all), most)]
}

// Receive refuses children of version "bad", and forwards a cancel to the session that the
// message names.
func (b box) Receive(_ context.Context, messages []engine.Message) (refused []engine.ChildEnd, err error) {
	if b.gone[b.name] > 0 {
		b.gone[b.name]--
		delete(b.boxes, b.name)
		return nil, errGone
	}
	for _, m := range messages {
		switch {
		case m.Start != nil && m.Start.Version == "bad":
			refused = append(refused, engine.ChildEnd{RunID: m.Start.RunID})
			continue
		case m.Cancel != "" && m.Cancel != b.name:
			b.send(b.name, m.Cancel, engine.Message{Cancel: b.name})
		}
		b.say("%s got %d", b.name, m.ID)
	}
	return refused, nil
}

func (b box) Delivered(to string, id uint64, refused []engine.ChildEnd) {
	for _, end := range refused {
		b.say("%s refused", end.RunID)
	}
	b.boxes[b.name][to] = slices.DeleteFunc(b.boxes[b.name][to], func(m engine.Message) bool { return m.ID <= id })
}

func (b box) Outbox() (uint64, []string) {
	var to []string
	for name, m := range b.boxes[b.name] {
		if len(m) > 0 {
			to = append(to, name)
		}
	}
	return b.next, slices.Sorted(slices.Values(to))
}

func (b box) Release() {}

// work does what is due at a time, and returns when more is.
func (o *office) work(now time.Time) time.Time {
	work, next := o.Work(now)
	for _, w := range work {
		w()
	}
	return next
}

func (o *office) want(t *testing.T, what string, want ...string) {
	t.Helper()
	if !slices.Equal(o.told, want) {
		t.Errorf("%s: %q, want %q", what, o.told, want)
	}
	o.told = nil
}

// Messages arrive once and in order, however many there are and however often they are
// posted.
func TestMessagesArriveInOrder(t *testing.T) {
	o := newOffice("a", "b")
	var want []string
	for i := range 2*batch + 1 {
		o.send("a", "b", engine.Message{Shown: &engine.ChildShow{}})
		want = append(want, fmt.Sprintf("b got %d", i+1))
		o.Post(key("a"), "b")
	}
	if work, _ := o.Work(start); len(work) != 1 {
		t.Errorf("one route is carried %d times", len(work))
	}
	o.Post(key("a"), "b")
	o.work(start)
	o.want(t, "all", want...)
	o.Post(key("a"), "b")
	o.work(start)
	o.want(t, "none is left")
}

// A start makes its session; other messages to a session that does not exist are dropped.
// A child that cannot begin ends at its parent.
func TestReceiverDoesNotExist(t *testing.T) {
	o := newOffice("a")
	o.send("a", "b", engine.Message{Ended: &engine.ChildEnd{}})
	o.Post(key("a"), "b")
	o.work(start)
	o.want(t, "an end")
	o.send("a", "b", engine.Message{Start: &engine.StartRun{Version: "bad", RunID: "child"}})
	o.send("a", "b", engine.Message{Start: &engine.StartRun{Version: "good"}})
	o.gone["b"] = 1 // and is made again
	o.Post(key("a"), "b")
	o.work(start)
	o.want(t, "starts", "b got 3", "child refused")
	if len(o.boxes["a"]["b"]) != 0 {
		t.Error("messages are left")
	}
}

// Messages stay in the outbox while their receiver does not load, or a version cannot be
// read, and are tried again. A purged sender has none.
func TestMessagesAreTriedAgain(t *testing.T) {
	o := newOffice("a", "b")
	o.broken["b"] = errors.New("broken")
	o.send("a", "b", engine.Message{Start: &engine.StartRun{Version: "good"}})
	o.Post(key("a"), "b")
	o.work(start)
	o.want(t, "broken", "log of a")
	if next := o.work(start); !next.Equal(start.Add(again)) {
		t.Errorf("tried again at %v", next)
	}
	delete(o.broken, "b")
	o.store = &host.Error{Code: host.CodeUnavailable}
	o.work(start.Add(again))
	o.want(t, "no version", "log of a")
	o.store = &host.Error{Code: host.CodeNotFound} // which the receiver finds out
	o.work(start.Add(again))
	o.want(t, "loads", "b got 1")
	delete(o.boxes, "a")
	o.Post(key("a"), "b")
	o.work(start)
	o.want(t, "purged")
}

// Settle follows messages to the sessions that receive them, also in a circle.
func TestSettle(t *testing.T) {
	o := newOffice("a", "b", "c")
	o.send("a", "b", engine.Message{Cancel: "c"})
	pos, err := o.Settle(context.Background(), key("a"))
	if err != nil || pos != 3 { // when the outbox of c was looked at
		t.Errorf("position %d, %v", pos, err)
	}
	o.want(t, "circle", "b got 1", "c got 2", "b got 3")
	for _, name := range slices.Sorted(maps.Keys(o.boxes)) {
		if _, to := (box{o, name}).Outbox(); len(to) > 0 && name != "b" {
			t.Errorf("%s has messages left", name)
		}
	}
	o.broken["b"] = errors.New("broken")
	o.send("a", "b", engine.Message{Cancel: "b"})
	if _, err := o.Settle(context.Background(), key("a")); err == nil {
		t.Error("a receiver that does not load is not reported")
	}
}
