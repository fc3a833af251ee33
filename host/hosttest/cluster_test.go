package hosttest_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/hosttest/suite"
	"github.com/weftrun/weft/host/store/postgres/pgtest"
)

// clusterLease is the lease of nodes in tests: a node that is stopped is replaced soon.
const clusterLease = 2 * time.Second

// nodes are the processes of a cluster, and a proxy that gives each connection to the next
// of them.
type nodes struct {
	t     testing.TB
	store string
	args  []string
	url   string // of the proxy
	// linked says that each node reaches PostgreSQL, and is reached by the other nodes, over
	// a link that can fail.
	linked bool

	mu   sync.Mutex // guards the fields below
	list []*clusterProcess
	turn int
}

type clusterProcess struct {
	*hosttest.Process
	name, data     string
	database, peer *link // nil: not linked
	out            bool  // gets no new connections
}

// newNodes starts nodes named n0, n1 and so on.
func newNodes(t testing.TB, count int, store string, args ...string) *nodes {
	t.Helper()
	n := &nodes{t: t, store: store, args: args}
	n.begin(count)
	return n
}

// begin starts the first nodes, and the proxy.
func (n *nodes) begin(count int) {
	t := n.t
	t.Helper()
	for i := range count {
		n.start(fmt.Sprint("n", i), t.TempDir())
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	n.url = "http://" + l.Addr().String()
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go n.relay(client)
		}
	}()
}

// start starts a node.
func (n *nodes) start(name, data string) *clusterProcess {
	n.t.Helper()
	p := &clusterProcess{name: name, data: data}
	args := append([]string{"--cluster", "--node", name, "--lease", clusterLease.String(), "--forward-timeout", suite.Hang.String(), "--snapshot-every", "20", "--keep-journal", "30"}, n.args...)
	if n.linked {
		n.serveLinked(p, args)
	} else {
		p.Process = hosttest.Serve(n.t, data, append(args, "--store", n.store, "--cluster-addr", "127.0.0.1:0")...)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, p)
	return p
}

// remove forgets a node that has ended.
func (n *nodes) remove(p *clusterProcess) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range n.list {
		if n.list[i] == p {
			n.list = append(n.list[:i:i], n.list[i+1:]...)
			return
		}
	}
}

// relay carries a connection to the next node that accepts it.
func (n *nodes) relay(client net.Conn) {
	defer func() { _ = client.Close() }()
	for range 100 {
		n.mu.Lock()
		var p *clusterProcess
		for range n.list {
			n.turn++
			if q := n.list[n.turn%len(n.list)]; !q.out {
				p = q
				break
			}
		}
		n.mu.Unlock()
		if p == nil {
			return
		}
		server, err := net.Dial("tcp", strings.TrimPrefix(p.URL, "http://"))
		if err != nil {
			continue
		}
		done := make(chan struct{})
		go func() {
			_, _ = io.Copy(server, client)
			_ = server.Close()
			close(done)
		}()
		_, _ = io.Copy(client, server)
		_ = client.Close()
		<-done
		return
	}
}

