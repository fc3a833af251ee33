// Package serve is 'weft serve': it turns flags and files into the configurations of a
// host, its API and its listeners, and runs the server until it is interrupted. It also
// has the demonstration, the examples and the file of limits.
//
// It does not depend on how these parts work, or on the commands of clients.
package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/cmd/weft/plugins"
	"github.com/weftrun/weft/cmd/weft/wire"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/console"
	"github.com/weftrun/weft/host/httpapi"
	"github.com/weftrun/weft/host/metrics"
)

// serveOptions are the flags of `weft serve`.
type serveOptions struct {
	addr            string
	data, store     string
	durability      string
	acceptLoss      bool
	limits          string
	resources       string
	resourceKeyFile string
	cache           string
	cacheBytes      int64
	examples        string
	demo            bool
	examplesLater   bool
	allowRemote     bool
	adminKeyFile    string
	tlsCert         string
	tlsKey          string
	hosts           []string
	origins         []string
	noConsole       bool
	logLevel        string
	logFormat       string
	runTimeout      time.Duration
	startWait       time.Duration
	snapshotEvery   int
	keepJournal     uint64
	dueAtOnce       int
	maxRequests     int
	maxStreams      int
	maxRequestBytes int64
	sourceLines     bool
	orAnyPort       bool
	debug           debugOptions
	tracing         tracingOptions
	wrongKeys       int
	cluster         clusterOptions
}

// examplesLater is the name of a flag.
const examplesLater = "examples-later"

// defaultCacheBytes is room for about 250 modules of Go, or many more of TinyGo and Rust.
const defaultCacheBytes = 4 << 30

