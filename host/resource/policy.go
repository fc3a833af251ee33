package resource

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/weftrun/weft/abi"
)

// maxURL bounds a URL, in bytes.
const maxURL = 8 << 10

// target is a checked URL.
type target struct {
	url  *url.URL
	host string // lower case; an IPv6 address without brackets
	port uint16
}

// origin returns the origin, to which connections and secrets belong.
func (t *target) origin() string { return origin(t.url.Scheme, t.host, t.port) }

func origin(scheme, host string, port uint16) string {
	return fmt.Sprintf("%s://%s", scheme, net.JoinHostPort(host, strconv.Itoa(int(port))))
}

// show returns the URL for messages: without its query, which may contain secrets.
func (t *target) show() string {
	return clip((&url.URL{Scheme: t.url.Scheme, Host: t.url.Host, Path: t.url.Path}).String())
}

// rule allows URLs and methods.
type rule struct {
	scheme  string
	host    string // "*": any; "*.example.com": any subdomain
	port    uint16
	path    string // decoded, begins with a slash
	methods []string
}

// allows reports whether the rule allows the target's URL.
func (r *rule) allows(t *target) bool {
	if r.scheme != t.url.Scheme || r.port != t.port {
		return false
	}
	below, wild := strings.CutPrefix(r.host, "*")
	if wild && (!strings.HasSuffix(t.host, below) || below != "" && isAddress(t.host)) || !wild && r.host != t.host {
		return false
	}
	rest, ok := strings.CutPrefix(t.url.Path, r.path)
	return ok && (rest == "" || rest[0] == '/' || strings.HasSuffix(r.path, "/"))
}

func isAddress(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}

// check returns an error with the reason if no rule allows a request.
func check(rules []rule, method string, t *target) *abi.Error {
	methods := []string{}
	for i := range rules {
		if !rules[i].allows(t) {
			continue
		}
		if slices.Contains(rules[i].methods, method) {
			return nil
		}
		methods = append(methods, rules[i].methods...)
	}
	if len(methods) > 0 {
		return denied("%s %s is not allowed: the resource grants %s there", clip(method), t.show(), strings.Join(methods, ", "))
	}
	granted := make([]string, 0, len(rules))
	for i := range rules {
		granted = append(granted, rules[i].show())
	}
	return denied("%s is not allowed: the resource grants %s", t.show(), clip(strings.Join(granted, ", ")))
}

// origin returns the origin of the rule's URLs. It is meaningless if the host contains a
// star.
func (r *rule) origin() string { return origin(r.scheme, r.host, r.port) }

// show returns the rule's URL.
func (r *rule) show() string {
	host := r.host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if r.port != schemes[r.scheme] {
		host += fmt.Sprintf(":%d", r.port)
	}
	return r.scheme + "://" + host + r.path
}

// schemes are the allowed schemes with their ports.
var schemes = map[string]uint16{"http": 80, "https": 443}

// checkURL parses a URL. It accepts only one notation, so that no later component can
// interpret the URL differently: no userinfo or fragment, a host of ASCII letters or a
// plain address, and a path without anything that a server may take for a parent
// directory.
func checkURL(text string) (*target, error) {
	if len(text) > maxURL {
		return nil, fmt.Errorf("the URL has %d bytes, more than %d", len(text), maxURL)
	}
	for _, r := range text {
		if r <= ' ' || r == 0x7f || r == '\\' || r == 0xfffd {
			return nil, fmt.Errorf("the URL %q has a space, a control character or a backslash: encode it by %%", clip(text))
		}
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%q is not a URL", clip(text))
	}
	port, known := schemes[u.Scheme]
	switch {
	case !known || u.Opaque != "" || u.Host == "":
		return nil, fmt.Errorf("%q is not a whole URL: it begins with https://HOST/ or http://HOST/", clip(text))
	case u.User != nil:
		return nil, fmt.Errorf("the URL of %q has a user name: give credentials as a secret of the resource", clip(u.Host))
	case u.Fragment != "" || strings.Contains(text, "#"):
		return nil, fmt.Errorf("the URL %q has a fragment (#), which is never sent: leave it out", clip(text))
	}
	t := &target{url: u, port: port}
	if err := t.setHost(authority(text)); err != nil {
		return nil, err
	}
	if u.Path == "" {
		u.Path = "/"
	}
	return t, checkPath(u)
}

// authority returns the text between the scheme and the path.
func authority(text string) string {
	_, rest, _ := strings.Cut(text, "://")
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i]
	}
	return rest
}

