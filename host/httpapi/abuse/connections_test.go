package abuse

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// While a connection waits for a place, connections with a place are not closed before
// their next answer. That answer says that it is the last, and frees the place.
func TestOpenConnectionsGetTheirNextAnswer(t *testing.T) {
	s := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
	bound := Bind(s, 3) // two places
	bound.grace = time.Hour
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(bound.Listener(l)) }()
	first, second := connect(t, l), connect(t, l)
	for range 3 {
		if first.ask(t) || second.ask(t) {
			t.Fatal("an answer is the last of its connection, and nobody waits")
		}
	}
	third := connect(t, l)
	for !first.ask(t) { // until the server has seen the third
		if second.ask(t) {
			second = first
			break
		}
	}
	third.ask(t) // it has the place now
	second.ask(t)
	if err := errors.Join(s.Shutdown(t.Context()), l.Close()); err != nil && !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
}

// client is a connection on which a test sends requests.
type client struct {
	net.Conn
	answers *bufio.Reader
}

func connect(t *testing.T, l net.Listener) *client {
	t.Helper()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // all data has been sent
	return &client{c, bufio.NewReader(c)}
}

// ask makes a request, and returns whether the answer is the last of the connection.
func (c *client) ask(t *testing.T) (last bool) {
	t.Helper()
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(c.answers, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(io.Discard, res.Body)
	if err = errors.Join(err, res.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return res.Close
}
