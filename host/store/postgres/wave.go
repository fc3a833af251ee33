package postgres

import (
	"slices"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/store/record"
)

// wave is the rows of parts that can be written in any order among each other: each of
// another session, and none after one that deletes and might make room for what the next
// one starts. Its fields are columns, as UNNEST takes them.
type wave struct {
	store   *Store
	keys    map[host.SessionKey]bool
	deletes bool
	// repeated are the rows of repeats, by tenant, route and key.
	repeated map[[3]string]int

	fresh struct {
		id, last, wake, at, bytes, state, snapshot []int64
		part                                       []int16
		tenant, session                            []string
		private                                    []bool
	}
	moved struct {
		id, prev, last, wake, at, bytes, state, snapshot []int64
		tenant, session                                  []string
		private                                          []bool
	}
	journal struct {
		sid, first, snapshot []int64
		data                 [][]byte
	}
	cut      struct{ sid, at []int64 }
	versions struct{ sid, version, last []int64 }
	handlers struct {
		id, sid, first, made []int64
		tenant, handler      []string
	}
	started, changed runColumns
	stream           struct {
		sid, first, last     []int64
		tenant, handler, run []string
		events               [][]byte
	}
	silent  struct{ tenant, handler []string } // started without events
	repeats struct {
		tenant, route, key, hash, run []string
		made                          []int64
	}
	drop struct {
		sid         []int64
		tenant, run []string
	}
	purge struct {
		sid             []int64
		tenant, handler []string
	}
	left  []int64 // sids of sessions that may have lost their last handler
	erase []struct{ sid, limit int64 }
}

// runColumns are rows of runs.
type runColumns struct {
	id, sid, started, updated, completed, steps, fuel, forkedAt         []int64
	latest, paused                                                      []bool
	tenant, handler, run, session, workflow, version, status, errorCode []string
	phase, parent, parentStep, forkedFrom, retriedFrom                  []string
	blockedCode                                                         []*string
	blockedMessage, err, waiting, result                                [][]byte
}

func newWave(s *Store) *wave {
	return &wave{store: s, keys: map[host.SessionKey]bool{}, repeated: map[[3]string]int{}}
}

// takes reports whether the part can be written with those before it.
func (w *wave) takes(p *host.SessionBatch) bool {
	return !w.keys[p.Key] && (!w.deletes || len(p.Started)+len(p.Stream) == 0)
}

// add adds the rows of a part.
func (w *wave) add(p *host.SessionBatch) error {
	w.keys[p.Key] = true
	sid := w.session(p)
	if sid == 0 {
		return nil // a part that only deletes, of a session that does not exist
	}
	if p.First > 0 {
		w.addJournal(sid, p)
	}
	if err := w.addRuns(sid, p); err != nil {
		return err
	}
	if err := w.addStream(sid, p); err != nil {
		return err
	}
	w.addRepeats(p)
	w.addDeletes(sid, p)
	return nil
}

// session adds the session's new position, and returns its id; 0: it does not exist, and
// the part needs none. An id that is not that of the session any more finds no row.
func (w *wave) session(p *host.SessionBatch) int64 {
	sids := w.store.appender.sids
	if p.First == 0 {
		return sids[p.Key]
	}
	snapshot := int64(0)
	if p.Snapshot != 0 {
		snapshot = int64(p.First)
	}
	if p.First == 1 {
		id, f := w.store.ids.next(), &w.fresh
		sids[p.Key] = id
		f.id, f.part = append(f.id, id), append(f.part, partition(p.Key.Tenant, p.Key.Session))
		f.tenant, f.session = append(f.tenant, text(p.Key.Tenant)), append(f.session, text(p.Key.Session))
		f.last, f.wake, f.private = append(f.last, int64(p.Last)), append(f.wake, p.WakeAt), append(f.private, startsPrivate(p))
		f.at, f.snapshot = append(f.at, p.At), append(f.snapshot, snapshot)
		f.bytes, f.state = append(f.bytes, int64(len(p.Data))), append(f.state, p.StateBytes)
		return id
	}
	id, m := sids[p.Key], &w.moved
	m.id, m.prev, m.last = append(m.id, id), append(m.prev, int64(p.First-1)), append(m.last, int64(p.Last))
	m.tenant, m.session = append(m.tenant, text(p.Key.Tenant)), append(m.session, text(p.Key.Session))
	m.wake, m.private = append(m.wake, p.WakeAt), append(m.private, startsPrivate(p))
	m.at, m.snapshot = append(m.at, p.At), append(m.snapshot, snapshot)
	m.bytes, m.state = append(m.bytes, int64(len(p.Data))), append(m.state, p.StateBytes)
	return id
}

