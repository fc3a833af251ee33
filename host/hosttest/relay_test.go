package hosttest_test

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// relay is an address that stays while servers behind it come and go: it takes
// connections at any time and joins each to the server that there is, or will be.
type relay struct {
	URL string
	// target holds the server's address, or nothing while there is none.
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

// to lets connections go on to a server.
func (r *relay) to(url string) { r.target <- strings.TrimPrefix(url, "http://") }

// hold keeps connections from now on until there is a server again.
func (r *relay) hold() { <-r.target }

// join passes on what comes from either end until one of them is gone.
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
