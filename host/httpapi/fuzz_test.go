package httpapi

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/apiwire"
	"github.com/weftrun/weft/host/httpapi/abuse"
	"github.com/weftrun/weft/host/position"
)

// Every decoder that a client reaches has a fuzz target:
//
//	all routes, with any path, query, headers and body   FuzzRoutes (here; it asks the server for its routes,
//	                                                     so that a new one is in it)
//	bodies of starts and posted events, JSON and CBOR    FuzzRequests (here)
//	bodies of all else, JSON and CBOR; a run's snapshot  FuzzBodies (here)
//	entity tags, keys, ids, Accept, Host, Origin, ...    FuzzHeaders (here)
//	queries: filters, pages, cursors, after, flags       FuzzList, FuzzQueries (here)
//	texts of answers                                     host/apiwire FuzzString
//	traceparent, tracestate                              host/trace FuzzIncoming
//	values as CBOR and JSON; edits, manifests and all
//	other messages of the ABI                            abi FuzzValue, FuzzJSON, FuzzMessages
//	what is in a snapshot                                host/engine FuzzRestore, host/scheduler FuzzHeld
//	paths into a state, edits of it                      host/state FuzzParsePath, FuzzDecodeApply
//	schemas of events                                    host/module FuzzView; graphs: host/engine FuzzCompile
//	a module (Wasm)                                      host/sandbox FuzzInspect, host/sandbox/rewrite FuzzParse
//	                                                     and FuzzRewrite
//
// Of operators: limits (host FuzzParseLimits), resources (host/resource FuzzFile). Of
// guests: URLs (host/resource FuzzURL), WASI (host/sandbox/wasi FuzzArguments).

// addBodies adds seeds of bodies of all shapes, as JSON and as CBOR.
func addBodies(add func(body []byte, isCBOR bool)) {
	for _, text := range append([]string{
		`{"plugins":["a","b"],"settings":{"timeout":1.5,"description":"d","config":{"s":{"a":1}}},"timeout":null,"name":"w"}`,
		`{"tenant":"acme","role":"run","name":"CI","expires_at":"2027-11-21T02:47:31Z"}`, `{"at":7}`, `{"at":1e3}`, `{"handler_id":"h"}`,
		`{"format":"weft run","version":1,"workflow_name":"w","handler_id":"h","run_id":"r","modules":["x"],"session":"AQI=","held":"gA=="}`,
		`[["set","user.name","Ada"],["append","list",1]]`, `{"state":{"a":{"$bytes":"AQI="}}}`, `{"timeout":-1}`, `{"timeout":1e308}`,
	}, seeds...) {
		add([]byte(text), false)
		add([]byte(text), true)
		if raw, err := abi.FromJSON([]byte(text)); err == nil {
			add(raw, true)
		}
	}
}

// FuzzBodies holds the decoders of all bodies but those of FuzzRequests to this: no
// panic, and what is refused is a 400 with a text that can be answered.
func FuzzBodies(f *testing.F) {
	addBodies(func(body []byte, isCBOR bool) { f.Add(body, isCBOR) })
	f.Fuzz(func(t *testing.T, body []byte, isCBOR bool) {
		v, err := parseBody(body, isCBOR, nil)
		if err != nil {
			checkRefused(t, err)
			return
		}
		raw, err := v.canonical()
		if err != nil {
			checkRefused(t, err)
		} else {
			_, _ = abi.DecodeEdits(raw) // patchState words its errors itself
		}
		if !v.object() {
			return
		}
		if c, err := parseComposition(v, "w"); err != nil {
			checkRefused(t, err)
		} else if c.Settings.Timeout != nil && *c.Settings.Timeout < 0 {
			t.Errorf("a timeout of %s", *c.Settings.Timeout)
		}
		if k, err := parseKey(v); err != nil {
			checkRefused(t, err)
		} else if k.Expires < 0 {
			t.Errorf("a key expires at %d", k.Expires)
		}
		if fork, _, err := parseFork(v); err != nil {
			checkRefused(t, err)
		} else if fork.At == 0 {
			t.Error("a fork at 0")
		}
		if s, err := parseSnapshot(v); err != nil {
			checkRefused(t, err)
		} else if s.Version < 1 || s.Version > host.RunSnapshotVersion {
			t.Errorf("a snapshot of version %d", s.Version)
		}
	})
}

