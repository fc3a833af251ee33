package hosttest_test

import (
	"net"
	"sync"
	"testing"
	"time"
)

// link is a network between a node and a server: an address whose connections lead to the
// server, and that can fail.
type link struct {
	addr string // host:port
	to   string // host:port of the server

	mu      sync.Mutex // guards the fields below
	fault   linkFault
	healed  chan struct{} // closed when the fault ends
	closers map[net.Conn]struct{}
}

type linkFault int

const (
	linkWorks linkFault = iota
	linkCut             // connections are closed; new ones too
	linkHangs           // connections stand, and nothing arrives
	linkSlow            // everything arrives late
	linkFaults
)

func (f linkFault) String() string {
	return [...]string{"works", "cut", "half-open", "slow"}[f]
}

// linkDelay is how late everything arrives at a slow link.
const linkDelay = 100 * time.Millisecond

// newLink opens a link that closes with the test.
func newLink(t testing.TB, to string) *link {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	k := &link{addr: l.Addr().String(), to: to, healed: make(chan struct{}), closers: map[net.Conn]struct{}{}}
	close(k.healed)
	var carrying sync.WaitGroup
	carrying.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			carrying.Go(func() { k.join(conn) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		k.set(linkCut)
		k.set(linkWorks) // releases what hangs
		carrying.Wait()
	})
	return k
}

// set makes the link fail, or work again.
func (k *link) set(fault linkFault) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fault == linkHangs {
		close(k.healed)
	}
	k.fault = fault
	switch fault {
	case linkHangs:
		k.healed = make(chan struct{})
	case linkCut:
		for conn := range k.closers {
			_ = conn.Close()
		}
	default:
	}
}

// state returns the present fault, and when a link that hangs works again.
func (k *link) state() (linkFault, <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.fault, k.healed
}

// keep remembers a connection, unless the link is cut. forget closes the connection.
func (k *link) keep(conn net.Conn) (forget func(), ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fault == linkCut {
		_ = conn.Close()
		return nil, false
	}
	k.closers[conn] = struct{}{}
	return func() {
		_ = conn.Close()
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.closers, conn)
	}, true
}

func (k *link) join(client net.Conn) {
	forget, ok := k.keep(client)
	if !ok {
		return
	}
	defer forget()
	server, err := net.Dial("tcp", k.to)
	if err != nil {
		return
	}
	forgetServer, ok := k.keep(server)
	if !ok {
		return
	}
	defer forgetServer()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		both.Go(func() {
			k.carry(way[1], way[0])
			_ = way[0].Close()
			_ = way[1].Close()
		})
	}
	both.Wait()
}

// carry carries bytes one way until an end closes.
func (k *link) carry(to, from net.Conn) {
	buf := make([]byte, 1<<15)
	for {
		n, err := from.Read(buf)
		if fault, healed := k.state(); fault == linkSlow {
			timer := time.NewTimer(linkDelay)
			<-timer.C
		} else {
			<-healed
		}
		if _, failed := to.Write(buf[:n]); err != nil || failed != nil {
			return
		}
	}
}
