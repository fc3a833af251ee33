// Package copy copies the content of a store into another store, which may be on another
// database: for moves between SQLite and PostgreSQL, backups and restores.
//
// All rows are read from one snapshot, and are written in pages. Each page is a transaction
// that also writes where the copy stands, so a copy that was interrupted continues behind
// its last page. At the end the rows of the copy are read again and compared with what was
// read from the source.
//
// The package does not know SQL, or what the rows mean.
package copy

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/weftrun/weft/host/store/record"
)

// Source is the store that a copy is made of.
type Source = record.Source

// Target is a store that a copy is written to. No server uses the store before the copy is
// published.
type Target interface {
	// State returns what the last Load or Clear has stored, or nil for a store without
	// any content.
	//
	// # Errors
	//
	// An error in one sentence if the store has content that is not that of a copy.
	State(ctx context.Context) ([]byte, error)
	// Clear deletes all rows and stores the state.
	Clear(ctx context.Context, state []byte) error
	// Load adds rows to a table and stores the state, in one transaction.
	Load(ctx context.Context, t *record.Table, rows [][]any, state []byte) error
	// Seal prepares what a server needs besides the rows. It may be called again.
	Seal(ctx context.Context) error
	// Read calls fn with what has been written.
	Read(ctx context.Context, fn func(Source) error) error
}

// Config configures a copy.
type Config struct {
	From Source
	To   Target
	// Identity identifies the content of the source: nobody has written to the source
	// while the identity is the same. A copy of a source with another identity begins
	// anew. "": no copy can be continued.
	Identity string
	// Family is the part of the identity that a later state of the same store has too. An
	// interrupted copy of another family is not replaced.
	Family string
	// Again makes the copy read the target again and compare.
	Again bool
	// Progress, unless it is nil, is called with the present work, and the rows so far of
	// all rows.
	Progress func(what string, done, total int)
}

// Summary counts what was copied.
type Summary struct {
	Rows      int64 // of the copy
	Continued int64 // of these, rows that an interrupted copy had written before
}

// Bounds of a page.
const (
	pageRows  = 1000
	pageBytes = 4 << 20
)

// sum identifies a set of rows, in any order: the sum of their hashes.
type sum [4]uint64

func (s *sum) add(hash [sha256.Size]byte) {
	for i := range s {
		s[i] += binary.BigEndian.Uint64(hash[8*i:])
	}
}

// tally is what is known of the rows of a table.
type tally struct {
	Rows int64
	Sum  sum
}

func (t *tally) add(of *record.Table, row []any) (size int) {
	if of.Numbered {
		row = row[of.Key:]
	}
	data := record.AppendRow(nil, row)
	t.Rows++
	t.Sum.add(sha256.Sum256(data))
	return len(data)
}

// state is where a copy stands.
type state struct {
	Identity string
	Family   string
	Table    int    // in record.Tables
	After    []byte // key of the last row of the table that was copied; nil: none
	Tallies  []tally
}

func (s *state) encode() ([]byte, error) { return json.Marshal(s) }

// copier is a copy in progress.
type copier struct {
	Config
	state   state
	summary Summary
	total   int64
}

// Run copies everything, or continues an interrupted copy of the same source. The caller
// publishes the copy.
//
// # Errors
//
// Those of the source and the target; an error in one sentence if the target has other
// content, or if the copy is not equal to the source.
func Run(ctx context.Context, cfg Config) (Summary, error) {
	c := &copier{Config: cfg}
	if c.Progress == nil {
		c.Progress = func(string, int, int) {}
	}
	if err := c.begin(ctx); err != nil {
		return c.summary, err
	}
	for ; c.state.Table < len(record.Tables); c.state.Table++ {
		if err := c.table(ctx, record.Tables[c.state.Table]); err != nil {
			return c.summary, fmt.Errorf("copying the table %s: %w", record.Tables[c.state.Table].Name, err)
		}
		c.state.After = nil
	}
	if err := c.To.Seal(ctx); err != nil {
		return c.summary, err
	}
	if !c.Again {
		return c.summary, nil
	}
	return c.summary, c.To.Read(ctx, func(s Source) error { return c.compare(ctx, s) })
}

// Interrupted reports whether the target has the beginning of a copy of a source with
// this identity.
func Interrupted(ctx context.Context, to Target, identity string) (bool, error) {
	data, err := to.State(ctx)
	if err != nil || data == nil {
		return false, err
	}
	var s state
	if err := json.Unmarshal(data, &s); err != nil {
		return false, fmt.Errorf("reading where a copy stands: %w", err)
	}
	return identity != "" && s.Identity == identity, nil
}

// begin reads where an earlier copy stands, or prepares the target for a new one.
func (c *copier) begin(ctx context.Context) error {
	data, err := c.To.State(ctx)
	if err != nil {
		return err
	}
	if data != nil {
		if err := json.Unmarshal(data, &c.state); err != nil {
			return fmt.Errorf("reading where a copy stands: %w", err)
		}
		if c.state.Family != c.Family {
			return errors.New("it holds the beginning of a copy of another store: empty it first")
		}
	}
	fresh := state{Identity: c.Identity, Family: c.Family, Tallies: make([]tally, len(record.Tables))}
	if data == nil || c.Identity == "" || c.state.Identity != c.Identity || len(c.state.Tallies) != len(record.Tables) {
		c.state = fresh
		begun, err := c.state.encode()
		if err != nil {
			return err
		}
		if err := c.To.Clear(ctx, begun); err != nil {
			return err
		}
	}
	for _, t := range c.state.Tallies {
		c.summary.Continued += t.Rows
	}
	c.summary.Rows = c.summary.Continued
	for _, t := range record.Tables {
		n, err := c.From.Count(ctx, t)
		if err != nil {
			return err
		}
		c.total += n
	}
	return nil
}

// table copies the rows of a table that are not copied yet.
func (c *copier) table(ctx context.Context, t *record.Table) error {
	var after []any
	if c.state.After != nil {
		var err error
		if after, err = record.ParseRow(c.state.After); err != nil {
			return err
		}
	}
	var page [][]any
	size := 0
	tally := &c.state.Tallies[c.state.Table]
	flush := func() error {
		if len(page) == 0 {
			return nil
		}
		c.state.After = record.AppendRow(nil, page[len(page)-1][:t.Key])
		data, err := c.state.encode()
		if err != nil {
			return err
		}
		if err := c.To.Load(ctx, t, page, data); err != nil {
			return err
		}
		c.summary.Rows += int64(len(page))
		c.Progress("rows", int(c.summary.Rows), int(c.total))
		page, size = nil, 0
		return nil
	}
	err := c.From.Rows(ctx, t, after, func(row []any) error {
		page = append(page, row)
		size += tally.add(t, row)
		if len(page) < pageRows && size < pageBytes {
			return nil
		}
		return flush()
	})
	if err != nil {
		return err
	}
	return flush()
}

// compare reads the copy and compares it with what was read from the source.
func (c *copier) compare(ctx context.Context, copied Source) error {
	done := 0
	for i, t := range record.Tables {
		var found tally
		err := copied.Rows(ctx, t, nil, func(row []any) error {
			found.add(t, row)
			if done++; done%pageRows == 0 {
				c.Progress("rows compared", done, int(c.summary.Rows))
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("comparing the table %s: %w", t.Name, err)
		}
		if want := c.state.Tallies[i]; found != want {
			return fmt.Errorf("the copy of the table %s has %d rows and is not equal to its source, which has %d", t.Name, found.Rows, want.Rows)
		}
	}
	return nil
}
