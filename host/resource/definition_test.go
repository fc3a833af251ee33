package resource

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/jsonfile"
)

func TestGrants(t *testing.T) {
	table, err := ParseFile([]byte(`{"resources": {
	  "crm": {"kind": "http", "settings": {"base_url": "https://crm.example/"}, "mode": "read_only", "in_flight": 3,
	    "grants": [{"tenant": "acme", "workflow": "sell", "plugins": ["d1"], "mode": "fail", "in_flight": 1, "allow": [{"url": "https://crm.example/buy/", "methods": ["POST"]}]},
	               {"tenant": "acme", "workflow": "*"}]},
	  "nobody": {"kind": "http", "settings": {"base_url": "https://crm.example/"}}}}`), from)
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	decl := abi.ResourceDecl{Name: "crm", Kind: "http"}
	for _, c := range []struct {
		user host.ResourceUser
		decl abi.ResourceDecl
		mode host.ResourceMode
		most int
		want string
	}{
		{host.ResourceUser{Tenant: "acme", Workflow: "sell", Digest: "d1"}, decl, host.ResourceFail, 1, ""},
		{host.ResourceUser{Tenant: "acme", Workflow: "sell", Digest: "d2"}, decl, host.ResourceReadOnly, 3, ""},
		{host.ResourceUser{Tenant: "acme", Workflow: "other"}, decl, host.ResourceReadOnly, 3, ""},
		{host.ResourceUser{Tenant: "b", Workflow: "sell", Digest: "d1"}, decl, "", 0, "none of its grants admits it"},
		{host.ResourceUser{Tenant: "acme", Workflow: "sell"}, abi.ResourceDecl{Name: "crm", Kind: "llm"}, "", 0, "is of the kind http"},
		{host.ResourceUser{Tenant: "acme", Workflow: "sell"}, abi.ResourceDecl{Name: "x", Kind: "http"}, "", 0, "there is no resource of this name"},
		{host.ResourceUser{Tenant: "acme", Workflow: "sell"}, abi.ResourceDecl{Name: "nobody", Kind: "http"}, "", 0, "none of its grants admits it"},
	} {
		g, err := table.Grant(c.user, c.decl)
		if c.want != "" {
			if host.CodeOf(err) != host.CodePermissionDenied || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.decl.Name) {
				t.Errorf("%+v: %v", c.user, err)
			}
			continue
		}
		if err != nil || g.Mode != c.mode || g.InFlight != c.most || g.Pool == "" {
			t.Errorf("%+v: %+v, %v", c.user, g, err)
		}
	}
}

