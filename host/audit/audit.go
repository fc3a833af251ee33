// Package audit verifies a stored host. The file must be sound, every journal must be
// readable and fold, and the tables of sessions, runs and streams must agree with the
// journals.
//
// The package reads through an interface and changes nothing. It does not know SQL, how a
// server runs what is stored, or how a report is shown. It holds one session in memory at
// a time, and keeps only the records of its runs and a checksum of each stream.
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

// Source is a stored host as it was at one moment. Rows are passed to callbacks in order.
// The callback owns them, and its error ends the call. Only one goroutine may use a
// Source.
//
// # Errors
//
// A [host.ErrUnreadable] is a fault of the stored data. Any other error ends the audit.
type Source interface {
	// Integrity makes the store check its own structures.
	Integrity(ctx context.Context, found func(problem string) error) error
	// Loose passes each row that refers to something missing.
	Loose(ctx context.Context, found func(inspect.Loose) error) error
	// Modules passes the modules with their bytes.
	Modules(ctx context.Context, each func(host.ModuleRecord) error) error
	CountSessions(ctx context.Context) (int, error)
	// Sessions lists the sessions with ids above after, in order of id.
	Sessions(ctx context.Context, after int64, limit int) ([]inspect.Session, error)
	Journal(ctx context.Context, session int64, each func(host.JournalRow) error) error
	Versions(ctx context.Context, session int64, each func(host.VersionUse) error) error
	Runs(ctx context.Context, session int64, each func(inspect.Run) error) error
	Handlers(ctx context.Context, session int64, each func(inspect.Handler) error) error
	Stream(ctx context.Context, session int64, each func(inspect.Events) error) error
}

// Config configures an audit. All fields except Progress are required.
type Config struct {
	Source Source
	// Row verifies a journal row and returns the CBOR array of its entries.
	Row func(row []byte) ([]byte, error)
	// Graph returns the workflow of a version.
	Graph func(version string) (*engine.Graph, error)
	// Found is called with each fault. Its error ends the audit.
	Found func(Fault) error
	// Progress is called with the present part of the audit and its progress in sessions.
	// total is 0 for parts of unknown length. nil: no call.
	Progress func(what string, done, total int)
}

// Fault is one thing that is wrong.
type Fault struct {
	// Code identifies the kind of fault for programs; see the constants.
	Code string `json:"code"`
	// Tenant and Session locate the fault; "" if it belongs to neither.
	Tenant  string `json:"tenant,omitempty"`
	Session string `json:"session,omitempty"`
	// Position is the position of the journal entry; 0: the fault has no entry.
	Position uint64 `json:"position,omitempty"`
	// What is wrong, and what to do about it, for people.
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
	Unreadable      = "unreadable" // the disk does not return stored data
)

// What to do about faults.
const (
	adviceDatabase = "restore the latest backup that is clean; 'weft backup --no-verify' saves everything that can still be read"
	adviceSession  = "the server has quarantined this session, and refuses it alone: restore a backup, or delete it " +
		"('weft sessions rm SESSION')"
	adviceNewer  = "run the version of weft that wrote it, or a newer one"
	adviceModule = "upload the same plugin again ('weft push FILE.wasm'): a module is found by its digest"
	adviceRecord = "the journal is right, and the run continues from it; the next change of the run corrects the record. " +
		"If the run has ended, restore a backup or delete its handler ('weft cancel HANDLER --purge')"
	adviceWake     = "the next request to the session corrects it; until then the session may wake too late, or be loaded in vain"
	adviceSnapshot = "the server loads the session from it: restore a backup, or delete it ('weft sessions rm SESSION'); " +
		"please report it, because a disk fault does not cause it"
	adviceVersions = "nothing is wrong as long as the plugin is there: do not delete it, nor its old versions, while the session is needed"
	adviceRow      = "the server ignores the row; restoring a clean backup removes it"
)

// Summary counts what an audit has checked.
type Summary struct {
	Sessions int    `json:"sessions"`
	Entries  uint64 `json:"entries"`
	Runs     int    `json:"runs"`
	Events   uint64 `json:"events"`
	Modules  int    `json:"modules"`
	Faults   int    `json:"faults"`
}

// auditor is an audit in progress.
type auditor struct {
	Config
	sum Summary
}

// sessionPage is how many sessions are listed at a time.
const sessionPage = 256

// Run audits everything. The summary covers what was checked up to an error.
//
// # Errors
//
// The errors of the source, except [host.ErrUnreadable]; those of Found; that of the
// context.
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

// damage turns an error of damaged data, which prevents a part of the audit, into a
// fault. It returns other errors unchanged.
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
		what := fmt.Sprintf("the bytes of module %s do not match its digest", m.Digest)
		if m.Bytes == nil {
			what = fmt.Sprintf("the bytes of module %s are missing", m.Digest)
		}
		return a.found(Fault{Code: ModuleDamaged, What: what, Advice: adviceDatabase})
	})
	return a.damage(err, Fault{Code: DatabaseDamaged, What: "the modules cannot be read", Advice: adviceDatabase})
}

func (a *auditor) sessions(ctx context.Context) error {
	total, err := a.Source.CountSessions(ctx)
	if err != nil && !errors.Is(err, host.ErrUnreadable) { // the listing below reports the damage
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

// session audits one session. A session that does not fold has one fault, because its
// tables cannot be compared with anything.
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

// sumOf is the checksum by which stored values are compared.
func sumOf(v any) ([sha256.Size]byte, error) {
	data, err := abi.Marshal(v)
	return sha256.Sum256(data), err
}
