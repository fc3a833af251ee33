package memory

import (
	"fmt"
	"slices"

	"github.com/weftrun/weft/host"
)

// change applies the parts of one batch and can undo them, because a batch takes effect
// as a whole or not at all. The store's mutex is held.
type change struct {
	store *Store
	undo  []func()
}

func (c *change) undoBy(fn func()) { c.undo = append(c.undo, fn) }

// revert undoes everything, the latest change first.
func (c *change) revert() {
	for _, fn := range slices.Backward(c.undo) {
		fn()
	}
}

// set puts a value into a map, or deletes the key if value is nil. revert undoes it.
func set[K comparable, V any](c *change, m map[K]*V, key K, value *V) {
	old, had := m[key]
	c.undoBy(func() {
		if had {
			m[key] = old
		} else {
			delete(m, key)
		}
	})
	if value == nil {
		delete(m, key)
	} else {
		m[key] = value
	}
}

// assign sets a variable. revert undoes it.
func assign[V any](c *change, to *V, value V) {
	old := *to
	c.undoBy(func() { *to = old })
	*to = value
}

func (c *change) apply(p *host.SessionBatch) error {
	if err := p.Validate(); err != nil {
		return err
	}
	s, err := c.putSession(p)
	if err != nil || s == nil {
		return err
	}
	if err := c.putRuns(s, p); err != nil {
		return err
	}
	if err := c.putStream(p); err != nil {
		return err
	}
	for _, r := range p.Repeats {
		set(c, c.store.repeats, repeatKey{p.Key.Tenant, r.Route, r.Key}, &r)
	}
	c.drop(s, p)
	c.purge(s, p)
	if p.Erase > 0 && c.store.sessions[p.Key] == s {
		c.erase(s, p)
	}
	return nil
}

// putSession moves the session to its new position. It returns nil for a part that only
// deletes, in a session that does not exist.
func (c *change) putSession(p *host.SessionBatch) (*session, error) {
	s := c.store.sessions[p.Key]
	if p.First == 0 {
		return s, nil
	}
	last := uint64(0)
	if s != nil {
		last = s.last
	}
	if s != nil && s.erasing {
		return nil, fmt.Errorf("session %q is being deleted", p.Key.Session)
	}
	if p.First != last+1 {
		return nil, fmt.Errorf("session %q does not end before position %d", p.Key.Session, p.First)
	}
	if s == nil {
		assign(c, &c.store.made, c.store.made+1)
		s = &session{order: c.store.made, versions: map[string]*uint64{}}
		set(c, c.store.sessions, p.Key, s)
		assign(c, &s.created, p.At)
	}
	assign(c, &s.updated, p.At)
	assign(c, &s.last, p.Last)
	assign(c, &s.wakeAt, p.WakeAt)
	assign(c, &s.state, p.StateBytes)
	rows := s.rows
	rows = append(rows, row{host.JournalRow{First: p.First, Data: slices.Clone(p.Data)}, p.Snapshot})
	if p.Cut != 0 {
		rows = slices.Clone(rows[foldable(rows, p.Cut):])
	}
	assign(c, &s.rows, rows)
	c.need(s, p)
	return s, nil
}

// foldable returns the index of the newest row with a snapshot at or before a position,
// else 0.
func foldable(rows []row, position uint64) int {
	for i, r := range slices.Backward(rows) {
		if r.snapshot != 0 && r.snapshot <= position {
			return i
		}
	}
	return 0
}

// putRuns writes the new runs in the order of their start, and then the changed runs.
func (c *change) putRuns(s *session, p *host.SessionBatch) error {
	for _, runID := range p.Started {
		i := slices.IndexFunc(p.Runs, func(r host.Run) bool { return r.RunID == runID })
		if i < 0 {
			return fmt.Errorf("started run %q is not among the runs", runID)
		}
		if err := c.startRun(s, p.Key, &p.Runs[i]); err != nil {
			return err
		}
	}
	for i := range p.Runs {
		if slices.Contains(p.Started, p.Runs[i].RunID) {
			continue
		}
		if err := c.changeRun(&p.Runs[i]); err != nil {
			return err
		}
	}
	return nil
}

