package host

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/kv"
	"github.com/weftrun/weft/host/usage"
)

// Errors of a Store beside ErrNotFound are answers to Append.
var (
	// ErrNotFound: there is no such row.
	ErrNotFound = errors.New("not found")
	// ErrFenced: the batch's epoch is not the newest; another owner has taken
	// over. Nothing was written.
	ErrFenced = errors.New("fenced: another owner has taken over")
	// ErrNotCommitted: the store says that the batch was surely not written
	// (full, busy). The same batch may be tried again.
	ErrNotCommitted = errors.New("not committed")
	// ErrUnreadable: what is stored was read whole and is damaged. To read it again
	// would end the same. A read that fails is another error: it may pass.
	ErrUnreadable = errors.New("unreadable")
	// ErrErasing: the session is being deleted, and some of it is left: Erase goes on
	// with it.
	ErrErasing = errors.New("the session is being deleted")
	// ErrNewer: what is stored was written by a newer version of weft, in a form
	// that this one does not know.
	ErrNewer = errors.New("written by a newer version of weft")
)

// MaxListed is the greatest page of a list of a [Store]: a greater Limit counts as this.
const MaxListed = 1000

// WakeNever is the WakeAt of a session that waits for something from outside
// only.
const WakeNever int64 = -1

// Batch is what one commit writes: a prefix of the journal's queue, all or
// nothing.
type Batch struct {
	Epoch    uint64
	Sessions []SessionBatch
	// Spent is what tenants have used up with it; each month of a tenant once.
	Spent []usage.MonthSpent
	// KV holds what is written to resources of the kind kv, in order; each key of a
	// space once. A write to a space whose definition is gone is left out.
	KV []kv.Write
}

// SessionBatch is a batch's part for one session.
type SessionBatch struct {
	Key SessionKey
	// First and Last are the positions of the new entries, Data their encoding
	// (one row). A store refuses a First that is not the stored last position
	// plus one. Data is nil and First 0 when the part only deletes.
	First, Last uint64
	Data        []byte
	// WakeAt says when the session has something to do by itself: 0 now, a
	// time in Unix nanoseconds, or WakeNever.
	WakeAt int64
	// At is the time of the entry Last, in Unix nanoseconds.
	At int64
	// StateBytes is the size of the session's state after the entry Last, and
	// StateGrowth by how much the entries have made it larger.
	StateBytes, StateGrowth int64
	// Snapshot is the position of the newest entry of Data that has a snapshot of
	// the session; 0: none has. Cut lets go of the journal's rows before the
	// newest one with a snapshot at or before this position; 0: of none.
	Snapshot, Cut uint64
	// Runs holds the new records of the runs that changed, each run once.
	Runs []Run
	// Started names the runs of Runs that the batch makes: each becomes its
	// handler's latest.
	Started []string
	// Versions are those that entries of Data need when they are folded: the store
	// keeps them, by whatever name they go or went, as long as it has the entries.
	Versions []VersionUse
	// Repeats names requests that the entries answer: what was stored of the same
	// ones before is replaced.
	Repeats []Repeat
	// Stream holds new stream events in order.
	Stream []StreamRow
	// Drop deletes runs that have ended, by their ids, with their events, after
	// the rest was written. A handler goes with its last run, a private session
	// with its last handler. A run stays that is none of the session's, that has
	// not ended, that is the latest of several of its handler, or with which a
	// session would go that has something to do by itself.
	Drop []string
	// Purge deletes handlers with their runs and streams, after the rest was
	// written; with the last handler of a private session (the session id is
	// the handler id) the session and its journal go too.
	Purge []string
	// Erase deletes about so many rows of the session, after the rest was written:
	// events, runs and handlers first, then journal rows; when none is left the
	// session goes. 0: none. Until then the session has something to do now, and is
	// not there but for those who delete: its reading is ErrErasing, and a new one of
	// its name is refused. A session that does not exist stays so.
	Erase int
}

// Validate checks that the part does not contradict itself. Whether the part
// fits what is stored, the store checks.
func (p *SessionBatch) Validate() error {
	switch {
	case p.First == 0 && (p.Last != 0 || len(p.Data)+len(p.Runs)+len(p.Started)+len(p.Stream)+len(p.Versions)+len(p.Repeats) > 0):
		return fmt.Errorf("session %q: a part without entries only deletes", p.Key.Session)
	case p.First > p.Last || p.Last > math.MaxInt64:
		return fmt.Errorf("session %q: positions %d to %d", p.Key.Session, p.First, p.Last)
	case p.Snapshot != 0 && (p.Snapshot < p.First || p.Snapshot > p.Last) || p.Cut > p.Last:
		return fmt.Errorf("session %q: a snapshot at %d, or a cut at %d, outside of its positions", p.Key.Session, p.Snapshot, p.Cut)
	case p.WakeAt < WakeNever:
		return fmt.Errorf("session %q: wakes at %d", p.Key.Session, p.WakeAt)
	}
	for _, v := range p.Versions {
		if v.Digest == "" || v.Seq < p.First || v.Seq > p.Last {
			return fmt.Errorf("session %q: version %q at %d, outside of its positions", p.Key.Session, v.Digest, v.Seq)
		}
	}
	for i := range p.Runs {
		if r := &p.Runs[i]; r.Tenant != p.Key.Tenant || r.SessionID != p.Key.Session {
			return fmt.Errorf("run %q of session %q in a part of session %q", r.RunID, r.SessionID, p.Key.Session)
		}
	}
	for i := range p.Stream {
		if err := p.Stream[i].validate(); err != nil {
			return err
		}
	}
	return nil
}

