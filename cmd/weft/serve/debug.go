package serve

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"

	"github.com/spf13/pflag"

	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/host/httpapi"
)

// debugOptions are the flags of `weft serve` for its debug address.
type debugOptions struct {
	addr    string
	keyFile string
}

func (o *debugOptions) add(f *pflag.FlagSet) {
	f.StringVar(&o.addr, "debug-addr", "", "serve profiles (/debug/pprof/) and /metrics at `HOST:PORT`; only loopback addresses without --debug-key-file (default: nowhere)")
	f.StringVar(&o.keyFile, "debug-key-file", "", "`FILE` with the key that requests to --debug-addr need, as a bearer token")
}

// debugServer answers profiles and metrics. nil means that the debug address is disabled.
type debugServer struct {
	*httpapi.Debug
	l net.Listener
}

// openDebug listens at the debug address, with the same certificate as the server's
// own; nil if the options have no debug address.
func openDebug(o serveOptions, encrypt *tls.Config, metrics http.Handler, log *slog.Logger) (*debugServer, error) {
	d := o.debug
	if d.addr == "" {
		if d.keyFile != "" {
			return nil, cli.Usage("--debug-key-file without --debug-addr protects nothing")
		}
		return nil, nil
	}
	key, err := readKeyFile(d.keyFile, log)
	if err != nil {
		return nil, err
	}
	local, err := isLocal("--debug-addr", d.addr)
	if err != nil {
		return nil, err
	}
	if !local && key == "" {
		return nil, cli.Usage("--debug-addr %q can be reached from other machines: profiles show what guests work on; "+
			"listen on 127.0.0.1, or give it a key (--debug-key-file FILE)", d.addr)
	}
	if !local && o.tlsCert == "" {
		log.Warn("the debug key is sent in plain text: use --tls-cert and --tls-key, or a proxy that encrypts it", "addr", d.addr)
	}
	o.addr = d.addr
	l, err := listen(o)
	if err != nil {
		return nil, err
	}
	cfg := httpapi.DebugConfig{Addr: l.Addr().String(), AllowedHosts: o.hosts, TLS: encrypt, Key: key, Metrics: metrics, Log: log}
	log.Info("profiles and metrics", "url", o.scheme()+"://"+l.Addr().String()+"/debug/pprof/")
	return &debugServer{httpapi.NewDebug(cfg), l}, nil
}

// start begins to answer. An error of the debug address does not stop the server.
func (d *debugServer) start(log *slog.Logger) {
	if d == nil {
		return
	}
	go func() {
		if err := d.Serve(d.l); err != nil {
			log.Error("the debug address has stopped", "error", err)
		}
	}()
}

// stop ends profiles in progress and closes the listener.
func (d *debugServer) stop(ctx context.Context) error {
	if d == nil {
		return nil
	}
	err := d.Shutdown(context.WithoutCancel(ctx))
	_ = d.l.Close() // Serve may not have started yet; otherwise Shutdown has closed it
	return err
}
