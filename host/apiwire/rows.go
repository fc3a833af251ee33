package apiwire

import (
	"time"
	"unicode/utf8"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// Bounds of lists of all runs.
const (
	MaxRows     = 200 // rows of a page
	DefaultRows = 50
	MinIDPrefix = 3   // characters of an id that is searched for by its beginning
	maxCell     = 200 // characters of an error or a result in a row
)

// Row is a run in a list of all runs; see [host.RunRow].
type Row struct {
	_           struct{}    `doc:"A run in a list."`
	RunID       string      `json:"run_id"`
	HandlerID   string      `json:"handler_id"`
	Workflow    string      `json:"workflow_name"`
	SessionID   string      `json:"session_id"`
	Version     string      `json:"version,omitempty" doc:"The digest of the workflow's version that the run has."`
	Status      host.Status `json:"status"`
	Phase       host.Phase  `json:"phase" api:"enum=queued|running|waiting|sleeping|paused|blocked|completed|failed|cancelled" doc:"What the run does; its status, if it has ended. Steps of a run that waits may be at work."`
	WaitingFor  []Waiting   `json:"waiting_for,omitempty" doc:"What the run waits for, the longest first."`
	Blocked     *Blocked    `json:"blocked,omitempty" doc:"Why the run cannot continue without help."`
	ErrorCode   string      `json:"error_code,omitempty"`
	Error       OrNull      `json:"error" doc:"At most 200 characters, the last of which is … if there are more."`
	Result      OrNull      `json:"result" doc:"The fields of the result as JSON, cut like error; … alone, if the result is longer than 16 KiB." fill:"-"`
	Started     Time        `json:"started_at"`
	Updated     Time        `json:"updated_at"`
	Completed   NullTime    `json:"completed_at"`
	Duration    Seconds     `json:"duration_seconds" doc:"Until its end, or until now." fill:"-"`
	Steps       uint64      `json:"steps" doc:"How many invocations of steps have ended."`
	Fuel        uint64      `json:"fuel" doc:"The fuel that they burnt."`
	Parent      *RunParent  `json:"parent,omitempty" doc:"What began the run as its child." fill:"-"`
	ForkedFrom  *RunOrigin  `json:"forked_from,omitempty" doc:"Of whose past the run is a fork." fill:"-"`
	RetriedFrom string      `json:"retried_from,omitempty" doc:"The run id of the failed run that this run continues."`
}

// RunParent is what began a run as its child.
type RunParent struct {
	RunID string `json:"run_id"`
	Step  string `json:"step,omitempty"`
}

// RunOrigin is the position in the past of a run from which a fork continues.
type RunOrigin struct {
	RunID string `json:"run_id"`
	At    uint64 `json:"at" doc:"The seq of the entry after which the fork continues."`
}

// Show sets the row of a run.
func (r *Row) Show(run *host.RunRow, now time.Time) {
	Fill(r, run)
	for i := range r.WaitingFor {
		r.WaitingFor[i].one()
	}
	r.Error = OrNull(cell(run.Error))
	switch {
	case run.LongResult:
		r.Result = "…"
	case run.Result != nil:
		r.Result = OrNull(cell(jsonOf(run.Result.Body)))
	default:
		r.Result = ""
	}
	r.Duration = duration(&run.Run, now)
	r.Parent, r.ForkedFrom = origin(&run.Run)
}

// jsonOf returns the fields of an event as JSON.
func jsonOf(body abi.Raw) string {
	if body == nil {
		return "{}"
	}
	text, err := abi.AppendJSON(nil, body)
	if err != nil {
		return "…" // too deep
	}
	return string(text)
}

// cell cuts a text to the length of a cell.
func cell(text string) string {
	if len(text) <= maxCell {
		return text
	}
	n, end := 0, 0
	for i := range text {
		if n++; n == maxCell {
			end = i
		}
	}
	if n <= maxCell && utf8.ValidString(text) {
		return text
	}
	return text[:end] + "…"
}

func duration(r *host.Run, now time.Time) Seconds {
	end := r.Completed
	if end == 0 {
		end = now.UnixNano()
	}
	return Seconds(max(end-r.Started, 0))
}

func origin(r *host.Run) (parent *RunParent, fork *RunOrigin) {
	if r.ParentRun != "" {
		parent = &RunParent{RunID: r.ParentRun, Step: r.ParentStep}
	}
	if r.ForkedFrom != "" {
		fork = &RunOrigin{RunID: r.ForkedFrom, At: r.ForkedAt}
	}
	return parent, fork
}

// Rows is a page of a list of all runs.
type Rows struct {
	_          struct{} `doc:"A part of a list of runs, the newest first."`
	Runs       []Row    `json:"runs"`
	NextCursor OrNull   `json:"next_cursor" doc:"For the older runs after these; null at the end."`
	PrevCursor OrNull   `json:"prev_cursor" doc:"For the newer runs before these; null at the top."`
}

// PhaseCounts is how many runs there are; see [host.RunCount].
type PhaseCounts struct {
	_      struct{}     `doc:"How many runs there are."`
	Counts []PhaseCount `json:"counts" doc:"By workflow and phase, without zeros."`
}

// PhaseCount counts the runs of a workflow in a phase.
type PhaseCount struct {
	_        struct{}   `doc:"How many runs a workflow has in a phase."`
	Workflow string     `json:"workflow_name"`
	Phase    host.Phase `json:"phase" api:"enum=queued|running|waiting|sleeping|paused|blocked|completed|failed|cancelled"`
	Runs     int64      `json:"runs"`
	Children int64      `json:"children" doc:"Of these: children of other runs."`
}

// RunDetails is a run with the runs that are connected with it.
type RunDetails struct {
	_ struct{} `doc:"A run, and the runs that are connected with it. Lists have the newest 20; GET /runs has all."`
	Record
	Phase       host.Phase `json:"phase" api:"enum=queued|running|waiting|sleeping|paused|blocked|completed|failed|cancelled" fill:"-"`
	Duration    Seconds    `json:"duration_seconds" doc:"Until its end, or until now." fill:"-"`
	Fuel        uint64     `json:"fuel" doc:"The fuel that its steps burnt." fill:"-"`
	Parent      *RunParent `json:"parent,omitempty" fill:"-"`
	ForkedFrom  *RunOrigin `json:"forked_from,omitempty" fill:"-"`
	RetriedFrom string     `json:"retried_from,omitempty" fill:"-"`
	Runs        []Row      `json:"runs" doc:"All runs of the handler, with this one." fill:"-"`
	Children    []Row      `json:"children" fill:"-"`
	Forks       []Row      `json:"forks" fill:"-"`
}

// ShowRun sets everything that the record does not have, except the lists.
func (d *RunDetails) ShowRun(run *host.Run, now time.Time) {
	d.Phase, d.Duration, d.Fuel, d.RetriedFrom = run.Phase(), duration(run, now), run.Fuel, run.RetriedFrom
	d.Parent, d.ForkedFrom = origin(run)
}

// RunRow returns the run that a row shows. Its result is missing, and its error may be cut.
func (r *Row) RunRow() (out host.RunRow) {
	Fill(&out.Run, r)
	out.Phase = r.Phase
	out.Paused = r.Phase == host.PhasePaused
	if r.Parent != nil {
		out.ParentRun, out.ParentStep = r.Parent.RunID, r.Parent.Step
	}
	if r.ForkedFrom != nil {
		out.ForkedAt = r.ForkedFrom.At
		out.ForkedFrom = r.ForkedFrom.RunID
	}
	return out
}