// New makes the command 'weft serve'.
func New() *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the server",
		Long: `Run the server until it is interrupted.

The server keeps everything in one directory (--data): the SQLite database and the cache
of compiled modules. Only one server can use a directory. Runs that a stop or a crash
interrupts continue at the next start. With --store the server keeps everything in a
PostgreSQL database, and only the cache in the directory: see docs/postgres.md.

With an admin key (--admin-key-file, or the environment variable WEFT_ADMIN_KEY) every
request needs a key. The admin key makes tenants and the first keys: see 'weft tenants'
and 'weft keys'. Without an admin key the server has a single tenant. It then listens
only on loopback addresses, unless --allow-remote is given, and answers only requests
that name it by a loopback name or by a name of --allowed-host. Once tenants have keys,
requests need a key even if the server has no admin key.

The server limits what plugins may use. --limits names a file that changes the limits
for everybody, for tenants, or for plugins; runs that have started keep their limits.
'weft limits' shows the limits and explains the file.

Plugins can reach only what --resources grants: a file that names services, the URLs,
methods and networks of each, its secrets, and who may use it. docs/resources.md
explains the file.`,
		Example: `  weft serve
  weft serve --addr 127.0.0.1:9000 --data /var/lib/weft
  weft serve --addr :8443 --admin-key-file admin.key --tls-cert cert.pem --tls-key key.pem
  weft serve --limits limits.json       # checked first: weft limits --limits limits.json
  weft serve --debug-addr 127.0.0.1:6060   # go tool pprof http://127.0.0.1:6060/debug/pprof/profile
  weft serve --otlp-endpoint http://127.0.0.1:4318   # traces, see docs/operations.md
  weft serve --examples                 # with build/plugins/*-go.wasm loaded
  weft serve --examples=./my-plugins    # with every .wasm of that directory
  weft serve --data :memory:            # keep nothing
  WEFT_STORE=postgres://weft:secret@db/weft weft serve`,
		Args: cli.Takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return serve(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.addr, "addr", cli.DefaultAddr, "`ADDRESS` to listen on, HOST:PORT (port 0: any free one)")
	f.StringVar(&o.data, "data", "data", "`DIR` of the database and the cache, or "+wire.InMemory)
	f.StringVar(&o.store, "store", "", "`URL` of a PostgreSQL database to keep everything in, postgres://...; --data then has the cache only. WEFT_STORE hides its password from lists of processes")
	f.StringVar(&o.durability, "durability", durabilityLocal, "`WHAT` has a commit before the server acknowledges it: local, the PostgreSQL of --store alone, or replica, a synchronous replica of it too")
	f.BoolVar(&o.acceptLoss, "accept-loss", false, "serve a data directory even if a part of it is missing; by default the server refuses to start")
	f.StringVar(&o.limits, "limits", "", "`FILE` with the limits of tenants and plugins (JSON; see 'weft limits')")
	f.StringVar(&o.resources, "resources", "", "`FILE` with the resources that workflows may call (JSON; see docs/resources.md)")
	f.StringVar(&o.resourceKeyFile, "resource-key-file", "", "`FILE` with keys, one per line, that encrypt the secrets of resources that tenants define (or the key itself in WEFT_RESOURCE_KEY)")
	f.StringVar(&o.examples, "examples", "", "load example plugins at the start: build/plugins/*-go.wasm, or with =`DIR` every .wasm file in DIR")
	f.Lookup("examples").NoOptDefVal = plugins.DefaultExamples
	f.BoolVar(&o.demo, "demo", false, "after the start, run the example wordcount on a text and print the result; load the other examples after it")
	f.BoolVar(&o.examplesLater, examplesLater, false, "load the other examples when the standard input ends: for 'make run'")
	_ = f.MarkHidden(examplesLater) // the flag exists
	f.BoolVar(&o.allowRemote, "allow-remote", false, "listen without keys on an address that is not loopback: everybody who reaches it can do everything")
	f.StringVar(&o.adminKeyFile, "admin-key-file", "", "`FILE` with the server's own admin key, which makes tenants and keys (or the key itself in WEFT_ADMIN_KEY)")
	f.IntVar(&o.wrongKeys, "wrong-keys", 30, "`N` wrong keys a minute that one address (IPv6: /64) may send; then other keys from it get 429, except keys in use (0: no limit)")
	f.StringVar(&o.tlsCert, "tls-cert", "", "`FILE` with the certificate and its chain (PEM), to serve with TLS 1.2 or newer")
	f.StringVar(&o.tlsKey, "tls-key", "", "`FILE` with the certificate's private key (PEM)")
	f.StringSliceVar(&o.hosts, "allowed-host", nil, "further host `NAME` by which requests may name the server (repeatable)")
	f.StringSliceVar(&o.origins, "cors-origin", nil, "foreign origin (`URL`) whose pages may use the API (repeatable)")
	f.BoolVar(&o.noConsole, "no-console", false, "serve the API without the web console (/console/)")
	f.StringVar(&o.logLevel, "log-level", "info", "lowest `LEVEL` to log: debug, info, warn, error")
	f.StringVar(&o.logFormat, "log-format", "text", "`FORMAT`: text or json")
	f.IntVar(&o.snapshotEvery, "snapshot-every", 10_000, "write a snapshot, from which a session is loaded, after every `N` entries of its journal")
	f.Uint64Var(&o.keepJournal, "keep-journal", 0, "keep at least `N` entries of a session's journal before its newest snapshot, for 'weft journal' and 'weft fork' (0: all)")
	f.IntVar(&o.dueAtOnce, "due-at-once", 256, "load `N` sessions at a time when many have work to do after a restart")
	f.IntVar(&o.maxRequests, "max-requests", httpapi.DefaultMaxRequests, "at most `N` requests at a time, including those that wait for a run; others get 503")
	f.IntVar(&o.maxStreams, "max-streams", httpapi.DefaultMaxStreams, "at most `N` open event streams; others get 503")
	f.Int64Var(&o.maxRequestBytes, "max-request-bytes", httpapi.DefaultMaxRequestBytes, "at most `BYTES` of request bodies in memory; other requests get 503")
	f.StringVar(&o.cache, "cache", "", "`DIR` of compiled modules, which servers may share (default: cache in --data; none with "+wire.InMemory+")")
	f.Int64Var(&o.cacheBytes, "cache-bytes", defaultCacheBytes, "at most `BYTES` of compiled modules on disk; the longest unused modules are removed, and compiled again when needed (0: no limit)")
	f.DurationVar(&o.runTimeout, "run-timeout", host.DefaultRunTimeout, "`TIME` limit for the work of runs whose workflow sets no timeout; 0: none")
	f.DurationVar(&o.startWait, "start-wait", 15*time.Second, "refuse a start with 503 if its run would wait for a core longer than this `TIME`; 0: no limit")
	f.BoolVar(&o.sourceLines, "source-lines", false, "if a plugin was built with debug information, name the source line where it traps; slow, for development")
	f.BoolVar(&o.orAnyPort, cli.OrAnyPort, false, "listen on another port if that of --addr is taken: for 'weft dev'")
	_ = f.MarkHidden(cli.OrAnyPort) // the flag exists
	o.cluster.add(f)
	o.debug.add(f)
	o.tracing.add(f)
	return cmd
}

