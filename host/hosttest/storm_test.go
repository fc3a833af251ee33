package hosttest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weftrun/weft/host/blackbox"
	"github.com/weftrun/weft/host/deaths"
	"github.com/weftrun/weft/host/hosttest"
)

// stormKills is how often the tests kill the server; WEFT_KILLS overrides it.
const stormKills = 15

// A real server is killed at random moments under a mixed load, again and again. Some
// kills hit it while it recovers, and many while suspects of the previous death run
// alone, or in the pauses between them. Its clients repeat unanswered requests under the
// same key. The following must hold:
//
//   - every acknowledged answer is still true at the end;
//   - every client's request is processed once: counters, lists and sums are exact;
//   - every event that a reader saw is on the stream at the end, with its number;
//   - no run is blocked, because no run caused a kill;
//   - every run ends, and weft check finds nothing.
func TestStorm(t *testing.T) {
	rnd := seed(t)
	kills := stormKills
	if n, err := strconv.Atoi(os.Getenv("WEFT_KILLS")); err == nil {
		kills = n
	}
	s := beginStorm(t, rnd)
	for i := range kills {
		if rnd.IntN(2) == 0 {
			s.awaitSuspects()
		}
		pause(t, rnd, 600*time.Millisecond)
		s.restart()
		for rnd.IntN(4) == 0 { // while it recovers
			pause(t, rnd, 30*time.Millisecond)
			s.restart()
			s.recovering++
		}
		if t.Failed() {
			t.Fatalf("after %d kills", i+1)
		}
		s.unblocked()
	}
	s.end(s.unblocked)
	s.unblocked()
	s.verify()
	clean(t, s.data)
	t.Logf("%d kills, %d as soon as it served again, %d while suspects ran alone, %d in pauses between them; %d runs, %d requests sent again, %d events seen",
		s.killed, s.recovering, s.in[deaths.PhaseApart], s.in[deaths.PhaseControl], s.runs.Load(), s.again.Load(), s.seen.Load())
	if apart := s.in[deaths.PhaseApart] + s.in[deaths.PhaseControl]; kills >= 200 && apart < kills/10 {
		t.Errorf("only %d of %d kills were while suspects were tried", apart, s.killed)
	}
}

// awaitSuspects waits until suspects are tried, or until the server serves normally.
func (s *storm) awaitSuspects() {
	for {
		found, err := blackbox.Read(s.data)
		if err != nil {
			s.t.Fatal(err)
		}
		if found.Phase == deaths.PhaseServing || found.Phase == deaths.PhaseControl || found.Phase == deaths.PhaseApart && len(found.Noted) > 0 {
			return
		}
		timer := time.NewTimer(time.Millisecond)
		<-timer.C
	}
}

// beginStorm starts a server with further arguments, and the clients.
func beginStorm(t *testing.T, rnd *rand.Rand, args ...string) *storm {
	s := &storm{t: t, data: t.TempDir(), args: args}
	s.serve()
	s.begin(rnd)
	return s
}

// begin uploads the plugins and starts the clients.
func (s *storm) begin(rnd *rand.Rand) {
	t := s.t
	for _, name := range []string{"counter", "chain", "counter-race", "approval", "sleeper"} {
		put(t, s.p, name, hosttest.Plugin(t, name+"-tinygo"))
	}
	for _, name := range []string{"kids", "ledger", "crash"} {
		put(t, s.p, name, hosttest.BuildPlugin(t, name))
	}
	ctx, stop := context.WithCancel(t.Context())
	s.stop = stop
	t.Cleanup(stop)
	for i, work := range []func(*stormClient) error{
		(*stormClient).counts, (*stormClient).counts, (*stormClient).hops, (*stormClient).races,
		(*stormClient).asks, (*stormClient).sleeps, (*stormClient).begets, (*stormClient).transfers, (*stormClient).computes,
	} {
		c := &stormClient{storm: s, name: fmt.Sprint("client", i), rnd: rand.New(rand.NewPCG(rnd.Uint64(), 1))}
		s.clients.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				c.n = n
				if err := work(c); err != nil {
					t.Errorf("%s, request %d: %v", c.name, n, err)
					return
				}
			}
		})
	}
}

