package storetest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/search"
)

// searched returns a query for a text.
func searched(t *testing.T, text string) host.RunQuery {
	t.Helper()
	terms, err := search.Parse(text)
	ok(t, "ParseSearch", err)
	return host.RunQuery{Tenant: tenant, Search: terms}
}

// failed returns a run that has failed with a message.
func failed(handler, message string, started int64) host.Run {
	r := completed(handler, "", started, started)
	r.Status, r.Error, r.ErrorCode = host.StatusFailed, message, "was_failed"
	return r
}

// answered returns a run that has completed with a result.
func answered(t *testing.T, handler string, started int64, fields map[string]any) host.Run {
	t.Helper()
	body, err := abi.EncodeValue(fields)
	ok(t, "EncodeValue", err)
	r := completed(handler, "", started, started)
	r.Result = &host.StreamEvent{RunID: r.RunID, Type: "Report", Workflow: r.Workflow, Body: body, Terminal: true}
	return r
}

func testSearch(t *testing.T, open func(t *testing.T) host.Store) {
	f := claimed(t, open)
	f.wantIDs(searched(t, "nothing"))
	f.ran("one", failed("one", "no such file: /srv/Data_7.csv", 1))
	f.ran("two", answered(t, "two", 2, map[string]any{"text": "The ANSWER is forty-two", "count": int64(1234), "deep": []any{map[string]any{"name": "Ωmega"}}}))
	f.ran("three", answered(t, "three", 3, map[string]any{"text": "another answer"}))
	f.ran("runs", running("runs", "", 4))
	theirs := failed("theirs", "no such answer", 5)
	theirs.Tenant = "them"
	p := f.partOf(host.SessionKey{Tenant: "them", Session: "theirs"}, 1)
	p.Runs, p.Started = []host.Run{theirs}, []string{theirs.RunID}
	f.append(p)

	for text, want := range map[string][]string{
		"answer":               {"three", "two"},
		"Answer another":       {"three"},
		"answ*":                {"three", "two"},
		"answ":                 nil,
		"forty two":            {"two"},
		"1234":                 {"two"},
		"123":                  nil,
		"123*":                 {"two"},
		"ωMEGA":                {"two"},
		"ωm*":                  {"two"},
		"name":                 {"two"},
		"report":               {"three", "two"},
		"data 7 CSV":           {"one"},
		"was failed":           {"one"},
		"no such answer":       nil, // of another tenant
		"file OR answer":       nil, // three words
		`"file" -no srv:* {x}`: nil, // no word of an operator is one
		`"file" -no (srv)`:     {"one"},
	} {
		f.wantIDs(searched(t, text), want...)
	}
	q := searched(t, "no such answer")
	q.Tenant = "them"
	f.wantIDs(q, "theirs")
}

func testSearchFilters(t *testing.T, open func(t *testing.T) host.Store) {
	f := claimed(t, open)
	for i := range 4 {
		r := failed(fmt.Sprintf("h%d", i), "disk full", int64(10+i/2))
		r.Workflow = []string{"flow", "talk"}[i%2]
		if i == 3 {
			r.Status, r.Blocked = host.StatusCancelled, &host.Blocked{Code: host.BlockedHostCrash}
		}
		f.ran(r.SessionID, r)
	}
	for _, test := range []struct {
		query host.RunQuery
		want  []string
	}{
		{host.RunQuery{}, []string{"h3", "h2", "h1", "h0"}},
		{host.RunQuery{Workflows: []string{"talk"}}, []string{"h3", "h1"}},
		{host.RunQuery{Statuses: []string{"failed"}}, []string{"h2", "h1", "h0"}},
		{host.RunQuery{Statuses: []string{"running"}}, nil},
		{host.RunQuery{Session: "h1"}, []string{"h1"}},
		{host.RunQuery{Blocked: true}, []string{"h3"}},
		{host.RunQuery{Since: 11}, []string{"h3", "h2"}},
		{host.RunQuery{ErrorCode: "was_failed", Workflows: []string{"flow", "talk"}, Statuses: []string{"failed"}}, []string{"h2", "h1", "h0"}},
		{host.RunQuery{ErrorCode: "another"}, nil},
		{host.RunQuery{Version: "0123"}, []string{"h3", "h2", "h1", "h0"}},
		{host.RunQuery{AfterStarted: 11, AfterHandler: "h2"}, []string{"h1", "h0"}},
	} {
		test.query.Tenant, test.query.Search = tenant, searched(t, "disk full").Search
		f.wantIDs(test.query, test.want...)
	}
}

