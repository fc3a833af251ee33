package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/search"
	"github.com/weftrun/weft/host/store/record"
)

// The index of the words of ended runs uses FTS5.
//
// The index lags behind the commits. Writing it in the transaction that ends a run would
// take some 15 % more of the time of a commit of 64 runs. So a commit only adds one row,
// a note of the runs that it has ended. The words are written for some hundred runs at a
// time: by a goroutine that leaves the writing connection to others nearly all of the
// time, and by each search before it reads (together 4 to 8 % of the CPU time of a store
// that only appends; 140 bytes of the 2,000 that a run of one step takes). Runs without a
// note are in the index. A trigger removes deleted runs from the index in the same
// transaction. So an answer never lacks a run, and never shows a deleted one.
//
//   - The rowid of a document is the run's start in nanoseconds, with the low bits replaced
//     by those of the run's id. A walk down the rowids goes from the newest start on, except
//     for the order within a millisecond. So the cost of a page is proportional to its size.
//   - Each word begins with a tag of its tenant, so the data of other tenants does not slow a
//     search down. The run's row says whose run it is.
//   - FTS5's other data (positions, sizes) is not stored. It takes space, and answers are in
//     the order of start.
//   - secure-delete: deleted words leave the pages of the index at once, not at a later merge.
//     [Store.Compact] removes what is left on free pages, as for all tables.
//
// The schema has the table of notes and the trigger (step 12).

// makeIndex creates the empty index. noteAll adds notes for all runs that have ended.
const (
	makeIndex = `
CREATE VIRTUAL TABLE run_words USING fts5 (words, of UNINDEXED, detail = none, columnsize = 0, tokenize = 'ascii');
INSERT INTO run_words (run_words, rank) VALUES ('secure-delete', 1);`
	noteAll = `INSERT INTO unread (runs) SELECT json_group_array(id) FROM runs WHERE status <> 'running' GROUP BY id >> 8;`
)

// looseWords and missingWords find differences between the index and the runs.
const (
	looseWords = `SELECT '', '', 'the index of words has a run that is not there (document ' || rowid || '); ''weft compact --reindex'' mends it'
		FROM run_words WHERE NOT EXISTS (SELECT 1 FROM runs WHERE id = of)`
	missingWords = `SELECT tenant, session, 'run ' || run || ' is not found by its words; ''weft compact --reindex'' mends it'
		FROM runs WHERE status <> 'running'
			AND NOT EXISTS (SELECT 1 FROM run_words WHERE rowid = ((runs.started & ~1048575) | (runs.id & 1048575)))
			AND id NOT IN (SELECT j.value FROM unread u, json_each(u.runs) j)`
)

// Reindex empties the index of words and adds notes for all runs. The words are read now
// or by the next server.
func (s *Store) Reindex(ctx context.Context) error {
	s.reading.Lock()
	defer s.reading.Unlock()
	err := s.update(ctx, func(ctx context.Context) error {
		_, err := s.conn.ExecContext(ctx, "DROP TABLE run_words; DELETE FROM unread;"+makeIndex+noteAll)
		return err
	})
	if err != nil {
		return fmt.Errorf("making the index of words anew in %s: %w", s.dir, err)
	}
	return nil
}

// slots is the number of documents for starts at the same instant: the range of the low
// bits of a rowid, here 20 bits, which are about a millisecond.
const slots = 1 << 20

// docOf returns the rowid of a run's document, as the trigger computes it.
func docOf(started, id int64) int64 { return started&^(slots-1) | id&(slots-1) }

// Bounds of the work on the index.
const (
	// readNotes is how many notes are processed in one transaction. Each note belongs to
	// a commit. readBytes bounds the length of these notes, some 8 bytes for each run.
	readNotes = 64
	readBytes = 4 << 10
)

// unchanged is true for a run that is still as it was read. ?2, ?3 and ?4 are its id,
// start and update.
const unchanged = `EXISTS (SELECT 1 FROM runs WHERE id = ?2 AND started = ?3 AND updated = ?4 AND status <> 'running')`

// tag returns the prefix of a tenant's words.
func tag(tenant string) string {
	sum := sha256.Sum256([]byte(tenant))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:5]))
}

// matchOf returns the terms in FTS5's query language. Words consist of letters, digits
// and marks, and FTS5's tokenizer leaves them unchanged: it lowers only ASCII, which is
// lower case in our words, and treats all other characters as letters.
func matchOf(tenant string, terms []host.SearchTerm) string {
	var b strings.Builder
	for i, t := range terms {
		if i > 0 {
			b.WriteString(" AND ")
		}
		b.WriteString(`"` + tag(tenant) + t.Word + `"`)
		if t.Prefix {
			b.WriteByte('*')
		}
	}
	return b.String()
}

// note adds a note of the batch's runs that have ended.
func (s *Store) note(ctx context.Context) error {
	if len(s.ended) == 0 {
		return nil
	}
	ids, err := json.Marshal(s.ended)
	if err != nil {
		return err
	}
	_, err = s.stmts.noteEnded.ExecContext(ctx, string(ids))
	return err
}

// document is what the index stores of a run.
type document struct {
	id, started, updated int64
	words                string
}

// noteRow is a commit's note of runs that have ended.
type noteRow struct {
	n    int64
	runs string
}

