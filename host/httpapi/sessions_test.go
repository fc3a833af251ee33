package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/hosttest/suite"
	"github.com/weftrun/weft/host/httpapi"
)

// fakeSessions returns what a test sets, for a session s, and records the requests.
type fakeSessions struct {
	state   abi.Raw // nil: the session does not exist
	created bool    // what an edit answers
	err     error
	edit    host.SessionEdit
	path    string
	deleted string
	list    int // sessions that are listed
}

// tag is the tag of everything in the fake.
const tag = "0123abcd"

func (f *fakeSessions) Session(_ context.Context, _, id string) (host.SessionInfo, error) {
	if f.state == nil || f.err != nil {
		return host.SessionInfo{}, f.fault()
	}
	return host.SessionInfo{SessionID: id, Order: 3, Created: time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC).UnixNano(), Runs: 4, Active: 1}, nil
}

func (f *fakeSessions) fault() error {
	if f.err != nil {
		return f.err
	}
	return host.Errorf(host.CodeNotFound, "in other words")
}

func (f *fakeSessions) ListSessions(_ context.Context, q host.SessionQuery) (list []host.SessionInfo, more bool, err error) {
	first := int64(f.list)
	if q.Before != 0 {
		first = q.Before - 1
	}
	for n := first; n > 0 && len(list) < q.Limit; n-- {
		list = append(list, host.SessionInfo{SessionID: fmt.Sprint("s", n), Order: n})
	}
	return list, len(list) > 0 && list[len(list)-1].Order > 1, f.err
}

func (f *fakeSessions) State(_ context.Context, _, _, path string) (host.StateValue, error) {
	f.path = path
	if f.state == nil || f.err != nil {
		return host.StateValue{}, f.fault()
	}
	return host.StateValue{Value: f.state, Tag: tag}, nil
}

func (f *fakeSessions) EditState(_ context.Context, req host.SessionEdit) (host.StateValue, bool, error) {
	f.edit = req
	return host.StateValue{Value: f.state, Tag: tag}, f.created, f.err
}

func (f *fakeSessions) DeleteSession(_ context.Context, _, id string) error {
	f.deleted = id
	return f.err
}

func (f *fakeSessions) ReleaseSession(_ context.Context, _, id string) (host.SessionInfo, error) {
	return host.SessionInfo{SessionID: id, Runs: 1}, f.err
}

