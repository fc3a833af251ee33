package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/client"
)

// viewer shows events of a run as they come. One goroutine uses it.
type viewer interface {
	// show takes the next events; none when only time has passed.
	show(events []host.StreamEvent) error
	// patience is how long to wait for events before show is called without.
	patience() time.Duration
	// close leaves what was shown in its last state.
	close() error
}

// untold is how long a viewer waits that shows nothing by itself.
const untold = time.Hour

// follow shows a handler's events to the end of the run.
func follow(ctx context.Context, r *remote, id string, after int64, internal bool, v viewer) (err error) {
	stream, err := r.Events(ctx, id, after, internal)
	if err != nil {
		return err
	}
	defer stream.Close()
	defer func() {
		if closing := v.close(); err == nil {
			err = closing
		}
	}()
	for {
		events, err := stream.Next(ctx, v.patience())
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := v.show(events); err != nil {
			return err
		}
	}
}

// newViewer chooses how a run is shown that is waited for. All but JSON goes to
// the standard error, where it is not mixed up with the result.
func newViewer(r *remote, o runOptions, rec client.Record) viewer {
	switch {
	case o.watch && r.json:
		return &jsonLines{print: r.print}
	case o.watch && terminalOf(r.errs).live:
		return newLiveView(r, rec)
	case o.watch:
		return newPlainView(r, rec)
	default:
		return &questions{r: r, id: rec.HandlerID}
	}
}

// questions shows nothing but what asks people for an answer: a command that
// waits for one without a word looks as if it hung.
type questions struct {
	r  *remote
	id string
}

func (q *questions) show(events []host.StreamEvent) error {
	if q.r.json {
		return nil
	}
	for i := range events {
		if asks(&events[i]) {
			line, err := eventLine(&events[i])
			if err != nil {
				return err
			}
			q.r.note("%s\n%s", line, answerHint(q.r, q.id))
		}
	}
	return nil
}

func (q *questions) patience() time.Duration { return untold }
func (q *questions) close() error            { return nil }

// asks reports whether an event asks people for an answer.
func asks(e *host.StreamEvent) bool {
	return e.Type == abi.TypeInputRequired || slices.Contains(e.Types, abi.TypeInputRequired)
}

// answerHint says how to answer an event that asks.
func answerHint(r *remote, id string) string {
	return "  answer it with: " + r.hint("send", id, abi.TypeHumanResponse, "key=value")
}

// eventLine shows an event in one line.
func eventLine(e *host.StreamEvent) (string, error) {
	body, err := abi.ToJSON(e.Body)
	if err != nil {
		return "", fmt.Errorf("read event %d: %w", e.Seq, err)
	}
	return printable(e.Type) + " " + printableJSON(string(body)), nil
}

// jsonLines prints each event as one line of JSON.
type jsonLines struct{ print func(string) error }

func (j *jsonLines) show(events []host.StreamEvent) error {
	for i := range events {
		line, err := envelope(&events[i])
		if err != nil {
			return err
		}
		if err := j.print(line); err != nil {
			return err
		}
	}
	return nil
}

func (j *jsonLines) patience() time.Duration { return untold }
func (j *jsonLines) close() error            { return nil }

// envelope is a line with an event as the API shows it and its sequence number.
func envelope(e *host.StreamEvent) (string, error) {
	value, err := abi.ToJSON(e.Body)
	if err != nil {
		return "", fmt.Errorf("read event %d: %w", e.Seq, err)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // the API does not, either
	err = enc.Encode(struct {
		Value    json.RawMessage `json:"value"`
		Name     string          `json:"qualified_name"`
		Type     string          `json:"type"`
		Types    []string        `json:"types"`
		Sequence uint64          `json:"sequence"`
	}{value, e.QualifiedName(), e.Type, e.Types, e.Seq})
	return b.String(), err
}