// readEnded processes the oldest notes. more: there may be others. It computes the words
// without the write lock, and writes them only if the run is still as it was read. A run
// that has changed since is running, or has a new note.
//
// While an append waits for the write lock, readEnded processes no further note: 64 of
// them take 2 ms, and more beside a tenant that keeps the cores busy.
func (s *Store) readEnded(ctx context.Context) (more bool, err error) {
	s.reading.Lock()
	defer s.reading.Unlock()
	notes, err := s.notes(ctx)
	if err != nil || len(notes) == 0 {
		return false, err
	}
	docs, err := s.documents(ctx, notes)
	if err != nil {
		return false, err
	}
	err = s.update(ctx, func(ctx context.Context) error {
		for i, n := range notes {
			if i > 0 && s.appending.Load() > 0 {
				break
			}
			if err := s.putDocuments(ctx, docs[i]); err != nil {
				return err
			}
			if _, err := s.stmts.dropNote.ExecContext(ctx, n.n, n.runs); err != nil {
				return err
			}
		}
		return nil
	})
	return err == nil, err
}

// putDocuments writes the documents of one note.
func (s *Store) putDocuments(ctx context.Context, docs []document) error {
	for i := range docs {
		d := &docs[i]
		doc := docOf(d.started, d.id)
		if _, err := s.stmts.dropWords.ExecContext(ctx, doc, d.id, d.started, d.updated); err != nil {
			return err
		}
		if _, err := s.stmts.putWords.ExecContext(ctx, doc, d.id, d.started, d.updated, d.words); err != nil {
			return err
		}
	}
	return nil
}

// notes reads the oldest notes, at least one if there are any.
func (s *Store) notes(ctx context.Context) ([]noteRow, error) {
	rows, err := s.query.notes.QueryContext(ctx, readNotes)
	if err != nil {
		return nil, err
	}
	list, err := scanAll(rows, func(n *noteRow) []any { return []any{&n.n, &n.runs} })
	size := 0
	for i := range list {
		if size += len(list[i].runs); i > 0 && size > readBytes {
			return list[:i], err
		}
	}
	return list, err
}

// documents reads, for each note, its runs that still exist and have ended.
func (s *Store) documents(ctx context.Context, notes []noteRow) ([][]document, error) {
	// A query whose context can end costs two goroutines, and each query here is short.
	inner := context.WithoutCancel(ctx)
	docs, tags := make([][]document, len(notes)), map[string]string{}
	for i, n := range notes {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		rows, err := s.query.noted.QueryContext(inner, n.runs)
		if err != nil {
			return nil, err
		}
		if docs[i], err = scanDocuments(rows, tags); err != nil {
			return nil, err
		}
	}
	return docs, nil
}

// scanDocuments reads documents. tags has the tags of the tenants met so far.
func scanDocuments(rows *sql.Rows, tags map[string]string) (docs []document, err error) {
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var d document
		r, err := scanRun(idScanner{rows, &d.id})
		if err != nil {
			return nil, err
		}
		if tags[r.Tenant] == "" {
			tags[r.Tenant] = tag(r.Tenant)
		}
		var words strings.Builder
		for _, w := range search.Words(&r) {
			words.WriteString(tags[r.Tenant] + w + " ")
		}
		d.started, d.updated, d.words = r.Started, r.Updated, words.String()
		docs = append(docs, d)
	}
	return docs, rows.Err()
}

// idScanner scans a run's id before its columns.
type idScanner struct {
	row scanner
	id  *int64
}

// Scan implements scanner.
func (i idScanner) Scan(dest ...any) error { return i.row.Scan(append([]any{i.id}, dest...)...) }

// follow keeps the index up to date until Close.
func (s *Store) follow() {
	defer close(s.followed)
	record.Follow(s.following, s.noted, s.readEnded)
}

// readAllEnded brings the index up to date.
func (s *Store) readAllEnded(ctx context.Context) (err error) {
	for behind := s.stmts != nil; behind; {
		if behind, err = s.readEnded(ctx); err != nil {
			return fmt.Errorf("reading the words of runs: %w", err)
		}
	}
	return nil
}

// search lists runs by their words, after bringing the index up to date.
func (s *Store) search(ctx context.Context, q host.RunQuery, limit int) (runs []host.Run, more bool, err error) {
	if err := s.readAllEnded(ctx); err != nil {
		return nil, false, err
	}
	statement, args := searchQuery(q)
	rows, err := s.read.QueryContext(ctx, statement, args...)
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		r, err := scanRun(rows)
		if err != nil {
			return nil, false, err
		}
		// Read the last instant of a page to its end, because documents of one instant
		// are not in the order of the answer.
		if n := len(runs); n >= limit && docOf(runs[n-1].Started, 0) != docOf(r.Started, 0) {
			more = true
			break
		}
		runs = append(runs, r)
	}
	if err := rows.Err(); err != nil {
		return nil, false, err
	}
	slices.SortFunc(runs, func(a, b host.Run) int { return -record.CompareStart(&a, &b) })
	runs, beyond := record.Cut(runs, limit)
	return runs, more || beyond, nil
}

// searchQuery is a walk over the documents that have the words, newest start first.
func searchQuery(q host.RunQuery) (statement string, args []any) {
	l := listing{}
	l.filter("tenant = ?", q.Tenant)
	l.filter("status <> 'running'")
	if q.Session != "" {
		l.filter("session = ?", q.Session)
	}
	l.filterIn("status", record.Distinct(q.Statuses))
	l.filterIn("workflow", record.Distinct(q.Workflows))
	l = l.rest(q)
	inside, first := "run_words MATCH ?", []any{matchOf(q.Tenant, q.Search)}
	if q.AfterStarted != 0 || q.AfterHandler != "" {
		inside += " AND rowid <= ?"
		first = append(first, q.AfterStarted|(slots-1))
	}
	statement = "SELECT " + runColumns + " FROM (SELECT rowid AS doc, of FROM run_words WHERE " + inside +
		") CROSS JOIN runs ON runs.id = of WHERE " + strings.Join(l.where, " AND ") + " ORDER BY doc DESC"
	return statement, append(first, l.args...)
}
