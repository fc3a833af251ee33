package abuse

import (
	"net"
	"net/http"
	"sync"
)

// boundListener accepts no more connections at a time than there are places; others
// wait in the system's queue of the listener. While all places are taken, idle
// connections are closed, and so is each connection after its answer, so that the
// waiting connections get their turn.
type boundListener struct {
	net.Listener
	server *http.Server
	places chan struct{}
	closed chan struct{}
	once   sync.Once
}

// Bound gives a listener of a server for so many connections at a time; l itself if most
// is 0.
func Bound(l net.Listener, s *http.Server, most int) net.Listener {
	if most <= 0 {
		return l
	}
	return &boundListener{Listener: l, server: s, places: make(chan struct{}, most), closed: make(chan struct{})}
}

// Accept implements net.Listener.
func (b *boundListener) Accept() (net.Conn, error) {
	select {
	case b.places <- struct{}{}:
	default:
		b.server.SetKeepAlivesEnabled(false) // closes idle connections
		select {
		case b.places <- struct{}{}:
		case <-b.closed:
			return nil, net.ErrClosed
		}
	}
	c, err := b.Listener.Accept()
	if err != nil {
		<-b.places
		return nil, err
	}
	return &boundConn{Conn: c, of: b}, nil
}

// Close implements net.Listener.
func (b *boundListener) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.Listener.Close()
}

// gone frees a place. The server may call it while it closes connections.
func (b *boundListener) gone() {
	<-b.places
	if len(b.places) < cap(b.places)*3/4 {
		b.server.SetKeepAlivesEnabled(true)
	}
}

// boundConn gives its place back when it is closed.
type boundConn struct {
	net.Conn
	of   *boundListener
	once sync.Once
}

// Close implements net.Conn.
func (c *boundConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(c.of.gone)
	return err
}
