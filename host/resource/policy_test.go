package resource

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

func TestURLsAreTakenInOneWayOnly(t *testing.T) {
	for text, want := range map[string]string{ // "": refused
		"https://api.example.com/v1/x":      "https://api.example.com/v1/x",
		"HTTPS://API.Example.COM:443/v1":    "https://api.example.com/v1",
		"https://api.example.com":           "https://api.example.com/",
		"http://api.example.com:8080/a?b=c": "http://api.example.com:8080/a?b=c",
		"https://[2001:DB8::1]:444/":        "https://[2001:db8::1]:444/",
		"https://93.184.216.34/":            "https://93.184.216.34/",
		"https://api.example.com/a%20b":     "https://api.example.com/a%20b",
		"https://xn--bcher-kva.example/":    "https://xn--bcher-kva.example/",

		"":                                           "",
		"//api.example.com/":                         "",
		"/v1/x":                                      "",
		"api.example.com/v1":                         "",
		"ftp://api.example.com/":                     "",
		"file:///etc/passwd":                         "",
		"javascript:alert(1)":                        "",
		"https:api.example.com":                      "",
		"https:/api.example.com/":                    "",
		"https:///v1":                                "",
		"https://user@api.example.com/":              "",
		"https://user:pw@api.example.com/":           "",
		"https://api.example.com@evil.test/":         "",
		"https://api.example.com:443@evil/":          "",
		"https://api.example.com#@evil.test/":        "",
		"https://api.example.com/#x":                 "",
		"https://api.example.com\\@evil.test/":       "",
		"https://evil.test\\.example.com/":           "",
		"https://api.example.com./":                  "",
		"https://.example.com/":                      "",
		"https://api..example.com/":                  "",
		"https://-api.example.com/":                  "",
		"https://bücher.example/":                    "",
		"https://ⓔxample.com/":                       "",
		"https://api%2eexample.com/":                 "",
		"https://api.example.com%00.evil/":           "",
		"https://api.example.com%2f@evil/":           "",
		"https://api.example.com:0/":                 "",
		"https://api.example.com:65536/":             "",
		"https://api.example.com:/":                  "",
		"https://api.example.com:+443/":              "",
		"https://api.example.com:0443/":              "",
		"https://api.example.com:443:80/":            "",
		"https://2130706433/":                        "",
		"https://0x7f000001/":                        "",
		"https://0x7f.1/":                            "",
		"https://127.1/":                             "",
		"https://0177.0.0.1/":                        "",
		"https://1.2.3.4.5/":                         "",
		"https://[::1%25eth0]/":                      "",
		"https://[::ffff:10.0.0.1/":                  "",
		"https://[10.0.0.1]/":                        "",
		"https://::1/":                               "",
		"https://api.example.com/a/../b":             "",
		"https://api.example.com/..":                 "",
		"https://api.example.com/./b":                "",
		"https://api.example.com/%2e%2e/b":           "",
		"https://api.example.com/.%2E/b":             "",
		"https://api.example.com/%252e%252e/b":       "",
		"https://api.example.com/..;/b":              "",
		"https://api.example.com/..;x=1/b":           "",
		"https://api.example.com//b":                 "",
		"https://api.example.com/a%2fb":              "",
		"https://api.example.com/a%5cb":              "",
		"https://api.example.com/a%00":               "",
		"https://api.example.com/a\\..\\b":           "",
		"https://api.example.com/a b":                "",
		"https://api.example.com/a\r\nX: y":          "",
		"https://api.example.com/%zz":                "",
		"https://a.b/" + strings.Repeat("x", maxURL): "",
		"https://" + strings.Repeat("x", 64) + ".b/": "",
	} {
		got, err := checkURL(text)
		switch {
		case err == nil && got.url.String() != want:
			t.Errorf("%q is taken as %q, want %q", text, got.url, want)
		case err != nil && want != "":
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestRules(t *testing.T) {
	rules := func(list ...string) (out []rule) {
		for _, text := range list {
			r, err := parseRule(text, []string{"GET", "POST"})
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, r)
		}
		return out
	}
	for _, c := range []struct {
		rule, method, url string
		ok                bool
	}{
		{"https://api.example.com/v1/", "GET", "https://api.example.com/v1/x", true},
		{"https://api.example.com/v1/", "POST", "https://api.example.com/v1/", true},
		{"https://api.example.com/v1/", "DELETE", "https://api.example.com/v1/", false},
		{"https://api.example.com/v1/", "get", "https://api.example.com/v1/", false},
		{"https://api.example.com/v1/", "GET", "https://api.example.com/v1", false},
		{"https://api.example.com/v1/", "GET", "https://api.example.com/v10", false},
		{"https://api.example.com/v1", "GET", "https://api.example.com/v1", true},
		{"https://api.example.com/v1", "GET", "https://api.example.com/v1/x", true},
		{"https://api.example.com/v1", "GET", "https://api.example.com/v10", false},
		{"https://api.example.com/v1", "GET", "https://api.example.com/%76%31/x", true}, // "v1", in another way
		{"https://api.example.com/v1", "GET", "https://api.example.com/V1", false},
		{"https://api.example.com/", "GET", "http://api.example.com/", false},
		{"https://api.example.com/", "GET", "https://api.example.com:8443/", false},
		{"https://api.example.com:8443/", "GET", "https://api.example.com:8443/", true},
		{"https://api.example.com/", "GET", "https://api.example.com.evil.test/", false},
		{"https://api.example.com/", "GET", "https://evilapi.example.com/", false},
		{"https://*.example.com/", "GET", "https://a.example.com/", true},
		{"https://*.example.com/", "GET", "https://a.b.example.com/", true},
		{"https://*.example.com/", "GET", "https://example.com/", false},
		{"https://*.example.com/", "GET", "https://evilexample.com/", false},
		{"https://*/", "GET", "https://anything.test/x", true},
		{"https://*/", "GET", "http://anything.test/x", false},
		{"http://127.0.0.1:9000/", "GET", "http://127.0.0.1:9000/x", true},
		{"http://[::1]:9000/", "GET", "http://[0:0::1]:9000/x", true},
	} {
		u, err := checkURL(c.url)
		if err != nil {
			t.Fatalf("%s: %v", c.url, err)
		}
		fail := check(rules(c.rule), c.method, u)
		if (fail == nil) != c.ok {
			t.Errorf("%s %s by %s: %v", c.method, c.url, c.rule, fail)
		}
		if fail != nil && (fail.Retryable == nil || *fail.Retryable || fail.Code != "permission_denied") {
			t.Errorf("%s %s: %+v", c.method, c.url, fail)
		}
	}
	for _, text := range []string{"https://*.com/", "https://*x.example.com/", "https://a.*.com/", "https://*.1.2.3.4/", "https://a/?x", "ftp://a/", "*", "https://*", "https://user@a/"} {
		if r, err := parseRule(text, nil); err == nil && text != "https://*" {
			t.Errorf("%s is a rule: %+v", text, r)
		}
	}
}

func TestSpecialAddresses(t *testing.T) {
	for text, want := range map[string]bool{ // true: the public internet
		"93.184.216.34": true, "8.8.8.8": true, "1.1.1.1": true, "172.15.0.1": true, "172.32.0.1": true, "100.63.0.1": true, "100.128.0.1": true,
		"2606:4700::1111": true, "2a00:1450::1": true, "64:ff9b::808:808": true, "::ffff:8.8.8.8": true,

		"0.0.0.0": false, "10.1.2.3": false, "127.0.0.1": false, "127.255.0.1": false, "169.254.169.254": false, "172.16.0.1": false,
		"192.168.1.1": false, "100.64.0.1": false, "100.127.255.255": false, "192.0.0.8": false, "198.18.0.1": false, "192.0.2.1": false, "224.0.0.1": false,
		"240.0.0.1": false, "255.255.255.255": false, "192.88.99.1": false,
		"::": false, "::1": false, "::ffff:127.0.0.1": false, "::ffff:10.0.0.1": false, "::127.0.0.1": false, "64:ff9b::a00:1": false, "64:ff9b::7f00:1": false,
		"64:ff9b:1::1": false, "2002:7f00:1::": false, "2002:808:808::": false, "2001:0:1::": false, "2001:db8::1": false, "fc00::1": false, "fd12::1": false,
		"fe80::1": false, "fe80::1%eth0": false, "fec0::1": false, "ff02::1": false, "100::1": false, "4000::1": false, "::ffff:169.254.169.254": false,
	} {
		a := netip.MustParseAddr(text)
		if err := checkAddress(a, nil); (err == nil) != want {
			t.Errorf("%s: %v", text, err)
		}
	}
	networks := []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00::/8")}
	for text, want := range map[string]bool{"10.1.2.3": true, "::ffff:10.1.2.3": true, "10.2.0.1": false, "fd00::1": true, "127.0.0.1": false} {
		if err := checkAddress(netip.MustParseAddr(text), networks); (err == nil) != want {
			t.Errorf("%s with networks: %v", text, err)
		}
	}
	for text, want := range map[string]string{"10.1.0.0/16": "10.1.0.0/16", "::1": "::1/128", "::ffff:10.0.0.1": "10.0.0.1/32", "10.1.2.3/16": "", "x": "", "fe80::1%eth0": ""} {
		if got, err := parseNetwork(text); (err == nil) != (want != "") || err == nil && got.String() != want {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
}

// What passes the check is, read anew by anybody, what was checked.
func FuzzURL(f *testing.F) {
	for _, s := range []string{"https://api.example.com/v1/x?y=z", "http://[::1]:80/", "https://a@b/", "https://a/%2e%2e/", "https://*.a.b/", "https://a/..;/"} {
		f.Add(s)
	}
	r, err := parseRule("https://api.example.com/v1/", []string{"GET"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := checkURL(text)
		if err != nil {
			return
		}
		again, err := checkURL(got.url.String())
		if err != nil || again.origin() != got.origin() || again.url.Path != got.url.Path {
			t.Fatalf("%q is taken as %q, and that as %+v, %v", text, got.url, again, err)
		}
		u, err := url.Parse(got.url.String())
		if err != nil || u.Hostname() != got.host || u.User != nil {
			t.Fatalf("%q has the host %q, others read %+v, %v", text, got.host, u, err)
		}
		if check([]rule{r}, "GET", got) != nil {
			return
		}
		joined := u.JoinPath() // cleans the path, as servers do
		if got.origin() != "https://api.example.com:443" || !strings.HasPrefix(joined.Path, "/v1/") {
			t.Fatalf("%q passes, and is %q", text, joined)
		}
	})
}
