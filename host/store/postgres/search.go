package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/search"
	"github.com/weftrun/weft/host/store/record"
)

// The index of the words of ended runs is a GIN index, which lags behind the commits, as
// with SQLite. A commit only notes the runs that it has ended. Their words are written for
// some hundred runs at a time: by a goroutine, and by each search before it reads. A
// trigger deletes the words with the run. So an answer never lacks a run, and never shows
// a deleted one. Each word begins with a tag of its tenant, so that the data of other
// tenants does not slow a search down.

// Bounds of the work on the index.
const (
	readNotes = 64 // notes that are processed in one transaction
)

// tag returns the prefix of a tenant's words.
func tag(tenant string) string {
	sum := sha256.Sum256([]byte(tenant))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:5]))
}

// matchOf returns the terms as a tsquery. Words consist of letters, digits and marks, so a
// quote is enough.
func matchOf(tenant string, terms []host.SearchTerm) string {
	var b strings.Builder
	for i, t := range terms {
		if i > 0 {
			b.WriteString(" & ")
		}
		b.WriteString("'" + tag(tenant) + t.Word + "'")
		if t.Prefix {
			b.WriteString(":*")
		}
	}
	return b.String()
}

// readAllEnded brings the index up to date.
func (s *Store) readAllEnded(ctx context.Context) (err error) {
	for more := true; more && err == nil; {
		more, err = s.readEnded(ctx)
	}
	return err
}

// readEnded processes the oldest notes. more: there may be others. Words are written only
// if the run is still as it was read. A run that has changed since is running, or has a
// new note.
func (s *Store) readEnded(ctx context.Context) (more bool, err error) {
	s.reading.Lock()
	defer s.reading.Unlock()
	var notes []int64
	var ids, updated []int64
	var words [][]string
	err = s.read(ctx, func(q querier) error {
		notes, ids, updated, words = nil, nil, nil, nil
		runs := map[int64]bool{}
		rows, err := q.Query(ctx, `SELECT n, runs FROM unread ORDER BY n LIMIT $1`, readNotes)
		if err != nil {
			return err
		}
		var n int64
		var noted []int64
		if _, err := pgx.ForEachRow(rows, []any{&n, &noted}, func() error {
			notes = append(notes, n)
			for _, id := range noted {
				runs[id] = true
			}
			return nil
		}); err != nil || len(notes) == 0 {
			return err
		}
		ids, updated, words, err = wordsOf(ctx, q, runs)
		return err
	})
	if err != nil || len(notes) == 0 {
		return false, err
	}
	err = s.read(ctx, func(q querier) error {
		_, err := q.Exec(ctx, `WITH gone AS (DELETE FROM unread WHERE n = ANY ($1::bigint[])),
			still AS (SELECT r.id, u.words FROM unnest($2::bigint[], $3::bigint[], $4::text[]) AS u (id, updated, words)
				JOIN runs r ON r.id = u.id AND r.updated = u.updated AND r.status <> 'running' ORDER BY r.id FOR KEY SHARE OF r)
			INSERT INTO run_words (run, words) SELECT id, array_to_tsvector(string_to_array(words, ' ')) FROM still
			ON CONFLICT (run) DO UPDATE SET words = excluded.words`, notes, ids, updated, joined(words))
		return err
	})
	return err == nil, err
}

// joined joins the words of each run by blanks, which no word has.
func joined(words [][]string) []string {
	list := make([]string, len(words))
	for i := range words {
		list[i] = strings.Join(words[i], " ")
	}
	return list
}

// wordsOf reads the runs that still exist and have ended, with their words.
func wordsOf(ctx context.Context, q querier, runs map[int64]bool) (ids, updated []int64, words [][]string, err error) {
	wanted := make([]int64, 0, len(runs))
	for id := range runs {
		wanted = append(wanted, id)
	}
	rows, err := q.Query(ctx, `SELECT id, `+runFields+` FROM runs WHERE id = ANY ($1::bigint[]) AND status <> 'running'`, wanted)
	if err != nil {
		return nil, nil, nil, err
	}
	defer rows.Close()
	tags := map[string]string{}
	for rows.Next() {
		var id int64
		r, err := scanRun(preceded{rows, &id})
		if err != nil {
			return nil, nil, nil, err
		}
		if tags[r.Tenant] == "" {
			tags[r.Tenant] = tag(r.Tenant)
		}
		var list []string
		for _, w := range search.Words(&r) {
			list = append(list, tags[r.Tenant]+w)
		}
		ids, updated, words = append(ids, id), append(updated, r.Updated), append(words, list)
	}
	return ids, updated, words, rows.Err()
}

// preceded scans one column before the columns of a run.
type preceded struct {
	row   pgx.Row
	first any
}

// Scan implements [pgx.Row].
func (p preceded) Scan(dest ...any) error { return p.row.Scan(append([]any{p.first}, dest...)...) }

// follow keeps the index up to date until Close.
func (s *Store) follow() {
	record.Follow(s.keeping, s.noted, s.readEnded)
}
