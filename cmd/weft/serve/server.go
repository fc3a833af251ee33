package serve

import (
	"context"

	"github.com/weftrun/weft/cmd/weft/wire"
	"github.com/weftrun/weft/host/httpapi"
	"github.com/weftrun/weft/host/server"
)

// openServer opens a host and puts it behind the front, with its API.
func openServer(ctx context.Context, cfg wire.Config, api httpapi.Config, front *httpapi.Front, counts *wire.Series) (*server.Server[*wire.Host], error) {
	return server.Open(ctx, server.Config[*wire.Host]{
		Open: func(ctx context.Context, failed *wire.Host) (*wire.Host, error) {
			next := cfg
			next.After = failed
			return wire.Open(ctx, next)
		},
		Put: func(h *wire.Host) {
			h.Count(counts)
			front.Put(httpapi.New(answering(api, h)))
		},
		Front: front, Store: cfg.Data, Volatile: cfg.Data == wire.InMemory, Grace: httpapi.DefaultGrace, Log: cfg.Log,
	})
}

// answering returns the configuration of an API that uses the services of a host.
func answering(api httpapi.Config, h *wire.Host) httpapi.Config {
	api.Runs, api.Sessions, api.Plugins, api.Health, api.Access, api.Quotas = h.Runs, h.Runs, h.Plugins, h, h.Access, h.Quotas
	api.Admission = h.Runs
	api.Resources, api.Secret, api.NoteWrongKey = h.Resources, h.Secret, h.Access.NoteWrongKey
	return api
}
