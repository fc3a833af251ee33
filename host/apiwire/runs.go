package apiwire

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/codes"
)

// Record is the record of a run; its result is the envelope of the stop event.
type Record = RecordOf[*Envelope]

// BareRecord is a record with the bare result, for older clients.
type BareRecord = RecordOf[Value]

// RecordOf is the record of a run with a result of type R.
type RecordOf[R any] struct {
	_            struct{}    `doc:"A run of a handler."`
	HandlerID    string      `json:"handler_id" doc:"What clients hold: it points to its latest run."`
	Workflow     string      `json:"workflow_name"`
	RunID        string      `json:"run_id"`
	Error        OrNull      `json:"error" doc:"Why the run failed, for people."`
	Result       R           `json:"result" doc:"What the run ended with; null before." fill:"-"`
	Unreadable   bool        `json:"result_unreadable" api:"const=false" doc:"For older clients." fill:"-"`
	Status       host.Status `json:"status"`
	Started      Time        `json:"started_at"`
	Updated      Time        `json:"updated_at"`
	Completed    NullTime    `json:"completed_at"`
	SessionID    string      `json:"session_id" doc:"The session on whose state the run works."`
	Version      string      `json:"version,omitempty" doc:"The digest of the workflow's version that the run has."`
	ErrorCode    string      `json:"error_code,omitempty" doc:"Why the run failed, for programs: the step's own code, or one of the runtime."`
	Paused       bool        `json:"paused" doc:"The run queues what comes until it is resumed."`
	Blocked      *Blocked    `json:"blocked,omitempty" doc:"Why the run cannot continue without help."`
	WaitingFor   []Waiting   `json:"waiting_for,omitempty" doc:"What the run waits for, the longest first."`
	Kept         []Kept      `json:"kept,omitempty" doc:"Events that are kept for a later wait, by type."`
	Steps        uint64      `json:"steps" doc:"How many invocations of steps have ended."`
	ErrorStep    string      `json:"error_step,omitempty" doc:"The step that failed; of a run that timed out the steps that were at work."`
	ErrorAttempt uint64      `json:"error_attempt,omitempty" api:"min=1" doc:"How many attempts the step has had."`
	Remedy       string      `json:"error_remedy,omitempty" doc:"What to do about a run that failed or is blocked, as docs/reference/errors.md says for the code." fill:"-"`
}

// Blocked says why a run or a session cannot continue.
type Blocked struct {
	_       struct{} `doc:"Why something stands still until somebody helps."`
	Code    string   `json:"code"`
	Message string   `json:"message,omitempty"`
}

// Waiting is something that a run waits for.
type Waiting struct {
	_            struct{}        `doc:"Something that a run waits for."`
	Step         string          `json:"step,omitempty" doc:"The step that waits, or that accepts the event."`
	Reason       string          `json:"reason,omitempty" api:"enum=retry|session"`
	Child        string          `json:"child,omitempty" doc:"The handler for whose run it waits."`
	Resource     string          `json:"resource,omitempty" doc:"The resource for whose answer it waits."`
	Until        Time            `json:"until,omitempty" doc:"When the wait ends by itself."`
	Type         string          `json:"type,omitempty" doc:"The type of the event for which it waits."`
	WaiterID     string          `json:"waiter_id,omitempty"`
	Since        Time            `json:"since"`
	Requirements json.RawMessage `json:"requirements,omitempty" api:"object" doc:"Fields that the event must have."`
}

// Kept is an event that is kept for a later wait.
type Kept struct {
	_    struct{} `doc:"An event that no step has waited for yet."`
	Type string   `json:"type"`
	Step string   `json:"step,omitempty" doc:"The only step that may get it."`
}

// Show sets the record of a run, except its result.
func (r *RecordOf[R]) Show(run *host.Run) {
	Fill(r, run)
	for i := range r.WaitingFor {
		r.WaitingFor[i].one()
	}
	switch {
	case run.Status == host.StatusFailed:
		r.Remedy = codes.Remedy(codes.InRun, run.ErrorCode, run.Error)
	case run.Blocked != nil:
		r.Remedy = codes.Remedy(codes.InBlocked, run.Blocked.Code, run.Blocked.Message)
	default:
		r.Remedy = ""
	}
}

