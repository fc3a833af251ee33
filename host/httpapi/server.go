// Package httpapi serves the HTTP API: it turns requests into calls of the host's
// services, and writes their results as JSON, CBOR, server-sent events or NDJSON.
//
// It does not depend on how a run is executed, stored or streamed, or on how access is
// decided. It uses [host.Runs], [host.Sessions], [host.Plugins], [host.Health] and
// [host.Access], and handles event bodies and states only as encoded values, which it
// transcodes. Its only state is its open requests.
package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/apiwire"
	"github.com/weftrun/weft/host/httpapi/abuse"
	"github.com/weftrun/weft/host/httpapi/openapi"
)

// Bounds of a connection. Answers and bodies have their own deadlines, because a waiting
// run or a stream may take as long as it likes.
const (
	headerTimeout  = 10 * time.Second
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 64 << 10
)

// New creates a server; it does not listen yet.
func New(cfg Config) *Server {
	s := &Server{cfg: cfg.withDefaults(), banner: cfg.banner(), echo: echo.New(), started: time.Now()}
	s.wrong = abuse.NewWrongKeys(s.cfg.WrongKeys, time.Now)
	s.guard, s.cursors = newGuard(s.cfg), cursorCipher(s.cfg.Secret)
	s.ctx, s.stop = context.WithCancelCause(context.Background())
	s.refusals = abuse.NewRefusals(s.ctx, s.cfg.CPU)
	s.requests = abuse.NewLoad("max-requests", int64(s.cfg.MaxRequests))
	s.streams = abuse.NewLoad("max-streams", int64(s.cfg.MaxStreams))
	s.bodies = abuse.NewLoad("max-request-bytes", s.cfg.MaxRequestBytes)
	s.routes()
	s.pages = sync.OnceValue(func() openapi.Pages { return openapi.Describe(s.Routes(), s.cfg.Version) })
	s.http = newHTTP(s.cfg.around(s.echo), s.cfg.Log, s.cfg.TLS)
	s.conns = abuse.Bind(s.http, s.cfg.MaxConnections)
	return s
}

// Handler returns the API as a handler for another HTTP server. Requests that wait and
// streams end when [Server.Shutdown] is called, too.
func (s *Server) Handler() http.Handler { return s.echo }

// Serve answers requests from the listener, which it closes at the end. It returns nil
// after Shutdown, otherwise the listener's error. It may be called for several listeners.
func (s *Server) Serve(l net.Listener) error {
	return serveHTTP(s.http, s.conns.Listener(l))
}

// Shutdown stops listening, ends streams after a whole event, and ends requests that wait
// for a run with 503. It returns when all requests of Serve have ended. It waits at most
// Config.Grace for clients that send or read too slowly, or have opened a connection
// without sending a request. Then it closes their connections. If ctx ends first, it
// closes them at once and returns ctx's error. It may be called twice.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stop(errShutdown)
	return shutdownHTTP(ctx, s.http, s.cfg.Grace)
}