// validate checks the events of a row.
func (row *StreamRow) validate() error {
	if len(row.Events) == 0 {
		return fmt.Errorf("handler %q: a stream row without events", row.HandlerID)
	}
	for i := range row.Events {
		seq := row.Events[i].Seq
		if seq > math.MaxInt64 || i > 0 && seq != row.Events[i-1].Seq+1 {
			return fmt.Errorf("handler %q: stream event %d is out of order", row.HandlerID, seq)
		}
	}
	return nil
}

// JournalRow is one row of a session's journal.
type JournalRow struct {
	First uint64 // position of its first entry
	Data  []byte
}

// SessionInfo is what is known of a session without its journal.
type SessionInfo struct {
	Tenant    string
	SessionID string
	Order     int64 // grows from one session to the next in the order of their making
	// Created and Updated are the times of its first and its last entry in Unix
	// nanoseconds; 0 if they are not known.
	Created, Updated int64
	Runs             int // of all its handlers
	Active           int // of these: running, or waiting for their turn
}

// SessionQuery selects sessions, the newest first.
type SessionQuery struct {
	Tenant string
	Before int64 // Order of the session behind which to go on; 0: the top
	Limit  int   // 1 to MaxListed
}

// VersionUse says that an entry needs a version of a workflow to be folded.
type VersionUse struct {
	Digest string // of a module or a composition
	Seq    uint64 // position of the last entry that does
}

// VersionRuns counts runs of a version of a workflow.
type VersionRuns struct {
	Workflow string
	Version  string // digest; "" of runs that were begun before records had it
	Runs     int
}

// Repeat is what is kept of a request that a client may send again: so that it
// counts once.
type Repeat struct {
	Route string // that the key is for
	Key   string // the client's
	Hash  string // of the body; another body under the same key is a mistake
	RunID string // that the request started, or spoke to
	Made  int64  // Unix nanoseconds
}

// StreamRow holds consecutive new events of one handler's stream.
type StreamRow struct {
	HandlerID string
	RunID     string
	Events    []StreamEvent
}

// StoredSession is a session as a store has it.
type StoredSession struct {
	Last uint64 // position of the last entry
	// Rows are the journal rows' Data in order, from the newest one with a
	// snapshot on.
	Rows   [][]byte
	WakeAt int64
}

// Handler is what a handler id points to.
type Handler struct {
	HandlerID string
	SessionID string
	Workflow  string
	Run       Run // the latest
}

// RunQuery selects the latest runs of handlers. Empty filters do not filter;
// results are ordered by start, newest first, ties by handler id descending.
type RunQuery struct {
	Tenant    string
	Statuses  []string
	Workflows []string
	Version   string // digest that the runs are on, or how it begins
	Session   string
	ErrorCode string
	Since     int64 // Updated >= Since, Unix nanoseconds
	Blocked   bool  // only blocked ones
	// Search keeps runs that have ended and in whose text all of these occur (see
	// Run.Words).
	Search []SearchTerm
	Limit  int // 1 to MaxListed
	// After continues behind a run: its (Started, HandlerID); zero is the top.
	AfterStarted int64
	AfterHandler string
}

// EndedQuery selects runs of a tenant that have ended, in the order of their
// ends, ties by run id.
type EndedQuery struct {
	Tenant string
	// After and Until bound the list: behind the one, up to and with the other.
	// The zero After is the beginning.
	After, Until EndedAt
	Limit        int // 1 to MaxListed
}

// EndedAt is the end of a run among the ends of its tenant's runs.
type EndedAt struct {
	Completed int64 // Unix nanoseconds
	RunID     string
}

// EndedRun is a run that has ended.
type EndedRun struct {
	EndedAt
	HandlerID string
	SessionID string
}

// ModuleRecord is the durable part of a module, by the digest of its original
// bytes.
type ModuleRecord struct {
	Digest    string // SHA-256 of the original, lower-case hex
	Rewritten string // SHA-256 of what runs
	ImageHash string // of the pristine image; "" until it was made
	Manifest  abi.Raw
	Imports   []string
	Bytes     []byte // the original
}

