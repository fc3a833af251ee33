package hosttest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/hosttest/suite"
	"github.com/weftrun/weft/host/limit"
	"github.com/weftrun/weft/host/usage"
)

// quotaHost is a server on which each tenant has one small quota. The tenant free has
// none.
type quotaHost struct {
	*hosttest.Host
	keys   map[string]string
	offset atomic.Int64 // of the clock
}

// smallQuotas maps each tenant's name to its quota.
var smallQuotas = map[string]string{
	"plugins": `"tenant_plugins": 2`, "bytes": `"tenant_plugin_bytes": "2MiB"`, "active": `"tenant_runs_active": 2`,
	"waiting": `"tenant_runs_waiting": 1`, "requests": `"tenant_requests_per_second": 5`, "fuel": `"tenant_fuel_per_month": 1`,
	"logs": `"tenant_log_bytes_per_month": 1`, "states": `"tenant_state_bytes": 300`, "journals": `"tenant_journal_bytes": 200`,
	"readers": `"tenant_stream_readers": 1`, "children": `"tenant_runs_active": 1`, "free": `"tenant_runs_active": 0`,
}

func quotaLimits() string {
	var list []string
	for name, setting := range smallQuotas {
		list = append(list, fmt.Sprintf("%q: {%s}", name, setting))
	}
	return `{"tenants": {` + strings.Join(list, ",") + `}}`
}

func newQuotaHost(t *testing.T) *quotaHost {
	t.Helper()
	limits, err := limit.Parse([]byte(quotaLimits()))
	if err != nil {
		t.Fatal(err)
	}
	q := &quotaHost{keys: map[string]string{}}
	q.Host = hosttest.New(t, hosttest.Config{AdminKey: admin, Limits: limits,
		Now: func() time.Time { return time.Now().Add(time.Duration(q.offset.Load())) }})
	for name := range smallQuotas {
		q.NewTenant(t, admin, name)
		q.keys[name] = q.NewKey(t, admin, name, host.RoleAdmin).Key
	}
	return q
}

// breached is the answer to a request that a quota has refused.
type breached struct {
	Detail string `json:"detail"`
	Code   string `json:"code"`
	Limit  struct {
		Name  string `json:"name"`
		Value int64  `json:"value"`
		Used  int64  `json:"used"`
	} `json:"limit"`
}

// refused makes a request that a quota must refuse, and returns the seconds of
// Retry-After, or 0.
func (q *quotaHost) refused(t *testing.T, tenant, limit string, method, path, body string, headers ...string) int {
	t.Helper()
	a := q.Ask(t, q.keys[tenant], method, path, body, headers...)
	return q.isRefusal(t, a, limit)
}

func (q *quotaHost) isRefusal(t *testing.T, a hosttest.Answer, name string) int {
	t.Helper()
	quota, _ := limit.ParseQuota(name)
	want := http.StatusTooManyRequests
	if quota.OfSize() {
		want = http.StatusRequestEntityTooLarge
	}
	var b breached
	if err := json.Unmarshal([]byte(a.Body), &b); err != nil || a.Status != want || b.Code != "limit_exceeded" ||
		b.Limit.Name != name || b.Limit.Value == 0 || !strings.Contains(b.Detail, name) {
		t.Fatalf("%d %s, want %d by %s", a.Status, a.Body, want, name)
	}
	retry, _ := strconv.Atoi(a.Header.Get("Retry-After"))
	if want == http.StatusTooManyRequests && retry < 1 {
		t.Errorf("%s: Retry-After %q", name, a.Header.Get("Retry-After"))
	}
	return retry
}

// recovers repeats a request until it is accepted, as a client would after Retry-After.
func (q *quotaHost) recovers(t *testing.T, tenant, method, path, body string) {
	t.Helper()
	for end := time.Now().Add(suite.Hang); ; {
		a := q.Ask(t, q.keys[tenant], method, path, body)
		if a.Status < 300 {
			return
		}
		if a.Status != http.StatusTooManyRequests && a.Status != http.StatusRequestEntityTooLarge || time.Now().After(end) {
			t.Fatalf("it is not taken again: %d %s", a.Status, a.Body)
		}
	}
}

func (q *quotaHost) want(t *testing.T, status int, tenant, method, path, body string) {
	t.Helper()
	q.Want(t, status, nil, q.keys[tenant], method, path, body)
}

const startHuman = "/workflows/human/run-nowait"

