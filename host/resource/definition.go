package resource

import (
	"fmt"
	"net/textproto"
	"slices"
	"strings"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// Definition is a checked resource definition with its secrets read. It is immutable.
type Definition struct {
	Name     string
	Kind     string
	grants   []grant
	mode     host.ResourceMode
	inFlight int
	http     httpSettings
	llm      llmSettings // of the kind llm
	kv       kvSettings  // of the kind kv
	secrets  []secret
	// trusted are the origins that may receive secrets: the origin of base_url, otherwise
	// the origins that the rules name without a star.
	trusted map[string]bool
}

// The kinds of resources.
const (
	KindHTTP = "http" // makes HTTP requests
	KindLLM  = "llm"  // calls language models by HTTP requests
	KindKV   = "kv"   // stores values by key, shared by the runs of a tenant
)

const kindNames = `"http", "llm" or "kv"`

// grant says who may use a resource.
type grant struct {
	tenant   string   // "*": any
	workflow string   // "*": any
	plugins  []string // digests; empty: any
	mode     host.ResourceMode
	inFlight int
	rules    []rule
}

// admits reports whether the grant applies to a user.
func (g *grant) admits(user host.ResourceUser) bool {
	return (g.tenant == "*" || g.tenant == user.Tenant) && (g.workflow == "*" || g.workflow == user.Workflow) &&
		(len(g.plugins) == 0 || slices.Contains(g.plugins, user.Digest))
}

// Sources are the sources of secrets.
type Sources struct {
	// Env returns an environment variable.
	Env func(name string) (string, bool)
	// ReadFile reads a file; of a file longer than some KiB, perhaps only the beginning.
	ReadFile func(name string) ([]byte, error)
}

// Bounds of a definition.
const (
	maxName      = 128
	maxInFlight  = 1000
	maxTimeout   = 10 * time.Minute
	maxRedirects = 20
	maxMessage   = 15 << 20 // of the body of a request or an answer: what fits in a message
	minSecret    = 8        // bytes: a shorter secret cannot be found reliably in an answer
	maxSecret    = 8 << 10
)

const defaultInFlight = 8

// defaultMethods are the methods of a rule that names no methods.
var defaultMethods = []string{"GET", "HEAD"}

// ParseFile reads a file of resources:
//
//	{"resources": {"crm": {
//	   "kind": "http",
//	   "settings": {"base_url": "https://crm.example/api/",
//	                "allow": [{"url": "https://crm.example/api/", "methods": ["GET", "POST"]}],
//	                "networks": ["10.1.0.0/16"], "timeout": "30s", "redirects": 5,
//	                "request_bytes": 1048576, "response_bytes": 1048576, "header_bytes": 65536},
//	   "secrets": {"token": {"env": "CRM_TOKEN", "header": "Authorization", "prefix": "Bearer "}},
//	   "grants": [{"tenant": "default", "workflow": "*"}],
//	   "mode": "repeat", "in_flight": 8}}}
//
// # Errors
//
// A [*jsonfile.Error] with all problems, each with its line and column.
func ParseFile(text []byte, from Sources) (*Table, error) {
	p := &parser{reader: newReader(text), from: from}
	t := &Table{byName: map[string]*installed{}}
	root := p.whole()
	if root == nil {
		return nil, p.Err()
	}
	var list *value
	p.fields(root, "", map[string]func(*value, string){
		"resources":            func(v *value, _ string) { list = v },
		"allow_inline_secrets": func(v *value, path string) { p.boolean(v, path, &p.inline) },
	})
	if list != nil && list.kind != '{' {
		p.Problem(list.at, "resources", "must be an object of resources by name, not %s", list.show())
	} else if list != nil {
		for _, m := range list.members {
			if d := p.definition(m.name, m.at, m.value, join("resources", m.name)); d != nil {
				t.install(d)
			}
		}
	}
	if err := p.Err(); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// Parse reads one definition: the value of a name in a file. It accepts secrets written
// in the definition.
func Parse(name string, text []byte, from Sources) (*Definition, error) {
	return parse(name, text, parser{from: from, inline: true})
}

func parse(name string, text []byte, how parser) (*Definition, error) {
	p := &how
	p.reader = newReader(text)
	root := p.whole()
	if root == nil {
		return nil, p.Err()
	}
	d := p.definition(name, root.at, root, "")
	return d, p.Err()
}

// parser reads definitions.
type parser struct {
	*reader
	from   Sources
	inline bool // the text may contain secrets
	// tenant owns the definition. A tenant's definition grants nobody else access, and
	// reads no secrets of the server. "": the operator's.
	tenant string
	// sealed are the secrets of a stored tenant's definition; nil: the text contains
	// them.
	sealed map[string]string
}

// definition reads one definition. It returns nil if the definition has a problem.
func (p *parser) definition(name string, at int64, v *value, path string) *Definition {
	before := p.Count()
	d := &Definition{Name: name, mode: host.ResourceRepeat, inFlight: defaultInFlight, http: defaultHTTP()}
	if !isName(name) {
		p.Problem(at, path, "%q is not a name: it has 1 to %d bytes, without control characters", clip(name), maxName)
	}
	var grants *value
	kind := kindOf(v)
	llm, keyed := kind == KindLLM, kind == KindKV
	if llm {
		d.http, d.llm = defaultLLM()
	}
	known := map[string]func(*value, string){
		"kind":      func(v *value, path string) { p.kind(v, path, &d.Kind) },
		"settings":  func(v *value, path string) { p.settings(v, path, d, kind) },
		"secrets":   func(v *value, path string) { p.secrets(v, path, d) },
		"grants":    func(v *value, _ string) { grants = v },
		"mode":      func(v *value, path string) { p.mode(v, path, &d.mode) },
		"in_flight": func(v *value, path string) { p.number(v, path, 1, maxInFlight, &d.inFlight) },
	}
	if keyed {
		d.kv = defaultKV()
		known = p.ofKV(known)
	}
	p.fields(v, path, known)
	if v.kind == '{' && d.Kind == "" && !has(v, "kind") {
		p.Problem(v.at, path, "kind is missing: use %s", kindNames)
	}
	if llm && !has(v, "settings") {
		p.Problem(v.at, path, "settings are missing: %s", needsBase)
	}
	if grants != nil { // after the defaults that grants inherit are known
		p.each(grants, join(path, "grants"), func(v *value, path string) { d.grants = append(d.grants, p.grant(v, path, d)) })
	}
	for i := range d.grants {
		if !keyed && len(d.grants[i].rules) == 0 && p.Count() == before {
			p.Problem(v.at, path, "nothing is allowed: give settings a base_url, or allow with URLs, or each of the grants")
			break
		}
	}
	d.trust()
	if len(d.secrets) > 0 && len(d.trusted) == 0 && p.Count() == before {
		p.Problem(v.at, path, "no origin may receive the secrets: give settings a base_url, or allow without a star")
	}
	if p.Count() > before {
		return nil
	}
	return d
}

// trust determines the origins that may receive the secrets.
func (d *Definition) trust() {
	d.trusted = map[string]bool{}
	if d.http.base != "" {
		if t, err := checkURL(d.http.base); err == nil {
			d.trusted[t.origin()] = true
		}
		return
	}
	rules := slices.Clone(d.http.rules)
	for i := range d.grants {
		rules = append(rules, d.grants[i].rules...)
	}
	for i := range rules {
		if !strings.HasPrefix(rules[i].host, "*") {
			d.trusted[rules[i].origin()] = true
		}
	}
}

func has(v *value, name string) bool {
	return slices.ContainsFunc(v.members, func(m member) bool { return m.name == name })
}

func isName(s string) bool {
	return s != "" && len(s) <= maxName && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0xfffd })
}

