package hosttest

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/weftrun/weft/host"
)

// Answer is the answer to a request.
type Answer struct {
	Status int
	Header http.Header
	Body   string
}

// Ask makes a request with a key ("": none). headers are alternating names and values.
func (h *Host) Ask(tb testing.TB, key, method, path, body string, headers ...string) Answer {
	tb.Helper()
	req, err := http.NewRequestWithContext(tb.Context(), method, h.URL+path, strings.NewReader(body))
	if err != nil {
		tb.Fatal(err)
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	out, err := io.ReadAll(res.Body)
	if err != nil {
		tb.Fatal(err)
	}
	AsDescribed(tb, req, []byte(body), res.StatusCode, res.Header, out)
	return Answer{res.StatusCode, res.Header, string(out)}
}

// Want is Ask for an answer with the given status. It decodes the answer into v unless v
// is nil.
func (h *Host) Want(tb testing.TB, status int, v any, key, method, path, body string, headers ...string) {
	tb.Helper()
	a := h.Ask(tb, key, method, path, body, headers...)
	if a.Status != status {
		tb.Fatalf("%s %s = %d %s, want %d", method, path, a.Status, a.Body, status)
	}
	if v == nil {
		return
	}
	if err := json.Unmarshal([]byte(a.Body), v); err != nil {
		tb.Fatalf("%s %s = %s: %v", method, path, a.Body, err)
	}
}

// Key is an API key as the API returns it.
type Key struct {
	ID  string `json:"id"`
	Key string `json:"key"`
}

// NewTenant makes a tenant, with the server's own key.
func (h *Host) NewTenant(tb testing.TB, admin, name string) {
	tb.Helper()
	h.Want(tb, http.StatusCreated, nil, admin, http.MethodPost, "/tenants", `{"name":"`+name+`"}`)
}

// NewKey makes a key, with the server's own key.
func (h *Host) NewKey(tb testing.TB, admin, tenant string, role host.Role) (k Key) {
	tb.Helper()
	h.Want(tb, http.StatusCreated, &k, admin, http.MethodPost, "/keys", `{"tenant":"`+tenant+`","role":"`+string(role)+`"}`)
	return k
}

// LoadAs uploads a built example under a name, with a key.
func (h *Host) LoadAs(tb testing.TB, key, build, name string) {
	tb.Helper()
	h.Want(tb, http.StatusCreated, nil, key, http.MethodPut, "/plugins/"+name, string(Plugin(tb, build)))
}