// Everything that is wrong with a file is told at once, each with its place.
func TestFileProblems(t *testing.T) {
	for text, want := range map[string][]string{
		``:                                  {"line 1, column 1: the text ends in the middle"},
		`{"resources": {`:                   {"the text ends in the middle"},
		`{"resources": {}} x`:               {"line 1, column 19: text follows"},
		`[1]`:                               {"must be an object, not a list"},
		`{"resources": 1}`:                  {"resources: must be an object of resources by name, not 1"},
		`{"other": 1}`:                      {`unknown name "other": use allow_inline_secrets, resources`},
		strings.Repeat("[", 100):            {"more than 16 objects and lists in each other"},
		`{"resources": {"a": {}, "a": {}}}`: {`"a" is given twice`, "kind is missing", "kind is missing"},
		`{"resources": {"crm": {
  "kind": "ftp",
  "mode": "sometimes",
  "in_flight": 0,
  "settings": {
    "base_url": "https://user@crm.example/",
    "allow": [{"url": "https://*.com/"}, {"methods": ["get", "CONNECT", 1]}, 7],
    "networks": ["10.0.0.1/8", "x", "::1"],
    "timeout": "1h",
    "redirects": 99,
    "response_bytes": 1.5,
    "wrong": true
  },
  "secrets": {
    "a": {"env": "MISSING", "header": "X-Key"},
    "b": {"env": "SHORT", "header": "X-Key"},
    "c": {"file": "/none", "header": "X-Key"},
    "d": {"value": "not allowed here", "header": "X-Key"},
    "e": {"env": "TOKEN"},
    "f": {"env": "TOKEN", "header": "Host"},
    "g": {"env": "TOKEN", "query": "k", "prefix": "x"},
    "h": {"env": "TOKEN", "file": "/token", "header": "X"}
  },
  "grants": [{"tenant": "default"}, {"tenant": "", "workflow": "w"}]
}}}`: {
			`line 2, column 11: resources.crm.kind: there is no kind "ftp": use "http"`,
			`line 3, column 11: resources.crm.mode: there is no mode "sometimes"`,
			`line 4, column 16: resources.crm.in_flight: must be a whole number from 1 to 1000, not 0`,
			`line 6, column 17: resources.crm.settings.base_url: the URL of "crm.example" has a user name`,
			`line 8, column 18: resources.crm.settings.networks[0]: "10.0.0.1/8" has bits beyond its length: write 10.0.0.0/8`,
			`line 8, column 32: resources.crm.settings.networks[1]: "x" is neither a network`,
			`line 9, column 16: resources.crm.settings.timeout: must be a time from "1ms" to "10m0s", such as "30s", not "1h"`,
			`line 10, column 18: resources.crm.settings.redirects: must be a whole number from 0 to 20, not 99`,
			`line 11, column 23: resources.crm.settings.response_bytes: must be a whole number`,
			`line 12, column 5: resources.crm.settings: unknown name "wrong": use allow, base_url,`,
			`line 7, column 23: resources.crm.settings.allow[0].url: "https://*.com/": use https://*/`,
			`line 7, column 55: resources.crm.settings.allow[1].methods[0]: "get" cannot be allowed`,
			`resources.crm.settings.allow[1].methods[1]: "CONNECT" cannot be allowed`,
			`resources.crm.settings.allow[1].methods[2]: must be a text that is not empty, not 1`,
			`resources.crm.settings.allow[1]: url is missing`,
			`resources.crm.settings.allow[2]: must be an object, not 7`,
			`resources.crm.secrets.a: the variable MISSING is not set`,
			`resources.crm.secrets.b: the secret must have 8 to 8192 bytes`,
			`resources.crm.secrets.c: open /none`,
			`resources.crm.secrets.d.value: this file may not contain secrets: use env or file, or set allow_inline_secrets`,
			`resources.crm.secrets.e: a secret goes into either a header`,
			`resources.crm.secrets.f: no secret can be sent in the header "Host"`,
			`resources.crm.secrets.g: a secret goes into either a header`,
			`resources.crm.secrets.h: a secret has one of env, file and value`,
			`resources.crm.grants[0]: a grant names a tenant and a workflow`,
			`resources.crm.grants[1].tenant: must be a text that is not empty`,
		},
		`{"resources": {"crm": {"kind": "http", "grants": [{"tenant": "*", "workflow": "*"}]}}}`:                                                                    {"resources.crm: nothing is allowed"},
		`{"resources": {"crm": {"kind": "http", "settings": {"allow": [{"url": "https://*/"}]}, "secrets": {"t": {"env": "TOKEN", "header": "X"}}, "grants": []}}}`: {"no origin may receive the secrets"},
	} {
		_, err := ParseFile([]byte(text), from)
		var file *jsonfile.Error
		if !errors.As(err, &file) || len(file.Problems) != len(want) {
			t.Errorf("%s\n%v\nwant %d problems", text, err, len(want))
			continue
		}
		for i, w := range want {
			if !strings.Contains(file.Problems[i], w) {
				t.Errorf("problem %d is %q, want %q", i, file.Problems[i], w)
			}
		}
		if strings.Contains(err.Error(), testSecret) || strings.Contains(err.Error(), "not allowed here") {
			t.Errorf("a secret is shown: %v", err)
		}
	}
}

func TestInlineSecrets(t *testing.T) {
	const one = `{"kind": "http", "settings": {"base_url": "https://crm.example/"}, "secrets": {"t": {"value": "in the text", "header": "X"}}}`
	if _, err := ParseFile(fmt.Appendf(nil, `{"allow_inline_secrets": true, "resources": {"crm": %s}}`, one), from); err != nil {
		t.Error(err)
	}
	d, err := Parse("crm", []byte(one), from)
	if err != nil || d.Name != "crm" || d.Kind != KindHTTP || len(d.secrets) != 1 || !d.trusted["https://crm.example:443"] {
		t.Errorf("%+v, %v", d, err)
	}
	if _, err := Parse("crm", []byte(`{`), from); err == nil {
		t.Error("half a definition is taken")
	}
}

func FuzzFile(f *testing.F) {
	f.Add([]byte(`{"resources": {"crm": {"kind": "http", "settings": {"base_url": "https://a/"}, "grants": [{"tenant": "*", "workflow": "*"}]}}}`))
	f.Add([]byte(`{"resources": {"crm": {"secrets": {"t": {"value": "x"}}}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		table, err := ParseFile(text, from)
		if (table == nil) == (err == nil) {
			t.Fatalf("%v, %v", table, err)
		}
	})
}
