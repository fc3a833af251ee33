package hosttest_test

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// relay is an address that stays while servers behind it come and go. It accepts
// connections at any time and connects each to the present or the next server.
type relay struct {
	URL string
	// target holds the server's address. It is empty while there is no server.
	target chan string
	closed chan struct{}
}

// newRelay opens a relay that closes with the test.
func newRelay(t *testing.T) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{URL: "http://" + l.Addr().String(), target: make(chan string, 1), closed: make(chan struct{})}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { r.join(conn) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		close(r.closed)
		serving.Wait()
	})
	return r
}

// to forwards connections to a server.
func (r *relay) to(url string) { r.target <- strings.TrimPrefix(url, "http://") }

// hold keeps new connections waiting until there is a server again.
func (r *relay) hold() { <-r.target }

// join forwards bytes in both directions until one end closes.
func (r *relay) join(client net.Conn) {
	defer func() { _ = client.Close() }()
	var address string
	select {
	case address = <-r.target:
		r.target <- address
	case <-r.closed:
		return
	}
	server, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	ended := make(chan struct{}, 2)
	pass := func(to, from net.Conn) {
		_, _ = io.Copy(to, from) // ends with the connection
		ended <- struct{}{}
	}
	go pass(server, client)
	go pass(client, server)
	select {
	case <-ended:
	case <-r.closed:
	}
}
