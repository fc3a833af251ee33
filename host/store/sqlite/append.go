package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/store/record"
)

// statements are the prepared statements of the writing connection.
type statements struct {
	begin, advance, commit, rollback *sql.Stmt

	epoch *sql.Stmt

	insertSession *sql.Stmt
	updateSession *sql.Stmt
	findSession   *sql.Stmt
	insertJournal *sql.Stmt
	setSnapshot   *sql.Stmt
	cutJournal    *sql.Stmt
	countJournal  *sql.Stmt
	useVersions   *sql.Stmt
	nameVersions  *sql.Stmt
	cutVersions   *sql.Stmt
	listSession   *sql.Stmt
	releases      *sql.Stmt
	unlisted      *sql.Stmt
	sweeps        [len(sweeps)]*sql.Stmt

	insertHandler *sql.Stmt
	reuseHandler  *sql.Stmt
	supersedeRun  *sql.Stmt
	insertRun     *sql.Stmt
	updateRun     *sql.Stmt
	insertStream  *sql.Stmt
	firstStream   *sql.Stmt
	setFirstSeq   *sql.Stmt
	putRepeat     *sql.Stmt
	putSpent      *sql.Stmt
	putSpace      *sql.Stmt
	putItem       *sql.Stmt
	dropItem      *sql.Stmt
	noteEnded     *sql.Stmt
	dropNote      *sql.Stmt
	putWords      *sql.Stmt
	dropWords     *sql.Stmt

	dropRun     *sql.Stmt
	dropEvents  *sql.Stmt
	dropHandler *sql.Stmt

	deleteHandler *sql.Stmt
	deleteSession *sql.Stmt
	markErased    *sql.Stmt
	eraseEvents   *sql.Stmt
	eraseRuns     *sql.Stmt
	eraseHandlers *sql.Stmt
	eraseJournal  *sql.Stmt
	eraseSession  *sql.Stmt

	all []*sql.Stmt
}

// close closes all statements. SQLite keeps a connection open that has open statements,
// and package sql cannot close them after the connection is gone.
func (s *statements) close() error {
	var errs []error
	for _, stmt := range s.all {
		errs = append(errs, stmt.Close())
	}
	return errors.Join(errs...)
}

