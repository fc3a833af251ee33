package httpapi_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/httpapi"
)

// fetch asks a server that has all routes.
func fetch(path string) *httptest.ResponseRecorder {
	h := httpapi.New(httpapi.Config{Metrics: http.NotFoundHandler(), Version: "test"}).Handler()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost"+path, nil))
	return w
}

func TestDescriptionIsOpen(t *testing.T) {
	_, _, h := keyed(t, adminKey)
	for path, kind := range map[string]string{"/openapi.json": "application/json", "/docs": "text/html; charset=UTF-8"} {
		// Under any name, and for a foreign page, because the description is public.
		w := call(t, h, "GET", path, "", "Host", "weft.example")
		if w.Code != 200 || w.Header().Get("Content-Type") != kind {
			t.Errorf("%s = %d %s", path, w.Code, w.Header().Get("Content-Type"))
		}
		if w := call(t, h, "POST", path, ""); w.Code != 405 {
			t.Errorf("POST %s = %d", path, w.Code)
		}
		if w := call(t, h, "GET", path+"/x", ""); w.Code != 401 {
			t.Errorf("below %s: %d", path, w.Code)
		}
	}
}

// TestDescriptionIsWhole: references have targets, ids are unique, and named schemas are
// used.
func TestDescriptionIsWhole(t *testing.T) {
	text := fetch("/openapi.json").Body.Bytes()
	var doc struct {
		OpenAPI    string                               `json:"openapi"`
		Paths      map[string]map[string]map[string]any `json:"paths"`
		Components map[string]map[string]any            `json:"components"`
		Tags       []struct{ Name string }              `json:"tags"`
	}
	if err := json.Unmarshal(text, &doc); err != nil || doc.OpenAPI != "3.1.0" {
		t.Fatal(doc.OpenAPI, err)
	}
	used := map[string]bool{}
	for _, m := range regexp.MustCompile(`"\$ref":"#/components/([a-zA-Z]+)/([A-Za-z0-9]+)"`).FindAllSubmatch(text, -1) {
		used[string(m[1])+"/"+string(m[2])] = true
		if doc.Components[string(m[1])][string(m[2])] == nil {
			t.Errorf("%s leads nowhere", m[0])
		}
	}
	for _, kind := range []string{"schemas", "parameters"} {
		for name := range doc.Components[kind] {
			if !used[kind+"/"+name] {
				t.Errorf("%s %s is named, and nothing uses it", kind, name)
			}
		}
	}
	groups := map[string]bool{}
	for _, g := range doc.Tags {
		groups[g.Name] = false
	}
	ids := map[string]bool{}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			id, _ := op["operationId"].(string)
			if id == "" || ids[id] || op["summary"] == "" {
				t.Errorf("%s %s: operationId %q, summary %q", method, path, id, op["summary"])
			}
			ids[id] = true
			for _, g := range op["tags"].([]any) {
				if _, known := groups[g.(string)]; !known {
					t.Errorf("%s %s is of the group %q, which is not listed", method, path, g)
				}
				groups[g.(string)] = true
			}
		}
	}
	for g, has := range groups {
		if !has {
			t.Errorf("group %q has no route", g)
		}
	}
}

// TestDocsPageIsWhole: the page loads nothing from elsewhere, and its links have targets.
func TestDocsPageIsWhole(t *testing.T) {
	page := fetch("/docs").Body.String()
	for _, not := range []string{"<script", "<link", "<img", "http://", "https://", "@import", "url(", "ZgotmplZ"} {
		if strings.Contains(page, not) {
			t.Errorf("the page has %q", not)
		}
	}
	ids := map[string]bool{}
	for _, m := range regexp.MustCompile(` id="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		if ids[m[1]] {
			t.Errorf("id %q is there twice", m[1])
		}
		ids[m[1]] = true
	}
	links := regexp.MustCompile(`href="#([^"]*)"`).FindAllStringSubmatch(page, -1)
	for _, m := range links {
		if !ids[m[1]] {
			t.Errorf("a link leads to #%s, which is nowhere", m[1])
		}
	}
	if len(links) < 100 || !strings.Contains(page, "prefers-color-scheme: dark") || !strings.Contains(page, `<html lang="en">`) {
		t.Errorf("the page has %d links", len(links))
	}
	for _, r := range httpapi.New(httpapi.Config{Metrics: http.NotFoundHandler()}).Routes() {
		path := regexp.MustCompile(`:([a-z]+)`).ReplaceAllString(r.Path, "{$1}")
		if !strings.Contains(page, `<span class="method `+r.Method+`">`+r.Method+`</span> <code>`+path+`</code>`) {
			t.Errorf("%s %s is not on the page", r.Method, r.Path)
		}
	}
}

// TestDescriptionCheckNotices checks that the check of all answers finds differences.
func TestDescriptionCheckNotices(t *testing.T) {
	d := hosttest.Described(t)
	const health = `{"status":"healthy"}`
	for _, tt := range []struct {
		name, method, path, sent string
		status                   int
		kind, body               string
		want                     string
	}{
		{"as it says", "GET", "/health", "", 200, "application/json", health, ""},
		{"status", "GET", "/health", "", 418, "application/json", health, "status 418"},
		{"media type", "GET", "/health", "", 200, "text/plain", health, "media type"},
		{"no media type", "GET", "/health", "", 200, "", health, "media type"},
		{"another member", "GET", "/health", "", 200, "application/json", `{"status":"healthy","x":1}`, "additional"},
		{"no member", "GET", "/health", "", 200, "application/json", `{}`, "missing"},
		{"no JSON", "GET", "/health", "", 200, "application/json", `{`, "EOF"},
		{"more than one", "GET", "/health", "", 200, "application/json", health + health, "more than one"},
		{"the code of another status", "GET", "/plugins", "", 404, "application/json", `{"detail":"x","code":"gone"}`, "value must be 'not_found'"},
		{"a bad time", "GET", "/sessions/x", "", 200, "application/json",
			`{"session_id":"x","created_at":"now","updated_at":null,"runs":0,"active":0}`, "date-time"},
		{"no route", "GET", "/nowhere", "", 200, "application/json", health, "not a route"},
		{"no route, said so", "GET", "/nowhere", "", 404, "application/json", `{"detail":"x","code":"not_found"}`, ""},
		{"a body with 204", "DELETE", "/sessions/x", "", 204, "", "x", "has a body"},
		{"an event", "GET", "/events/x", "", 200, "text/event-stream; charset=utf-8", "id: 1\ndata: {\"type\":1}\n\n", "missing"},
		{"a body that was taken", "POST", "/keys/x/rotate", `{"other":1}`, 200, "application/json", `{}`, "was taken"},
		{"a body that was refused", "POST", "/keys/x/rotate", `{"other":1}`, 400, "application/json", `{"detail":"x","code":"invalid_argument"}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequest(tt.method, tt.path, bytes.NewReader(nil))
			h := http.Header{}
			if tt.kind != "" {
				h.Set("Content-Type", tt.kind)
			}
			err := d.Check(r, []byte(tt.sent), tt.status, h, []byte(tt.body))
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the check says %v, want %q", err, tt.want)
			}
		})
	}
}
