package scheduler

import (
	"context"
	"log/slog"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/scheduler/admission"
	"github.com/weftrun/weft/host/scheduler/calls"
	"github.com/weftrun/weft/host/scheduler/due"
	"github.com/weftrun/weft/host/scheduler/fair"
	"github.com/weftrun/weft/host/scheduler/handlers"
	"github.com/weftrun/weft/host/scheduler/history"
	"github.com/weftrun/weft/host/scheduler/idempotency"
	"github.com/weftrun/weft/host/scheduler/mail"
	"github.com/weftrun/weft/host/scheduler/refusal"
	"github.com/weftrun/weft/host/scheduler/requests"
	"github.com/weftrun/weft/host/scheduler/retention"
	"github.com/weftrun/weft/host/scheduler/runlog"
)

// New makes a scheduler over what the store holds. It loads nothing yet: the
// first Step begins with the sessions that have something to do.
func New(ctx context.Context, cfg Config) (*Scheduler, error) {
	s := newScheduler(ctx, cfg)
	if err := s.life.begin(ctx); err != nil {
		return nil, err
	}
	s.dues.Note(s.boot)
	s.suspicion.begin()
	s.cfg.After = nil // it need not stay in memory
	return s, nil
}

// newScheduler makes a scheduler that has not looked at the store yet.
func newScheduler(ctx context.Context, cfg Config) *Scheduler {
	cfg.setDefaults()
	s := &Scheduler{
		cfg:     cfg,
		log:     runlog.Logger{Logger: cfg.Log},
		wake:    make(chan struct{}, 1),
		stopped: make(chan struct{}),
		boot:    cfg.Now().UnixNano(),
	}
	s.base, s.endBase = context.WithCancel(context.WithoutCancel(ctx))
	s.workers = fair.NewPool(2*cfg.Tokens, s.stopped)
	s.keys = idempotency.New(idempotency.Config{Store: cfg.Store, Journal: cfg.Journal, Now: s.now})
	s.past = history.New(history.Config{Journal: cfg.Journal, Store: cfg.Store, Streams: cfg.Streams, Graph: s.cfg.graph, Clocked: s.clocked})
	s.old = retention.New(retention.Config{
		Store: cfg.Store, Journal: cfg.Journal, Limits: cfg.Limits, Drop: s.table.dropFrom, Done: s.signal, Now: cfg.Now, Clock: s.now, Log: cfg.Log,
	})
	s.table.init(s)
	s.reserved = handlers.New(handlers.Config{Store: cfg.Store, Journal: cfg.Journal, Now: s.now, Entropy: cfg.Entropy})
	s.cores.init(s)
	s.starts.Init(admission.Config{Limits: cfg.Limits, Cores: &s.cores.queue, Budget: s.cores.budgets.Rate, Now: cfg.Now, Memory: cfg.Memory})
	s.gate.Init(admission.GateConfig{
		Places: cfg.AdmitAtOnce, Line: cfg.AdmitLine, Patience: cfg.AdmitPatience, Clocks: &s.cores.queue, Journal: cfg.Journal,
		Lock: &s.mu, Open: s.taking, Stopped: s.stopped,
	})
	s.suspicion.s, s.life.s = s, s
	s.mailer.Init(mail.Config{
		Acquire: s.table.mailbox, RetryAfter: s.table.retryAfter, Gone: refusal.ErrGone, Signal: s.signal,
		Readable: cfg.readable,
		Log: func(level slog.Level, message string, from host.SessionKey, args ...any) {
			s.log.Session(context.Background(), level, message, from, args)
		},
	})
	s.calls.Init(calls.CallerConfig{
		Host: callHost{s}, Lock: &s.mu, Resources: cfg.Resources, Store: cfg.Store, Grow: cfg.Quotas.Grow, Journal: cfg.Journal,
		Clock: cfg.Now, Now: s.now, Tracer: cfg.Tracer,
	})
	s.Service = requests.New(requests.Config{
		Sessions: askedSessions{&s.table}, Past: s.past, Store: cfg.Store, Journal: cfg.Journal, Modules: cfg.Modules, Resources: cfg.Resources,
		Limits: cfg.Limits, Quotas: cfg.Quotas, Keys: s.keys, Reserved: s.reserved, Gate: &s.gate, Timeout: cfg.Timeout,
		Graph: cfg.graph, Readable: cfg.readable, Accepting: s.accepting, Taking: s.taking, Stopped: s.stopped, AskStart: s.AskStart,
		Work: s.bounded, Settle: s.mailer.Settle, Rehearse: cfg.Rehearse, Play: s.cores.play, Trace: s.traceOf, Now: s.now,
		Entropy: cfg.Entropy, MaxSnapshot: maxSnapshot,
	})
	s.dues.Init(due.Config[*session]{
		Sessions: dueSessions{&s.table}, Store: cfg.Store, Lock: &s.mu, Now: s.now, Signal: s.signal, AtOnce: cfg.DueAtOnce, Log: cfg.Log,
	})
	s.setDuties()
	return s
}

// setDuties lists the duties in their order. What makes attempts ready comes before
// the tokens are given out; what lets sessions leave memory comes before the timers and
// before other sessions are loaded.
func (s *Scheduler) setDuties() {
	s.duties = []duty{
		{s.cores.admitHeld, true},
		{s.cores.spare.end, true},
		{s.suspicion.letKept, true},
		{s.suspicion.work, true},
		{s.cores.backoffOver, false},
		{s.mailer.Work, false},
		{s.calls.Work, false},
		{s.admitWaiting, true},
		{s.cores.grant, false},
		{s.table.evict, false},
		{s.dues.FireWork, false},
		{s.dues.Work, false},
		{s.table.settleWork, false},
		{s.old.Work, false},
		{s.life.work, true},
	}
}
