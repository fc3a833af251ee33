package resource

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// MethodChat is the only method of the kind llm.
const MethodChat = "chat"

// llmSettings are the settings of the kind llm in addition to the settings of its
// requests.
type llmSettings struct {
	model     string   // model of calls that name none
	models    []string // models that calls may name; empty: any model, or only model if that is set
	maxTokens int      // of an answer; 0: the service's default
	retries   int      // of a call
	perMinute int      // calls of a workflow; 0: no limit
}

const (
	maxRetries   = 10
	maxPerMinute = 100_000
	maxLLMTokens = 10_000_000
)

// defaultLLM returns the default settings of the kind llm.
func defaultLLM() (httpSettings, llmSettings) {
	web := defaultHTTP()
	web.timeout, web.responseBytes, web.redirects = 2*time.Minute, 4<<20, 0
	return web, llmSettings{retries: 2}
}

const needsBase = "an llm needs a base_url: the URL below which /chat/completions is, such as https://llm.example/v1/"

// llmSettings reads the settings of the kind llm.
func (p *parser) llmSettings(v *value, path string, d *Definition) {
	known := p.transport(&d.http)
	known["model"] = func(v *value, path string) { p.str(v, path, &d.llm.model) }
	known["models"] = func(v *value, path string) {
		p.each(v, path, func(v *value, path string) {
			var name string
			if p.str(v, path, &name); name != "" {
				d.llm.models = append(d.llm.models, name)
			}
		})
	}
	known["max_tokens"] = func(v *value, path string) { p.number(v, path, 1, maxLLMTokens, &d.llm.maxTokens) }
	known["retries"] = func(v *value, path string) { p.number(v, path, 0, maxRetries, &d.llm.retries) }
	known["calls_per_minute"] = func(v *value, path string) { p.number(v, path, 1, maxPerMinute, &d.llm.perMinute) }
	p.fields(v, path, known)
	if d.http.base == "" {
		if !has(v, "base_url") {
			p.Problem(v.at, path, "%s", needsBase)
		}
		return
	}
	if r, err := parseRule(d.http.base, []string{http.MethodPost}); err == nil { // an invalid base is reported elsewhere
		d.http.rules = []rule{r}
	}
}

// allows returns why a model may not be used, or "".
func (s *llmSettings) allows(model string) string {
	switch {
	case model == "":
		return "no model: name one in the call or in the resource's settings"
	case model == s.model || slices.Contains(s.models, model) || s.model == "" && len(s.models) == 0:
		return ""
	}
	return fmt.Sprintf("the model %q is not granted", clip(model))
}

// llmKind calls language models by the chat completions API that many services offer. Its
// requests use the transport of the kind http with all its checks. Any number of
// goroutines may use it.
type llmKind struct {
	web      *httpKind
	settings llmSettings

	mu   sync.Mutex // guards next
	next map[host.ResourceUser]time.Time
}

func newLLM(web *httpKind, settings llmSettings) *llmKind {
	return &llmKind{web: web, settings: settings, next: map[host.ResourceUser]time.Time{}}
}

func (k *llmKind) close() { k.web.close() }

// call implements kind.
func (k *llmKind) call(ctx context.Context, rules []rule, call host.ResourceCall) (abi.Raw, *abi.Error) {
	if call.Method != MethodChat {
		return nil, final(abi.StatusNotFound, "a resource of the kind llm has no method %q: use %q", clip(call.Method), MethodChat)
	}
	if most := k.web.settings.requestBytes; len(call.Payload) > most {
		return nil, final(abi.StatusLimitExceeded, "the payload has %d bytes, more than %d (request_bytes)", len(call.Payload), most)
	}
	c, err := k.decodeChat(call.Payload)
	if err != nil {
		return nil, final(abi.StatusInvalidMessage, "%s", err)
	}
	if why := k.settings.allows(c.model); why != "" {
		return nil, denied("%s", why)
	}
	limit := k.web.settings.timeout
	if c.timeout > 0 {
		limit = min(limit, c.timeout)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, final(abi.StatusTimeout, "no answer within %s", limit))
	defer cancel()
	raw, fail := k.tries(ctx, rules, c, &call)
	if fail != nil {
		fail.Message = string(k.web.blot([]byte(fail.Message)))
	}
	return raw, fail
}

// tries repeats the request until there is an answer or until a retry cannot help.
func (k *llmKind) tries(ctx context.Context, rules []rule, c *chat, call *host.ResourceCall) (abi.Raw, *abi.Error) {
	t, err := k.web.target(&request{path: "chat/completions"})
	if err != nil {
		return nil, denied("%s", err)
	}
	if fail := check(rules, http.MethodPost, t); fail != nil {
		return nil, fail
	}
	q := &request{method: http.MethodPost, body: c.body, header: http.Header{"Content-Type": {"application/json"}}}
	if c.stream {
		q.header.Set("Accept", "text/event-stream")
	}
	out := newDeltas(call)
	for try := 0; ; try++ {
		if fail := k.wait(ctx, k.turn(call.User, time.Now())); fail != nil {
			return nil, fail
		}
		raw, fail, again := k.ask(ctx, q, t, c, call, out)
		if fail == nil || !again.may || try == k.settings.retries || call.Mode == host.ResourceFail && !again.refused {
			return raw, fail
		}
		pause := again.after
		if pause == 0 {
			pause = min(500*time.Millisecond<<try, 20*time.Second)
			pause += rand.N(pause / 4)
		}
		if end, _ := ctx.Deadline(); time.Until(end) < pause {
			fail.Message += fmt.Sprintf(" (it may be asked again after %s, which is beyond the call's timeout)", pause.Round(time.Millisecond))
			return nil, fail
		}
		if cut := k.wait(ctx, pause); cut != nil {
			return nil, fail
		}
	}
}