// startsPrivate reports whether the part starts a run of the handler whose private
// session this is.
func startsPrivate(p *host.SessionBatch) bool {
	return slices.ContainsFunc(p.Started, func(id string) bool {
		r := findRun(p.Runs, id)
		return r != nil && r.HandlerID == p.Key.Session
	})
}

func findRun(runs []host.Run, id string) *host.Run {
	for i := range runs {
		if runs[i].RunID == id {
			return &runs[i]
		}
	}
	return nil
}

// addJournal adds the part's entries with the versions that they need.
func (w *wave) addJournal(sid int64, p *host.SessionBatch) {
	j := &w.journal
	j.sid, j.first = append(j.sid, sid), append(j.first, int64(p.First))
	j.snapshot, j.data = append(j.snapshot, int64(p.Snapshot)), append(j.data, blob(p.Data))
	if p.Cut != 0 {
		w.cut.sid, w.cut.at = append(w.cut.sid, sid), append(w.cut.at, int64(p.Cut))
	}
	begin := len(w.versions.sid)
	for _, v := range p.Versions {
		id := w.store.appender.versions[v.Digest]
		if i := slices.Index(w.versions.version[begin:], id); i >= 0 {
			w.versions.last[begin+i] = max(w.versions.last[begin+i], int64(v.Seq))
			continue
		}
		w.versions.sid, w.versions.version = append(w.versions.sid, sid), append(w.versions.version, id)
		w.versions.last = append(w.versions.last, int64(v.Seq))
	}
}