// PluginVersion is one upload under a plugin's name.
type PluginVersion struct {
	Tenant   string
	Name     string
	Workflow string // "": a part, which makes none by itself
	Version  int
	Digest   string
	Size     int
	Created  int64 // Unix nanoseconds
}

// CompositionVersion is one version of a workflow that is composed of plugins,
// or has settings. It never changes: runs are held to it by its digest.
type CompositionVersion struct {
	Tenant  string
	Name    string // of the workflow
	Version int    // 1 for the first, counting up
	Digest  string // SHA-256 of Record, lower-case hex
	Record  []byte // all that it consists of; a store does not look into it
	// Modules are the digests of the modules that it names, which are kept as
	// long as it is.
	Modules []string
	Created int64 // Unix nanoseconds
}

// Store keeps everything durable. All methods may be called from any
// goroutine; Append from one at a time. What is passed in belongs to the
// caller again when the call returns, and what is returned belongs to the
// caller. When Append returns nil, the batch survives a power loss.
//
// # Errors
//
// ErrNotFound for a missing row. Append: ErrFenced, ErrNotCommitted; any other
// error leaves open whether the batch was written.
type Store interface {
	AccessStore
	QuotaStore
	ResourceStore
	kv.Store
	// Claim makes the caller the owner: it returns a new epoch, higher than
	// all before, and fences the epochs before it.
	Claim(ctx context.Context) (epoch uint64, err error)
	// Append writes a batch in one transaction.
	Append(ctx context.Context, b Batch) error
	// LoadSession reads a session from its newest snapshot on, or whole if it
	// has none; ErrErasing while it is being deleted.
	LoadSession(ctx context.Context, key SessionKey) (StoredSession, error)
	// Reread is LoadSession for one who doubts what LoadSession gave: nothing of what
	// was read before is used, so that a read that failed unseen is made again.
	Reread(ctx context.Context, key SessionKey) (StoredSession, error)
	// Session reads what is known of a session.
	Session(ctx context.Context, key SessionKey) (SessionInfo, error)
	// Sessions lists sessions, the newest first. As for every list of a store, more
	// says whether others follow behind the page, also behind one of the greatest Limit.
	Sessions(ctx context.Context, q SessionQuery) (list []SessionInfo, more bool, err error)
	// History reads rows of a session's journal in order, at most limit: with
	// after 0 from the newest one whose Snapshot is at or before a position on
	// (from the oldest one if there is none), else those whose First is greater
	// than after. None are left when it gives none.
	History(ctx context.Context, key SessionKey, position, after uint64, limit int) ([]JournalRow, error)
	// RereadHistory is to History what Reread is to LoadSession.
	RereadHistory(ctx context.Context, key SessionKey, position, after uint64, limit int) ([]JournalRow, error)
	// SessionVersions lists the versions that a session's journal needs, by digest.
	// Sessions from before there was such a list have it from then on.
	SessionVersions(ctx context.Context, key SessionKey) ([]VersionUse, error)
	// Due lists sessions whose WakeAt lies at or before the given time, in the
	// order of WakeAt, at most limit, and the earliest WakeAt after that time
	// (WakeNever if there is none).
	Due(ctx context.Context, until int64, limit int) (due []SessionKey, next int64, err error)

	// Handler reads what a handler id points to.
	Handler(ctx context.Context, tenant, id string) (Handler, error)
	// Run reads a run by its run id.
	Run(ctx context.Context, tenant, runID string) (Run, error)
	// Runs lists handlers' latest runs.
	Runs(ctx context.Context, q RunQuery) (runs []Run, more bool, err error)
	// Rows lists runs, also those that are not the latest of their handlers. more says
	// whether others follow in the direction of the query.
	Rows(ctx context.Context, q RowQuery) (rows []RunRow, more bool, err error)
	// RunCounts counts all runs of a tenant, by workflow and phase in the order of these,
	// without zeros. The counts are kept: they take no longer if there are more runs.
	RunCounts(ctx context.Context, tenant string) ([]RunCount, error)
	// CountRuns counts the running runs of a tenant by workflow and version, in
	// the order of these.
	CountRuns(ctx context.Context, tenant string) ([]VersionRuns, error)
	// Repeat reads what is kept of a request.
	Repeat(ctx context.Context, tenant, route, key string) (Repeat, error)
	// ForgetRepeats deletes up to limit of the requests made before a time, in
	// Unix nanoseconds, oldest first, and says how many.
	ForgetRepeats(ctx context.Context, before int64, limit int) (int, error)
	// Tenants lists the tenants that have runs, by name.
	Tenants(ctx context.Context) ([]string, error)
	// Ended lists runs that have ended, the oldest end first.
	Ended(ctx context.Context, q EndedQuery) (runs []EndedRun, more bool, err error)
	// EndedBehind gives the end of a tenant's run behind which there are so many
	// newer ones; ErrNotFound if there are not that many.
	EndedBehind(ctx context.Context, tenant string, newer int) (EndedAt, error)
	// Stream reads events of a handler's stream with Seq > after, in order,
	// about limit of them (a store may give more, up to the end of a row).
	// after is -1 for the stream's beginning.
	Stream(ctx context.Context, tenant, handlerID string, after int64, limit int) ([]StreamEvent, error)
	// StreamEnd gives the last sequence number of a handler's stream, or -1,
	// and the first one of its latest run.
	StreamEnd(ctx context.Context, tenant, handlerID string) (last, latestRunFirst int64, err error)

	// PutModule stores a module; the same digest again is a no-op that may
	// complete an empty ImageHash.
	PutModule(ctx context.Context, m ModuleRecord) error
	// Module reads a module by its original digest.
	Module(ctx context.Context, digest string) (ModuleRecord, error)
	// PutPlugin stores the next version of a plugin and, in the same
	// transaction, the next versions of the workflows that are remade of it.
	PutPlugin(ctx context.Context, v PluginVersion, remade ...CompositionVersion) error
	// Plugins lists the newest version of every plugin of a tenant ("" for all
	// tenants), by name.
	Plugins(ctx context.Context, tenant string) ([]PluginVersion, error)
	// PluginVersions lists the versions of one plugin, oldest first.
	PluginVersions(ctx context.Context, tenant, name string) ([]PluginVersion, error)
	// DeletePlugin removes a version of a plugin that is not its newest, or with
	// version 0 the plugin with all of them. It also removes the modules that no version of a
	// plugin or a composition names any more. A module that a session's journal needs stays
	// until the last such journal is removed.
	DeletePlugin(ctx context.Context, tenant, name string, version int) error

	// PutComposition stores the next version of a composed workflow. Its
	// modules must be stored.
	PutComposition(ctx context.Context, v CompositionVersion) error
	// Compositions lists the newest version of every composed workflow of a
	// tenant ("" for all tenants), by name.
	Compositions(ctx context.Context, tenant string) ([]CompositionVersion, error)
	// Composition reads any version by its digest.
	Composition(ctx context.Context, digest string) (CompositionVersion, error)
	// DeleteComposition removes a composed workflow with all its versions. Those
	// that a session's journal needs can still be read by their digests, until the
	// last journal goes that does. Modules go as with DeletePlugin.
	DeleteComposition(ctx context.Context, tenant, name string) error

	// Meta reads a small named value of the server itself; SetMeta writes it.
	Meta(ctx context.Context, key string) ([]byte, error)
	SetMeta(ctx context.Context, key string, value []byte) error

	// Stats gives counters since the store was opened.
	Stats() StoreStats
	// Close releases everything. It may be called twice.
	Close() error
}

