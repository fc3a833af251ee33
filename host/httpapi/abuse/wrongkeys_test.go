package abuse

import (
	"fmt"
	"net/http"
	"testing"
	"time"
)

func TestAddressesThatCountAsOne(t *testing.T) {
	for from, want := range map[string]string{
		"192.0.2.1:80":             "192.0.2.1/32",
		"[::ffff:192.0.2.1]:80":    "192.0.2.1/32",
		"[2001:db8:1:2:3:4:5:6]:1": "2001:db8:1:2::/64",
		"[2001:db8:1:2:ffff::]:1":  "2001:db8:1:2::/64",
		"[fe80::1%eth0]:1":         "fe80::/64",
		"127.0.0.1:1":              "127.0.0.1/32",
		"@":                        "invalid Prefix",
		"":                         "invalid Prefix",
	} {
		if got := AddressOf(&http.Request{RemoteAddr: from}).String(); got != want {
			t.Errorf("%s counts as %s, want %s", from, got, want)
		}
	}
}

func TestWrongKeysAreBounded(t *testing.T) {
	w := NewWrongKeys(1, func() time.Time { return time.Unix(1000, 0) })
	from := func(address string) (at struct{ wait time.Duration }) {
		prefix := AddressOf(&http.Request{RemoteAddr: address})
		if at.wait, _ = w.Wait(prefix, "wrong"); at.wait == 0 {
			w.Seen(prefix, "wrong", true)
		}
		return at
	}
	for i := range maxWrongAddresses + 10 {
		from(fmt.Sprintf("10.%d.%d.1:1", i>>8, i&255))
	}
	for i := range maxRightKeys + 10 {
		w.Seen(AddressOf(&http.Request{RemoteAddr: "192.0.2.1:1"}), fmt.Sprint("key", i), false)
	}
	if a, r := len(w.addresses.items), len(w.right.items); a != maxWrongAddresses || r != maxRightKeys {
		t.Errorf("%d addresses and %d keys are kept", a, r)
	}
	if got := from("10.0.0.1:1"); got.wait != 0 {
		t.Error("the first address was not forgotten")
	}
	if got := from("10.0.200.1:1"); got.wait == 0 {
		t.Error("a later address was forgotten")
	}
}