func (p *parser) boolean(v *value, path string, into *bool) {
	b, ok := v.data.(bool)
	if !ok {
		p.Problem(v.at, path, "must be true or false, not %s", v.show())
	}
	*into = b
}

func (p *parser) kind(v *value, path string, into *string) {
	if p.str(v, path, into); *into != "" && *into != KindHTTP && *into != KindLLM && *into != KindKV {
		p.Problem(v.at, path, "there is no kind %s: use %s", v.show(), kindNames)
	}
}

func (p *parser) mode(v *value, path string, into *host.ResourceMode) {
	var s string
	p.str(v, path, &s)
	if *into = host.ResourceMode(s); s != "" && !into.Valid() {
		p.Problem(v.at, path, "there is no mode %s: use \"read_only\", \"repeat\" or \"fail\"", v.show())
	}
}

// kindOf reads a definition's kind in advance.
func kindOf(v *value) string {
	for _, m := range v.members {
		if m.name == "kind" {
			kind, _ := m.value.data.(string)
			return kind
		}
	}
	return ""
}

// settings reads the settings of the definition's kind.
func (p *parser) settings(v *value, path string, d *Definition, kind string) {
	switch kind {
	case KindLLM:
		p.llmSettings(v, path, d)
	case KindKV:
		p.kvSettings(v, path, &d.kv)
	default:
		p.httpSettings(v, path, &d.http)
	}
}

