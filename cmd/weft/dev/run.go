package dev

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weftrun/weft/cmd/weft/cases"
	"github.com/weftrun/weft/cmd/weft/guest"
	"github.com/weftrun/weft/cmd/weft/input"
	"github.com/weftrun/weft/cmd/weft/plugins"
	"github.com/weftrun/weft/cmd/weft/remote"
	"github.com/weftrun/weft/cmd/weft/runs"
	"github.com/weftrun/weft/cmd/weft/screen"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/client"
	"github.com/weftrun/weft/host/position"
	"github.com/weftrun/weft/host/server"
)

// inputFile holds the fields of the last run.
func (d *developer) inputFile() string { return filepath.Join(d.p.Dir, devFolder, "input.json") }

// readInput reads the fields of the last run, if the command line has none.
func (d *developer) readInput() {
	if len(d.input.Fields) > 0 {
		d.keepInput()
		return
	}
	text, err := os.ReadFile(d.inputFile())
	if err != nil || json.Unmarshal(text, &d.input) != nil {
		return // the first case has a start event
	}
	if _, err := input.Parse(d.input.Fields); err != nil {
		d.input.Fields = nil
	}
}

// keepInput stores the fields for the next time. If that fails, the user enters them
// again.
func (d *developer) keepInput() {
	if text, err := json.Marshal(d.input); err == nil {
		_ = os.WriteFile(d.inputFile(), text, 0o666)
	}
}

// event returns the start event and the answers to the run's questions.
func (d *developer) event(ctx context.Context) (json.RawMessage, []cases.Event, error) {
	if len(d.input.Fields) > 0 {
		event, err := input.Start(ctx, d.r, input.Sources{}, d.good.Workflow, d.input.Fields)
		return event, nil, err
	}
	file := filepath.Join(d.p.Dir, cases.DefaultFile)
	if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
		return json.RawMessage("{}"), nil, nil
	}
	f, err := cases.Read(file)
	if err != nil {
		return nil, nil, err
	}
	c := &f.Cases[0]
	if c.Start == nil {
		return json.RawMessage("{}"), c.Answers, nil
	}
	return c.Start, c.Answers, nil
}

// run starts the workflow and shows it in the background.
func (d *developer) run(ctx context.Context) {
	if d.good.Workflow == "" {
		d.r.Note("it is a part and defines no workflow: nothing is run\nwatching for changes")
		return
	}
	event, answers, err := d.event(ctx)
	if err != nil {
		d.r.Note("error: %v\nwatching for changes", err)
		return
	}
	ctx, d.stopRun = context.WithCancel(ctx)
	done := make(chan struct{})
	d.runs = done
	shown := &shownRun{r: d.r, answers: answers}
	workflow := d.good.Workflow
	go func() {
		defer close(done)
		shown.play(ctx, workflow, event)
	}()
}

// endRun stops showing a run. The run continues.
func (d *developer) endRun() {
	if d.stopRun != nil {
		d.stopRun()
		<-d.runs
		d.stopRun = nil
	}
}

// shownRun is a run that is shown while it runs.
type shownRun struct {
	r       *remote.Conn
	answers []cases.Event
	id      string
}

// play starts a run and shows it to its end.
func (s *shownRun) play(ctx context.Context, workflow string, event json.RawMessage) {
	s.r.Note("run %s %s", screen.Printable(workflow), screen.Cut(screen.Compact(event), plugins.MostConfig))
	began := time.Now()
	rec, err := s.r.Start(ctx, client.StartRequest{Workflow: workflow, Event: event})
	if err == nil {
		s.id = rec.HandlerID
		err = runs.Follow(ctx, s.r, rec.HandlerID, position.FromRun, false, s)
	}
	if err == nil {
		rec, err = s.r.Get(ctx, rec.RunID)
	}
	if ctx.Err() != nil {
		return
	}
	switch {
	case err != nil:
		s.r.Note("error: %s", remote.Sentence(host.MessageOf(err)))
	case rec.Status != host.StatusCompleted:
		s.r.Note("failed: %s", remote.Sentence(rec.Error))
	default:
		result, err := runs.ResultOf(rec.Result)
		if err != nil {
			s.r.Note("error: %v", err)
			break
		}
		s.r.Note("result %s (%s, %s)", screen.Compact(result), screen.Span(time.Since(began)), screen.Counted(rec.Steps, "step"))
	}
	s.r.Note("watching for changes")
}