// end lets the clients finish what they have begun. It calls help from time to time.
func (s *storm) end(help func()) {
	s.stop()
	done := make(chan struct{})
	go func() {
		s.clients.Wait()
		close(done)
	}()
	for {
		select {
		case <-done:
			return
		case <-time.After(200 * time.Millisecond):
			help()
		}
	}
}

// storm is a server that is killed, and what its clients know.
type storm struct {
	t    *testing.T
	data string
	args []string // of the server
	p    *hosttest.Process
	url  atomic.Pointer[string] // of the present server

	stop    context.CancelFunc // after it ends, clients begin nothing new
	clients sync.WaitGroup

	killed            int
	recovering        int                      // of these kills: at most 30 ms after the server served again
	in                map[deaths.CorePhase]int // phases in which it was killed
	runs, again, seen atomic.Int64

	mu      sync.Mutex
	answers map[string]string         // acknowledged results, by handler
	streams map[string]map[int]string // events that readers saw, by handler and number
}

func (s *storm) serve() {
	s.p = hosttest.Serve(s.t, s.data, append([]string{"--snapshot-every", "20", "--keep-journal", "30"}, s.args...)...) // so that sessions are loaded from snapshots, and journals are cut
	s.url.Store(&s.p.URL)
}

func (s *storm) restart() {
	s.p.Kill(s.t)
	s.killed++
	if found, err := blackbox.Read(s.data); err == nil {
		if s.in == nil {
			s.in = map[deaths.CorePhase]int{}
		}
		s.in[found.Phase]++
	}
	s.serve()
}

// unblocked wants no run to be blocked, because the kills come from outside.
func (s *storm) unblocked() {
	_, out := s.p.Do(s.t, http.MethodGet, "/handlers?blocked=true", nil)
	var list struct {
		Handlers []struct {
			ID      string `json:"handler_id"`
			Blocked struct{ Code, Message string }
		}
	}
	if err := json.Unmarshal(out, &list); err != nil {
		s.t.Fatalf("%s: %v", out, err)
	}
	for _, h := range list.Handlers {
		s.t.Errorf("handler %s is blocked: %s: %s", h.ID, h.Blocked.Code, h.Blocked.Message)
		s.p.Do(s.t, http.MethodPost, "/handlers/"+h.ID+"/resume", "") // so that its client gets an answer
	}
}

// verify compares what the server has with what clients know.
func (s *storm) verify() {
	s.verifyAnswers()
	for handler, events := range s.streams {
		now := map[int]string{}
		if err := s.follow(context.Background(), handler, -1, now); err != nil {
			s.t.Errorf("the stream of %s: %v", handler, err)
		}
		for id, data := range events {
			if now[id] != data {
				s.t.Errorf("the stream of %s had %s at %d, and has %s", handler, data, id, now[id])
			}
		}
	}
	_, out := s.p.Do(s.t, http.MethodGet, "/handlers?status=running", nil)
	if !strings.HasPrefix(string(out), `{"handlers":[]`) {
		s.t.Errorf("these do not end: %s", out)
	}
}

func (s *storm) verifyAnswers() {
	for handler, want := range s.answers {
		_, out := s.p.Do(s.t, http.MethodGet, "/handlers/"+handler, nil)
		if got := string(record(s.t, out).Result.Value.Result); got != want {
			s.t.Errorf("handler %s was acknowledged with %s, and has %s", handler, want, got)
		}
	}
}

// follow reads a stream after a number to its end, or until the server dies.
func (s *storm) follow(ctx context.Context, handler string, after int, into map[int]string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s/events/%s?sse=true&include_internal=true&after_sequence=%d", *s.url.Load(), handler, after), nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<24)
	id := -1
	for lines.Scan() {
		if n, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			if id, err = strconv.Atoi(n); err != nil {
				return err
			}
		} else if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			into[id] = data
			s.seen.Add(1)
		}
	}
	return nil // a broken connection means that the server died
}