// testSearchOfChanges: the index follows changes of runs.
func testSearchOfChanges(t *testing.T, open func(t *testing.T) host.Store) {
	f := claimed(t, open)
	first := failed("a", "the first try", 1)
	f.ran("a", first)
	f.ran("b", failed("b", "the other first", 2))
	f.wantIDs(searched(t, "first"), "b", "a")

	// A run that continues has no text. Its next end gives it a new text.
	change := func(r host.Run) {
		t.Helper()
		p := f.part(r.SessionID, 1)
		p.Runs = []host.Run{r}
		f.append(p)
	}
	again := first
	again.Status, again.Error, again.Completed, again.Updated = host.StatusRunning, "", 0, 5
	change(again)
	f.wantIDs(searched(t, "first"), "b")
	again.Status, again.Error, again.Completed, again.Updated = host.StatusFailed, "the second try", 6, 6
	change(again)
	f.wantIDs(searched(t, "first"), "b")
	f.wantIDs(searched(t, "second"), "a")

	// Only the latest run of a handler is found.
	f.ran("b", failed("b", "quite different", 7))
	f.wantIDs(searched(t, "first"))
	f.wantIDs(searched(t, "different"), "b")

	// A deleted run is not found. A new run in its place is found by its own text.
	purge := f.part("a", 1)
	purge.Purge = []string{"a"}
	f.append(purge)
	delete(f.last, purge.Key)
	f.wantIDs(searched(t, "second"))
	f.ran("a", failed("a", "all new", 1))
	f.wantIDs(searched(t, "second"))
	f.wantIDs(searched(t, "new"), "a")
	f.drop("b", "b@2")
	f.wantIDs(searched(t, "different"), "b")
	f.drop("b", "b@7")
	f.wantIDs(searched(t, "different"))

	// A long text is cut.
	f.ran("long", failed("long", strings.Repeat("word ", search.MaxText/5)+" last", 9))
	f.wantIDs(searched(t, "word"), "long")
	f.wantIDs(searched(t, "last"))
}

// testSearchWhileStarting: pages that are read while runs come and go show each run that
// exists all the time exactly once.
func testSearchWhileStarting(t *testing.T, open func(t *testing.T) host.Store) {
	f := claimed(t, open)
	const n = 20
	const far = 1_800_000_000_000_000_000
	for i := range n {
		f.ran(fmt.Sprintf("h%02d", i), failed(fmt.Sprintf("h%02d", i), "the same", far+int64(i/3)*700_000))
	}
	q := searched(t, "same")
	q.Limit = 3
	seen := map[string]int{}
	var order []string
	for round := 0; ; round++ {
		page, _, err := f.Runs(f.ctx, q)
		ok(t, "Runs", err)
		if len(page) == 0 {
			break
		}
		for _, r := range page {
			seen[r.HandlerID]++
			order = append(order, fmt.Sprintf("%d %s", r.Started, r.HandlerID))
		}
		end := page[len(page)-1]
		q.AfterStarted, q.AfterHandler = end.Started, end.HandlerID
		f.ran(fmt.Sprintf("new%d", round), failed(fmt.Sprintf("new%d", round), "the same", far+1e9+int64(round)))
	}
	for i := range n {
		if id := fmt.Sprintf("h%02d", i); seen[id] != 1 {
			t.Errorf("%s was listed %d times", id, seen[id])
		}
	}
	for i := 1; i < len(order); i++ {
		if order[i] >= order[i-1] {
			t.Errorf("%s is listed behind %s", order[i], order[i-1])
		}
	}
}