// Show implements runs.Viewer.
func (s *shownRun) Show(events []host.StreamEvent) error {
	for i := range events {
		e := &events[i]
		if e.Internal || e.Terminal {
			continue
		}
		line, err := runs.EventLine(e)
		if err != nil {
			return err
		}
		s.r.Note("  %s", line)
		if !runs.Asks(e) {
			continue
		}
		if len(s.answers) == 0 {
			s.r.Note("%s", runs.AnswerHint(s.r, s.id))
			continue
		}
		a := s.answers[0]
		s.answers = s.answers[1:]
		s.r.Note("  answered as in %s: %s", cases.DefaultFile, a.Text())
		ctx, stop := context.WithTimeout(context.Background(), server.StopWithin)
		_, err = s.r.Send(ctx, s.id, a.Type, a.Fields, "")
		stop()
		if err != nil {
			return err
		}
	}
	return nil
}

// Patience implements runs.Viewer.
func (s *shownRun) Patience() time.Duration { return runs.Untold }

// Close implements runs.Viewer.
func (s *shownRun) Close() error { return nil }

// devLog reads the log of the server and shows the lines that concern the project:
// messages of steps, and warnings.
type devLog struct {
	r      *remote.Conn
	module string // the project's module path, if it is written in Go

	mu     sync.Mutex        // guards the fields below
	rest   []byte            // an incomplete line
	stacks map[string]*stack // by the steps that have printed a panic
}

// mostLog limits a line of the log.
const mostLog = 1 << 20

// Write implements io.Writer.
func (l *devLog) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, text...)
	for {
		i := bytes.IndexByte(l.rest, '\n')
		if i < 0 {
			break
		}
		l.line(l.rest[:i])
		l.rest = slices.Clone(l.rest[i+1:])
	}
	if len(l.rest) > mostLog {
		l.rest = nil
	}
	return len(text), nil
}

func (l *devLog) line(text []byte) {
	var entry struct {
		Level, Msg, Step, Error string
	}
	switch err := json.Unmarshal(text, &entry); {
	case err != nil:
		l.r.Note("server: %s", screen.Printable(string(text)))
	case entry.Step != "" && l.inStack(entry.Step, entry.Msg):
	case entry.Step != "":
		l.r.Note("  step %s: %s", screen.Printable(entry.Step), screen.Printable(entry.Msg))
	case entry.Level == "WARN" || entry.Level == "ERROR":
		l.r.Note("server: %s %s", screen.Printable(entry.Msg), screen.Printable(entry.Error))
	}
}

// Lines of a Go stack trace: a call, followed by its file and line.
var (
	stackCall  = regexp.MustCompile(`^(\S.*)\(.*\)$`)
	stackPlace = regexp.MustCompile(`^\t(.+):(\d+)`)
)

// mostFrames is how many frames of a stack trace are shown.
const mostFrames = 8

// stack is the stack trace that a step prints after a panic, line by line.
type stack struct {
	call   string // of the previous line
	frames int    // frames shown so far
}

// inStack reports whether a line belongs to a stack trace. It shows the calls in the
// project's own files.
func (l *devLog) inStack(step, line string) bool {
	if strings.HasPrefix(line, "panic: ") {
		if l.stacks == nil {
			l.stacks = map[string]*stack{}
		}
		l.stacks[step] = &stack{}
		l.r.Note("  step %s: %s", screen.Printable(step), screen.Printable(line))
		return true
	}
	s := l.stacks[step]
	if s == nil {
		return false
	}
	if place := stackPlace.FindStringSubmatch(line); place != nil {
		file, ours := strings.CutPrefix(place[1], l.module+"/")
		if ours && l.module != "" && s.call != "" && s.frames < mostFrames {
			s.frames++
			l.r.Note("    %s:%s in %s", screen.Printable(file), place[2], screen.Printable(strings.TrimPrefix(s.call, "main.")))
		}
		s.call = ""
		return true
	}
	if call := stackCall.FindStringSubmatch(line); call != nil {
		s.call = call[1]
		return true
	}
	if strings.HasPrefix(line, "goroutine ") {
		return true
	}
	delete(l.stacks, step)
	return false
}

// modulePath returns the path of a Go project's module, "" if it has none.
func modulePath(p guest.Project) string {
	text, err := os.ReadFile(filepath.Join(p.Dir, "go.mod"))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "module "); ok {
			return strings.Trim(strings.TrimSpace(path), `"`)
		}
	}
	return ""
}