// setHost checks host and port.
func (t *target) setHost(text string) error {
	name := text
	if i := strings.LastIndexByte(text, ':'); i >= 0 && !strings.HasSuffix(text, "]") {
		var port string
		name, port = text[:i], text[i+1:]
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 || port[0] == '0' || port[0] == '+' {
			return fmt.Errorf("%q is not a port: use 1 to 65535", clip(port))
		}
		t.port = uint16(n)
	}
	bare, bracketed := strings.CutPrefix(name, "[")
	if bracketed {
		a, err := netip.ParseAddr(strings.TrimSuffix(bare, "]"))
		if err != nil || a.Is4() || a.Zone() != "" || !strings.HasSuffix(bare, "]") {
			return fmt.Errorf("%q is not an IPv6 address in brackets", clip(name))
		}
		t.host = a.String()
	} else {
		t.host = strings.ToLower(name)
		if err := checkName(t.host); err != nil {
			return err
		}
	}
	// From here on the host has one notation.
	host := t.host
	if bracketed {
		host = "[" + host + "]"
	}
	if t.port != schemes[t.url.Scheme] {
		host += fmt.Sprintf(":%d", t.port)
	}
	t.url.Host = host
	return nil
}

// checkName accepts a DNS name or an IPv4 address of four plain numbers.
func checkName(host string) error {
	if len(host) > 253 {
		return fmt.Errorf("the host name %q is longer than 253 letters", clip(host))
	}
	for _, r := range host {
		if r > 0x7f {
			return fmt.Errorf("the host name %q has letters beyond ASCII: write it in its xn-- form", clip(host))
		}
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '.' && r != '_' {
			return fmt.Errorf("the host name %q has the character %q: names have letters, digits, hyphens and dots", clip(host), r)
		}
	}
	labels := strings.Split(host, ".")
	for _, l := range labels {
		if l == "" || len(l) > 63 || l[0] == '-' || l[len(l)-1] == '-' {
			return fmt.Errorf("%q is not a host name: no part of it may be empty, longer than 63 letters or begin or end with a hyphen, and no dot stands at its end", clip(host))
		}
	}
	// Some resolvers interpret a numeric last label as an address.
	last := labels[len(labels)-1]
	if last[0] >= '0' && last[0] <= '9' {
		if a, err := netip.ParseAddr(host); err != nil || !a.Is4() {
			return fmt.Errorf("%q is not an IPv4 address of four numbers, and no name ends with a number", clip(host))
		}
	}
	return nil
}

// checkPath refuses paths that servers may interpret differently.
func checkPath(u *url.URL) error {
	refuse := func(why string) error {
		return fmt.Errorf("the path %q has %s: write the path as it is meant", clip(u.EscapedPath()), why)
	}
	raw := strings.ToLower(u.EscapedPath())
	for _, hidden := range []string{"%2f", "%5c", "%00", "%252e", "%252f", "%255c", "%2500"} {
		if strings.Contains(raw, hidden) {
			return refuse(hidden)
		}
	}
	if strings.ContainsFunc(u.Path, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' }) {
		return refuse("a control character")
	}
	if u.Path[0] != '/' {
		return refuse("no slash at its beginning")
	}
	if strings.Contains(u.Path, "//") {
		return refuse("two slashes in a row")
	}
	for segment := range strings.SplitSeq(u.Path, "/") {
		name, _, _ := strings.Cut(segment, ";")
		if name == "." || name == ".." {
			return refuse("a part that is " + name)
		}
	}
	return nil
}

// parseRule reads the URL of a rule. Its path is a prefix of the allowed paths.
func parseRule(text string, methods []string) (rule, error) {
	wild := ""
	plain := text
	scheme, rest, _ := strings.Cut(text, "://")
	if after, any := strings.CutPrefix(rest, "*"); any {
		if wild = "*"; strings.HasPrefix(after, ".") {
			wild, after = "*.", after[1:]
		} else {
			after = "any" + after // a name in place of the star
		}
		plain = scheme + "://" + after
	}
	t, err := checkURL(plain)
	switch {
	case err != nil:
		return rule{}, err
	case t.url.RawQuery != "" || t.url.ForceQuery:
		return rule{}, fmt.Errorf("%q has a query: a rule ends with its path", clip(text))
	case wild == "*" && t.host != "any", wild == "*." && (isAddress(t.host) || !strings.Contains(t.host, ".")):
		return rule{}, fmt.Errorf("%q: use https://*/ for any host, or https://*.example.com/ for those below a name of at least two parts", clip(text))
	}
	r := rule{scheme: t.url.Scheme, host: t.host, port: t.port, path: t.url.Path, methods: methods}
	switch wild {
	case "*":
		r.host = "*"
	case "*.":
		r.host = "*." + t.host
	}
	return r, nil
}

// denied returns the error for a violation of the policy. Retrying cannot help.
func denied(format string, args ...any) *abi.Error {
	return final(abi.StatusPermissionDenied, format, args...)
}

func final(status abi.Status, format string, args ...any) *abi.Error {
	no := false
	return &abi.Error{Code: status.Code(), Message: fmt.Sprintf(format, args...), Retryable: &no}
}
