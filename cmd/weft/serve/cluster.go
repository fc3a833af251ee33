package serve

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"

	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/cmd/weft/wire"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/cluster"
	"github.com/weftrun/weft/host/cluster/forward"
	"github.com/weftrun/weft/host/httpapi"
	"github.com/weftrun/weft/host/metrics"
	"github.com/weftrun/weft/host/server"
	"github.com/weftrun/weft/host/store/postgres"
)

// clusterOptions are the flags of a node of a cluster.
type clusterOptions struct {
	on        bool
	node      string
	addr      string
	advertise string
	lease     time.Duration
	drain     time.Duration
	timeout   time.Duration
}

func (o *clusterOptions) add(f *pflag.FlagSet) {
	name, _ := os.Hostname() // without a name, --node is required
	f.BoolVar(&o.on, "cluster", false, "be one of several nodes on the store of --store: see docs/cluster.md")
	f.StringVar(&o.node, "node", name, "`NAME` of this node in the cluster; each node has its own")
	f.StringVar(&o.addr, "cluster-addr", ":0", "`ADDRESS` to listen on for the other nodes, HOST:PORT (port 0: any free one)")
	f.StringVar(&o.advertise, "advertise", "", "`URL` by which the other nodes reach --cluster-addr, https://HOST:PORT (default: this machine's address towards PostgreSQL)")
	f.DurationVar(&o.lease, "lease", cluster.DefaultLease, "`TIME` of silence after which another node takes over from a node that PostgreSQL still has a connection to; the same at all nodes")
	f.DurationVar(&o.drain, "drain", 30*time.Second, "`TIME` that requests in progress have when this node leaves the cluster")
	f.DurationVar(&o.timeout, "forward-timeout", forward.DefaultTimeout, "`TIME` that a request waits for a node that can answer it")
}

// check refuses options that contradict each other.
func (o *serveOptions) checkCluster() error {
	c := &o.cluster
	switch {
	case !c.on:
		return nil
	case o.store == "":
		return cli.Usage("--cluster needs --store postgres://...: all nodes share one PostgreSQL")
	case c.node == "" || len(c.node) > 200:
		return cli.Usage("--node %q: must be a name of 1 to 200 bytes", c.node)
	case c.lease < cluster.LeastLease || c.lease > cluster.MostLease:
		return cli.Usage("--lease %s: must be from %s to %s", c.lease, cluster.LeastLease, cluster.MostLease)
	case c.drain < 0 || c.timeout <= 0:
		return cli.Usage("--drain and --forward-timeout must be times such as 30s")
	case o.examples != "" || o.demo:
		return cli.Usage("--examples and --demo cannot be combined with --cluster: push plugins to any node with 'weft push'")
	}
	if c.advertise != "" {
		u, err := url.Parse(c.advertise)
		if err != nil || u.Scheme != "https" || u.Port() == "" || u.Path != "" {
			return cli.Usage("--advertise %q is not a URL such as https://10.0.0.5:7443", c.advertise)
		}
	}
	return nil
}

// errMoved answers requests of a host that is about to be closed, because another node owns
// the sessions or will.
var errMoved = &host.Error{
	Code:       host.CodeUnavailable,
	Message:    "The sessions move to another node of the cluster; acknowledged data is kept, and runs continue",
	RetryAfter: time.Second,
}

const (
	// reopenAfter is how long a node whose host has failed leaves the sessions to others.
	reopenAfter = time.Second
	// leaveFor is how long a node that leaves takes new connections, until load balancers
	// have noticed.
	leaveFor = 3 * time.Second
)

// clusterNode is this process as a node of a cluster. It opens a host when it owns the
// sessions, and closes the host when it does not.
type clusterNode struct {
	o       clusterOptions
	node    *cluster.Node
	forward *forward.Forwarder
	front   *httpapi.Front
	open    func(ctx context.Context, place cluster.Place, ready *wire.Standby) (*wire.Host, error)
	prepare func(ctx context.Context, place cluster.Place) (*wire.Standby, error)
	put     func(h *wire.Host)
	host    atomic.Pointer[wire.Host] // nil: there is none
	log     *slog.Logger
}

// failed reports whether the host has failed.
func (c *clusterNode) failed() bool {
	h := c.host.Load()
	return h != nil && h.Journal.Failed()
}