func serve(ctx context.Context, o serveOptions, stdout, stderr io.Writer) error {
	log, err := newLog(o, stderr)
	if err != nil {
		return err
	}
	adminKey, err := readAdminKey(o.adminKeyFile, log)
	if err != nil {
		return err
	}
	if err := checkStore(o.store); err != nil {
		return err
	}
	if err := o.check(adminKey, log); err != nil {
		return err
	}
	limits, err := readLimits(o.limits)
	if err != nil {
		return err
	}
	resources, err := readResources(o.resources)
	if err != nil {
		return err
	}
	defer resources.Close()
	resourceKeys, err := readResourceKeys(o.resourceKeyFile)
	if err != nil {
		return err
	}
	ignoreFileLimit()
	// Listen first, to find a port in use before the store is opened.
	encrypt, err := encryption(o)
	if err != nil {
		return err
	}
	l, err := listen(o)
	if err != nil {
		return err
	}
	program, err := compiler()
	if err != nil {
		return fmt.Errorf("find this program, to start it as a compiler: %w", err)
	}
	cores := spareThread()
	series := metrics.New()
	tracer, err := openTracing(ctx, o.tracing, series, log)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	defer closeTracing(ctx, tracer, log)
	cfg := wire.Config{Data: o.data, StoreURL: o.store, StoreReplica: o.durability == durabilityReplica, AcceptLoss: o.acceptLoss, Lost: losses(stderr), Limits: limits, Resources: resources, ResourceKeys: resourceKeys, Timeout: o.timeout(), StartWait: orNone(o.startWait), Log: log, Compiler: program, CatchCrashes: true, AdminKey: adminKey,
		Tokens: cores, Yield: yield, SnapshotEntries: o.snapshotEvery, KeepEntries: o.keepJournal, DueAtOnce: o.dueAtOnce, SourceLines: o.sourceLines, Code: o.cache, CacheBytes: o.cacheBytes,
		Metrics: series, Tracer: tracer}
	api := httpapi.Config{Log: log, Addr: l.Addr().String(), AllowedHosts: o.hosts, CORSOrigins: o.origins, Version: cli.Version,
		MaxPlugin: int64(limits.Greatest().ModuleBytes), MaxRequests: o.maxRequests, MaxStreams: o.maxStreams, MaxRequestBytes: o.maxRequestBytes, RunTimeout: o.timeout(),
		MaxConnections: mostConnections(), TLS: encrypt, CPU: processTime(),
		Metrics: series.Handler(), Observe: series.Request, Refused: series.Refused, WrongKeys: o.wrongKeys, WrongKey: series.WrongKey, Tracer: requestTracer(tracer)}
	if !o.noConsole {
		api.Around = console.New(nil).Around
	}
	if o.cluster.on {
		return serveCluster(ctx, o, cfg, api, l, series, stdout)
	}
	debug, err := openDebug(o, encrypt, series.Handler(), log)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	debug.start(log)
	front := httpapi.NewFront(api)
	sv, err := openServer(ctx, cfg, api, front, wire.NewSeries(series))
	if err != nil {
		return errors.Join(err, l.Close(), debug.stop(ctx))
	}
	addr := l.Addr().String()
	// Without a demonstration, the server answers its first request after the examples
	// are loaded. Until then requests wait in the listener, as they do while the store is
	// recovered.
	if err := announce(ctx, o, sv.Host(), addr, stdout); err != nil {
		return errors.Join(err, l.Close(), sv.Stop(ctx), debug.stop(ctx))
	}
	served := make(chan error, 1)
	go func() { served <- front.Serve(l) }()

	loaded := func() error { return nil }
	if o.demo {
		loaded, err = demonstrate(ctx, o, sv.Host(), "http://"+addr, adminKey, stdout)
	}
	if err == nil {
		err = sv.Run(ctx, served)
	}
	return errors.Join(err, loaded(), sv.Stop(ctx), debug.stop(ctx))
}