// Each quota refuses its tenant's request by name, refuses no other tenant's, and accepts
// requests again when there is room.
func TestQuotas(t *testing.T) {
	q := newQuotaHost(t)
	for _, tenant := range []string{"plugins", "active", "waiting", "fuel", "readers", "free", "journals", "states"} {
		q.LoadAs(t, q.keys[tenant], "human-tinygo", "human")
		q.LoadAs(t, q.keys[tenant], "counter-tinygo", "counter")
	}
	for name, test := range map[string]func(t *testing.T){
		"plugins": func(t *testing.T) {
			module := string(hosttest.Plugin(t, "chain-tinygo"))
			q.refused(t, "plugins", "tenant_plugins", "PUT", "/plugins/chain", module)
			q.want(t, 200, "plugins", "PUT", "/plugins/counter", string(hosttest.Plugin(t, "counter-tinygo"))) // an equal module is not a new version
			q.want(t, 204, "plugins", "DELETE", "/plugins/human", "")
			q.want(t, 201, "plugins", "PUT", "/plugins/chain", module)
		},
		"plugin bytes": func(t *testing.T) {
			q.refused(t, "bytes", "tenant_plugin_bytes", "PUT", "/plugins/counter", string(hosttest.Plugin(t, "counter-go")))
			q.LoadAs(t, q.keys["bytes"], "counter-tinygo", "counter")
		},
		"active runs": func(t *testing.T) {
			q.want(t, 200, "active", "POST", startHuman, `{"handler_id":"one"}`)
			q.want(t, 200, "active", "POST", startHuman, `{"handler_id":"two"}`)
			if retry := q.refused(t, "active", "tenant_runs_active", "POST", startHuman, `{"handler_id":"three"}`); retry != 1 {
				t.Errorf("Retry-After: %d", retry)
			}
			q.want(t, 404, "active", "GET", "/handlers/three", "")
			q.want(t, 200, "active", "POST", "/handlers/one/cancel", "")
			q.want(t, 200, "active", "POST", startHuman, `{"handler_id":"three"}`)
		},
		"children": func(t *testing.T) { // a step gets the error, and its run fails with it
			q.LoadAs(t, q.keys["children"], "parent-tinygo", "parent")
			q.LoadAs(t, q.keys["children"], "accumulator-tinygo", "accumulator")
			for range 2 { // the place is free again
				a := q.Ask(t, q.keys["children"], "POST", "/workflows/parent/run", `{"start_event":{"items":["a","b"]}}`)
				if !strings.Contains(a.Body, `"status":"failed"`) || !strings.Contains(a.Body, "tenant_runs_active") {
					t.Fatalf("%d %s", a.Status, a.Body)
				}
			}
			if u := q.usage(t, "children"); u.used("tenant_runs_active") != 0 || u.Started != 2 {
				t.Errorf("usage %+v", u)
			}
		},
		"waiting runs": func(t *testing.T) {
			start := func(id string) string { return `{"handler_id":"` + id + `","session":"s","on_busy":"queue"}` }
			q.want(t, 200, "waiting", "POST", startHuman, start("one"))
			q.want(t, 200, "waiting", "POST", startHuman, start("two"))
			q.refused(t, "waiting", "tenant_runs_waiting", "POST", startHuman, start("three"))
			q.want(t, 200, "waiting", "POST", startHuman, `{"handler_id":"beside"}`)
			q.want(t, 200, "waiting", "POST", "/handlers/one/cancel", "") // the next run begins
			q.recovers(t, "waiting", "POST", startHuman, start("three"))
		},
		"requests": func(t *testing.T) {
			for n := 0; ; n++ {
				if n > 10_000 {
					t.Fatal("any number of requests is taken")
				}
				if a := q.Ask(t, q.keys["requests"], "GET", "/workflows", ""); a.Status != 200 {
					if retry := q.isRefusal(t, a, "tenant_requests_per_second"); retry != 1 {
						t.Errorf("Retry-After: %d", retry)
					}
					break
				}
			}
			q.recovers(t, "requests", "GET", "/workflows", "")
		},
		"readers": func(t *testing.T) {
			q.want(t, 200, "readers", "POST", startHuman, `{"handler_id":"h"}`)
			read := func(ctx context.Context) *http.Response {
				req, err := http.NewRequestWithContext(ctx, "GET", q.URL+"/events/h", nil)
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Authorization", "Bearer "+q.keys["readers"])
				res, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				return res
			}
			ctx, leave := context.WithCancel(t.Context())
			first := read(ctx)
			defer func() { _ = first.Body.Close() }()
			if first.StatusCode != 200 {
				t.Fatal(first.Status)
			}
			if retry := q.refused(t, "readers", "tenant_stream_readers", "GET", "/events/h", ""); retry != 5 {
				t.Errorf("Retry-After: %d", retry)
			}
			leave()
			for end := time.Now().Add(suite.Hang); ; {
				ctx, leave := context.WithCancel(t.Context())
				res := read(ctx)
				leave()
				_ = res.Body.Close()
				if res.StatusCode == 200 {
					break
				}
				if time.Now().After(end) {
					t.Fatal("the place of a reader that has gone stays taken")
				}
			}
		},
		"states": func(t *testing.T) {
			q.want(t, 201, "states", "PUT", "/sessions/a", `{"state":{"text":"`+strings.Repeat("x", 400)+`"}}`)
			q.refused(t, "states", "tenant_state_bytes", "PUT", "/sessions/b", `{"state":{}}`)
			q.refused(t, "states", "tenant_state_bytes", "PATCH", "/sessions/a/state", `{"more":1}`)
			q.refused(t, "states", "tenant_state_bytes", "POST", startHuman, `{}`)
			q.want(t, 204, "states", "DELETE", "/sessions/a", "")
			q.recovers(t, "states", "PUT", "/sessions/b", `{"state":{}}`)
			q.want(t, 200, "states", "POST", startHuman, `{}`)
		},
		"journals": func(t *testing.T) {
			q.want(t, 200, "journals", "POST", "/workflows/counter/run", `{"handler_id":"h"}`)
			q.refused(t, "journals", "tenant_journal_bytes", "POST", "/workflows/counter/run", `{}`)
			q.want(t, 200, "journals", "POST", "/handlers/h/cancel?purge=true", "")
			q.recovers(t, "journals", "POST", "/workflows/counter/run", `{}`)
		},
		"logs": func(t *testing.T) {
			q.want(t, 201, "logs", "PUT", "/plugins/hostile", string(hostile(t, "log_flood")))
			q.Ask(t, q.keys["logs"], "POST", "/workflows/hostile/run", `{}`) // the run fails after logging
			q.refused(t, "logs", "tenant_log_bytes_per_month", "POST", "/workflows/hostile/run", `{}`)
		},
	} {
		t.Run(name, test)
	}
	for range 20 { // none of these belong to this tenant
		q.want(t, 200, "free", "POST", startHuman, `{}`)
	}
}