// serveCluster runs a node of a cluster until ctx ends.
func serveCluster(ctx context.Context, o serveOptions, cfg wire.Config, api httpapi.Config, l net.Listener, series *metrics.Metrics, stdout io.Writer) (err error) {
	defer func() { err = errors.Join(err, ignoreClosed(l.Close())) }()
	debug, err := openDebug(o, api.TLS, series.Handler(), cfg.Log)
	if err != nil {
		return err
	}
	debug.start(cfg.Log)
	defer func() { err = errors.Join(err, debug.stop(context.WithoutCancel(ctx))) }()
	store, err := postgres.Open(ctx, cfg.StoreURL, postgres.Options{Shared: true, Wait: clusterWait, Replica: cfg.StoreReplica, Log: cfg.Log})
	if err != nil {
		return err
	}
	members := store.Members()
	defer func() { err = errors.Join(err, members.Close(), store.Close()) }()
	inner, err := new(net.ListenConfig).Listen(ctx, "tcp", o.cluster.addr)
	if err != nil {
		return fmt.Errorf("listen on --cluster-addr %s: %w", o.cluster.addr, err)
	}
	defer func() { err = errors.Join(err, ignoreClosed(inner.Close())) }()
	if o.cluster.advertise == "" {
		if o.cluster.advertise, err = advertised(ctx, members, inner); err != nil {
			return err
		}
	}
	certificate, key, err := forward.NewCertificate()
	if err != nil {
		return err
	}
	settings, err := sharedSettings(o, cfg.AdminKey)
	if err != nil {
		return err
	}
	c := &clusterNode{o: o.cluster, log: cfg.Log}
	c.node = cluster.New(cluster.Config{Table: members, Log: cfg.Log,
		Self: cluster.Self{Name: o.cluster.node, URL: o.cluster.advertise, Key: key, Version: cli.Version, Lease: o.cluster.lease, Settings: settings}})
	if err := c.node.Join(ctx); err != nil {
		return err
	}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	ran := make(chan struct{})
	go func() {
		defer close(ran)
		c.node.Run(background)
	}()
	defer func() {
		stop()
		<-ran
	}()

	counts := wire.NewSeries(series)
	c.measure(series)
	api.Nodes, api.Drain = c.nodes, c.drain
	c.open = func(ctx context.Context, place cluster.Place, ready *wire.Standby) (*wire.Host, error) {
		next := cfg
		next.Place, next.Standby, next.Now = &place, ready, c.node.Time
		return wire.Open(ctx, next)
	}
	c.prepare = func(ctx context.Context, place cluster.Place) (*wire.Standby, error) {
		next := cfg
		next.Place = &place
		return wire.Prepare(ctx, next)
	}
	c.put = func(h *wire.Host) {
		h.Count(counts)
		c.front.Put(httpapi.New(answering(api, h)))
	}
	outside := api
	outside.Absent, outside.Grace = forward.Absent, o.cluster.drain+leaveFor
	around := api.Around
	outside.Around = func(api http.Handler) http.Handler {
		if around != nil {
			api = around(api) // sign-ins of the console are of the owner, whichever node is asked
		}
		c.forward = forward.New(forward.Config{Nodes: c.node, Local: api, Failed: c.failed, Certificate: certificate, Timeout: o.cluster.timeout, Head: outside.Head(), Log: cfg.Log})
		return c.forward
	}
	c.front = httpapi.NewFront(outside)
	served := make(chan error, 2)
	others := c.forward.Server()
	go func() { served <- ignoreClosed(others.ServeTLS(inner, "", "")) }()
	defer func() { err = errors.Join(err, others.Close()) }()
	fmt.Fprintf(stdout, "weft %s serves on %s://%s, node %q of a cluster, data in %s\n", cli.Version, o.scheme(), l.Addr(), o.cluster.node, storeName(o.data, o.store))
	go func() { served <- c.front.Serve(l) }()
	err = c.run(ctx, served)
	return errors.Join(err, c.leave(context.WithoutCancel(ctx)))
}