// routes joins paths to handlers. Every GET route also answers HEAD, except streams.
func (s *Server) routes() {
	e := s.echo
	e.HTTPErrorHandler = s.fail
	e.Use(s.observe, s.protect, s.authenticate, s.shed, canonicalPath)
	read := func(path string, h echo.HandlerFunc) {
		e.GET(path, h)
		e.HEAD(path, h)
	}

	read("/health", s.health)
	read("/ready", s.ready)
	if s.cfg.Metrics != nil {
		read("/metrics", echo.WrapHandler(s.cfg.Metrics))
	}

	read("/cluster", s.listNodes)
	e.POST("/cluster/:name/drain", s.drainNode(true))
	e.DELETE("/cluster/:name/drain", s.drainNode(false))
	read("/whoami", s.whoAmI)

	read("/plugins", s.listPlugins)
	e.PUT("/plugins/:name", s.putPlugin)
	read("/plugins/:name", s.getPlugin)
	e.DELETE("/plugins/:name", s.deletePlugin)
	read("/plugins/:name/versions", s.listVersions)
	read("/plugins/:name/module", s.getModule)

	read("/workflows", s.listWorkflows)
	read("/workflows/:name", s.getWorkflow)
	e.PUT("/workflows/:name", s.putWorkflow)
	e.DELETE("/workflows/:name", s.deleteWorkflow)
	read("/workflows/:name/schema", s.workflowSchema)
	read("/workflows/:name/events", s.workflowEvents)
	read("/workflows/:name/representation", s.workflowGraph)
	read("/workflows/:name/graph", s.workflowDiagram)
	e.POST("/workflows/:name/migrate", s.migrateWorkflow)
	e.POST("/workflows/:name/run", s.run)
	e.POST("/workflows/:name/run-nowait", s.runNoWait)

	read("/handlers", s.listHandlers)
	read("/handlers/:id", s.getHandler)
	read("/handlers/:id/journal", s.runJournal)
	read("/handlers/:id/snapshot", s.handlerSnapshot)
	e.POST("/handlers/:id/cancel", s.cancelHandler)
	e.POST("/handlers/:id/pause", s.pauseHandler)
	e.POST("/handlers/:id/resume", s.resumeHandler)
	e.POST("/handlers/:id/retry", s.retryHandler)
	e.POST("/handlers/:id/fork", s.forkHandler)

	read("/runs", s.listRuns)
	read("/runs/counts", s.countRuns)
	read("/runs/:id", s.getDetails)
	read("/runs/:id/journal", s.runJournal)
	read("/runs/:id/journal/:seq", s.runEntry)
	read("/runs/:id/state", s.getStateAt)
	e.POST("/runs/:id/fork", s.forkHandler)

	read("/sessions", s.listSessions)
	read("/sessions/:id", s.getSession)
	e.PUT("/sessions/:id", s.putSession)
	e.DELETE("/sessions/:id", s.deleteSession)
	e.POST("/sessions/:id/release", s.releaseSession)
	read("/sessions/:id/state", s.getState)
	e.PATCH("/sessions/:id/state", s.patchState)

	read("/results/:id", s.getResult)
	e.GET("/events/:id", s.streamEvents)
	e.POST("/events/:id", s.sendEvent)
	s.accessRoutes(read)
	s.resourceRoutes(read)
	s.descriptionRoutes(read)

	s.least = leastRoles(e)
	s.patterns = map[string]bool{}
	for _, r := range e.Routes() {
		s.patterns[r.Path] = true
	}
}

// health answers whether the store works.
func (s *Server) health(c echo.Context) error { return s.healthAnswer(c, s.cfg.Health.Healthy(), "") }

// ready answers whether the server takes work.
func (s *Server) ready(c echo.Context) error {
	return s.healthAnswer(c, s.cfg.Health.Ready(), s.cfg.Health.Reduced())
}

// listNodes answers the nodes of the cluster.
func (s *Server) listNodes(c echo.Context) error {
	var list []host.Node
	if s.cfg.Nodes != nil {
		list = s.cfg.Nodes()
	}
	return answer(c, http.StatusOK, &apiwire.Nodes{Nodes: apiwire.FillAll[apiwire.ClusterNode](list)})
}

// drainNode moves the sessions away from a node, or lets it take them again.
func (s *Server) drainNode(drained bool) echo.HandlerFunc {
	return func(c echo.Context) error {
		if s.cfg.Drain == nil {
			return &host.Error{Code: host.CodeNotFound, Message: "The server is not part of a cluster"}
		}
		return answerGone(c, s.cfg.Drain(c.Request().Context(), param(c, "name"), drained))
	}
}

// unhealthy is the status of a server that does not accept requests, or work.
const unhealthy = "unhealthy"

func (s *Server) healthAnswer(c echo.Context, err error, reduced string) error {
	if err == nil {
		return answer(c, http.StatusOK, &apiwire.Readiness{Status: "healthy", Reduced: reduced})
	}
	s.log(c, slog.LevelWarn, "not healthy", "error", err)
	return answer(c, http.StatusServiceUnavailable, &apiwire.Unhealthy{Status: unhealthy, Code: host.CodeUnavailable, Detail: unhealthyText(err)})
}

// unhealthyText returns the part of the reason that a probe may see.
func unhealthyText(err error) string {
	var known *host.Error
	if errors.As(err, &known) {
		return known.Message
	}
	return "The server is not ready"
}