func TestReleaseSession(t *testing.T) {
	f := newFake(t)
	h := newServer(t, f).Handler()
	w := call(t, h, "POST", "/sessions/a%2Fb/release", "")
	if w.Code != 200 || !strings.Contains(w.Body.String(), `"session_id":"a/b"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	f.sessions.err = &host.Error{Code: host.CodeUnavailable, Message: "it cannot be read", RetryAfter: 3 * time.Second}
	w = call(t, h, "POST", "/sessions/s/release", "")
	wantError(t, w, 503, host.CodeUnavailable)
	if after := w.Header().Get("Retry-After"); after != "3" {
		t.Errorf("Retry-After = %q", after)
	}
}

func json2raw(t *testing.T, text string) abi.Raw {
	t.Helper()
	raw, err := abi.FromJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestSession: the answers for existing and for other sessions.
func TestSession(t *testing.T) {
	f := newFake(t)
	h := newServer(t, f).Handler()
	for _, req := range [][2]string{{"GET", "/sessions/s"}, {"GET", "/sessions/s/state"}} {
		if text := wantError(t, call(t, h, req[0], req[1], ""), http.StatusNotFound, host.CodeNotFound); text == "" {
			t.Errorf("%v of no session: %s", req, text)
		}
	}
	f.sessions.state = json2raw(t, `{}`)
	w := call(t, h, "GET", "/sessions/a%2Fb", "")
	const want = `{"session_id":"a/b","created_at":"2026-11-21T09:00:00.000000+00:00","updated_at":null,"runs":4,"active":1}`
	if w.Code != http.StatusOK || w.Body.String() != want {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := call(t, h, "DELETE", "/sessions/a%2Fb", ""); w.Code != http.StatusNoContent || f.sessions.deleted != "a/b" || w.Body.Len() > 0 {
		t.Errorf("delete: %d, %q", w.Code, f.sessions.deleted)
	}
	f.sessions.err = host.Errorf(host.CodeConflict, "it has runs")
	wantError(t, call(t, h, "DELETE", "/sessions/s", ""), http.StatusConflict, host.CodeConflict)
	for _, bad := range []string{"POST", "PATCH"} {
		wantError(t, call(t, h, bad, "/sessions/s", "{}"), http.StatusMethodNotAllowed, host.CodeMethodNotAllowed)
	}
}

// TestSessionPages: sessions are listed in pages, newest first.
func TestSessionPages(t *testing.T) {
	f := newFake(t)
	h := newServer(t, f).Handler()
	for count, limit := range map[int]int{0: 2, 4: 2, 5: 2, 3: 1000} {
		f.sessions.list = count
		names, cursor := "", ""
		for {
			w := call(t, h, "GET", fmt.Sprintf("/sessions?limit=%d&cursor=%s", limit, cursor), "")
			var page struct {
				Sessions []struct {
					ID string `json:"session_id"`
				}
				Next *string `json:"next_cursor"`
			}
			if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil || w.Code != http.StatusOK || len(page.Sessions) > limit {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			for _, s := range page.Sessions {
				names += s.ID
			}
			if page.Next == nil {
				break
			}
			cursor = *page.Next
		}
		want := ""
		for n := count; n > 0; n-- {
			want += fmt.Sprint("s", n)
		}
		if names != want {
			t.Errorf("%d sessions: %s", count, names)
		}
	}
	for _, bad := range []string{"limit=0", "limit=1001", "limit=x", "cursor=x", "cursor=c_________8"} {
		wantError(t, call(t, h, "GET", "/sessions?"+bad, ""), http.StatusBadRequest, host.CodeInvalidArgument)
	}
}

// TestState: the bare value, under its tag.
func TestState(t *testing.T) {
	f := newFake(t)
	f.sessions.state = json2raw(t, `{"b":[1,2.5],"name":"a\u2028b"}`)
	h := newServer(t, f).Handler()
	w := call(t, h, "GET", "/sessions/s/state?path=a.b", "")
	if w.Code != http.StatusOK || w.Body.String() != `{"b":[1,2.5],"name":"a\u2028b"}` || f.sessions.path != "a.b" || w.Header().Get("ETag") != `"`+tag+`"` {
		t.Errorf("%d %s of %q, %v", w.Code, w.Body, f.sessions.path, w.Header())
	}
	w = call(t, h, "GET", "/sessions/s/state", "", "Accept", "application/cbor")
	if w.Code != http.StatusOK || w.Body.String() != string(f.sessions.state) || f.sessions.path != "" || w.Header().Get("ETag") != `"`+tag+`-cbor"` {
		t.Errorf("as CBOR: %d %x, %v", w.Code, w.Body, w.Header())
	}
	for header, want := range map[string]int{
		`"` + tag + `"`: 304, `W/"` + tag + `"`: 304, `"x", "` + tag + `"`: 304, `*`: 304, `"x"`: 200, `"` + tag + `-cbor"`: 200,
		`x`: 400, `"x`: 400, `W/x`: 400, ``: 400, strings.Repeat(`"x",`, 33): 400,
	} {
		w := call(t, h, "GET", "/sessions/s/state", "", "If-None-Match", header)
		if w.Code != want || want == 304 && (w.Body.Len() > 0 || w.Header().Get("ETag") == "") {
			t.Errorf("If-None-Match %s: %d %s", header, w.Code, w.Body)
		}
	}
}

// A state may be larger than any message: it is answered whole.
func TestStateLargerThanAMessage(t *testing.T) {
	suite.NotShort(t, "moves 48 MiB many times")
	part := strings.Repeat("a", abi.DefaultLimits.MaxText-1)
	f := newFake(t)
	f.sessions.state = abi.Raw{0x83} // a list of three
	for range 3 {
		f.sessions.state = append(f.sessions.state, json2raw(t, `"`+part+`"`)...)
	}
	h := newServer(t, f).Handler()
	for _, method := range []string{"GET", "PATCH"} {
		if w := call(t, h, method, "/sessions/s/state", "{}"); w.Code != http.StatusOK || w.Body.Len() != 3*len(part)+10 {
			t.Errorf("%s: %d with %d bytes", method, w.Code, w.Body.Len())
		}
	}
}