// sharedSettings returns digests of what all nodes should be given alike. A digest has 32
// bits: enough to see a difference, too few to find a secret by.
func sharedSettings(o serveOptions, adminKey string) (map[string]string, error) {
	texts := map[string]string{
		"--admin-key-file": adminKey, "--resource-key-file": os.Getenv("WEFT_RESOURCE_KEY"), "--limits": "", "--resources": "",
		"--run-timeout": o.timeout().String(), "--cors-origin": strings.Join(slices.Sorted(slices.Values(o.origins)), " "),
	}
	for flag, file := range map[string]string{"--limits": o.limits, "--resources": o.resources, "--resource-key-file": o.resourceKeyFile} {
		if file == "" {
			continue
		}
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", flag, err)
		}
		texts[flag] = string(b)
	}
	digests := map[string]string{}
	for flag, text := range texts {
		sum := sha256.Sum256([]byte("weft " + flag + "\x00" + strings.TrimSpace(text)))
		digests[flag] = hex.EncodeToString(sum[:4])
	}
	return digests, nil
}

// clusterWait is how long a node waits for a server that has the store to itself to end.
const clusterWait = 15 * time.Second

func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// advertised returns the URL by which other nodes probably reach a listener.
func advertised(ctx context.Context, members *postgres.Members, l net.Listener) (string, error) {
	name, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return "", err
	}
	if ip := net.ParseIP(name); ip == nil || ip.IsUnspecified() {
		at, err := members.LocalIP(ctx)
		if err != nil {
			return "", fmt.Errorf("find the address of this machine: %w; name it with --advertise", err)
		}
		name = at.String()
	}
	return "https://" + net.JoinHostPort(name, port), nil
}

// run serves until ctx ends or a listener fails.
func (c *clusterNode) run(ctx context.Context, served <-chan error) error {
	for ctx.Err() == nil {
		waiting, cancel := context.WithCancel(ctx)
		terms := make(chan *cluster.Term, 1)
		go func() {
			term, _ := c.node.Term(waiting) // nil when the wait ends
			terms <- term
		}()
		ready := make(chan *standby, 1)
		go func() { ready <- c.standBy(waiting) }()
		select {
		case err := <-served:
			cancel()
			<-terms
			(<-ready).discard(ctx)
			return err
		case term := <-terms:
			cancel()
			if term == nil {
				(<-ready).discard(ctx)
				return nil
			}
			if err := c.serve(ctx, term, <-ready, served); err != nil {
				return err
			}
		}
	}
	return nil
}

// standby is what a node has prepared for a term of an entry. nil: nothing.
type standby struct {
	*wire.Standby
	place cluster.Place
}

// standbyRetry is how long a node waits before it tries again to prepare itself.
const standbyRetry = 5 * time.Second

// standBy prepares this node for a term of its entry, and anew for each new entry, until ctx
// ends. Without its result a host takes longer to open.
func (c *clusterNode) standBy(ctx context.Context) *standby {
	for {
		place, err := c.node.Entry(ctx, 0)
		if err != nil {
			return nil
		}
		prepared, err := c.prepare(ctx, place)
		if err != nil {
			c.log.Debug("this node cannot prepare itself for the sessions yet", "error", err)
			select {
			case <-time.After(standbyRetry):
				continue
			case <-ctx.Done():
				return nil
			}
		}
		ready := &standby{prepared, place}
		keeping, stop := context.WithCancel(ctx)
		kept := make(chan struct{})
		go func() {
			defer close(kept)
			prepared.Keep(keeping)
		}()
		_, err = c.node.Entry(ctx, place.Epoch)
		stop()
		<-kept
		if err != nil {
			return ready
		}
		ready.discard(ctx)
	}
}

// discard closes what was prepared in vain.
func (s *standby) discard(ctx context.Context) {
	if s != nil {
		_ = s.Close(context.WithoutCancel(ctx)) // nothing was written
	}
}

// forTerm returns what was prepared for a term, or nil.
func (s *standby) forTerm(ctx context.Context, term *cluster.Term) *wire.Standby {
	switch {
	case s == nil:
		return nil
	case s.place != term.Place:
		s.discard(ctx)
		return nil
	}
	return s.Standby
}