func (c *change) startRun(s *session, key host.SessionKey, r *host.Run) error {
	runKey, handlerKey := id{r.Tenant, r.RunID}, id{r.Tenant, r.HandlerID}
	if c.store.runs[runKey] != nil {
		return fmt.Errorf("run %q exists already", r.RunID)
	}
	h := c.store.handlers[handlerKey]
	if h == nil {
		h = &handler{session: key}
		set(c, c.store.handlers, handlerKey, h)
		assign(c, &s.handlers, s.handlers+1)
	}
	if h.session != key {
		return fmt.Errorf("handler %q belongs to another session than %q", r.HandlerID, r.SessionID)
	}
	stored := cloneRun(r)
	set(c, c.store.runs, runKey, &stored)
	assign(c, &h.runs, append(h.runs, &stored))
	assign(c, &h.firstSeq, -1)
	assign(c, &s.private, s.private || r.HandlerID == key.Session)
	return nil
}

func (c *change) changeRun(r *host.Run) error {
	old := c.store.runs[id{r.Tenant, r.RunID}]
	if old == nil || old.HandlerID != r.HandlerID || old.SessionID != r.SessionID ||
		old.Workflow != r.Workflow || old.Started != r.Started {
		return fmt.Errorf("the run does not exist: %q", r.RunID)
	}
	assign(c, old, cloneRun(r))
	return nil
}

func (c *change) putStream(p *host.SessionBatch) error {
	for i := range p.Stream {
		row := &p.Stream[i]
		h := c.store.handlers[id{p.Key.Tenant, row.HandlerID}]
		if h == nil || h.session != p.Key {
			return fmt.Errorf("handler %q is not of session %q", row.HandlerID, p.Key.Session)
		}
		first := int64(row.Events[0].Seq)
		if first <= h.lastSeq() {
			return fmt.Errorf("handler %q: its stream has event %d already", row.HandlerID, first)
		}
		stream := h.stream
		for j := range row.Events {
			stream = append(stream, cloneEvent(&row.Events[j]))
		}
		assign(c, &h.stream, stream)
		if h.firstSeq < 0 && row.RunID == h.latest().RunID {
			assign(c, &h.firstSeq, first)
		}
	}
	for i := range p.Runs {
		// A run that began without events gets the number of its first event now.
		h := c.store.handlers[id{p.Key.Tenant, p.Runs[i].HandlerID}]
		if h.firstSeq < 0 {
			assign(c, &h.firstSeq, h.lastSeq()+1)
		}
	}
	return nil
}

// drop deletes the part's old runs with their events, then handlers without runs, and
// then a private session without handlers.
func (c *change) drop(s *session, p *host.SessionBatch) {
	for _, runID := range p.Drop {
		r := c.store.runs[id{p.Key.Tenant, runID}]
		if r == nil || r.SessionID != p.Key.Session || r.Completed == 0 {
			continue
		}
		h := c.store.handlers[id{p.Key.Tenant, r.HandlerID}]
		if h.latest() == r && (len(h.runs) > 1 || s.private && s.wakeAt != host.WakeNever) {
			continue
		}
		set(c, c.store.runs, id{p.Key.Tenant, runID}, nil)
		if len(h.runs) == 1 {
			set(c, c.store.handlers, id{p.Key.Tenant, r.HandlerID}, nil)
			assign(c, &s.handlers, s.handlers-1)
			continue
		}
		var runs []*host.Run
		for _, other := range h.runs {
			if other != r {
				runs = append(runs, other)
			}
		}
		var stream []host.StreamEvent
		for i := range h.stream {
			if h.stream[i].RunID != runID {
				stream = append(stream, h.stream[i])
			}
		}
		assign(c, &h.runs, runs)
		assign(c, &h.stream, stream)
	}
	if len(p.Drop) > 0 && s.private && s.handlers == 0 {
		set(c, c.store.sessions, p.Key, nil)
	}
}

// purge deletes the part's handlers, and a private session with its last handler.
func (c *change) purge(s *session, p *host.SessionBatch) {
	if len(p.Purge) == 0 {
		return
	}
	for _, name := range p.Purge {
		key := id{p.Key.Tenant, name}
		h := c.store.handlers[key]
		if h == nil || h.session != p.Key {
			continue
		}
		for _, r := range h.runs {
			set(c, c.store.runs, id{r.Tenant, r.RunID}, nil)
		}
		set(c, c.store.handlers, key, nil)
		assign(c, &s.handlers, s.handlers-1)
	}
	if s.private && s.handlers == 0 {
		set(c, c.store.sessions, p.Key, nil)
	}
}
