package hosttest_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/cmd/weft/wire"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/httpapi"
)

// poisoned is the environment variable that makes this test binary serve like the server,
// with one exception: its process ends when a guest makes a certain host call in the
// session poisonSession.
const (
	poisoned      = "WEFT_TEST_POISONED"
	poisonSession = "bad"
	poisonCall    = 2
)

// servePoisoned serves the directory of the command line "... serve ... --data DIR".
func servePoisoned() int {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	at := slices.Index(os.Args, "--data")
	w, err := wire.Open(context.Background(), wire.Config{Data: os.Args[at+1], Log: log, CatchCrashes: true,
		Around: func(s host.Sandbox) host.Sandbox { return poisonedSandbox{s} }})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	api := httpapi.New(httpapi.Config{Runs: w.Runs, Sessions: w.Runs, Plugins: w.Plugins, Health: w, Access: w.Access, Quotas: w.Quotas, Resources: w.Resources,
		Log: log, Addr: l.Addr().String(), MaxPlugin: 64 << 20, Version: "test"})
	fmt.Printf("weft test serves on http://%s, data in %s\n", l.Addr(), os.Args[at+1])
	fmt.Fprintln(os.Stderr, api.Serve(l))
	return 1
}

// poisonedSandbox ends the process by some guests.
type poisonedSandbox struct{ host.Sandbox }

func (s poisonedSandbox) Invoke(ctx context.Context, inv host.Invocation) (host.InvocationResult, error) {
	in, err := abi.DecodeStepInput(inv.Input)
	if err == nil && in.Run.SessionID == poisonSession {
		inv.Calls = &poisonedCalls{Calls: inv.Calls}
	}
	return s.Sandbox.Invoke(ctx, inv)
}

type poisonedCalls struct {
	host.Calls
	made int
}

func (c *poisonedCalls) Call(im abi.Import, req []byte, clock int64) ([]byte, abi.Status, int64, error) {
	resp, status, next, err := c.Calls.Call(im, req, clock)
	if c.made++; c.made == poisonCall {
		hosttest.KillSelf()
	}
	return resp, status, next, err
}

// A guest that ends its server's process, always at the same place, is blocked within
// five restarts. All other runs finish, and nothing else is blocked.
func TestGuestThatEndsItsServer(t *testing.T) {
	t.Setenv(poisoned, "1")
	s := &storm{t: t, data: t.TempDir()}
	restarts := -1
	serve := func() {
		for served := false; !served; { // a suspect may run before the server serves
			if s.p, served = hosttest.TryServeBy(t, []string{os.Args[0]}, s.data); !served {
				if code, log := s.p.Wait(); code == 1 || restarts > 20 {
					t.Fatalf("the server does not start: %s", log)
				}
			}
			restarts++
		}
		s.url.Store(&s.p.URL)
	}
	serve()
	put(t, s.p, "counter", hosttest.Plugin(t, "counter-tinygo"))
	var bad string // the handler
	for i := range 4 {
		c := &stormClient{storm: s, name: fmt.Sprint("client", i)}
		s.clients.Go(func() {
			for c.n = range 5 {
				if err := c.counts(); err != nil {
					t.Errorf("%s: %v", c.name, err)
				}
			}
		})
	}
	s.clients.Go(func() {
		c := &stormClient{storm: s, name: "poison"}
		var err error
		if bad, err = c.begin("counter", in(poisonSession, fields{})); err != nil {
			t.Error(err)
			return
		}
		for {
			_, out, err := c.send("/handlers/"+bad, nil, "")
			if err != nil || strings.Contains(string(out), `"status":"completed"`) {
				t.Errorf("%s, %v", out, err)
			}
			if t.Failed() || strings.Contains(string(out), `"code":"host_crash"`) {
				return
			}
			c.backOff()
		}
	})
	serveUntil(t, s, serve)
	restarts-- // the last restart is after the end
	if restarts < 3 || restarts > 5 {
		t.Errorf("it took %d restarts", restarts)
	}
	if run := show(t, &s.p.Host, bad); !strings.Contains(run, fmt.Sprintf("at host call %d (", poisonCall)) {
		t.Errorf("blocked: %s", run)
	}
	if _, out := s.p.Do(t, http.MethodGet, "/handlers?blocked=true", nil); strings.Count(string(out), `"code":"host_crash"`) != 1 {
		t.Errorf("blocked are: %s", out)
	}
	s.verifyAnswers()
	clean(t, s.data)
}

// serveUntil restarts the server whenever its process has ended, until the clients have
// finished.
func serveUntil(t *testing.T, s *storm, serve func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		s.clients.Wait()
		close(done)
	}()
	for {
		ended := make(chan struct{})
		p := s.p
		go func() {
			if code, log := p.Wait(); code == 1 {
				t.Errorf("the server ends by itself: %s", log)
			}
			close(ended)
		}()
		select {
		case <-done: // another restart, after a kill while nothing runs: blocked runs stay blocked
			p.End()
			<-ended
			serve()
			return
		case <-ended:
			serve()
		}
	}
}