// transport returns readers of the settings shared by the kinds that make requests.
func (p *parser) transport(s *httpSettings) map[string]func(*value, string) {
	return map[string]func(*value, string){
		"base_url":       func(v *value, path string) { p.baseURL(v, path, s) },
		"networks":       func(v *value, path string) { p.networks(v, path, s) },
		"timeout":        func(v *value, path string) { p.duration(v, path, &s.timeout) },
		"request_bytes":  func(v *value, path string) { p.number(v, path, 0, maxMessage, &s.requestBytes) },
		"response_bytes": func(v *value, path string) { p.number(v, path, 0, maxMessage, &s.responseBytes) },
		"header_bytes":   func(v *value, path string) { p.number(v, path, 1<<10, 1<<20, &s.headerBytes) },
	}
}

func (p *parser) httpSettings(v *value, path string, s *httpSettings) {
	var allow *value
	known := p.transport(s)
	known["allow"] = func(v *value, _ string) { allow = v }
	known["redirects"] = func(v *value, path string) { p.number(v, path, 0, maxRedirects, &s.redirects) }
	p.fields(v, path, known)
	if allow != nil {
		s.rules = p.rules(allow, join(path, "allow"))
	} else if s.base != "" {
		if r, err := parseRule(s.base, defaultMethods); err == nil { // an invalid base is reported elsewhere
			s.rules = []rule{r}
		}
	}
}

func (p *parser) baseURL(v *value, path string, s *httpSettings) {
	p.str(v, path, &s.base)
	if s.base == "" {
		return
	}
	t, err := checkURL(s.base)
	if err == nil && strings.Contains(s.base, "?") {
		err = fmt.Errorf("%q has a query: give it with each request", clip(s.base))
	}
	if err != nil {
		p.Problem(v.at, path, "%s", err)
		s.base = ""
		return
	}
	s.base = t.url.String()
}

func (p *parser) networks(v *value, path string, s *httpSettings) {
	p.each(v, path, func(v *value, path string) {
		var text string
		if p.str(v, path, &text); text == "" {
			return
		}
		n, err := parseNetwork(text)
		if err != nil {
			p.Problem(v.at, path, "%s", err)
			return
		}
		s.networks = append(s.networks, n)
	})
}

func (p *parser) duration(v *value, path string, into *time.Duration) {
	s, _ := v.data.(string)
	d, err := time.ParseDuration(s)
	if err != nil || d < time.Millisecond || d > maxTimeout {
		p.Problem(v.at, path, "must be a time from \"1ms\" to %q, such as \"30s\", not %s", maxTimeout, v.show())
		return
	}
	*into = d
}

func (p *parser) rules(v *value, path string) []rule {
	var out []rule
	p.each(v, path, func(v *value, path string) {
		var text string
		at, methods := v.at, defaultMethods
		p.fields(v, path, map[string]func(*value, string){
			"url":     func(v *value, path string) { at = v.at; p.str(v, path, &text) },
			"methods": func(v *value, path string) { methods = p.methods(v, path) },
		})
		if v.kind == '{' && !has(v, "url") {
			p.Problem(v.at, path, "url is missing: the beginning of the URLs that may be requested")
		}
		if text == "" {
			return
		}
		r, err := parseRule(text, methods)
		if err != nil {
			p.Problem(at, join(path, "url"), "%s", err)
			return
		}
		out = append(out, r)
	})
	return out
}

func (p *parser) methods(v *value, path string) []string {
	var out []string
	p.each(v, path, func(v *value, path string) {
		var m string
		p.str(v, path, &m)
		switch {
		case m == "":
		case !isToken(m) || m != strings.ToUpper(m) || len(m) > 32 || m == "CONNECT" || m == "TRACE":
			p.Problem(v.at, path, "%s cannot be allowed: use a method such as \"GET\", in upper case", v.show())
		default:
			out = append(out, m)
		}
	})
	return out
}

func (p *parser) secrets(v *value, path string, d *Definition) {
	if v.kind != '{' {
		p.Problem(v.at, path, "must be an object of secrets by name, not %s", v.show())
		return
	}
	for _, m := range v.members {
		p.secret(m, join(path, m.name), d)
	}
}

