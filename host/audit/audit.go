// Package audit verifies a stored host: that its file is sound, that every journal
// reads and folds, and that what the tables say of sessions, runs and streams is
// what the journals come to.
//
// It reads through an interface and changes nothing. It must not know SQL, how a
// server runs what it finds, or how a report is shown. It holds one session in
// memory at a time, of which it keeps the runs' records and a sum of each stream.
package audit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/inspect"
)

// Source is a stored host as it was at one moment. Rows are handed out in order
// and belong to the callee, whose errors end the call. One goroutine uses it.
//
// # Errors
//
// A [host.ErrUnreadable] is a fault of what is stored, any other the end of the
// audit.
type Source interface {
	// Integrity has the store check its own structures.
	Integrity(ctx context.Context, found func(problem string) error) error
	// Loose hands out rows that refer to nothing.
	Loose(ctx context.Context, found func(inspect.Loose) error) error
	// Modules hands out the modules with their bytes.
	Modules(ctx context.Context, each func(host.ModuleRecord) error) error
	CountSessions(ctx context.Context) (int, error)
	// Sessions lists sessions behind the one with an id; 0: from the first.
	Sessions(ctx context.Context, after int64, limit int) ([]inspect.Session, error)
	Journal(ctx context.Context, session int64, each func(host.JournalRow) error) error
	Versions(ctx context.Context, session int64, each func(host.VersionUse) error) error
	Runs(ctx context.Context, session int64, each func(inspect.Run) error) error
	Handlers(ctx context.Context, session int64, each func(inspect.Handler) error) error
	Stream(ctx context.Context, session int64, each func(inspect.Events) error) error
}

// Config says what to audit. All fields but Progress are needed.
type Config struct {
	Source Source
	// Row verifies a journal row and gives the CBOR array of its entries.
	Row func(row []byte) ([]byte, error)
	// Graph gives the workflow of a version.
	Graph func(version string) (*engine.Graph, error)
	// Found takes each fault as it is found; its error ends the audit.
	Found func(Fault) error
	// Progress is told what is being done and how far it is, in sessions; total
	// is 0 for work of which that is not known. nil: nobody is.
	Progress func(what string, done, total int)
}

// Fault is one thing that is wrong.
type Fault struct {
	// Code says which kind it is, for programs; see the constants.
	Code string `json:"code"`
	// Tenant and Session say where; "" for what belongs to none.
	Tenant  string `json:"tenant,omitempty"`
	Session string `json:"session,omitempty"`
	// Position is that of the journal's entry; 0: of none.
	Position uint64 `json:"position,omitempty"`
	// What is wrong and what to do about it, for people.
	What   string `json:"what"`
	Advice string `json:"advice"`
}

// Codes of faults.
const (
	DatabaseDamaged = "database_damaged"
	JournalDamaged  = "journal_damaged"
	JournalNewer    = "journal_newer"
	JournalGap      = "journal_gap"
	ModuleMissing   = "module_missing"
	ModuleDamaged   = "module_damaged"
	RecordDiffers   = "record_differs"
	StreamDiffers   = "stream_differs"
	WakeDiffers     = "wake_differs"
	RowLoose        = "row_loose"
	SnapshotDiffers = "snapshot_differs"
	VersionsDiffer  = "versions_differ"
	Unreadable      = "unreadable" // the disk does not give what it has
)

// What to do about faults.
const (
	adviceDatabase = "restore the latest backup that is clean; 'weft backup --no-verify' saves what still reads"
	adviceSession  = "the server refuses this session alone, as quarantined: restore a backup, or delete it " +
		"('weft sessions rm SESSION')"
	adviceNewer  = "run the version of weft that wrote it, or a newer one"
	adviceModule = "upload the same plugin again ('weft push FILE.wasm'): a module is found by its digest"
	adviceRecord = "the journal holds, and the run goes on by it; its next change writes the record anew. " +
		"If the run has ended, restore a backup or delete its handler ('weft cancel HANDLER --purge')"
	adviceWake     = "any request to the session writes it anew; without one it may sleep too long, or be loaded for nothing"
	adviceSnapshot = "the server loads the session by it: restore a backup, or delete it ('weft sessions rm SESSION'); " +
		"please report it, as it is not a fault of the disk"
	adviceVersions = "nothing is wrong as long as the plugin is there: do not delete it, nor its old versions, while the session is needed"
	adviceRow      = "the server does not look at it; a restore of a clean backup is without it"
)

// Summary is what an audit went over.
type Summary struct {
	Sessions int    `json:"sessions"`
	Entries  uint64 `json:"entries"`
	Runs     int    `json:"runs"`
	Events   uint64 `json:"events"`
	Modules  int    `json:"modules"`
	Faults   int    `json:"faults"`
}

// auditor is an audit under way.
type auditor struct {
	Config
	sum Summary
}

// sessionPage is how many sessions are listed at a time.
const sessionPage = 256

