package engine

import (
	"reflect"
	"testing"
	"unsafe"

	"github.com/weftrun/weft/host"
)

// unseen are the fields that a dump need not show, with the reason.
var unseen = map[string]string{
	"StreamEvent.Child": "the result of a run makes no child known",
	"Session.own":       "counts what ticks cost, and decides nothing",
	"Session.visited":   "counts what ticks cost, and decides nothing",
	"Run.Tenant":        "is the session's",
	"Run.SessionID":     "is the session's",
	"emission.shown":    "is looked at while it is routed only",
	"inbox.size":        "counts what is kept, which shows",
	"pool.suspended":    "counts invocations, whose phase shows",
	"pool.taken":        "is the workers of the invocations that run",
	"Message.To":        "is the place of the message, which shows",
	"StartRun.Queue":    "is never set in a message",
	"StartPart.Stalls":  "is set in all but those of older servers",
	"pool.waiting":      "is the length of the queue, which shows",
	"run.outside":       "counts the waits, which show",
	"timer.slot":        "follows from the times of all timers",
	"waitShape.key":     "is its fields, which show",
}

// prober changes one field of a session after the other, and checks that the dump changes
// with it.
type prober struct {
	s     *Session
	met   map[string]bool // fields by "type.field": true if a dump showed one
	known map[unsafe.Pointer]bool
}

func (p *prober) probe(name string, v reflect.Value) {
	if p.met[name] || unseen[name] != "" {
		return
	}
	before, old := p.s.Dump(), reflect.New(v.Type()).Elem()
	old.Set(v)
	defer v.Set(old)
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.String:
		v.SetString(v.String() + "!")
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uint:
		v.SetUint(v.Uint() ^ 1)
	default:
		v.SetInt(v.Int() ^ 1)
	}
	p.met[name] = p.shows(before)
}

// shows reports whether the dump has changed. A session with inconsistent fields may make
// it panic, which counts as a change.
func (p *prober) shows(before string) (changed bool) {
	defer func() { changed = changed || recover() != nil }()
	return p.s.Dump() != before
}

var leftOut = map[reflect.Type]bool{
	reflect.TypeFor[Graph](): true, reflect.TypeFor[step](): true,
}

// walk visits a value that can be set, and everything it refers to.
func (p *prober) walk(name string, v reflect.Value) {
	if leftOut[v.Type()] {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() && !p.known[v.UnsafePointer()] {
			p.known[v.UnsafePointer()] = true
			p.walk(name, v.Elem())
		}
	case reflect.Struct:
		if pkg := v.Type().PkgPath(); pkg != reflect.TypeFor[Session]().PkgPath() && pkg != reflect.TypeFor[host.Run]().PkgPath() {
			return
		}
		for f, field := range v.Fields() {
			at := reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem()
			p.walk(v.Type().Name()+"."+f.Name, at)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		for i := range v.Len() {
			p.walk(name, v.Index(i))
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if kind := it.Value().Kind(); kind == reflect.Pointer || kind == reflect.Slice {
				p.walk(name, it.Value()) // others cannot be set
			}
		}
	case reflect.Array:
		if v.Len() > 0 {
			p.walk(name, v.Index(0))
		}
	case reflect.Bool, reflect.String, reflect.Int, reflect.Int64, reflect.Int32, reflect.Int16, reflect.Int8,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if _, met := p.met[name]; !met {
			p.met[name] = false
		}
		p.probe(name, v)
	}
}

// TestDumpShowsAll checks that the dump is complete, because comparisons of replayed
// sessions rely on it: every field of a session, after every tick of every history,
// changes the dump when it changes.
func TestDumpShowsAll(t *testing.T) {
	met := make(map[string]bool)
	eachHistory(t, func(t *testing.T, h *history) {
		p := newPlayer(t, h.graphs)
		p.after = func() {
			probe := &prober{s: p.live, met: met, known: make(map[unsafe.Pointer]bool)}
			probe.walk("Session", reflect.ValueOf(&p.live))
		}
		h.playOn(p)
	})
	for _, name := range sortedKeys(met) {
		if !met[name] && unseen[name] == "" {
			t.Errorf("no dump shows %s: let Dump show it, or say here why it need not", name)
		}
	}
}
