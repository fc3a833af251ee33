package abuse

import (
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// While a new connection waits for a place, other connections may be closed: a connection
// without a request after idleGrace, and a connection that has sent nothing yet after
// newGrace. Closing an idle connection immediately would lose requests that are on their
// way, and a client does not repeat a POST by itself.
const (
	idleGrace = 250 * time.Millisecond
	newGrace  = 5 * time.Second
)

// Connections limits the connections of an HTTP server that are open at a time. The
// newest connection of a listener is accepted and then waits for a place. While a
// connection waits, each connection is closed after its next answer, and idle connections
// are closed after a grace.
//
// Its methods may be called from any goroutine.
type Connections struct {
	places  chan struct{}
	waiting atomic.Int64  // connections without a place
	grace   time.Duration // idleGrace, except in tests

	mu   sync.Mutex               // guards the fields below
	idle map[*boundConn]time.Time // when a connection without a request may be closed
}

// Bind limits the server to most connections, and returns the Connections that makes its
// listeners; nil if most is 0.
func Bind(s *http.Server, most int) *Connections {
	if most <= 0 {
		return nil
	}
	c := &Connections{places: make(chan struct{}, max(1, most-1)), grace: idleGrace, idle: map[*boundConn]time.Time{}}
	next := s.Handler
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.waiting.Load() > 0 {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
	s.ConnState = c.changed
	return c
}

// Listener returns a listener whose connections are bounded; l itself if c is nil. A
// TLS listener must wrap the bounded listener, not the reverse.
func (c *Connections) Listener(l net.Listener) net.Listener {
	if c == nil {
		return l
	}
	return &boundListener{Listener: l, of: c, closed: make(chan struct{})}
}

// changed is the server's ConnState.
func (c *Connections) changed(conn net.Conn, state http.ConnState) {
	if encrypted, ok := conn.(*tls.Conn); ok {
		conn = encrypted.NetConn()
	}
	b, ok := conn.(*boundConn)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		c.idle[b] = time.Now().Add(newGrace)
	case http.StateIdle:
		c.idle[b] = time.Now().Add(c.grace)
	default:
		delete(c.idle, b)
	}
}

// overdue returns a connection without a request whose grace has passed. If there is no
// such connection, it returns nil and the time to wait before asking again.
func (c *Connections) overdue() (*boundConn, time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	wait := c.grace // for a connection that becomes idle from now on
	for b, until := range c.idle {
		left := time.Until(until)
		if left <= 0 {
			delete(c.idle, b)
			return b, 0
		}
		wait = min(wait, left)
	}
	return nil, wait
}

// place waits for a place. It returns false if closed is closed first.
func (c *Connections) place(closed <-chan struct{}) bool {
	select {
	case c.places <- struct{}{}:
		return true
	default:
	}
	c.waiting.Add(1)
	defer c.waiting.Add(-1)
	for {
		b, wait := c.overdue()
		if b != nil {
			_ = b.Close() // the server learns of the close when it reads
		}
		select {
		case c.places <- struct{}{}:
			return true
		case <-closed:
			return false
		case <-time.After(wait):
		}
	}
}

// boundListener accepts connections that have places.
type boundListener struct {
	net.Listener
	of     *Connections
	closed chan struct{}
	once   sync.Once
}

// Accept implements net.Listener.
func (l *boundListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if !l.of.place(l.closed) {
		_ = c.Close() // no goroutine has read from it
		return nil, net.ErrClosed
	}
	return &boundConn{Conn: c, of: l.of}, nil
}

// Close implements net.Listener.
func (l *boundListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// boundConn releases its place when it is closed.
type boundConn struct {
	net.Conn
	of   *Connections
	once sync.Once
}

// Close implements net.Conn.
func (c *boundConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { <-c.of.places })
	return err
}
