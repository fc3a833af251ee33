package postgres

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/store/record"
)

// Append implements [host.Store]. If ctx ends before the batch is sent, Append returns
// [host.ErrNotCommitted]. Later the end of ctx only ends the wait for PostgreSQL.
func (s *Store) Append(ctx context.Context, b host.Batch) error {
	if err := s.lock(ctx); errors.Is(err, errClosed) {
		return err
	} else if err != nil {
		return record.NotCommitted(err)
	}
	defer s.unlock()
	begun := time.Now()
	defer func() { s.commitTime.Add(int64(time.Since(begun))) }()
	if b.Epoch != s.appender.epoch || b.Epoch == 0 {
		if err := s.adopt(ctx, b.Epoch); err != nil {
			return err
		}
	}
	if err := s.appendBatch(ctx, &b); err != nil {
		for i := range b.Sessions { // the ids that it was given are none
			delete(s.appender.sids, b.Sessions[i].Key)
		}
		return err
	}
	select {
	case s.noted <- struct{}{}:
	default: // the goroutine has been signalled
	}
	return nil
}

// appendBatch writes a batch of the appender's epoch.
func (s *Store) appendBatch(ctx context.Context, b *host.Batch) error {
	p, journalBytes, err := s.collect(ctx, b)
	if refused := (*record.Refusal)(nil); errors.As(err, &refused) {
		return s.refused(ctx, err)
	} else if err != nil {
		_ = s.appender.drop()
		return record.NotCommitted(err)
	}
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.keeping, cancel)()
	if err := s.commit(waiting, p); err != nil {
		return err
	}
	s.commits.Add(1)
	s.journalBytes.Add(journalBytes)
	return nil
}

// refused returns err, or [host.ErrFenced] if the epoch is closed: who does not own the
// store is not told what a batch contradicts.
func (s *Store) refused(ctx context.Context, err error) error {
	conn, connectErr := s.connected(ctx)
	if connectErr != nil {
		return err
	}
	var open bool
	if queryErr := conn.QueryRow(ctx, `SELECT open FROM pulse WHERE epoch = $1 AND mark = $2`,
		int64(s.appender.epoch), s.appender.mark).Scan(&open); errors.Is(queryErr, pgx.ErrNoRows) || queryErr == nil && !open {
		return host.ErrFenced
	}
	return err
}

// collect turns a batch into statements. Parts that can be written together make a wave:
// a statement writes all rows of a kind that a wave has.
func (s *Store) collect(ctx context.Context, b *host.Batch) (_ *pipeline, journalBytes uint64, err error) {
	for i := range b.Sessions {
		if err := b.Sessions[i].Validate(); err != nil {
			return nil, 0, record.Refuse("%v", err)
		}
		journalBytes += uint64(len(b.Sessions[i].Data))
	}
	if err := s.learn(ctx, b); err != nil {
		return nil, 0, err
	}
	p := &pipeline{}
	w := newWave(s)
	lets := false
	for i := range b.Sessions {
		part := &b.Sessions[i]
		p.at = max(p.at, part.At)
		if n := partition(part.Key.Tenant, part.Key.Session); !slices.Contains(p.part, n) {
			p.part = append(p.part, n)
		}
		if !w.takes(part) {
			w.flush(p)
			w = newWave(s)
		}
		if err := w.add(part); err != nil {
			return nil, 0, err
		}
		lets = lets || part.Cut != 0 || len(part.Drop)+len(part.Purge)+part.Erase > 0
	}
	w.flush(p)
	if err := addSpent(p, b); err != nil {
		return nil, 0, err
	}
	if err := s.addKV(p, b.KV); err != nil {
		return nil, 0, err
	}
	if lets {
		for _, statement := range sweeps {
			p.add("released versions", statement)
		}
	}
	return p, journalBytes, nil
}

// learn reads the ids of the batch's sessions and versions that the appender does not
// know. Mostly there are none: the owner has made the session, or loaded it.
func (s *Store) learn(ctx context.Context, b *host.Batch) error {
	a := &s.appender
	if len(a.sids) > maxCached {
		a.sids = map[host.SessionKey]int64{}
	}
	if len(a.versions) > maxCached || a.versions == nil {
		a.versions = map[string]int64{}
	}
	var tenants, sessions, digests []string
	for i := range b.Sessions {
		part := &b.Sessions[i]
		if _, known := a.sids[part.Key]; !known && part.First != 1 {
			tenants, sessions = append(tenants, text(part.Key.Tenant)), append(sessions, text(part.Key.Session))
		}
		for _, v := range part.Versions {
			if _, known := a.versions[v.Digest]; !known {
				digests = append(digests, text(v.Digest))
			}
		}
	}
	if len(sessions)+len(digests) == 0 {
		return nil
	}
	conn, err := s.connected(ctx)
	if err != nil {
		return err
	}
	if err := s.learnSessions(ctx, conn, tenants, sessions); err != nil {
		return err
	}
	return s.learnVersions(ctx, conn, record.Distinct(digests))
}

func (s *Store) learnSessions(ctx context.Context, conn *pgx.Conn, tenants, sessions []string) error {
	if len(sessions) == 0 {
		return nil
	}
	rows, err := conn.Query(ctx, `SELECT s.id, s.tenant, s.session FROM unnest($1::text[], $2::text[]) AS u (tenant, session)
		JOIN sessions s ON s.tenant = u.tenant AND s.session = u.session`, tenants, sessions)
	if err != nil {
		return err
	}
	var id int64
	var key host.SessionKey
	_, err = pgx.ForEachRow(rows, []any{&id, nameTo{&key.Tenant}, nameTo{&key.Session}}, func() error {
		s.appender.sids[key] = id
		return nil
	})
	return err
}

// learnVersions numbers versions that no journal needed before.
func (s *Store) learnVersions(ctx context.Context, conn *pgx.Conn, digests []string) error {
	if len(digests) == 0 {
		return nil
	}
	if _, err := conn.Exec(ctx, `INSERT INTO versions (digest) SELECT d FROM unnest($1::text[]) d
		WHERE NOT EXISTS (SELECT FROM versions WHERE digest = d) ON CONFLICT DO NOTHING`, digests); err != nil {
		return err
	}
	rows, err := conn.Query(ctx, `SELECT id, digest FROM versions WHERE digest = ANY ($1::text[])`, digests)
	if err != nil {
		return err
	}
	var id int64
	var digest string
	_, err = pgx.ForEachRow(rows, []any{&id, nameTo{&digest}}, func() error {
		s.appender.versions[digest] = id
		return nil
	})
	return err
}
