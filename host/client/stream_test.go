package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/client"
	"github.com/weftrun/weft/host/position"
)

// threeEvents are a stream's events: an event of the workflow, an internal event and the
// terminal event.
func threeEvents(t *testing.T) []host.StreamEvent {
	return []host.StreamEvent{
		{Seq: 4, Type: "Progress", Workflow: "w.x", Body: raw(t, `{"i":1,"text":"a\u2028b"}`)},
		{Seq: 5, Type: "WorkflowIdleEvent", Types: []string{"InternalDispatchEvent"}, Base: true, Internal: true, Body: raw(t, `{}`)},
		{Seq: 6, Type: "WorkflowFailedEvent", Types: []string{"StopEvent"}, Base: true, Terminal: true, Body: raw(t, `{"attempts":1}`)},
	}
}

// readAll reads a stream to its end.
func readAll(t *testing.T, s *client.Stream) ([]host.StreamEvent, error) {
	t.Helper()
	defer s.Close()
	var all []host.StreamEvent
	for {
		batch, err := s.Next(t.Context(), time.Minute)
		all = append(all, batch...)
		if err != nil {
			return all, err
		}
	}
}

func TestEvents(t *testing.T) {
	f := &fake{events: threeEvents(t)}
	c := serve(t, f, nil)
	s, err := c.Events(t.Context(), "h", position.FromRun, true)
	if err != nil {
		t.Fatal(err)
	}
	if s.Ended() {
		t.Error("ended")
	}
	got, err := readAll(t, s)
	if !errors.Is(err, io.EOF) || !reflect.DeepEqual(got, f.events) {
		t.Errorf("events =\n%+v, want\n%+v, %v", got, f.events, err)
	}
	if _, err := s.Next(t.Context(), time.Minute); !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %v", err)
	}
	s.Close()

	if s, err = c.Events(t.Context(), "h", 4, false); err != nil {
		t.Fatal(err)
	}
	if got, err := readAll(t, s); !errors.Is(err, io.EOF) || len(got) != 1 || got[0].Seq != 6 {
		t.Errorf("events = %+v, %v", got, err)
	}
	if s, err = c.Events(t.Context(), "h", 6, false); err != nil || !s.Ended() {
		t.Fatalf("Ended = false, %v", err)
	}
	if got, err := readAll(t, s); !errors.Is(err, io.EOF) || len(got) > 0 {
		t.Errorf("events = %+v, %v", got, err)
	}
	f.err = host.Errorf(host.CodeNotFound, "gone")
	if _, err := c.Events(t.Context(), "h", 0, false); errorOf(t, err).Code != host.CodeNotFound {
		t.Errorf("error = %v", err)
	}
}

// cutter breaks the connection of each of the first answers after some writes.
type cutter struct {
	http.ResponseWriter
	left int
}

func (c *cutter) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *cutter) Write(b []byte) (int, error) {
	if c.left--; c.left < 0 {
		panic(http.ErrAbortHandler)
	}
	n, err := c.ResponseWriter.Write(b)
	if err == nil {
		err = http.NewResponseController(c.ResponseWriter).Flush()
	}
	return n, err
}

func TestEventsResume(t *testing.T) {
	f := &fake{events: threeEvents(t)}
	requests := make(chan *http.Request, 10)
	c := serve(t, f, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests <- r
			next.ServeHTTP(&cutter{w, 1}, r) // one event a connection
		})
	})
	s, err := c.Events(t.Context(), "h", position.FromRun, true)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := readAll(t, s); !errors.Is(err, io.EOF) || !reflect.DeepEqual(got, f.events) {
		t.Errorf("events = %+v, %v", got, err)
	}
	close(requests)
	var ids []string
	for r := range requests {
		ids = append(ids, r.Header.Get("Last-Event-ID"))
	}
	if want := []string{"", "4", "5"}; !reflect.DeepEqual(ids, want) {
		t.Errorf("Last-Event-ID = %q, want %q", ids, want)
	}
	if want := []int64{-1, 4, 5}; !reflect.DeepEqual(f.opened, want) {
		t.Errorf("positions = %v, want %v", f.opened, want)
	}
}