// TestPatchState: the content types of the body, and its conditions.
func TestPatchState(t *testing.T) {
	f := newFake(t)
	f.sessions.state = json2raw(t, `{"n":1}`)
	h := newServer(t, f).Handler()
	const path = "/sessions/a%2Fb/state"
	edit := func(want host.SessionEdit, body string, headers ...string) {
		t.Helper()
		w := call(t, h, "PATCH", path, body, headers...)
		if w.Code != http.StatusOK || w.Body.String() != `{"n":1}` || w.Header().Get("ETag") != `"`+tag+`"` {
			t.Errorf("%s: %d %s, %v", body, w.Code, w.Body, w.Header())
		}
		want.Tenant, want.Session = host.DefaultTenant, "a/b"
		if got := f.sessions.edit; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: asks for %+v, want %+v", body, got, want)
		}
	}
	patch := json2raw(t, `{"a":null,"b":{"c":1}}`)
	for _, kind := range []string{"", "application/json", "application/merge-patch+json; charset=utf-8"} {
		edit(host.SessionEdit{Patch: patch}, `{"a":null,"b":{"c":1}}`, "Content-Type", kind)
	}
	edit(host.SessionEdit{Patch: patch}, string(patch), "Content-Type", "application/cbor")
	edit(host.SessionEdit{Edits: []abi.Edit{{Op: abi.OpSet, Path: "a.b", Value: abi.Raw{1}}, {Op: abi.OpDelete, Path: "c"}, {Op: abi.OpClear}}},
		`[["set","a.b",1],["delete","c"],["clear"]]`, "Content-Type", "application/vnd.weft.edits+json")
	edit(host.SessionEdit{Patch: json2raw(t, `{}`), Match: []string{"x", tag, tag}}, `{}`, "If-Match", `"x","`+tag+`"`, "If-Match", `"`+tag+`-cbor"`)
	edit(host.SessionEdit{Patch: json2raw(t, `{}`), Match: []string{host.AnyTag}}, `{}`, "If-Match", `*`)

	if w := call(t, h, "PATCH", path+"?path=a.0", `{"x":1}`, "If-Match", `"t"`, "Idempotency-Key", "k"); w.Code != http.StatusOK ||
		f.sessions.edit.Path != "a.0" || !reflect.DeepEqual(f.sessions.edit.Match, []string{"t"}) || len(f.sessions.edit.Once.Hash) != 64+1+64 {
		t.Errorf("of a path: %d, %+v", w.Code, f.sessions.edit)
	}
	w := call(t, h, "PATCH", path, `{}`, "Idempotency-Key", "k")
	if once := f.sessions.edit.Once; w.Code != http.StatusOK || once.Route != "PATCH "+path || once.Key != "k" || len(once.Hash) != 64 {
		t.Errorf("under a key: %d, %+v", w.Code, once)
	}
	for _, bad := range [][2]string{
		{"application/json", `[1]`}, {"application/json", ``}, {"application/json", `{"a":1,"a":2}`}, {"application/json", `{`},
		{"application/vnd.weft.edits+json", `[]`}, {"application/vnd.weft.edits+json", `{"op":"set"}`}, {"application/vnd.weft.edits+json", `[["set","a"]]`},
	} {
		if w := call(t, h, "PATCH", path, bad[1], "Content-Type", bad[0]); w.Code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", bad, w.Code, w.Body)
		}
	}
	for _, kind := range []string{"text/plain", "application/json-patch+json", "application/x-www-form-urlencoded"} {
		w := call(t, h, "PATCH", path, `{}`, "Content-Type", kind)
		wantError(t, w, http.StatusUnsupportedMediaType, host.CodeUnsupportedMediaType)
		if w.Header().Get("Accept-Patch") == "" {
			t.Errorf("%s: nobody says what is accepted", kind)
		}
	}
	for code, status := range map[host.Code]int{
		host.CodeSchemaViolation: 422, host.CodeConflict: 409, host.CodeLimitExceeded: 429, host.CodePreconditionFailed: 412,
		host.CodeNotFound: 404, host.CodeInvalidArgument: 400, host.CodeUnavailable: 503, host.CodeIdempotencyMismatch: 422,
	} {
		f.sessions.err = host.Errorf(code, "so it is")
		wantError(t, call(t, h, "PATCH", path, `{}`), status, code)
	}
}