// demonstrate loads the plugin of the demonstration, runs the demonstration, and then
// loads the other examples in the background. loaded waits for them; if ctx has ended, it
// stops the loading.
func demonstrate(ctx context.Context, o serveOptions, h *wire.Host, server, key string, stdout io.Writer) (loaded func() error, err error) {
	none := func() error { return nil }
	if o.examples != "" {
		if err := loadOne(ctx, h, o.examples, demoPlugin, stdout); err != nil {
			return none, err
		}
	}
	if err := demo(ctx, server, key, stdout); err != nil || o.examples == "" {
		return none, err
	}
	ended := make(chan error, 1)
	go func() {
		if o.examplesLater {
			awaitEnd(ctx, os.Stdin)
		}
		ended <- loadRest(ctx, h, o.examples, stdout)
	}()
	return func() error {
		if err := <-ended; err != nil && ctx.Err() == nil {
			return err
		}
		return nil
	}, nil
}

// awaitEnd returns when the input has ended, or ctx has ended.
func awaitEnd(ctx context.Context, in io.Reader) {
	end := make(chan struct{})
	go func() { // a read cannot be interrupted: it continues in the background
		_, _ = io.Copy(io.Discard, in)
		close(end)
	}()
	select {
	case <-end:
	case <-ctx.Done():
	}
}

// check refuses options that the server cannot or should not accept.
func (o serveOptions) check(adminKey string, log *slog.Logger) error {
	switch {
	case o.snapshotEvery < 1:
		return cli.Usage("--snapshot-every %d: must be at least 1", o.snapshotEvery)
	case o.wrongKeys < 0:
		return cli.Usage("--wrong-keys %d: must be at least 0", o.wrongKeys)
	case o.cacheBytes < 0:
		return cli.Usage("--cache-bytes %d: must be a number of bytes, or 0 for no limit", o.cacheBytes)
	case o.runTimeout < 0:
		return cli.Usage("--run-timeout %s: must be a time such as 45s, or 0 for none", o.runTimeout)
	case o.startWait < 0:
		return cli.Usage("--start-wait %s: must be a time such as 15s, or 0 for no limit", o.startWait)
	case o.data == "":
		return cli.Usage("--data is empty: name a directory, or :memory: to keep nothing")
	case o.dueAtOnce < 1:
		return cli.Usage("--due-at-once %d: must be at least 1", o.dueAtOnce)
	case o.maxRequests < 1 || o.maxStreams < 1 || o.maxRequestBytes < 1:
		return cli.Usage("--max-requests, --max-streams and --max-request-bytes must be at least 1")
	case (o.tlsCert == "") != (o.tlsKey == ""):
		return cli.Usage("--tls-cert and --tls-key must be given together")
	case o.demo && o.tlsCert != "":
		return cli.Usage("--demo uses plain HTTP: it cannot be combined with --tls-cert")
	}
	if err := checkNames(o.hosts, o.origins); err != nil {
		return err
	}
	if err := checkDurability(o.durability, o.store); err != nil {
		return err
	}
	if err := o.checkCluster(); err != nil {
		return err
	}
	return checkAddr(o, adminKey, log)
}