// one clears the fields that do not apply: a wait is for a child, a resource, a time or
// an event, in this order of preference.
func (w *Waiting) one() {
	switch {
	case w.Child != "":
		w.Resource, w.Until, w.Type = "", 0, ""
	case w.Resource != "":
		w.Until, w.Type = 0, ""
	case w.Until != 0 || w.Reason != "":
		w.Type = ""
	}
}

// Run returns the run that a record shows. Tenant and fuel are zero, because the API does
// not have them. [host.CodeInvalidMessage].
func Run(r *Record) (run host.Run, err error) {
	if Fill(&run, r); r.Result == nil {
		return run, nil
	}
	e, err := r.Result.Event()
	e.RunID, e.Terminal = r.RunID, true
	run.Result = &e
	return run, err
}

// Envelope is an event.
type Envelope struct {
	_             struct{} `doc:"An event as clients read it."`
	Body          Value    `json:"value" api:"object" doc:"Its fields."`
	QualifiedName OrNull   `json:"qualified_name" doc:"Its type with the name space."`
	Type          string   `json:"type"`
	Types         []string `json:"types" api:"null" doc:"Declared ancestors, the nearest first; null for none."`
	*Family
}

// Family marks an event of a stream that includes the events of children.
type Family struct {
	HandlerID string `json:"handler_id" doc:"With include_children: the handler of the event."`
	RunID     string `json:"run_id,omitempty"`
	ParentID  OrNull `json:"parent_handler_id" doc:"The handler whose run began this run as its child; null for the run itself."`
	Seq       uint64 `json:"sequence" doc:"The event's number among those of its handler."`
	Position  string `json:"position,omitempty" doc:"Give this as after_sequence to continue a stream with children just after the event."`
}

// basePrefix is the name space of the base and runtime event types.
const basePrefix = "workflows.events."

// internalTypes are the ancestors of the runtime's internal events, as clients know them.
var internalTypes = []string{"InternalDispatchEvent"}

// Show sets the envelope of an event, without its family.
func (e *Envelope) Show(of *host.StreamEvent, qualified bool) {
	e.Body, e.Type, e.Types, e.QualifiedName = Value(of.Body), of.Type, nil, ""
	if e.Body == nil {
		e.Body = Value(abi.EmptyMap)
	}
	if qualified {
		e.QualifiedName = OrNull(of.QualifiedName())
	}
	switch {
	case len(of.Types) > 0:
		e.Types = of.Types
	case of.Internal:
		e.Types = internalTypes
	}
}

// AppendEnvelope is [Append] for an envelope, in two thirds of the time
// (BenchmarkEnvelope). A server writes each event once for each reader.
func AppendEnvelope(dst []byte, e *Envelope) ([]byte, error) {
	dst, err := AppendValue(append(dst, `{"value":`...), abi.Raw(e.Body))
	if err != nil {
		return dst, err
	}
	dst = appendOrNull(append(dst, `,"qualified_name":`...), string(e.QualifiedName))
	dst = AppendString(append(dst, `,"type":`...), e.Type)
	dst = append(dst, `,"types":`...)
	if e.Types == nil {
		dst = append(dst, "null"...)
	} else {
		dst = append(dst, '[')
		for i, t := range e.Types {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = AppendString(dst, t)
		}
		dst = append(dst, ']')
	}
	if e.Family != nil {
		dst, err = planOf(reflect.TypeFor[Family]()).members(dst, reflect.ValueOf(e.Family).Elem())
	}
	return append(dst, '}'), err
}