// StoreStats counts a store's work since it was opened.
type StoreStats struct {
	Commits      uint64        // transactions of Append
	JournalBytes uint64        // of journal rows
	CommitTime   time.Duration // spent in Append
}

// JournalEntry is one entry of a session's journal on its way to the store. It
// is immutable.
type JournalEntry interface {
	// Append appends the entry's encoding, one CBOR item. Without record, the
	// parts that only a replay of its attempt needs are left out.
	Append(dst []byte, record bool) ([]byte, error)
}

// JournalItem is what one tick adds to the journal's queue. It belongs to the
// journal from then on and is not modified.
type JournalItem struct {
	Key SessionKey
	// Seq is the entry's position in its session; 0 and a nil Entry: none, the
	// item only purges.
	Seq   uint64
	Entry JournalEntry
	// Invocation and Attempt name the attempt that made the entry, or are 0.
	// Finish: the entry ends it, so nobody will replay it.
	Invocation, Attempt uint64
	Finish              bool
	WakeAt              int64
	At                  int64 // time of the entry
	// Snapshot: the entry has one of the session. Cut is as in a SessionBatch.
	Snapshot bool
	Cut      uint64
	Runs     []Run
	Started  []string
	Versions []VersionUse // that the entry needs
	Repeats  []Repeat
	Stream   []StreamRow
	Drop     []string
	Purge    []string
	Erase    int
	// StateBytes and StateGrowth are as in a SessionBatch, of the entry.
	StateBytes, StateGrowth int64
	// Spent is what was used up in the month of At.
	Spent usage.Spent
	KV    []kv.Write // of Key's tenant
	// Size is about how many bytes the item holds in memory.
	Size int
}

// SearchTerm is a word that is searched for, or how it begins.
type SearchTerm struct {
	Word   string // as Words gives it
	Prefix bool
}