// script answers each request with the next text of server-sent events. An answer that
// ends in "!" breaks off instead of ending; one in "~" stays open.
func script(answers ...string) http.Handler {
	next := make(chan string, len(answers))
	for _, a := range answers {
		next <- a
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text := ""
		select {
		case text = <-next:
		default:
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusOK)
		_, _ = io.WriteString(w, strings.TrimRight(text, "!~"))
		_ = http.NewResponseController(w).Flush()
		switch {
		case strings.HasSuffix(text, "!"):
			panic(http.ErrAbortHandler)
		case strings.HasSuffix(text, "~"):
			<-r.Context().Done()
		}
	})
}

// frame is an event in the framing of server-sent events.
func frame(id int, typ string) string {
	return fmt.Sprintf("id: %d\ndata: {\"value\":{},\"qualified_name\":\"workflows.events.%s\",\"type\":%q,\"types\":null}\n\n", id, typ, typ)
}

func TestEventsOfAnUnsteadyServer(t *testing.T) {
	stop := frame(9, "StopEvent")
	tests := []struct {
		name    string
		answers []string
		idle    time.Duration
		ids     string
		want    string // in the error; "" is io.EOF
	}{
		{"comments and fields", []string{": hello\n\nretry: 5\nevent: x\nid:3\r\ndata:{\"value\":{},\ndata: \"type\":\"X\"}\r\n\r\n: heartbeat\n\n" + stop}, 0, "3 9", ""},
		{"closed before the end", []string{frame(1, "X"), "", stop}, 0, "1 9", ""},
		{"broken in an event", []string{frame(1, "X") + "id: 2\ndata: {!", frame(2, "X") + stop}, 0, "1 2 9", ""},
		{"silent", []string{frame(1, "X") + "~", stop, stop, stop, stop, stop, stop, stop, stop}, 50 * time.Millisecond, "1 9", ""},
		{"never comes back", []string{frame(1, "X")}, 0, "1", "was lost: "},
		{"always empty", []string{"", "", "", "", "", "", ""}, 0, "", "was lost: the server closed it"},
		{"not JSON", []string{"data: x\n\n", "data: x\n\n", "data: x\n\n", "data: x\n\n", "data: x\n\n", "data: x\n\n"}, 0, "", "not understood"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := clientOf(t, script(tt.answers...), client.Options{Idle: tt.idle})
			s, err := c.Events(t.Context(), "h", position.FromRun, false)
			if err != nil {
				t.Fatal(err)
			}
			got, err := readAll(t, s)
			ids := ""
			for _, e := range got {
				ids += fmt.Sprint(" ", e.Seq)
			}
			if strings.TrimSpace(ids) != tt.ids {
				t.Errorf("events %s, want %s", ids, tt.ids)
			}
			switch {
			case tt.want == "" && !errors.Is(err, io.EOF):
				t.Errorf("error = %v, want EOF", err)
			case tt.want != "" && !strings.Contains(errorOf(t, err).Message, tt.want):
				t.Errorf("error = %v, want %q in it", err, tt.want)
			}
		})
	}
}

func TestEventsWait(t *testing.T) {
	f := &fake{events: threeEvents(t)[:1], hold: true}
	c := serve(t, f, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s, err := c.Events(ctx, "h", position.FromRun, false)
	if err != nil {
		t.Fatal(err)
	}
	if batch, err := s.Next(t.Context(), time.Minute); err != nil || len(batch) != 1 {
		t.Fatalf("batch = %v, %v", batch, err)
	}
	if batch, err := s.Next(t.Context(), time.Millisecond); err != nil || batch != nil {
		t.Errorf("nothing = %v, %v", batch, err)
	}
	done, stop := context.WithCancel(t.Context())
	stop()
	if _, err := s.Next(done, time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v", err)
	}
	cancel()
	if _, err := s.Next(t.Context(), time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v", err)
	}
	s.Close()

	// Close ends a stream that waits.
	if s, err = c.Events(t.Context(), "h", position.FromRun, false); err != nil {
		t.Fatal(err)
	}
	s.Close()
	s.Close()
}
