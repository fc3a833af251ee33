package cases

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/cmd/weft/remote"
	"github.com/weftrun/weft/cmd/weft/runs"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/client"
	"github.com/weftrun/weft/host/position"
)

// settled is how long a run must be silent before the player checks whether the run waits
// for an event without having asked for it.
const settled = 200 * time.Millisecond

// player runs one case.
type player struct {
	r       *remote.Conn
	timeout time.Duration
	session string // for a case that names no session
	// asked gives the answer to a question, which is nil if the run waits without having
	// asked; nil if there is none. Without the function, the case has the answers.
	asked func(ctx context.Context, question *Event) (*Event, error)

	c        *testCase
	answered int
	got      happened
}

// play runs the case's workflow and answers its questions. The error concerns running the
// case; an error of the run is part of the results.
func (p *player) play(ctx context.Context, c *testCase, workflow string) (*happened, error) {
	p.c = c
	if c.Session != "" {
		p.session = "named-" + c.Session
	}
	if c.Workflow != "" {
		workflow = c.Workflow
	}
	ctx, stop := context.WithTimeoutCause(ctx, p.timeout, errTooLate)
	defer stop()
	rec, err := p.r.Start(ctx, client.StartRequest{Workflow: workflow, Event: c.Start, SessionID: p.session})
	var known *host.Error
	if errors.As(err, &known) && known.Code != host.CodeUnavailable {
		p.got.err = refused(err)
		return &p.got, nil
	}
	if err != nil {
		return nil, err
	}
	switch err := p.follow(ctx, rec.HandlerID); {
	case err != nil && errors.Is(context.Cause(ctx), errTooLate):
		p.got.err = &caseError{Code: "timeout", Message: fmt.Sprintf("the run has not ended within %s, which is the limit of --timeout", p.timeout)}
		return &p.got, nil
	case err != nil:
		return nil, err
	case p.got.asked > 0:
		_, err := p.r.Cancel(ctx, rec.HandlerID, false)
		return &p.got, err
	}
	return &p.got, p.ended(ctx, rec)
}

// follow reads the run's stream to its end, or until the run asks a question for which
// the case has no answer.
func (p *player) follow(ctx context.Context, id string) error {
	stream, err := p.r.Events(ctx, id, position.FromRun, false)
	if err != nil {
		return err
	}
	defer stream.Close()
	for p.got.asked == 0 {
		events, err := stream.Next(ctx, settled)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case len(events) == 0:
			err = p.lookForWait(ctx, id)
		default:
			err = p.take(ctx, id, events)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// take keeps events and answers questions.
func (p *player) take(ctx context.Context, id string, events []host.StreamEvent) error {
	for i := range events {
		e := &events[i]
		if e.Internal || e.Terminal {
			continue
		}
		body, err := abi.ToJSON(e.Body)
		if err != nil {
			return fmt.Errorf("read event %d: %w", e.Seq, err)
		}
		p.got.stream = append(p.got.stream, Event{Type: e.Type, Fields: body})
		if runs.Asks(e) {
			if err := p.answer(ctx, id, &p.got.stream[len(p.got.stream)-1]); err != nil {
				return err
			}
		}
	}
	return nil
}

// lookForWait answers a run that waits for an event without having asked for it. A run
// that waits for a time, a child or a resource continues by itself.
func (p *player) lookForWait(ctx context.Context, id string) error {
	rec, err := p.r.Get(ctx, id)
	if err != nil || rec.Status != host.StatusRunning {
		return err
	}
	for _, w := range rec.WaitingFor {
		if w.Type != "" && w.Child == "" && w.Resource == "" {
			return p.answer(ctx, id, nil)
		}
	}
	return nil
}

// answer sends the next answer.
func (p *player) answer(ctx context.Context, id string, question *Event) error {
	a, err := p.next(ctx, question)
	if err != nil {
		return err
	}
	if a == nil {
		p.got.asked++
		return nil
	}
	p.answered++
	if _, err := p.r.Send(ctx, id, a.Type, a.Fields, ""); err != nil {
		return fmt.Errorf("answer %d, %s: %w", p.answered, a.Type, err)
	}
	return nil
}

// next returns the next answer, or nil.
func (p *player) next(ctx context.Context, question *Event) (*Event, error) {
	switch {
	case p.asked != nil:
		return p.asked(ctx, question)
	case p.answered == len(p.c.Answers):
		return nil, nil
	}
	return &p.c.Answers[p.answered], nil
}

// ended reads how the run ended and what state it left.
func (p *player) ended(ctx context.Context, rec client.Record) error {
	rec, err := p.r.Get(ctx, rec.RunID)
	if err != nil {
		return err
	}
	if rec.Status == host.StatusCompleted {
		text, err := runs.ResultOf(rec.Result)
		if err != nil {
			return err
		}
		p.got.result = json.RawMessage(text)
	} else {
		p.got.err = &caseError{Code: rec.ErrorCode, Message: rec.Error}
	}
	if p.c.State == nil {
		return nil
	}
	state, err := p.r.State(ctx, p.session, "")
	p.got.state = state.JSON
	return err
}