// serve opens a host for a term, and serves until the term or the host ends.
func (c *clusterNode) serve(ctx context.Context, term *cluster.Term, ready *standby, served <-chan error) error {
	began := time.Now()
	opening, cancel := context.WithCancel(ctx)
	defer context.AfterFunc(closed(term.Lost()), cancel)()
	h, err := c.open(opening, term.Place, ready.forTerm(ctx, term))
	cancel()
	if err != nil {
		c.log.Error("the host cannot be opened: other nodes may try", "error", err)
		c.resign(ctx, term, reopenAfter)
		return nil
	}
	c.host.Store(h)
	c.put(h)
	c.node.Serve(term)
	c.log.Info("this node serves", "epoch", term.Epoch, "prepared", ready != nil, "opened_in", time.Since(began).Round(time.Millisecond))
	after, clean := time.Duration(0), true
	select {
	case <-ctx.Done():
		if err := c.node.Leaving(context.WithoutCancel(ctx)); err != nil {
			c.log.Warn("other nodes could not be asked to take over", "error", err)
		}
	case <-term.Drained():
		c.log.Info("this node is drained: it gives the sessions up", "epoch", term.Epoch)
	case err = <-served:
	case <-term.Lost():
		clean = false
	case <-h.Dead():
		clean = false
		c.log.Error("the store failed and leaves open what it wrote: another node, or this one, continues from what is stored", "error", h.Failure())
		after = reopenAfter
	}
	defer c.close(ctx, h)
	if !c.retire(ctx, term, h) || !clean {
		c.resign(ctx, term, after)
		return err
	}
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), server.StopWithin)
	defer cancel()
	if err := c.node.Release(within, term); err != nil {
		c.log.Warn("the other nodes find out by themselves that this node gives the sessions up", "error", err)
	}
	c.forward.Announce(within)
	return err
}

// closed returns a context that ends when a channel is closed.
func closed(done <-chan struct{}) context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-done
		cancel()
	}()
	return ctx
}

// retire takes the host of a term away and stops it, and reports whether all that the host
// held is stored. Its requests continue at the next owner.
func (c *clusterNode) retire(ctx context.Context, term *cluster.Term, h *wire.Host) bool {
	ctx = context.WithoutCancel(ctx)
	c.node.Retire(term)
	within, cancel := context.WithTimeout(ctx, httpapi.DefaultGrace)
	defer cancel()
	if err := c.front.Take(within, errMoved); err != nil {
		c.log.Warn("some requests are still in progress", "error", err)
	}
	err := h.Stop(ctx)
	if err != nil {
		c.log.Debug("the host does not stop cleanly", "error", err)
	}
	c.host.Store(nil)
	return err == nil
}

// close closes a host that was stopped. The next owner need not wait for it.
func (c *clusterNode) close(ctx context.Context, h *wire.Host) {
	if err := h.Close(context.WithoutCancel(ctx)); err != nil {
		c.log.Debug("the host does not close cleanly", "error", err)
	}
}

// resign gives the sessions up, and says so to the other nodes.
func (c *clusterNode) resign(ctx context.Context, term *cluster.Term, after time.Duration) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), server.StopWithin)
	defer cancel()
	if err := c.node.Resign(ctx, term, after); err != nil {
		c.log.Warn("the other nodes find out by themselves that this node gives the sessions up", "error", err)
		return
	}
	c.forward.Announce(ctx)
}

// leave ends the node. Requests that come meanwhile are handed to other nodes.
func (c *clusterNode) leave(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, server.StopWithin)
	defer cancel()
	if err := c.node.Leaving(within); err != nil {
		c.log.Warn("the other nodes do not know that this node is leaving", "error", err)
	}
	if others(c.node.View(), c.o.node) {
		c.front.CloseConnections()
		<-time.After(leaveFor)
	} else {
		c.forward.Stop()
	}
	draining := time.AfterFunc(c.o.drain, c.forward.Stop)
	defer draining.Stop()
	err := c.front.Shutdown(ctx)
	within, cancel = context.WithTimeout(ctx, server.StopWithin)
	defer cancel()
	if err := c.node.Leave(within); err != nil {
		c.log.Warn("the other nodes find out by themselves that this node has left", "error", err)
	}
	return err
}

// others reports whether there are other nodes.
func others(v cluster.View, name string) bool {
	for i := range v.Nodes {
		if n := &v.Nodes[i]; n.Open() && n.Name != name {
			return true
		}
	}
	return false
}

