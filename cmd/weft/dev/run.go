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
	"github.com/weftrun/weft/host/server"
)

// inputFile holds the fields that a workflow was run with last.
func (d *developer) inputFile() string { return filepath.Join(d.p.Dir, devFolder, "input.json") }

// readInput takes the fields of last time, if none are given now.
func (d *developer) readInput() {
	if len(d.input.Fields) > 0 {
		d.keepInput()
		return
	}
	text, err := os.ReadFile(d.inputFile())
	if err != nil || json.Unmarshal(text, &d.input) != nil {
		return // then the cases have one
	}
	if _, err := input.Parse(d.input.Fields); err != nil {
		d.input.Fields = nil
	}
}

// keepInput keeps the fields for next time. If that fails, they are given again.
func (d *developer) keepInput() {
	if text, err := json.Marshal(d.input); err == nil {
		_ = os.WriteFile(d.inputFile(), text, 0o666)
	}
}

// event returns the start event and the answers to what the run asks.
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

// run starts the workflow and shows it, beside what else happens.
func (d *developer) run(ctx context.Context) {
	if d.good.Workflow == "" {
		d.r.Note("it is a part, and makes no workflow by itself: nothing is run\nwatching for changes")
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

// endRun stops showing a run, which goes on.
func (d *developer) endRun() {
	if d.stopRun != nil {
		d.stopRun()
		<-d.runs
		d.stopRun = nil
	}
}

// shownRun is a run that is shown while it goes.
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
		err = runs.Follow(ctx, s.r, rec.HandlerID, host.StreamFromRun, false, s)
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

// devLog reads the log of the server and shows what concerns the project: what steps
// log, and warnings.
type devLog struct {
	r      *remote.Conn
	module string // of the project, if it is Go

	mu     sync.Mutex        // guards what follows
	rest   []byte            // a line that has not ended
	stacks map[string]*stack // of steps that have printed a panic
}

// mostLog bounds a line of the log.
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

// Lines of a stack of Go: a call, and below the call its file and line.
var (
	stackCall  = regexp.MustCompile(`^(\S.*)\(.*\)$`)
	stackPlace = regexp.MustCompile(`^\t(.+):(\d+)`)
)

// mostFrames are shown of a stack.
const mostFrames = 8

// stack is what a step prints below a panic, line by line.
type stack struct {
	call   string // of the line before
	frames int    // that were shown
}

// inStack reports whether a line belongs to a panic. Of the stack it shows the calls
// whose files are the project's own.
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

// modulePath is the path of a Go project's module, "" if it has none.
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