func prepareStatements(ctx context.Context, conn *sql.Conn) (*statements, error) {
	s := &statements{}
	for _, p := range []struct {
		to  **sql.Stmt
		sql string
	}{
		// IMMEDIATE takes the write lock at once, so the transaction cannot fail half-way
		// because another one has the lock.
		{&s.begin, `BEGIN IMMEDIATE`},
		{&s.advance, `UPDATE store SET commits = commits + 1 RETURNING commits`},
		{&s.commit, `COMMIT`},
		{&s.rollback, `ROLLBACK`},

		{&s.epoch, `SELECT epoch FROM store`},

		{&s.insertSession, `INSERT INTO sessions (tenant, session, last, wake_at, private, created, updated, bytes, state)
			VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, ?7, ?8) ON CONFLICT DO NOTHING`},
		{&s.updateSession, `UPDATE sessions SET last = ?3, wake_at = ?4, private = private OR ?5, updated = ?7, bytes = bytes + ?8, state = ?9
			WHERE tenant = ?1 AND session = ?2 AND last = ?6 RETURNING id`},
		{&s.findSession, `SELECT id FROM sessions WHERE tenant = ? AND session = ?`},
		{&s.insertJournal, `INSERT INTO journal (sid, first, data, snapshot) VALUES (?, ?, ?, ?)`},
		{&s.setSnapshot, `UPDATE sessions SET snapshot = ?2 WHERE id = ?1`},
		{&s.cutJournal, `DELETE FROM journal WHERE sid = ?1 AND first <
			(SELECT max(first) FROM journal WHERE sid = ?1 AND snapshot <= ?2)`},
		{&s.countJournal, `UPDATE sessions SET bytes = (SELECT coalesce(sum(length(data)), 0) FROM journal WHERE sid = ?1) WHERE id = ?1`},

		{&s.useVersions, `INSERT INTO session_versions (sid, version, last) SELECT j.value ->> 0, v.id, j.value ->> 2
			FROM json_each(?1) j CROSS JOIN versions v ON v.digest = j.value ->> 1 WHERE true ON CONFLICT DO UPDATE SET last = max(last, excluded.last)`},
		{&s.nameVersions, `INSERT INTO versions (digest) SELECT j.value ->> 1 FROM json_each(?1) j WHERE true ON CONFLICT DO NOTHING`},
		{&s.cutVersions, `DELETE FROM session_versions WHERE sid = ?1 AND last < (SELECT min(first) FROM journal WHERE sid = ?1)`},
		{&s.listSession, `UPDATE sessions SET unlisted = 0 WHERE id = ?1 AND unlisted > 0
			AND unlisted < (SELECT min(first) FROM journal WHERE sid = ?1)`},
		{&s.releases, `SELECT EXISTS (SELECT 1 FROM released) OR EXISTS (SELECT 1 FROM released_compositions)`},

		{&s.unlisted, `SELECT EXISTS (SELECT 1 FROM sessions WHERE unlisted > 0)`},
		{&s.sweeps[0], sweeps[0]},
		{&s.sweeps[1], sweeps[1]},
		{&s.sweeps[2], sweeps[2]},
		{&s.sweeps[3], sweeps[3]},

		{&s.insertHandler, `INSERT INTO handlers (tenant, handler, sid, first_seq)
			VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING`},
		{&s.reuseHandler, `UPDATE handlers SET first_seq = ?4
			WHERE tenant = ?1 AND handler = ?2 AND sid = ?3 RETURNING id`},
		{&s.supersedeRun, `UPDATE runs SET latest = 0 WHERE id = (SELECT max(id) FROM runs WHERE hid = ?)`},
		{&s.insertRun, `INSERT INTO runs (hid, sid, latest, tenant, run, handler, session, workflow, started,
				status, updated, completed, paused, blocked_code, blocked_message, steps, fuel, error, error_code, result, waiting, version,
				phase, parent, parent_step, forked_from, forked_at, retried_from)
			VALUES (?1, ?2, 1, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27)
			ON CONFLICT DO NOTHING`},
		{&s.updateRun, `UPDATE runs SET status = ?7, updated = ?8, completed = ?9, paused = ?10, blocked_code = ?11,
				blocked_message = ?12, steps = ?13, fuel = ?14, error = ?15, error_code = ?16, result = ?17,
				waiting = ?18, version = ?19, phase = ?20
			WHERE tenant = ?1 AND run = ?2 AND handler = ?3 AND session = ?4 AND workflow = ?5 AND started = ?6 RETURNING id`},
		{&s.insertStream, `INSERT INTO stream (hid, first_seq, last_seq, run, events)
			SELECT id, ?4, ?5, ?6, ?7 FROM handlers
			WHERE tenant = ?1 AND handler = ?2 AND sid = ?3
				AND ?4 > coalesce((SELECT max(last_seq) FROM stream WHERE hid = handlers.id), -1)`},
		{&s.firstStream, `INSERT INTO stream (hid, first_seq, last_seq, run, events) VALUES (?, ?, ?, ?, ?)`},
		{&s.setFirstSeq, `UPDATE handlers
			SET first_seq = coalesce((SELECT max(last_seq) FROM stream WHERE hid = handlers.id), -1) + 1
			WHERE tenant = ? AND handler = ? AND first_seq < 0`},

		{&s.putRepeat, `INSERT OR REPLACE INTO repeats (tenant, route, key, hash, run, made) VALUES (?, ?, ?, ?, ?, ?)`},
		{&s.putSpent, `INSERT INTO spent (tenant, month, runs, fuel, log_bytes) VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO UPDATE
			SET runs = runs + excluded.runs, fuel = fuel + excluded.fuel, log_bytes = log_bytes + excluded.log_bytes`},
		// Data of a tenant's definition is deleted with the definition. A later write has
		// no effect.
		{&s.putSpace, `INSERT INTO kv_spaces (tenant, resource, made, last, keys, bytes) SELECT ?1, ?2, ?3, ?4, ?5, ?6
			WHERE ?3 = 0 OR EXISTS (SELECT 1 FROM resources WHERE tenant = ?1 AND name = ?2 AND created = ?3)
			ON CONFLICT DO UPDATE SET last = ?4, keys = ?5, bytes = ?6 RETURNING id`},
		{&s.putItem, `INSERT OR REPLACE INTO kv (space, key, version, value) VALUES (?, ?, ?, ?)`},
		{&s.dropItem, `DELETE FROM kv WHERE space = ? AND key = ?`},
		{&s.noteEnded, `INSERT INTO unread (runs) VALUES (?)`},
		{&s.dropNote, `DELETE FROM unread WHERE n = ? AND runs = ?`},
		{&s.putWords, `INSERT INTO run_words (rowid, words, of) SELECT ?1, ?5, ?2 WHERE ` + unchanged},
		{&s.dropWords, `DELETE FROM run_words WHERE rowid = ?1 AND ` + unchanged},
		// The latest run is deleted only as the last run of its handler. A private
		// session may be deleted with it, but only if the session has nothing to do.
		{&s.dropRun, `DELETE FROM runs WHERE tenant = ?1 AND run = ?2 AND sid = ?3 AND completed > 0
			AND (latest = 0 OR NOT EXISTS (SELECT 1 FROM runs AS r WHERE r.hid = runs.hid AND r.id <> runs.id)
				AND NOT EXISTS (SELECT 1 FROM sessions WHERE id = ?3 AND private AND wake_at IS NOT NULL))
			RETURNING hid`},
		{&s.dropEvents, `DELETE FROM stream WHERE hid = ? AND run = ?`},
		{&s.dropHandler, `DELETE FROM handlers WHERE id = ?
			AND NOT EXISTS (SELECT 1 FROM runs WHERE hid = handlers.id)`},

		{&s.deleteHandler, `DELETE FROM handlers WHERE tenant = ? AND handler = ? AND sid = ?`},
		{&s.deleteSession, `DELETE FROM sessions WHERE id = ? AND private
			AND NOT EXISTS (SELECT 1 FROM runs WHERE sid = sessions.id AND latest = 1)`},
		{&s.markErased, `UPDATE sessions SET last = 0, wake_at = 0, bytes = 0, state = 0 WHERE id = ?`},
		{&s.eraseEvents, `DELETE FROM stream WHERE (hid, last_seq) IN (SELECT t.hid, t.last_seq FROM stream t
			WHERE t.hid IN (` + erasedHandlers + `) LIMIT ?2)`},
		{&s.eraseRuns, `DELETE FROM runs WHERE id IN (SELECT o.id FROM runs o
			WHERE o.hid IN (` + erasedHandlers + `) AND o.latest = 0 LIMIT ?2)`},
		{&s.eraseHandlers, `DELETE FROM handlers WHERE id IN (` + erasedHandlers + `)`},
		{&s.eraseJournal, `DELETE FROM journal WHERE sid = ?1 AND first IN (SELECT first FROM journal WHERE sid = ?1 ORDER BY first LIMIT ?2)`},
		{&s.eraseSession, `DELETE FROM sessions WHERE id = ?1 AND last = 0 AND NOT EXISTS (SELECT 1 FROM journal WHERE sid = ?1)`},
	} {
		stmt, err := conn.PrepareContext(ctx, p.sql) //nolint:sqlclosecheck // statements.close closes it
		if err != nil {
			return nil, errors.Join(err, s.close())
		}
		*p.to = stmt
		s.all = append(s.all, stmt)
	}
	return s, nil
}

