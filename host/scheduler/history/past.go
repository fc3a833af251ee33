package history

import (
	"context"
	"errors"
	"fmt"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
)

// Past is a session as it was at a position of its journal. It is folded from the store,
// apart from the session in memory, and what is done to it changes nothing else. One
// goroutine at a time uses it.
type Past struct {
	Key    host.SessionKey
	Engine *engine.Session
	Ledger *Ledger
	First  uint64 // the first position that the journal still has; 0: nothing was read yet

	journal Journal
}

// Onlooker looks on while a past is folded.
type Onlooker interface {
	// See gets each entry before the entry is folded. If it returns false, the walk ends.
	See(p *Past, e *engine.Entry) bool
	// Seen gets the entry when it is folded, with the commands that follow from it.
	Seen(p *Past, e *engine.Entry, cmds []engine.Command) error
}

// Past begins an empty past of a session.
func (r *Reader) Past(key host.SessionKey) *Past {
	return &Past{Key: key, Engine: engine.New(key, r.cfg.Graph), Ledger: NewLedger(), journal: r.cfg.Journal}
}

// Walk folds the session's entries from where a position can be folded from. It
// ends with the journal, or when the onlooker has seen enough.
//
// # Errors
//
// [ErrNoHandler]: the session was purged meanwhile. CodeGone: the journal was cut
// meanwhile. CodeUnavailable: the store could not be read. CodeInternal: the journal does
// not fold.
func (p *Past) Walk(ctx context.Context, position uint64, on Onlooker) error {
	err := p.journal.History(ctx, p.Key, position, func(array []byte) (bool, error) {
		return p.fold(ctx, array, on)
	})
	var known *host.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, host.ErrNotFound): // purged meanwhile
		return ErrNoHandler
	case errors.As(err, &known), ctx.Err() != nil:
		return err
	case !Unfolds(err):
		return host.Unavailable(err)
	}
	return &host.Error{Code: host.CodeInternal, Message: fmt.Sprintf("the journal of session %q cannot be read", p.Key.Session), Cause: err}
}

// fold folds an array of entries. more is false if the onlooker has seen enough.
func (p *Past) fold(ctx context.Context, array []byte, on Onlooker) (more bool, err error) {
	entries, err := Decode(array)
	if err != nil {
		return false, err
	}
	for i := range entries {
		e := &entries[i]
		if p.Engine.Skips(e) {
			continue
		}
		if p.First == 0 {
			p.First = e.Seq
		}
		// The journal may be cut between the reading of two of its pages.
		if last := p.Engine.Seq(); last != 0 && e.Seq > last+1 {
			return false, CutAway(e.Seq)
		}
		if !on.See(p, e) {
			return false, nil
		}
		// The onlooker has seen the state before the entry, and now sees the state after it.
		cmds, err := p.Engine.Fold(e)
		if err != nil {
			return false, &Unfoldable{err}
		}
		p.Ledger.Follow(p.Engine, e, cmds)
		if err := on.Seen(p, e, cmds); err != nil {
			return false, err
		}
	}
	return true, ctx.Err()
}

// Reduce decides a tick on the past, at the time of its newest entry, and folds the entry.
// The errors are those of [engine.Session.Reduce].
func (p *Past) Reduce(t engine.Tick) error {
	res, err := p.Engine.Reduce(p.Engine.Now(), t)
	if err != nil || res.Entry == nil {
		return err
	}
	p.Ledger.Follow(p.Engine, res.Entry, res.Commands)
	return nil
}

// Decode reads an array of entries as the journal has it. The error is an [*Unfoldable].
func Decode(array []byte) ([]engine.Entry, error) {
	var entries []engine.Entry
	if err := abi.Unmarshal(array, &entries); err != nil {
		return nil, &Unfoldable{fmt.Errorf("decode entries: %w", err)}
	}
	return entries, nil
}

// Unfoldable is the error of a journal that does not fold: its entries do not decode, or
// do not follow each other.
type Unfoldable struct{ Cause error }

// Error implements error.
func (e *Unfoldable) Error() string { return e.Cause.Error() }

// Unwrap gives the fault of the journal.
func (e *Unfoldable) Unwrap() error { return e.Cause }

// Unfolds reports whether an error of loading a session comes from what is stored, and
// not from the store: the next try fails too.
func Unfolds(err error) bool {
	var journal *Unfoldable
	return (errors.As(err, &journal) || errors.Is(err, host.ErrUnreadable) || errors.Is(err, host.ErrNewer)) &&
		host.CodeOf(err) != host.CodeUnavailable
}

// CutAway is the error for positions before the first one that the journal still has.
func CutAway(first uint64) error {
	return host.Errorf(host.CodeGone, "The journal has been cut: it begins at entry %d", first)
}