// Run audits all there is. The summary holds as far as it got.
//
// # Errors
//
// Of the source, but for [host.ErrUnreadable]; of Found; the context's.
func Run(ctx context.Context, cfg Config) (Summary, error) {
	a := &auditor{Config: cfg}
	if a.Progress == nil {
		a.Progress = func(string, int, int) {}
	}
	for _, part := range []func(context.Context) error{a.file, a.references, a.storedModules, a.sessions} {
		if err := part(ctx); err != nil {
			return a.sum, err
		}
	}
	return a.sum, nil
}

func (a *auditor) found(f Fault) error {
	a.sum.Faults++
	return a.Found(f)
}

// damage turns damage that keeps a part of the audit from being done into a
// fault; other errors stay.
func (a *auditor) damage(err error, f Fault) error {
	if !errors.Is(err, host.ErrUnreadable) {
		return err
	}
	f.What += ": " + err.Error()
	return a.found(f)
}

func (a *auditor) file(ctx context.Context) error {
	a.Progress("the file", 0, 0)
	err := a.Source.Integrity(ctx, func(problem string) error {
		return a.found(Fault{Code: DatabaseDamaged, What: problem, Advice: adviceDatabase})
	})
	return a.damage(err, Fault{Code: DatabaseDamaged, What: "the check of the file ended early", Advice: adviceDatabase})
}

func (a *auditor) references(ctx context.Context) error {
	a.Progress("references", 0, 0)
	err := a.Source.Loose(ctx, func(r inspect.Loose) error {
		return a.found(Fault{Code: RowLoose, Tenant: r.Tenant, Session: r.Session, What: r.What, Advice: adviceRow})
	})
	return a.damage(err, Fault{Code: DatabaseDamaged, What: "references cannot be followed", Advice: adviceDatabase})
}

func (a *auditor) storedModules(ctx context.Context) error {
	a.Progress("modules", 0, 0)
	err := a.Source.Modules(ctx, func(m host.ModuleRecord) error {
		a.sum.Modules++
		sum := sha256.Sum256(m.Bytes)
		if hex.EncodeToString(sum[:]) == m.Digest {
			return nil
		}
		what := fmt.Sprintf("the bytes of module %s are not those of its digest", m.Digest)
		if m.Bytes == nil {
			what = fmt.Sprintf("the bytes of module %s are missing", m.Digest)
		}
		return a.found(Fault{Code: ModuleDamaged, What: what, Advice: adviceDatabase})
	})
	return a.damage(err, Fault{Code: DatabaseDamaged, What: "the modules cannot be read", Advice: adviceDatabase})
}

func (a *auditor) sessions(ctx context.Context) error {
	total, err := a.Source.CountSessions(ctx)
	if err != nil && !errors.Is(err, host.ErrUnreadable) { // damage is told by what follows
		return err
	}
	for after := int64(0); ; {
		page, err := a.Source.Sessions(ctx, after, sessionPage)
		if err != nil {
			return a.damage(err, Fault{Code: DatabaseDamaged, What: "the sessions cannot be listed", Advice: adviceDatabase})
		}
		if len(page) == 0 {
			return nil
		}
		for _, row := range page {
			after = row.ID
			if err := a.session(ctx, row); err != nil {
				return err
			}
			a.sum.Sessions++
		}
		a.Progress("sessions", a.sum.Sessions, total)
	}
}

// session audits one session. One that does not fold has one fault: what the
// tables say of it cannot be compared with anything.
func (a *auditor) session(ctx context.Context, row inspect.Session) error {
	s := a.newSession(row)
	err := a.Source.Journal(ctx, row.ID, s.fold)
	switch {
	case errors.Is(err, host.ErrUnreadable) && s.fault == nil:
		s.fault = &Fault{Code: JournalDamaged, What: err.Error(), Advice: adviceDatabase}
	case err != nil && !errors.Is(err, errFault):
		return err
	case s.fault == nil && s.eng.Seq() != row.Last:
		s.fault = &Fault{Code: JournalGap, Position: s.eng.Seq() + 1, Advice: adviceSession,
			What: fmt.Sprintf("the journal ends at entry %d, its session says %d", s.eng.Seq(), row.Last)}
	}
	a.sum.Entries += s.eng.Seq() - s.before
	if s.fault != nil {
		s.fault.Tenant, s.fault.Session = row.Key.Tenant, row.Key.Session
		return a.found(*s.fault)
	}
	if err := s.compare(ctx); err != nil {
		return a.damage(err, Fault{Code: DatabaseDamaged, Tenant: row.Key.Tenant, Session: row.Key.Session,
			What: "the tables of the session cannot be read", Advice: adviceDatabase})
	}
	return nil
}

// sumOf is the sum by which a stored value is compared.
func sumOf(v any) ([sha256.Size]byte, error) {
	data, err := abi.Marshal(v)
	return sha256.Sum256(data), err
}