// Append implements [host.Store]. If ctx ends before the transaction begins, Append
// returns [host.ErrNotCommitted]. Later the end of ctx has no effect.
func (s *Store) Append(ctx context.Context, b host.Batch) error {
	if err := ctx.Err(); err != nil {
		return record.NotCommitted(err)
	}
	s.appending.Add(1)
	s.mu.Lock()
	s.appending.Add(-1)
	defer s.mu.Unlock()
	if s.broken != nil {
		return s.broken
	}
	begun := time.Now()
	defer func() { s.commitTime.Add(int64(time.Since(begun))) }()
	var journalBytes uint64
	s.needs, s.cuts, s.ended = s.needs[:0], s.cuts[:0], s.ended[:0]
	err := s.transact(ctx, func(ctx context.Context) error {
		if err := s.checkEpoch(ctx, b.Epoch); err != nil {
			return appendError(err)
		}
		for i := range b.Sessions {
			if err := s.appendSession(ctx, &b.Sessions[i]); err != nil {
				return appendError(err)
			}
			journalBytes += uint64(len(b.Sessions[i].Data))
		}
		if err := s.putSpent(ctx, b.Spent); err != nil {
			return appendError(err)
		}
		if err := s.putKV(ctx, b.KV); err != nil {
			return appendError(err)
		}
		if err := s.settleVersions(ctx, &b); err != nil {
			return appendError(err)
		}
		return appendError(s.note(ctx))
	})
	if err != nil {
		return err
	}
	if len(s.ended) > 0 {
		select {
		case s.noted <- struct{}{}:
		default: // the goroutine has been signalled
		}
	}
	s.commits.Add(1)
	s.journalBytes.Add(journalBytes)
	return nil
}