// turn returns how long a workflow's next call must wait. A tenth of a minute's calls may
// come at once.
func (k *llmKind) turn(user host.ResourceUser, now time.Time) time.Duration {
	if k.settings.perMinute == 0 {
		return 0
	}
	user.Digest = "" // all versions share one limit
	gap := time.Minute / time.Duration(k.settings.perMinute)
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.next) > 10_000 {
		for u, at := range k.next {
			if at.Before(now) {
				delete(k.next, u)
			}
		}
	}
	at := k.next[user]
	if at.Before(now) {
		at = now
	}
	k.next[user] = at.Add(gap)
	return max(at.Sub(now)-6*time.Second, 0)
}

// wait waits; if the call's time ends first, it returns the error of the call.
func (k *llmKind) wait(ctx context.Context, pause time.Duration) *abi.Error {
	if pause <= 0 {
		return nil
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return &abi.Error{Code: abi.StatusUnavailable.Code(), Message: "the call waited for its turn (calls_per_minute) until its time was over"}
	}
}

// again says whether a failed request may be repeated.
type again struct {
	may     bool
	refused bool          // the service has certainly not processed the request
	after   time.Duration // requested pause; 0: not given
}

// ask makes one request.
func (k *llmKind) ask(ctx context.Context, q *request, t *target, c *chat, call *host.ResourceCall, out *deltas) (abi.Raw, *abi.Error, again) {
	res, err := roundTrip(k.web.transportOf(call), call, k.web.outgoing(ctx, q, t, call, k.web.trusted[t.origin()]))
	if err != nil {
		fail := k.web.failure(ctx, t, err)
		return nil, fail, again{may: retryable(ctx, fail)}
	}
	defer func() { _ = res.Body.Close() }() // reading reports every failure that matters
	if res.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(res.Body, 4<<10)) // the status is enough; the body may be incomplete
		fail := statusError(res.StatusCode, k.web.blot([]byte(serviceMessage(body))))
		return nil, fail, again{may: retryable(ctx, fail), refused: res.StatusCode == http.StatusTooManyRequests, after: hint(res.Header, time.Now())}
	}
	var answer *completion
	var fail *abi.Error
	if c.stream && strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		answer, fail = k.readStream(ctx, t, res.Body, out)
	} else {
		answer, fail = k.readWhole(ctx, t, res.Body)
	}
	if fail != nil {
		return nil, fail, again{may: retryable(ctx, fail)}
	}
	if fail := out.end(ctx, answer.content, c.stream); fail != nil {
		return nil, fail, again{}
	}
	raw, fail := answer.encode(c)
	return raw, fail, again{}
}

func retryable(ctx context.Context, fail *abi.Error) bool {
	return ctx.Err() == nil && (fail.Retryable == nil || *fail.Retryable)
}

// hint returns the pause that the service requests; 0: not given.
func hint(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 && ms < 1e9 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	text := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(text, 64); err == nil && s > 0 && s < 1e6 {
		return time.Duration(s * float64(time.Second))
	}
	if at, err := http.ParseTime(text); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}

// serviceMessage returns a service's error message, or the whole body.
func serviceMessage(body []byte) string {
	var e struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &e) == nil && e.Error.Message != "" {
		return e.Error.Message
	}
	return string(body)
}

// readWhole reads an answer that is not streamed.
func (k *llmKind) readWhole(ctx context.Context, t *target, body io.Reader) (*completion, *abi.Error) {
	most := k.web.settings.responseBytes
	text, err := io.ReadAll(io.LimitReader(body, int64(most)+1))
	if err != nil {
		return nil, k.web.failure(ctx, t, err)
	}
	if len(text) > most {
		return nil, k.tooLong(t)
	}
	var answer wireAnswer
	if err := json.Unmarshal(k.web.blot(text), &answer); err != nil {
		return nil, garbled(t, err)
	}
	if len(answer.Choices) == 0 {
		return nil, garbled(t, errors.New("it has no choices"))
	}
	return answer.completion(), nil
}

func (k *llmKind) tooLong(t *target) *abi.Error {
	return final(abi.StatusLimitExceeded, "the answer of %s has more than %d bytes (response_bytes)", t.show(), k.web.settings.responseBytes)
}

// garbled is the error for an invalid answer. A retry may succeed.
func garbled(t *target, err error) *abi.Error {
	return &abi.Error{Code: abi.StatusUnavailable.Code(), Message: fmt.Sprintf("the answer of %s is not a chat completion: %s", t.show(), clip(err.Error()))}
}
