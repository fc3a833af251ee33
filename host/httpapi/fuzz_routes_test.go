package httpapi_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/host/access"
	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/httpapi"
	"github.com/weftrun/weft/host/store/memory"
)

// FuzzRoutes calls every route with any parameter, query, header and body: nothing
// panics, no answer is a 500, and every answer matches the description of the API.
func FuzzRoutes(f *testing.F) {
	fake := newFake(f)
	a, err := access.New(f.Context(), access.Config{Store: memory.New(), Runs: fake, Plugins: fakePlugins{fake}, AdminKey: adminKey})
	if err != nil {
		f.Fatal(err)
	}
	s := newServer(f, fake, func(c *httpapi.Config) { c.Access, c.Log = a, nil })
	h, routes := s.Handler(), s.Routes()
	for i := range routes {
		f.Add(uint16(i), "h1", "limit=2&path=a.b&after_sequence=-1&dry_run=true", "If-None-Match", `"x"`, []byte(`{"start_event":{"name":"Ann"},"state":{},"name":"acme","at":1}`))
		f.Add(uint16(i), "..%2f\xff", "cursor=AAAA&limit=-1&path=[&since=x", "Content-Type", "application/cbor", []byte("\xa1kstart_event\xa1dname\xc3Ann"))
	}
	f.Add(uint16(0), "plain", "", "Idempotency-Key", "k", []byte(`{"context":{"format":"weft run","version":1,"session":"AQI=","held":"gA=="}}`))
	f.Add(uint16(1), "plain", "", "Accept", "application/cbor", []byte(`[["set","a",1]]`))
	f.Fuzz(func(t *testing.T, route uint16, id, query, header, value string, body []byte) {
		r := routes[int(route)%len(routes)]
		path := r.Path
		for _, name := range []string{":name", ":id"} {
			path = strings.ReplaceAll(path, name, url.PathEscape(id))
		}
		if u, err := url.ParseRequestURI(path + "?" + query); err != nil || strings.ContainsAny(query, " \r\n") || u.Host != "" {
			return // no such request arrives
		}
		req := httptest.NewRequest(r.Method, path+"?"+query, strings.NewReader(string(body)))
		ctx, cancel := context.WithTimeout(req.Context(), time.Second) // a stream does not end
		defer cancel()
		req = req.WithContext(ctx)
		req.Host = "localhost"
		req.Header.Set("Authorization", "Bearer "+adminKey)
		if !strings.EqualFold(header, "Authorization") {
			req.Header[http.CanonicalHeaderKey(header)] = []string{value}
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		if w.Code == http.StatusInternalServerError && !strings.Contains(r.Path, "/handlers/") && !strings.Contains(r.Path, "/run") && !strings.Contains(r.Path, "/results/") {
			t.Errorf("%s %s: %d %s", r.Method, path, w.Code, w.Body)
		}
		hosttest.AsDescribed(t, req, body, w.Code, w.Header(), w.Body.Bytes())
	})
}