func (s *Store) checkEpoch(ctx context.Context, epoch uint64) error {
	var newest int64
	if err := s.stmts.epoch.QueryRowContext(ctx).Scan(&newest); err != nil {
		return err
	}
	// Before the first Claim nobody owns the store, not even with epoch 0.
	if newest == 0 || epoch != uint64(newest) {
		return host.ErrFenced
	}
	return nil
}

func (s *Store) appendSession(ctx context.Context, p *host.SessionBatch) error {
	if err := p.Validate(); err != nil {
		return record.Refuse("%v", err)
	}
	sid, err := s.putSession(ctx, p)
	if errors.Is(err, sql.ErrNoRows) {
		return nil // nothing to delete
	}
	if err != nil {
		return err
	}
	made, err := s.putRuns(ctx, sid, p)
	if err != nil {
		return err
	}
	if err := s.putStream(ctx, sid, p, made); err != nil {
		return err
	}
	for i := range p.Repeats {
		r := &p.Repeats[i]
		if _, err := s.stmts.putRepeat.ExecContext(ctx, p.Key.Tenant, r.Route, r.Key, r.Hash, r.RunID, r.Made); err != nil {
			return err
		}
	}
	if err := s.drop(ctx, sid, p); err != nil {
		return err
	}
	if err := s.purge(ctx, sid, p); err != nil || p.Erase == 0 {
		return err
	}
	return s.erase(ctx, sid, p.Erase)
}

// putSession moves the session to its new position and writes its entries. It returns
// sql.ErrNoRows for a part that only deletes, in a session that does not exist.
func (s *Store) putSession(ctx context.Context, p *host.SessionBatch) (sid int64, err error) {
	if p.First == 0 {
		err := s.stmts.findSession.QueryRowContext(ctx, p.Key.Tenant, p.Key.Session).Scan(&sid)
		return sid, err
	}
	if p.First == 1 {
		sid, err = s.makeSession(ctx, p)
	} else {
		err = s.stmts.updateSession.QueryRowContext(ctx, p.Key.Tenant, p.Key.Session, int64(p.Last),
			wakeColumn(p.WakeAt), startsPrivate(p), int64(p.First-1), p.At, len(p.Data), p.StateBytes).Scan(&sid)
		if errors.Is(err, sql.ErrNoRows) {
			err = record.Refuse("session %q does not end before position %d", p.Key.Session, p.First)
		}
	}
	if err != nil {
		return 0, err
	}
	data := p.Data
	if data == nil {
		data = []byte{} // nil would be NULL
	}
	snapshot := sql.NullInt64{Int64: int64(p.Snapshot), Valid: p.Snapshot != 0}
	if _, err = s.stmts.insertJournal.ExecContext(ctx, sid, int64(p.First), data, snapshot); err != nil {
		return sid, err
	}
	return sid, s.settleJournal(ctx, sid, p)
}

func (s *Store) makeSession(ctx context.Context, p *host.SessionBatch) (sid int64, err error) {
	res, err := s.stmts.insertSession.ExecContext(ctx, p.Key.Tenant, p.Key.Session, int64(p.Last),
		wakeColumn(p.WakeAt), startsPrivate(p), p.At, len(p.Data), p.StateBytes)
	if err != nil {
		return 0, err
	}
	if n, err := res.RowsAffected(); err != nil {
		return 0, err
	} else if n == 0 {
		return 0, record.Refuse("session %q has a position 1 already", p.Key.Session)
	}
	return res.LastInsertId()
}

// wakeColumn returns the column's form of WakeAt. The index of sessions that wake by
// themselves leaves out NULL.
func wakeColumn(at int64) sql.NullInt64 {
	return sql.NullInt64{Int64: at, Valid: at != host.WakeNever}
}

// startsPrivate reports whether the part starts a run of the handler whose private
// session this is.
func startsPrivate(p *host.SessionBatch) int {
	for _, id := range p.Started {
		if r := findRun(p.Runs, id); r != nil && r.HandlerID == p.Key.Session {
			return 1
		}
	}
	return 0
}

func findRun(runs []host.Run, id string) *host.Run {
	for i := range runs {
		if runs[i].RunID == id {
			return &runs[i]
		}
	}
	return nil
}

// madeHandler is a handler that the part has created and that has no events yet.
type madeHandler struct {
	id  string
	hid int64
}

