package runs

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
	"github.com/weftrun/weft/cmd/weft/remote"
	"github.com/weftrun/weft/cmd/weft/screen"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/client"
)

// Viewer shows events of a run as they arrive. One goroutine uses it.
type Viewer interface {
	// Show receives the next events; none when only time has passed.
	Show(events []host.StreamEvent) error
	// Patience is how long to wait for events before Show is called without events.
	Patience() time.Duration
	// Close leaves the last state on the screen.
	Close() error
}

// Untold is how long a viewer waits if it only shows events.
const Untold = time.Hour

// Follow shows a handler's events to the end of the run.
func Follow(ctx context.Context, r *remote.Conn, id string, after int64, internal bool, v Viewer) (err error) {
	stream, err := r.Events(ctx, id, after, internal)
	if err != nil {
		return err
	}
	defer stream.Close()
	defer func() {
		if closing := v.Close(); err == nil {
			err = closing
		}
	}()
	for {
		events, err := stream.Next(ctx, v.Patience())
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := v.Show(events); err != nil {
			return err
		}
	}
}

// newViewer chooses how to show a run that the command waits for. Everything except JSON
// goes to the standard error, separate from the result.
func newViewer(r *remote.Conn, o runOptions, rec client.Record) Viewer {
	switch {
	case o.watch && r.JSON:
		return &jsonLines{print: r.Print}
	case o.watch && screen.Of(r.Errs).Live:
		return newLiveView(r, rec)
	case o.watch:
		return newPlainView(r, rec)
	default:
		return &questions{r: r, id: rec.HandlerID}
	}
}

// questions shows only events that ask for an answer: a command that waits for an answer
// without showing the question looks as if it hung.
type questions struct {
	r  *remote.Conn
	id string
}

// Show implements Viewer.
func (q *questions) Show(events []host.StreamEvent) error {
	if q.r.JSON {
		return nil
	}
	for i := range events {
		if Asks(&events[i]) {
			line, err := EventLine(&events[i])
			if err != nil {
				return err
			}
			q.r.Note("%s\n%s", line, AnswerHint(q.r, q.id))
		}
	}
	return nil
}

// Patience implements Viewer.
func (q *questions) Patience() time.Duration { return Untold }

// Close implements Viewer.
func (q *questions) Close() error { return nil }

// Asks reports whether an event asks people for an answer.
func Asks(e *host.StreamEvent) bool {
	return e.Type == abi.TypeInputRequired || slices.Contains(e.Types, abi.TypeInputRequired)
}

// AnswerHint says how to answer an event that asks.
func AnswerHint(r *remote.Conn, id string) string {
	return "  answer it with: " + r.Hint("send", id, abi.TypeHumanResponse, "key=value")
}

// EventLine shows an event in one line.
func EventLine(e *host.StreamEvent) (string, error) {
	body, err := abi.ToJSON(e.Body)
	if err != nil {
		return "", fmt.Errorf("read event %d: %w", e.Seq, err)
	}
	return screen.Printable(e.Type) + " " + screen.PrintableJSON(string(body)), nil
}

// jsonLines prints each event as one line of JSON.
type jsonLines struct{ print func(string) error }

// Show implements Viewer.
func (j *jsonLines) Show(events []host.StreamEvent) error {
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

// Patience implements Viewer.
func (j *jsonLines) Patience() time.Duration { return Untold }

// Close implements Viewer.
func (j *jsonLines) Close() error { return nil }

// envelope returns a line with an event as the API shows it and its sequence number.
func envelope(e *host.StreamEvent) (string, error) {
	value, err := abi.ToJSON(e.Body)
	if err != nil {
		return "", fmt.Errorf("read event %d: %w", e.Seq, err)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // like the API
	err = enc.Encode(struct {
		Value    json.RawMessage `json:"value"`
		Name     string          `json:"qualified_name"`
		Type     string          `json:"type"`
		Types    []string        `json:"types"`
		Sequence uint64          `json:"sequence"`
	}{value, e.QualifiedName(), e.Type, e.Types, e.Seq})
	return b.String(), err
}