// TestPutSession: the session is created, or left unchanged, or its state is replaced.
func TestPutSession(t *testing.T) {
	f := newFake(t)
	f.sessions.state, f.sessions.created = json2raw(t, `{"n":1}`), true
	h := newServer(t, f).Handler()
	w := call(t, h, "PUT", "/sessions/s", "")
	if w.Code != http.StatusCreated || w.Header().Get("Location") != "/sessions/s" || !strings.HasPrefix(w.Body.String(), `{"session_id":"s"`) {
		t.Errorf("%d %s, %v", w.Code, w.Body, w.Header())
	}
	want := host.SessionEdit{Tenant: host.DefaultTenant, Session: "s", Make: true}
	if !reflect.DeepEqual(f.sessions.edit, want) {
		t.Errorf("asks for %+v", f.sessions.edit)
	}
	f.sessions.created = false
	want.State, want.Match = json2raw(t, `{"a":[1]}`), []string{"t"}
	w = call(t, h, "PUT", "/sessions/s", `{"state":{"a":[1]}}`, "If-Match", `"t"`)
	if w.Code != http.StatusOK || !reflect.DeepEqual(f.sessions.edit, want) {
		t.Errorf("%d %s asks for %+v", w.Code, w.Body, f.sessions.edit)
	}
	call(t, h, "PUT", "/sessions/s", `{}`, "Idempotency-Key", "k1")
	if once := f.sessions.edit.Once; once.Key != "k1" || once.Route != "PUT /sessions/s" || once.Hash == "" {
		t.Errorf("counts once as %+v", once)
	}
	wantError(t, call(t, h, "PUT", "/sessions/s", `{}`, "Idempotency-Key", "k 1"), http.StatusBadRequest, host.CodeInvalidArgument)
	call(t, h, "PUT", "/sessions/s", `{"state":null}`, "If-None-Match", `*`)
	if got := f.sessions.edit; got.State != nil || !got.New {
		t.Errorf("asks for %+v", got)
	}
	for _, bad := range []string{`{"state":1}`, `{"state":[]}`, `{"states":{}}`, `[]`} {
		wantError(t, call(t, h, "PUT", "/sessions/s", bad), http.StatusBadRequest, host.CodeInvalidArgument)
	}
	wantError(t, call(t, h, "PUT", "/sessions/s", `{}`, "If-None-Match", `"x"`), http.StatusBadRequest, host.CodeInvalidArgument)
}

// TestCursorsTellNothing: a cursor does not reveal its number, belongs to one tenant and
// one server, and remains valid after a restart.
func TestCursorsTellNothing(t *testing.T) {
	with := func(secret string) *httpapi.Server {
		return newServer(t, newFake(t), func(c *httpapi.Config) { c.Secret, c.Sessions = []byte(secret), &fakeSessions{list: 9} })
	}
	next := func(s *httpapi.Server, query string) (int, string) {
		var page struct {
			Next string `json:"next_cursor"`
		}
		w := call(t, s.Handler(), "GET", "/sessions?limit=1"+query, "")
		_ = json.Unmarshal(w.Body.Bytes(), &page)
		return w.Code, page.Next
	}
	s := with("one")
	_, a := next(s, "")
	_, b := next(s, "&cursor="+a)
	if a == "" || b == "" || len(a) != 22 || a[:8] == b[:8] {
		t.Errorf("cursors %q and %q", a, b)
	}
	if code, again := next(with("one"), "&cursor="+a); code != 200 || again != b {
		t.Errorf("after a restart: %d %q, want %q", code, again, b)
	}
	for _, bad := range []string{a[:21], a + "A", strings.Repeat("A", 22)} {
		if code, _ := next(s, "&cursor="+bad); code != 400 {
			t.Errorf("cursor %q: %d", bad, code)
		}
	}
	if code, _ := next(with("two"), "&cursor="+a); code != 400 {
		t.Errorf("a cursor of another server: %d", code)
	}
}