// FuzzHeaders holds what reads headers to this: no panic, and what comes of them is
// bounded and can stand where it is used.
func FuzzHeaders(f *testing.F) {
	for _, s := range []string{`"a", W/"b"`, "*", "*,*", `"`, "Bearer weft_acme_x", "gzip;q=0, *", "application/cbor;q=1, */*", "[::1]:8080",
		"http://localhost", "my-key", "r1", "\xff", "application/json; charset=utf-8", ",", "W/", "0-5", "-1", strings.Repeat("*", 40)} {
		f.Add(s, "http://localhost")
	}
	s := New(Config{})
	f.Fuzz(func(t *testing.T, header, origin string) {
		if tags, err := tagsOf([]string{header}); err != nil {
			checkRefused(t, err)
		} else if len(tags) == 0 || len(tags) > maxTags {
			t.Errorf("%d tags of %q", len(tags), header)
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/x", nil)
		for _, name := range []string{apiwire.HeaderOnce, headerRequestID, apiwire.HeaderTenant, "Authorization", "Accept", "Accept-Encoding", "Content-Type"} {
			r.Header.Set(name, header)
		}
		r.Header.Set("Origin", origin)
		r.Host, r.RemoteAddr = header, header
		if once, err := onceOf(s.echo.NewContext(r, httptest.NewRecorder()), nil); err != nil {
			checkRefused(t, err)
		} else if once.Key != header {
			t.Errorf("%q counts as the key %q", header, once.Key)
		}
		if id := requestID(r); !plainID(id) {
			t.Errorf("%q gives the request id %q", header, id)
		}
		if key := bearer(r); !strings.Contains(header, key) {
			t.Errorf("%q gives the key %q", header, key)
		}
		_, _, _ = takesGzip(r), prefersCBOR(r), abuse.AddressOf(r)
		_ = mediaType(header)
		if cors, err := s.guard.check(r, false); err != nil {
			if host.CodeOf(err) != host.CodePermissionDenied {
				t.Error(err)
			}
		} else if cors != "" {
			t.Errorf("origin %q may use the API", cors)
		}
	})
}

// FuzzQueries holds the parameters of queries that are not FuzzList's to this: no
// panic, bounds hold, and a cursor is good for whom it was made.
func FuzzQueries(f *testing.F) {
	s := New(Config{Secret: []byte("a secret")})
	f.Add("limit=3&cursor="+s.seal("acme", 7), int64(7))
	f.Add("after_sequence=-1&sse=FALSE&include_internal=true", int64(-1))
	f.Add("limit=99999999999999999999&cursor=AAAA&dry_run=maybe", int64(0))
	f.Add("cursor="+base64.RawURLEncoding.EncodeToString(make([]byte, cursorHash+8)), int64(1<<62))
	f.Fuzz(func(t *testing.T, query string, n int64) {
		v, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		if page, err := parseTimeline(v); err != nil {
			checkRefused(t, err)
		} else if page.Limit < 1 || page.Limit > host.MaxTimeline || page.Cut < 0 || page.Cut > mostCut {
			t.Errorf("a journal's page %+v", page)
		}
		if _, limit, err := parseAudit(&host.Grant{Tenant: "acme"}, v); err != nil {
			checkRefused(t, err)
		} else if limit < 1 || limit > apiwire.MaxPage {
			t.Errorf("a page of %d", limit)
		}
		if q, err := s.parseSessionQuery("acme", v); err != nil {
			checkRefused(t, err)
		} else if q.Limit < 1 || q.Limit > apiwire.MaxPage || q.Before < 0 {
			t.Errorf("sessions: %+v", q)
		}
		if _, err := flagOf(v, "dry_run", true); err != nil {
			checkRefused(t, err)
		}
		if seq, ok := parseSequence(v.Get("after_sequence")); ok && seq < position.FromRun {
			t.Errorf("a stream after %d", seq)
		}
		if _, err := parseStream(v, v.Get("last")); err != nil {
			checkRefused(t, err)
		}
		if n < 1 {
			return
		}
		text := s.seal("acme", n)
		if got, ok := s.unseal("acme", text); !ok || got != n {
			t.Errorf("cursor of %d is %d", n, got)
		}
		if got, ok := s.unseal("other", text); ok {
			t.Errorf("another tenant's cursor is %d", got)
		}
	})
}