// owner returns the node that owns the sessions, or nil.
func (n *nodes) owner() *clusterProcess {
	for _, node := range clusterView(n.t, n.url) {
		if !node.Owner {
			continue
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		for _, p := range n.list {
			if p.name == node.Name {
				return p
			}
		}
	}
	return nil
}

// clusterNode is a node as the API shows it.
type clusterNode struct {
	Name  string `json:"name"`
	State string `json:"state"`
	Owner bool   `json:"owner"`
}

func clusterView(t testing.TB, url string) []clusterNode {
	t.Helper()
	res, err := http.Get(url + "/cluster")
	if err != nil {
		return nil // the node has died
	}
	defer func() { _ = res.Body.Close() }()
	var view struct {
		Nodes []clusterNode `json:"nodes"`
	}
	if err := json.NewDecoder(res.Body).Decode(&view); err != nil {
		return nil
	}
	return view.Nodes
}

// awaitOwner waits until a node owns the sessions and answers.
func (n *nodes) awaitOwner() *clusterProcess {
	n.t.Helper()
	var p *clusterProcess
	eventually(n.t, "a node owns the sessions", func() bool {
		p = n.owner()
		return p != nil
	})
	return p
}

// Every node answers every request. When the owner of the sessions dies, stops, or leaves,
// another node continues with all that was acknowledged, and a plugin and a key that were
// made at one node are the same at all.
func TestCluster(t *testing.T) {
	n := newNodes(t, 3, pgtest.Own(t).URL)
	put(t, n.list[0].Process, "counter", hosttest.Plugin(t, "counter-tinygo"))
	put(t, n.list[1].Process, "human", hosttest.Plugin(t, "human-tinygo"))
	count := 0
	everywhere := func() {
		t.Helper()
		for _, p := range n.list {
			count++
			expect(t, p.Result(t, "counter", in("s", nil)), fmt.Sprint(count))
		}
	}
	everywhere()
	drained := n.awaitOwner()
	other := n.list[0]
	if other == drained {
		other = n.list[1]
	}
	wantWeft(t, drained.name+" is drained", "nodes", "drain", drained.name, "--server", other.URL)
	everywhere()
	waiting := n.list[2].RunNoWait(t, "human", fields{})
	for i, end := range []func(p *clusterProcess){
		func(p *clusterProcess) { p.Kill(t) },
		func(p *clusterProcess) {
			if code := p.Interrupt(t); code != 0 {
				t.Errorf("Ctrl-C exits with %d: %s", code, p.Log())
			}
		},
		func(p *clusterProcess) { p.Signal(t, syscall.SIGSTOP) },
	} {
		p := n.awaitOwner()
		if p == drained {
			t.Errorf("the drained node %s owns the sessions beside others", p.name)
		}
		n.remove(p)
		end(p)
		everywhere()
		n.start(fmt.Sprint("again", i), t.TempDir())
		everywhere()
	}
	if status, out := n.list[0].Do(t, http.MethodPost, "/events/"+waiting.HandlerID, `{"event":{"type":"HumanResponseEvent","value":{"response":1}}}`); status != http.StatusOK {
		t.Fatalf("answer: %d %s", status, out)
	}
	for _, p := range n.list {
		if events := p.Events(t, waiting.HandlerID, "", nil); len(events) != 2 || events[1].Type != "StopEvent" {
			t.Errorf("events %v", events)
		}
	}
	wantWeft(t, "no faults", "check", "--online", "--store", n.store)
}

// clusterFaults is how many faults a storm on a cluster has, unless WEFT_FAULTS says how
// many.
const clusterFaults = 5

// TestStormOnCluster is [TestStorm] on a cluster, whose nodes are killed, stopped for a
// while, replaced in order, and lose PostgreSQL, in a random order.
func TestStormOnCluster(t *testing.T) {
	t.Parallel() // its time is waiting
	rnd := seed(t)
	faults := clusterFaults
	if k, err := strconv.Atoi(os.Getenv("WEFT_FAULTS")); err == nil {
		faults = k
	}
	pg := pgtest.Own(t)
	n := newNodes(t, 3, pg.URL)
	s := &storm{t: t, p: &hosttest.Process{}}
	s.p.URL = n.url
	s.url.Store(&n.url)
	s.begin(rnd)
	done := map[string]int{}
	for i := range faults {
		pause(t, rnd, time.Second)
		p := n.list[rnd.IntN(len(n.list))]
		what := "kill"
		if rnd.IntN(3) > 0 {
			p = n.awaitOwner()
		}
		switch rnd.IntN(4) {
		case 0:
			n.remove(p)
			p.Kill(t)
			n.start(p.name, p.data)
		case 1:
			what = "stop"
			p.Signal(t, syscall.SIGSTOP)
			pause(t, rnd, 3*clusterLease)
			p.Signal(t, syscall.SIGCONT)
		case 2:
			what = "leave"
			n.mu.Lock()
			p.out = true
			n.mu.Unlock()
			if code := p.Interrupt(t); code != 0 {
				t.Errorf("Ctrl-C exits with %d: %s", code, p.Log())
			}
			n.remove(p)
			n.start(fmt.Sprint("m", i), t.TempDir())
		case 3:
			what = "database"
			pg.Crash(t)
			pause(t, rnd, time.Second)
			pg.Again(t)
		}
		done[what]++
		n.awaitOwner()
		if t.Failed() {
			t.Fatalf("after %d faults: %v", i+1, done)
		}
	}
	s.end(s.unblocked)
	s.unblocked()
	s.verify()
	wantWeft(t, "no faults", "check", "--online", "--store", pg.URL)
	t.Logf("%v; %d runs, %d requests sent again, %d events seen", done, s.runs.Load(), s.again.Load(), s.seen.Load())
}

// No request fails while all nodes are replaced in order, one after the other.
func TestRollingReplacement(t *testing.T) {
	t.Parallel() // its time is waiting
	n := newNodes(t, 3, pgtest.Own(t).URL)
	put(t, n.list[0].Process, "counter", hosttest.Plugin(t, "counter-tinygo"))
	const clients = 4
	stop := make(chan struct{})
	counts, errs := make([]int, clients), make(chan error, clients)
	for c := range clients {
		go func() {
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // so that the proxy chooses a node for each request
			for {
				select {
				case <-stop:
					errs <- nil
					return
				default:
				}
				res, err := client.Post(n.url+"/workflows/counter/run", "application/json", strings.NewReader(fmt.Sprintf(`{"session": "client %d"}`, c)))
				if err != nil {
					errs <- err
					return
				}
				out, err := io.ReadAll(res.Body)
				_ = res.Body.Close()
				counts[c]++
				if err == nil && res.StatusCode != http.StatusOK || string(record(t, out).Result.Value.Result) != fmt.Sprint(counts[c]) {
					err = fmt.Errorf("client %d, run %d: %d %s", c, counts[c], res.StatusCode, out)
				}
				if err != nil {
					errs <- err
					return
				}
			}
		}()
	}
	for i := range 3 {
		p := n.awaitOwner()
		n.start(fmt.Sprint("new", i), t.TempDir())
		n.mu.Lock()
		p.out = true // as a load balancer does that asks /ready
		n.mu.Unlock()
		if code := p.Interrupt(t); code != 0 {
			t.Errorf("Ctrl-C exits with %d: %s", code, p.Log())
		}
		n.remove(p)
	}
	n.awaitOwner()
	close(stop)
	for range clients {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	t.Logf("requests: %v", counts)
}