// The monthly fuel: a tenant that has burnt it cannot start runs until the next month.
// Existing runs continue and lose nothing.
func TestFuelOfAMonth(t *testing.T) {
	q := newQuotaHost(t)
	q.LoadAs(t, q.keys["fuel"], "human-tinygo", "human")
	q.LoadAs(t, q.keys["fuel"], "counter-tinygo", "counter")
	q.want(t, 200, "fuel", "POST", startHuman, `{"handler_id":"begun"}`)
	for end := time.Now().Add(suite.Hang); ; { // until the run's first step has burnt fuel
		if a := q.Ask(t, q.keys["fuel"], "GET", "/handlers/begun", ""); strings.Contains(a.Body, `"waiting_for":[{`) {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the run does not come to wait")
		}
	}
	now := time.Now()
	left := int(usage.MonthOf(now.UnixNano()).End().Sub(now).Seconds())
	if retry := q.refused(t, "fuel", "tenant_fuel_per_month", "POST", "/workflows/counter/run", `{}`); retry < left-60 || retry > left+1 {
		t.Errorf("Retry-After: %d, the month has %d seconds", retry, left)
	}
	q.want(t, 200, "fuel", "POST", "/events/begun", `{"event":{"type":"HumanResponseEvent","value":{"response":"Ada"}}}`)
	q.untilDone(t, "fuel", "begun")

	q.offset.Store(int64(time.Duration(left+5) * time.Second))
	var r hosttest.Record
	q.Want(t, 200, &r, q.keys["fuel"], "POST", "/workflows/counter/run", `{}`)
	u := q.usage(t, "fuel")
	var months uint64
	for _, m := range u.Months {
		months += m.Fuel
	}
	if len(u.Months) != 2 || u.Months[0].Month <= u.Months[1].Month || months != u.Fuel || u.Months[0].Fuel == 0 || u.Months[1].Fuel == 0 {
		t.Errorf("usage %+v", u)
	}
}

// usageAnswer is a part of a tenant's usage.
type usageAnswer struct {
	Fuel    uint64 `json:"fuel"`
	Started uint64 `json:"runs_started"`
	Months  []struct {
		Month string `json:"month"`
		Fuel  uint64 `json:"fuel"`
	} `json:"months"`
	Quotas []struct {
		Name  string `json:"name"`
		Limit *int64 `json:"limit"`
		Used  *int64 `json:"used"`
	} `json:"quotas"`
}

func (u *usageAnswer) used(name string) int64 {
	for _, q := range u.Quotas {
		if q.Name == name && q.Used != nil {
			return *q.Used
		}
	}
	return -1
}