// secret reads one secret without ever showing it.
func (p *parser) secret(m member, path string, d *Definition) {
	s := secret{name: m.name}
	if m.value.kind != '{' { // the message does not show the value
		p.Problem(m.value.at, path, "must be an object: where the secret is from and where it goes")
		return
	}
	var env, file, inline string
	at := m.value.at
	p.fields(m.value, path, map[string]func(*value, string){
		"env":    func(v *value, path string) { at = v.at; p.str(v, path, &env) },
		"file":   func(v *value, path string) { at = v.at; p.str(v, path, &file) },
		"header": func(v *value, path string) { p.str(v, path, &s.header) },
		"query":  func(v *value, path string) { p.str(v, path, &s.query) },
		"prefix": func(v *value, path string) { p.str(v, path, &s.prefix) },
		"value": func(v *value, path string) {
			at = v.at
			if inline, _ = v.data.(string); !p.inline {
				p.Problem(v.at, path, "this file may not contain secrets: use env or file, or set allow_inline_secrets to true")
			}
		},
	})
	if p.tenant != "" && (env != "" || file != "") {
		p.Problem(at, path, "the server's environment and files are the operator's: give the secret as value")
		return
	}
	if p.sealed != nil {
		inline = p.sealed[m.name]
	}
	given := 0
	for _, text := range []string{env, file, inline} {
		if text != "" {
			given++
		}
	}
	if given != 1 {
		p.Problem(at, path, "a secret has one of env, file and value")
		return
	}
	if (s.header == "") == (s.query == "") || s.query != "" && s.prefix != "" {
		p.Problem(at, path, "a secret goes into either a header, with a prefix if wanted, or a parameter of the query")
		return
	}
	s.header = textproto.CanonicalMIMEHeaderKey(s.header)
	if s.header != "" && (!isToken(s.header) || slices.Contains(ownHeaders, s.header)) {
		p.Problem(at, path, "no secret can be sent in the header %q", clip(s.header))
	}
	if why := p.readSecret(&s, env, file, inline); why != "" {
		p.Problem(at, path, "%s", why)
		return
	}
	d.secrets = append(d.secrets, s)
}

// readSecret returns a secret's value, or records why it has none.
func (p *parser) readSecret(s *secret, env, file, inline string) string {
	s.value = inline
	if env != "" {
		value, set := p.from.Env(env)
		if !set {
			return fmt.Sprintf("the variable %s is not set", clip(env))
		}
		s.value = value
	} else if file != "" {
		b, err := p.from.ReadFile(file)
		if err != nil {
			return err.Error()
		}
		s.value = strings.TrimRight(string(b), "\r\n")
	}
	if len(s.value) < minSecret || len(s.value) > maxSecret || strings.ContainsFunc(s.prefix+s.value, func(r rune) bool { return r < ' ' || r >= 0x7f }) {
		return fmt.Sprintf("the secret must have %d to %d bytes of plain ASCII, without control characters", minSecret, maxSecret)
	}
	return ""
}

func (p *parser) grant(v *value, path string, d *Definition) grant {
	g := grant{mode: d.mode, inFlight: d.inFlight, rules: d.http.rules}
	known := map[string]func(*value, string){
		"tenant":    func(v *value, path string) { p.str(v, path, &g.tenant) },
		"workflow":  func(v *value, path string) { p.str(v, path, &g.workflow) },
		"mode":      func(v *value, path string) { p.mode(v, path, &g.mode) },
		"in_flight": func(v *value, path string) { p.number(v, path, 1, maxInFlight, &g.inFlight) },
		"allow":     func(v *value, path string) { g.rules = p.rules(v, path) },
		"plugins": func(v *value, path string) {
			p.each(v, path, func(v *value, path string) {
				var digest string
				if p.str(v, path, &digest); digest != "" {
					g.plugins = append(g.plugins, digest)
				}
			})
		},
	}
	if p.tenant != "" {
		delete(known, "tenant")
	}
	if d.Kind == KindKV {
		known = p.ofKV(known)
	}
	p.fields(v, path, known)
	switch {
	case v.kind != '{':
	case p.tenant != "":
		if g.tenant = p.tenant; !has(v, "workflow") {
			p.Problem(v.at, path, "a grant names a workflow; \"*\" is any")
		}
	case !has(v, "tenant") || !has(v, "workflow"):
		p.Problem(v.at, path, "a grant names a tenant and a workflow; \"*\" is any")
	}
	return g
}

// refuse returns the error for a user who may not use the resource.
func refuse(user host.ResourceUser, decl abi.ResourceDecl, why string) error {
	return host.Errorf(host.CodePermissionDenied, "the resource '%s' (kind %s) is not granted to workflow '%s' of tenant '%s': %s",
		clip(decl.Name), clip(decl.Kind), clip(user.Workflow), clip(user.Tenant), why)
}