// nodes lists the nodes of the cluster.
func (c *clusterNode) nodes() []host.Node {
	view := c.node.View()
	list := make([]host.Node, len(view.Nodes))
	owner := view.Node(view.Owner)
	for i := range view.Nodes {
		n := &view.Nodes[i]
		var differs []string
		if owner != nil {
			differs = n.Differing(&owner.Self)
		}
		list[i] = host.Node{Name: n.Name, Epoch: n.Epoch, State: string(n.State), Owner: n.Epoch == view.Owner && n.Open(), URL: n.URL,
			Version: n.Version, Seen: n.Beat.UnixNano(), Lease: n.Lease, Differs: differs, Drained: n.Drained}
	}
	slices.SortFunc(list, func(a, b host.Node) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// drain moves the sessions away from a node, or lets it take them again.
func (c *clusterNode) drain(ctx context.Context, name string, drained bool) error {
	err := c.node.Drain(ctx, name, drained)
	if err != nil && host.CodeOf(err) == host.CodeInternal {
		// The store does not answer, or another node has taken over.
		c.log.Warn("a node could not be drained", "node", name, "error", err)
		return &host.Error{Code: host.CodeUnavailable, Message: "The table of nodes could not be changed", RetryAfter: time.Second, Cause: err}
	}
	if err == nil {
		c.forward.Announce(ctx)
	}
	return err
}

// measure registers the series of the cluster.
func (c *clusterNode) measure(series *metrics.Metrics) {
	node := func(name, help string, counter bool, read func(cluster.Stats) float64) metrics.Reading {
		return metrics.Reading{Name: "cluster_" + name, Help: help, Counter: counter, Read: func() float64 { return read(c.node.Stats()) }}
	}
	forwarded := func(name, help string, read func(forward.Stats) uint64) metrics.Reading {
		return metrics.Reading{Name: "cluster_" + name, Help: help, Counter: true, Read: func() float64 { return float64(read(c.forward.Stats())) }}
	}
	series.Source([]metrics.Reading{
		{Name: "cluster_nodes", Help: "Open nodes of the cluster.", Read: func() float64 {
			open := 0
			for _, n := range c.nodes() {
				if n.State == string(cluster.Live) || n.State == string(cluster.Leaving) {
					open++
				}
			}
			return float64(open)
		}},
		{Name: "cluster_owner", Help: "1 if this node runs the sessions, else 0.", Read: func() float64 {
			if c.host.Load() != nil {
				return 1
			}
			return 0
		}},
		node("beat_age_seconds", "How long ago the store answered the newest beat of this node.", false, func(s cluster.Stats) float64 { return s.Age.Seconds() }),
		node("beats_total", "Beats of this node.", true, func(s cluster.Stats) float64 { return float64(s.Beats) }),
		node("failed_beats_total", "Beats of this node that the store did not answer.", true, func(s cluster.Stats) float64 { return float64(s.FailedBeats) }),
		node("takeovers_total", "Times that this node began to run the sessions.", true, func(s cluster.Stats) float64 { return float64(s.Takeovers) }),
		node("fenced_total", "Silent nodes that this node closed.", true, func(s cluster.Stats) float64 { return float64(s.Fenced) }),
		node("lost_total", "Times that another node closed this one.", true, func(s cluster.Stats) float64 { return float64(s.Lost) }),
		node("clock_offset_seconds", "How far the time of the cluster, which is PostgreSQL's, is ahead of this machine's clock.", false,
			func(s cluster.Stats) float64 { return s.ClockOffset.Seconds() }),
		node("went_back_total", "Times that the store had lost commits.", true, func(s cluster.Stats) float64 { return float64(s.WentBack) }),
		forwarded("forwarded_total", "Requests that another node answered.", func(s forward.Stats) uint64 { return s.Forwarded }),
		forwarded("repeated_total", "Repetitions of requests whose node went.", func(s forward.Stats) uint64 { return s.Repeated }),
		forwarded("refused_total", "Requests for which no node could be reached.", func(s forward.Stats) uint64 { return s.Refused }),
		forwarded("unknown_total", "Requests whose node went, with an unknown outcome.", func(s forward.Stats) uint64 { return s.Unknown }),
	})
}