// putRuns writes the new runs in the order of their start, and then the changed runs.
// Most parts that start a run create one handler, which putRuns returns.
func (s *Store) putRuns(ctx context.Context, sid int64, p *host.SessionBatch) (made madeHandler, err error) {
	for _, id := range p.Started {
		r := findRun(p.Runs, id)
		if r == nil {
			return made, record.Refuse("started run %q is not among the runs", id)
		}
		hid, isNew, err := s.startRun(ctx, sid, p, r)
		if err != nil {
			return made, err
		}
		if isNew {
			made = madeHandler{r.HandlerID, hid}
		}
	}
	for i := range p.Runs {
		if slices.Contains(p.Started, p.Runs[i].RunID) {
			continue
		}
		if err := s.changeRun(ctx, &p.Runs[i]); err != nil {
			return made, err
		}
	}
	return made, nil
}

func (s *Store) startRun(ctx context.Context, sid int64, p *host.SessionBatch, r *host.Run) (hid int64, isNew bool, err error) {
	hid, isNew, err = s.putHandler(ctx, sid, r, firstEvent(p, r))
	if err != nil {
		return 0, false, err
	}
	result, waiting, err := encodeParts(r)
	if err != nil {
		return 0, false, err
	}
	blockedCode, blockedMessage := blockedColumns(r)
	id, err := s.insertOne(ctx, s.stmts.insertRun, "run "+r.RunID+" exists already",
		hid, sid, r.Tenant, r.RunID, r.HandlerID, r.SessionID, r.Workflow, r.Started,
		string(r.Status), r.Updated, r.Completed, r.Paused, blockedCode, blockedMessage,
		int64(r.Steps), int64(r.Fuel), r.Error, r.ErrorCode, result, waiting, r.Version,
		string(r.Phase()), r.ParentRun, r.ParentStep, r.ForkedFrom, int64(r.ForkedAt), r.RetriedFrom)
	s.remember(r, id)
	return hid, isNew, err
}

// putHandler creates the run's handler, or replaces the latest run of an existing one.
func (s *Store) putHandler(ctx context.Context, sid int64, r *host.Run, firstSeq int64) (hid int64, isNew bool, err error) {
	res, err := s.stmts.insertHandler.ExecContext(ctx, r.Tenant, r.HandlerID, sid, firstSeq)
	if err != nil {
		return 0, false, err
	}
	if n, err := res.RowsAffected(); err != nil {
		return 0, false, err
	} else if n == 1 {
		hid, err = res.LastInsertId()
		return hid, true, err
	}
	err = s.stmts.reuseHandler.QueryRowContext(ctx, r.Tenant, r.HandlerID, sid, firstSeq).Scan(&hid)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, record.Refuse("handler %q belongs to another session than %q", r.HandlerID, r.SessionID)
	}
	if err != nil {
		return 0, false, err
	}
	_, err = s.stmts.supersedeRun.ExecContext(ctx, hid)
	return hid, false, err
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

func (s *Store) changeRun(ctx context.Context, r *host.Run) error {
	result, waiting, err := encodeParts(r)
	if err != nil {
		return err
	}
	blockedCode, blockedMessage := blockedColumns(r)
	var id int64
	err = s.stmts.updateRun.QueryRowContext(ctx,
		r.Tenant, r.RunID, r.HandlerID, r.SessionID, r.Workflow, r.Started,
		string(r.Status), r.Updated, r.Completed, r.Paused, blockedCode, blockedMessage,
		int64(r.Steps), int64(r.Fuel), r.Error, r.ErrorCode, result, waiting, r.Version, string(r.Phase())).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return record.Refuse("the run does not exist: %s", r.RunID)
	}
	s.remember(r, id)
	return err
}

// remember keeps the id of a run that has ended, for the batch's note.
func (s *Store) remember(r *host.Run, id int64) {
	if r.Status.Final() {
		s.ended = append(s.ended, id)
	}
}

// changeOne executes a statement that must change one row. If it does not, the batch is
// refused with the given reason.
func (s *Store) changeOne(ctx context.Context, stmt *sql.Stmt, reason string, args ...any) error {
	_, err := s.insertOne(ctx, stmt, reason, args...)
	return err
}

// insertOne is changeOne for a statement that creates the row. It returns the row's id.
func (s *Store) insertOne(ctx context.Context, stmt *sql.Stmt, reason string, args ...any) (id int64, err error) {
	res, err := stmt.ExecContext(ctx, args...)
	if err != nil {
		return 0, err
	}
	n, err := res.RowsAffected()
	if err == nil && n != 1 {
		return 0, record.Refuse("%s", reason)
	}
	if err != nil {
		return 0, err
	}
	return res.LastInsertId()
}