// addRuns adds the runs that the part starts, with their handlers, and those that it
// changes.
func (w *wave) addRuns(sid int64, p *host.SessionBatch) error {
	begin := len(w.handlers.id)
	for _, id := range p.Started {
		r := findRun(p.Runs, id)
		if r == nil {
			return record.Refuse("started run %q is not among the runs", id)
		}
		first := firstEvent(p, r)
		if i := slices.Index(w.handlers.handler[begin:], text(r.HandlerID)); i >= 0 {
			// The last one of a handler that the part starts is its latest.
			w.handlers.first[begin+i] = first
			for k := range w.started.handler {
				if w.started.sid[k] == sid && w.started.handler[k] == text(r.HandlerID) {
					w.started.latest[k] = false
				}
			}
		} else {
			h := &w.handlers
			h.id, h.sid = append(h.id, w.store.ids.next()), append(h.sid, sid)
			h.first, h.made = append(h.first, first), append(h.made, r.Started)
			h.tenant, h.handler = append(h.tenant, text(r.Tenant)), append(h.handler, text(r.HandlerID))
		}
		if first < 0 {
			w.silent.tenant, w.silent.handler = append(w.silent.tenant, text(r.Tenant)), append(w.silent.handler, text(r.HandlerID))
		}
		if err := w.started.add(w.store.ids.next(), sid, r); err != nil {
			return err
		}
	}
	for i := range p.Runs {
		if !slices.Contains(p.Started, p.Runs[i].RunID) {
			if err := w.changed.add(0, sid, &p.Runs[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// firstEvent returns the number of a run's first event in the part, or -1.
func firstEvent(p *host.SessionBatch, r *host.Run) int64 {
	for i := range p.Stream {
		if row := &p.Stream[i]; row.RunID == r.RunID && row.HandlerID == r.HandlerID {
			return int64(row.Events[0].Seq)
		}
	}
	return -1
}

func (c *runColumns) add(id, sid int64, r *host.Run) error {
	result, waiting, err := record.EncodeParts(r)
	if err != nil {
		return record.Refuse("run %s: %v", r.RunID, err)
	}
	var code *string
	var message []byte
	if r.Blocked != nil {
		stored := text(r.Blocked.Code)
		code, message = &stored, []byte(r.Blocked.Message)
	}
	c.id, c.sid, c.latest = append(c.id, id), append(c.sid, sid), append(c.latest, true)
	c.tenant, c.handler = append(c.tenant, text(r.Tenant)), append(c.handler, text(r.HandlerID))
	c.run, c.session = append(c.run, text(r.RunID)), append(c.session, text(r.SessionID))
	c.workflow, c.version = append(c.workflow, text(r.Workflow)), append(c.version, text(r.Version))
	c.status, c.errorCode = append(c.status, string(r.Status)), append(c.errorCode, text(r.ErrorCode))
	c.started, c.updated = append(c.started, r.Started), append(c.updated, r.Updated)
	c.completed, c.paused = append(c.completed, r.Completed), append(c.paused, r.Paused)
	c.steps, c.fuel = append(c.steps, int64(r.Steps)), append(c.fuel, int64(r.Fuel))
	c.phase, c.parent, c.parentStep = append(c.phase, string(r.Phase())), append(c.parent, text(r.ParentRun)), append(c.parentStep, text(r.ParentStep))
	c.forkedFrom, c.forkedAt = append(c.forkedFrom, text(r.ForkedFrom)), append(c.forkedAt, int64(r.ForkedAt))
	c.retriedFrom = append(c.retriedFrom, text(r.RetriedFrom))
	c.blockedCode, c.blockedMessage = append(c.blockedCode, code), append(c.blockedMessage, message)
	c.err, c.waiting, c.result = append(c.err, []byte(r.Error)), append(c.waiting, waiting), append(c.result, result)
	return nil
}

// addStream adds the part's events. Rows of a handler must be in order, also within the
// statement, which does not see its own rows.
func (w *wave) addStream(sid int64, p *host.SessionBatch) error {
	ends := map[string]int64{}
	c := &w.stream
	for i := range p.Stream {
		row := &p.Stream[i]
		for events := row.Events; len(events) > 0; {
			n := record.RowLength(events)
			data, err := record.Encode(events[:n])
			if err != nil {
				return record.Refuse("events of handler %s: %v", row.HandlerID, err)
			}
			first, last := int64(events[0].Seq), int64(events[n-1].Seq)
			if end, some := ends[row.HandlerID]; some && first <= end {
				return record.Refuse("the stream of handler %s has such events already", row.HandlerID)
			}
			ends[row.HandlerID] = last
			c.sid, c.first, c.last = append(c.sid, sid), append(c.first, first), append(c.last, last)
			c.tenant, c.handler = append(c.tenant, text(p.Key.Tenant)), append(c.handler, text(row.HandlerID))
			c.run, c.events = append(c.run, text(row.RunID)), append(c.events, data)
			events = events[n:]
		}
	}
	return nil
}

// addRepeats adds the requests that the part answers. Of equal ones the last counts.
func (w *wave) addRepeats(p *host.SessionBatch) {
	c := &w.repeats
	for i := range p.Repeats {
		r := &p.Repeats[i]
		name := [3]string{p.Key.Tenant, r.Route, r.Key}
		at, some := w.repeated[name]
		if !some {
			at = len(c.key)
			w.repeated[name] = at
			c.tenant, c.route, c.key = append(c.tenant, text(p.Key.Tenant)), append(c.route, text(r.Route)), append(c.key, text(r.Key))
			c.hash, c.run, c.made = append(c.hash, ""), append(c.run, ""), append(c.made, 0)
		}
		c.hash[at], c.run[at], c.made[at] = text(r.Hash), text(r.RunID), r.Made
	}
}

// addDeletes adds what the part deletes.
func (w *wave) addDeletes(sid int64, p *host.SessionBatch) {
	for i, run := range p.Drop {
		if slices.Contains(p.Drop[:i], run) {
			continue
		}
		w.drop.sid, w.drop.tenant, w.drop.run = append(w.drop.sid, sid), append(w.drop.tenant, text(p.Key.Tenant)), append(w.drop.run, text(run))
	}
	for _, handler := range p.Purge {
		w.purge.sid, w.purge.tenant = append(w.purge.sid, sid), append(w.purge.tenant, text(p.Key.Tenant))
		w.purge.handler = append(w.purge.handler, text(handler))
	}
	if len(p.Drop)+len(p.Purge) > 0 {
		w.left = append(w.left, sid)
	}
	if p.Erase > 0 {
		w.erase = append(w.erase, struct{ sid, limit int64 }{sid, int64(p.Erase)})
	}
	w.deletes = w.deletes || len(p.Drop)+len(p.Purge)+p.Erase > 0
}