// Event returns the event that an envelope shows, without its run and sequence number,
// which an envelope does not have. [host.CodeInvalidMessage] if the envelope has no
// value.
func (e *Envelope) Event() (host.StreamEvent, error) {
	if e.Body == nil {
		return host.StreamEvent{}, host.Errorf(host.CodeInvalidMessage, "The server's event is not understood: it has no value")
	}
	out := host.StreamEvent{Type: e.Type, Types: e.Types, Body: abi.Raw(e.Body)}
	name := string(e.QualifiedName)
	if out.Base = strings.HasPrefix(name, basePrefix); !out.Base {
		out.Workflow = strings.TrimSuffix(name, "."+e.Type)
	}
	out.Internal = slices.Contains(e.Types, internalTypes[0])
	out.Terminal = e.Type == abi.TypeStop && out.Base || slices.Contains(e.Types, abi.TypeStop)
	return out, nil
}

// Records is a page of a listing of runs.
type Records struct {
	_          struct{} `doc:"A part of a listing."`
	Handlers   []Record `json:"handlers"`
	NextCursor OrNull   `json:"next_cursor" doc:"Where the next page begins; null at the end."`
}

// Fork is a run that continues.
type Fork struct {
	_ struct{} `doc:"A run that continues, and the work that was begun again for it."`
	Record
	Anew []Renewed `json:"anew"`
}

// Renewed is work that was started again; see [host.Renewed].
type Renewed struct {
	_         struct{} `doc:"Work outside of the session that was begun again."`
	Kind      string   `json:"kind" doc:"child or call."`
	Step      string   `json:"step,omitempty"`
	Workflow  string   `json:"workflow_name,omitempty"`
	Resource  string   `json:"resource,omitempty"`
	HandlerID string   `json:"handler_id,omitempty"`
	Was       string   `json:"was,omitempty" doc:"The handler that it was before."`
}

// Sent says what the server did with a posted event.
type Sent struct {
	Status string   `json:"status" api:"const=sent" fill:"-"`
	How    string   `json:"delivery,omitempty" api:"enum=waiter|steps|kept|unhandled" doc:"What happened to the event: a step that waited got it, steps that accept it got it, it is kept for a later wait, or no step takes it. Absent for a repeat."`
	To     []string `json:"delivered_to,omitempty" doc:"The steps that got the event."`
}

// Cancelled says what the server did with a run that was to be cancelled.
type Cancelled struct {
	Status string `json:"status" api:"enum=cancelled|deleted"`
}

// Snapshot is all data of a run; see [host.RunSnapshot].
type Snapshot struct {
	_         struct{}    `doc:"All data of a run."`
	Format    string      `json:"format" api:"const=weft run" fill:"-"`
	Version   int         `json:"version" api:"min=1"`
	Workflow  string      `json:"workflow_name"`
	HandlerID string      `json:"handler_id,omitempty"`
	RunID     string      `json:"run_id,omitempty"`
	Status    host.Status `json:"status,omitempty"`
	Modules   []string    `json:"modules" doc:"Digests of the modules that the run uses."`
	Session   []byte      `json:"session" doc:"Base64."`
	Held      []byte      `json:"held" doc:"Base64."`
}

// Migration is the result of a migration; see [host.Migration].
type Migration struct {
	_          struct{}   `doc:"The result of a migration."`
	Workflow   string     `json:"workflow"`
	Version    string     `json:"version,omitempty" doc:"The newest."`
	DryRun     bool       `json:"dry_run" fill:"-"`
	Checked    int        `json:"checked"`
	Fit        int        `json:"fit"`
	Moved      int        `json:"moved"`
	Departed   []Departed `json:"departed" doc:"Runs that do not fit: the new version would make other calls."`
	Running    []string   `json:"running" doc:"Handlers whose runs have steps at work; they are not moved."`
	NextCursor OrNull     `json:"next_cursor" doc:"Where the next page begins; null at the end." fill:"-"`
}

// Departed is a run that does not fit the new version; see [host.Departure].
type Departed struct {
	_         struct{} `doc:"A run that does not fit the newest version."`
	HandlerID string   `json:"handler_id"`
	RunID     string   `json:"run_id,omitempty"`
	Version   string   `json:"version,omitempty" doc:"Its current version."`
	Code      string   `json:"code,omitempty"`
	Message   string   `json:"message,omitempty"`
	Step      string   `json:"step,omitempty"`
	Call      uint64   `json:"call,omitempty" doc:"The first host call that differs."`
	Import    string   `json:"import,omitempty"`
}