func (q *quotaHost) usage(t *testing.T, tenant string) (u usageAnswer) {
	t.Helper()
	q.Want(t, 200, &u, q.keys[tenant], "GET", "/tenants/"+tenant+"/usage", "")
	return u
}

// untilDone waits for the end of a run.
func (q *quotaHost) untilDone(t *testing.T, tenant, id string) {
	t.Helper()
	for end := time.Now().Add(suite.Hang); ; {
		a := q.Ask(t, q.keys[tenant], "GET", "/handlers/"+id, "")
		if strings.Contains(a.Body, `"status":"completed"`) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the run does not end: %s", a.Body)
		}
	}
}

// journalFuel returns the fuel burnt according to a run's journal.
func (q *quotaHost) journalFuel(t *testing.T, tenant, id string) (sum uint64) {
	t.Helper()
	var page struct {
		Entries []struct {
			Fuel uint64 `json:"fuel"`
		} `json:"entries"`
	}
	q.Want(t, 200, &page, q.keys[tenant], "GET", "/handlers/"+id+"/journal", "")
	for _, e := range page.Entries {
		sum += e.Fuel
	}
	return sum
}

// Of many concurrent clients, exactly as many get a run as there are places.
func TestQuotaAtOnce(t *testing.T) {
	q := newQuotaHost(t)
	q.LoadAs(t, q.keys["active"], "human-tinygo", "human")
	var taken atomic.Int64
	var wg sync.WaitGroup
	for range 24 {
		wg.Go(func() {
			if a := q.Ask(t, q.keys["active"], "POST", startHuman, `{}`); a.Status == 200 {
				taken.Add(1)
			} else {
				q.isRefusal(t, a, "tenant_runs_active")
			}
		})
	}
	wg.Wait()
	if taken.Load() != 2 {
		t.Errorf("%d runs began, 2 may", taken.Load())
	}
	u := q.usage(t, "active")
	if u.used("tenant_runs_active") != 2 || u.Started != 2 || u.used("tenant_requests_per_second") != -1 {
		t.Errorf("usage %+v", u)
	}
}

// After SIGKILL every count is unchanged, and the fuel equals the fuel of the durable
// entries, including entries of deleted runs.
func TestQuotasOverKills(t *testing.T) {
	dir := t.TempDir()
	data, file, limits := filepath.Join(dir, "data"), filepath.Join(dir, "admin.key"), filepath.Join(dir, "limits.json")
	const key = "an-admin-key-that-is-long-enough-for-all"
	for name, text := range map[string]string{file: key + "\n", limits: quotaLimits()} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := hosttest.Serve(t, data, "--admin-key-file", file, "--limits", limits)
	q := &quotaHost{Host: &p.Host, keys: map[string]string{}}
	q.NewTenant(t, key, "active")
	q.keys["active"] = q.NewKey(t, key, "active", host.RoleAdmin).Key
	q.LoadAs(t, q.keys["active"], "human-tinygo", "human")
	q.LoadAs(t, q.keys["active"], "counter-tinygo", "counter")
	var sum uint64
	for i := range 20 {
		q.want(t, 200, "active", "POST", "/workflows/counter/run", fmt.Sprintf(`{"handler_id":"c%d"}`, i))
		sum += q.journalFuel(t, "active", fmt.Sprintf("c%d", i))
		if i%2 == 0 {
			q.want(t, 200, "active", "POST", fmt.Sprintf("/handlers/c%d/cancel?purge=true", i), "")
		}
	}
	before := q.usage(t, "active")
	if before.Fuel == 0 || before.Fuel != sum || before.Started != 20 {
		t.Errorf("usage %+v, the runs have burnt %d", before, sum)
	}
	q.want(t, 200, "active", "POST", startHuman, `{"handler_id":"one"}`)
	q.want(t, 200, "active", "POST", startHuman, `{"handler_id":"two"}`)
	p.Kill(t)

	p = hosttest.Serve(t, data, "--admin-key-file", file, "--limits", limits)
	q.Host = &p.Host
	q.refused(t, "active", "tenant_runs_active", "POST", startHuman, `{}`)
	after := q.usage(t, "active")
	if after.Fuel < before.Fuel || after.Started != 22 || after.used("tenant_runs_active") != 2 || after.used("tenant_plugins") != 2 ||
		after.used("tenant_journal_bytes") <= 0 || after.used("tenant_state_bytes") <= 0 {
		t.Errorf("usage %+v, before %+v", after, before)
	}
	q.want(t, 200, "active", "POST", "/handlers/one/cancel", "")
	q.want(t, 200, "active", "POST", startHuman, `{}`)
}