// stormClient sends requests until they are answered.
type stormClient struct {
	*storm
	name string
	rnd  *rand.Rand
	n    int
}

// send repeats a request under one key until there is an answer.
func (c *stormClient) send(path string, body any, key string) (int, []byte, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return 0, nil, err
	}
	for tries := 0; ; tries++ {
		if tries > 0 {
			c.again.Add(1)
			c.backOff()
		}
		method := http.MethodGet
		if body != nil {
			method = http.MethodPost
		}
		req, err := http.NewRequestWithContext(context.Background(), method, *c.url.Load()+path, strings.NewReader(string(text)))
		if err != nil {
			return 0, nil, err
		}
		if body != nil {
			req.Header.Set("Idempotency-Key", fmt.Sprintf("%s-%d-%s", c.name, c.n, key))
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			continue
		}
		out, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err == nil && res.StatusCode != http.StatusServiceUnavailable {
			return res.StatusCode, out, nil
		}
	}
}

// backOff waits briefly for a server that is dead or starting.
func (c *stormClient) backOff() {
	timer := time.NewTimer(5 * time.Millisecond)
	<-timer.C
}

// run runs a workflow to its end and returns its result.
func (c *stormClient) run(workflow string, body map[string]any) (string, error) {
	status, out, err := c.send("/workflows/"+workflow+"/run", body, "run")
	if err != nil {
		return "", err
	}
	var rec hosttest.Record
	if err := json.Unmarshal(out, &rec); err != nil || status != http.StatusOK {
		return "", fmt.Errorf("%s: %d %s", workflow, status, out)
	}
	c.runs.Add(1)
	result := string(rec.Result.Value.Result)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answers == nil {
		c.answers = map[string]string{}
	}
	c.answers[rec.HandlerID] = result
	return result, nil
}

// begin starts a run and returns its handler.
func (c *stormClient) begin(workflow string, body map[string]any) (string, error) {
	status, out, err := c.send("/workflows/"+workflow+"/run-nowait", body, "begin")
	var rec hosttest.Record
	if err == nil {
		err = json.Unmarshal(out, &rec)
	}
	if err != nil || status != http.StatusOK {
		return "", fmt.Errorf("%s: %d %s (%w)", workflow, status, out, err)
	}
	c.runs.Add(1)
	return rec.HandlerID, nil
}

// watch reads a run's stream to its end, over kills, and records what it saw.
func (c *stormClient) watch(handler string) error {
	events := map[int]string{}
	for last := -1; ; {
		if err := c.follow(context.Background(), handler, last, events); err != nil {
			c.backOff()
		}
		for id := range events {
			last = max(last, id)
		}
		for id := range last + 1 {
			if _, ok := events[id]; !ok {
				return fmt.Errorf("the stream of %s has no event %d, but %d", handler, id, last)
			}
		}
		for _, end := range []string{`"type":"StopEvent"`, `"type":"WorkflowFailedEvent"`, `"type":"WorkflowTimedOutEvent"`} {
			if strings.Contains(events[last], end) {
				c.mu.Lock()
				defer c.mu.Unlock()
				if c.streams == nil {
					c.streams = map[string]map[int]string{}
				}
				c.streams[handler] = events
				return nil
			}
		}
	}
}

func (c *stormClient) want(workflow string, body map[string]any, want string) error {
	got, err := c.run(workflow, body)
	if err == nil && got != want {
		err = fmt.Errorf("%s gives %s, want %s", workflow, got, want)
	}
	return err
}

// counts counts in its own session: each request once.
func (c *stormClient) counts() error {
	return c.want("counter", in(c.name, fields{}), fmt.Sprint(c.n+1))
}

