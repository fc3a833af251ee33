package runs

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/cmd/weft/remote"
	"github.com/weftrun/weft/cmd/weft/screen"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/client"
)

// stepCount counts the invocations of a step.
type stepCount struct {
	name    string
	queued  int
	running int
	done    int
}

// String lists the counts by state.
func (s *stepCount) String() string {
	var parts []string
	for _, p := range []struct {
		n    int
		word string
	}{{s.running, "running"}, {s.done, "done"}, {s.queued, "queued"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.word))
		}
	}
	return strings.Join(parts, ", ")
}

// progress counts invocations of steps by the run's internal events.
type progress struct {
	steps []*stepCount // in the order in which they first ran
	byID  map[string]*stepCount
}

// apply processes a change of a step's state. It returns the step, and whether it is the
// first change of the step; nil for other events.
func (p *progress) apply(e *host.StreamEvent) (step *stepCount, first bool) {
	if e.Type != abi.TypeStepStateChanged || !e.Internal {
		return nil, false
	}
	var change struct {
		Name  string
		State string `json:"step_state"`
	}
	body, err := abi.ToJSON(e.Body)
	if err != nil || json.Unmarshal(body, &change) != nil {
		return nil, false
	}
	step = p.byID[change.Name]
	if step == nil {
		if p.byID == nil {
			p.byID = map[string]*stepCount{}
		}
		step, first = &stepCount{name: change.Name}, true
		p.byID[change.Name] = step
		p.steps = append(p.steps, step)
	}
	switch change.State {
	case "preparing":
		step.queued++
	case "running":
		// Queued invocations run first, so this is one of them.
		step.queued = max(step.queued-1, 0)
		step.running++
	case "not_running":
		step.running = max(step.running-1, 0)
		step.done++
	}
	return step, first
}

// plainEvery is how often the plain view reports the progress of steps.
const plainEvery = time.Second

// plainView shows a run as lines: each step when it first runs, the progress of steps at
// most once a second, and their counts at the end.
type plainView struct {
	r        *remote.Conn
	id       string
	now      func() time.Time
	progress progress
	told     time.Time             // when counts were last shown
	changed  map[*stepCount]string // steps that changed since then, with the text that was shown
}

func newPlainView(r *remote.Conn, rec client.Record) *plainView {
	r.Note("started %s; handler %s", screen.Printable(rec.Workflow), rec.HandlerID)
	return &plainView{r: r, id: rec.HandlerID, now: time.Now, told: time.Now(), changed: map[*stepCount]string{}}
}

// Show implements Viewer.
func (v *plainView) Show(events []host.StreamEvent) error {
	for i := range events {
		if step, first := v.progress.apply(&events[i]); step != nil {
			if first {
				v.r.Note("step %s started", screen.Printable(step.name))
			}
			v.changed[step] = ""
			continue
		}
		if events[i].Internal || events[i].Terminal {
			continue
		}
		if err := showEvent(v.r, v.id, &events[i], v.r.Note); err != nil {
			return err
		}
	}
	if len(v.changed) > 0 && v.now().Sub(v.told) >= plainEvery {
		v.tell()
	}
	return nil
}

// tell shows the counts of the steps that have changed.
func (v *plainView) tell() {
	for _, step := range v.progress.steps {
		if _, ok := v.changed[step]; ok {
			v.r.Note("step %s: %s", screen.Printable(step.name), step)
		}
	}
	v.told = v.now()
	clear(v.changed)
}

// Patience implements Viewer.
func (v *plainView) Patience() time.Duration { return plainEvery }

// Close implements Viewer.
func (v *plainView) Close() error {
	v.tell()
	return nil
}

// showEvent shows an event of the stream, and how to answer it if it asks for an answer.
func showEvent(r *remote.Conn, id string, e *host.StreamEvent, line func(string, ...any)) error {
	text, err := EventLine(e)
	if err != nil {
		return err
	}
	line("%s", text)
	if Asks(e) {
		line("%s", AnswerHint(r, id))
	}
	return nil
}