// timeout is the timeout of runs whose workflow sets none, in the form of [wire.Config]:
// below 0 for none.
func (o serveOptions) timeout() time.Duration { return orNone(o.runTimeout) }

// orNone converts a time to the form of [wire.Config], where a time below 0 means none.
func orNone(d time.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return d
}

// checkNames refuses names of hosts and origins that no request can have: the server
// would seem to allow something that it does not allow.
func checkNames(hosts, origins []string) error {
	for _, name := range hosts {
		if strings.Trim(name, ".") == "" || strings.ContainsAny(name, " /:@*?#") && !isAddress(name) {
			return cli.Usage("--allowed-host %q is not a name of a host, such as weft.example, without scheme and port", name)
		}
	}
	for _, origin := range origins {
		u, err := url.Parse(origin)
		if err != nil || u.Host == "" || strings.ContainsAny(u.Host, " *") || !strings.EqualFold(origin, u.Scheme+"://"+u.Host) {
			return cli.Usage("--cors-origin %q is not an origin, such as https://app.example: scheme, name and perhaps port, as browsers send it; name each", origin)
		}
	}
	return nil
}

// isAddress reports whether a host is an IP address.
func isAddress(name string) bool {
	_, err := netip.ParseAddr(name)
	return err == nil
}

// announce loads the examples, unless they are loaded after the demonstration, and prints
// that the server serves.
func announce(ctx context.Context, o serveOptions, h *wire.Host, addr string, stdout io.Writer) error {
	if o.examples != "" && !o.demo {
		n, err := loadExamples(ctx, h, o.examples, stdout)
		if err != nil {
			return err
		}
		fmt.Fprintf(stdout, "%d example plugins loaded\n", n)
	}
	fmt.Fprintf(stdout, "weft %s serves on %s://%s, data in %s\n", cli.Version, o.scheme(), addr, storeName(o.data, o.store))
	return nil
}

// quietKey is the key of contexts for work of which only warnings and errors are logged.
type quietKey struct{}

// quietly omits other records in such a context.
type quietly struct{ slog.Handler }

// Enabled implements slog.Handler.
func (h quietly) Enabled(ctx context.Context, level slog.Level) bool {
	if level < slog.LevelWarn && ctx.Value(quietKey{}) != nil {
		return false
	}
	return h.Handler.Enabled(ctx, level)
}

// WithAttrs implements slog.Handler.
func (h quietly) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quietly{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h quietly) WithGroup(name string) slog.Handler { return quietly{h.Handler.WithGroup(name)} }

func newLog(o serveOptions, w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.logLevel)); err != nil {
		return nil, cli.Usage("--log-level %q: use debug, info, warn or error", o.logLevel)
	}
	opts := &slog.HandlerOptions{Level: level}
	switch o.logFormat {
	case "text":
		return slog.New(quietly{slog.NewTextHandler(w, opts)}), nil
	case "json":
		return slog.New(quietly{slog.NewJSONHandler(w, opts)}), nil
	default:
		return nil, cli.Usage("--log-format %q: use text or json", o.logFormat)
	}
}

// listenError says in one sentence why the server cannot listen at the address.
func listenError(addr string, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%s is in use: stop what listens there, or choose another address with --addr", addr)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("this user may not listen on %s: choose a port above 1023 with --addr", addr)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%s is not an address of this machine: choose another with --addr", addr)
	}
	return fmt.Errorf("cannot listen on %s: %w", addr, err)
}

// pluginError lists every problem of a refused plugin.
func pluginError(file string, err error) error {
	var e *host.Error
	if !errors.As(err, &e) || len(e.Problems) == 0 {
		return fmt.Errorf("%s: %w", file, err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", file, e.Message)
	for _, p := range e.Problems {
		fmt.Fprintf(&b, "\n  - %s", p.Message)
	}
	return errors.New(b.String())
}