func (c *stormClient) hops() error {
	n := c.rnd.IntN(30)
	return c.want("chain", start(fields{"n": n, "payload": strings.Repeat("x", c.rnd.IntN(500))}), fmt.Sprintf(`{"hops":%d}`, n))
}

func (c *stormClient) races() error {
	n := c.rnd.IntN(60)
	return c.want("counter-race", start(fields{"n": n, "mode": "edit"}), fmt.Sprintf(`{"count":%d}`, n))
}

// asks starts a run that asks twice, and answers; a reader watches it.
func (c *stormClient) asks() error {
	handler, err := c.begin("approval", start(fields{"item": "a desk"}))
	if err != nil {
		return err
	}
	for _, role := range []string{"manager", "finance"} {
		body := map[string]any{"event": map[string]any{"type": "HumanResponseEvent", "value": fields{"role": role, "approved": true}}}
		if status, out, err := c.send("/events/"+handler, body, role); err != nil || status != http.StatusOK {
			return fmt.Errorf("the answer of %s: %d %s (%w)", role, status, out, err)
		}
	}
	if err := c.watch(handler); err != nil {
		return err
	}
	return c.result(handler, `{"by":["manager","finance"],"calls":1,"approved":true}`)
}

// result wants the result of a run that has ended.
func (c *stormClient) result(handler, want string) error {
	_, out, err := c.send("/handlers/"+handler, nil, "")
	if err != nil {
		return err
	}
	var rec hosttest.Record
	if err := json.Unmarshal(out, &rec); err != nil {
		return err
	}
	if got := string(rec.Result.Value.Result); got != want {
		return fmt.Errorf("handler %s: %s, want the result %s", handler, out, want)
	}
	return nil
}

func (c *stormClient) sleeps() error {
	handler, err := c.begin("sleeper", start(fields{"seconds": float64(c.rnd.IntN(400)) / 1000}))
	if err != nil {
		return err
	}
	return errors.Join(c.watch(handler), c.result(handler, `"slept"`))
}

// begets runs workflows that run workflows.
func (c *stormClient) begets() error {
	switch n := 1 + c.rnd.IntN(4); c.rnd.IntN(4) {
	case 0:
		return c.want("kids", start(fields{"mode": "many", "n": n}), fmt.Sprint(n))
	case 1:
		return c.want("kids", start(fields{"mode": "deep", "n": n}), fmt.Sprint(n))
	case 2:
		return c.want("kids", start(fields{"mode": "retry"}), `{"child":1,"attempts":3}`)
	default:
		handler, err := c.begin("kids", start(fields{"mode": "stream", "n": n}))
		if err != nil {
			return err
		}
		return errors.Join(c.watch(handler), c.result(handler, fmt.Sprint(n)))
	}
}

// transfers runs atomic steps that move money.
func (c *stormClient) transfers() error {
	const accounts = 4
	got, err := c.run("ledger", start(fields{"accounts": accounts, "transfers": 40, "fail": 8}))
	if err != nil {
		return err
	}
	var r struct {
		Balances            []int
		Made, Sent, Bounced int
	}
	if err := json.Unmarshal([]byte(got), &r); err != nil {
		return err
	}
	sum := 0
	for _, b := range r.Balances {
		sum += b
	}
	if sum != 100*accounts || r.Made != 35 || r.Sent != 35 || r.Bounced != 5 {
		return fmt.Errorf("the sum is %d: %s", sum, got)
	}
	return nil
}

// computes runs a step that computes for about a second, mostly longer than the server
// lives.
func (c *stormClient) computes() error {
	got, err := c.run("crash", in(c.name, fields{"key": fmt.Sprint(c.n), "spins": spins}))
	if err != nil {
		return err
	}
	var rep report
	if err := json.Unmarshal([]byte(got), &rep); err != nil {
		return err
	}
	if n := int64(c.n + 1); rep.A != n || rep.B != n || rep.C != n {
		return fmt.Errorf("after %d runs: %s", n, got)
	}
	return nil
}
