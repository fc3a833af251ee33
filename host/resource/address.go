package resource

import (
	"fmt"
	"net/netip"
)

// specialRanges are the address ranges outside the public internet, with the reason.
var specialRanges = func() []specialRange {
	var out []specialRange
	for why, prefixes := range map[string][]string{
		"loopback":             {"127.0.0.0/8", "::1/128"},
		"private":              {"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "fec0::/10"},
		"link-local":           {"169.254.0.0/16", "fe80::/10"},
		"shared by a provider": {"100.64.0.0/10"},
		"multicast":            {"224.0.0.0/4", "ff00::/8"},
		"reserved":             {"0.0.0.0/8", "192.0.0.0/24", "198.18.0.0/15", "240.0.0.0/4", "::/96", "100::/64", "64:ff9b:1::/48"},
		"for documentation":    {"192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32", "3fff::/20"},
		"a tunnel":             {"192.88.99.0/24", "2001::/32", "2002::/16"},
	} {
		for _, p := range prefixes {
			out = append(out, specialRange{netip.MustParsePrefix(p), why})
		}
	}
	return out
}()

type specialRange struct {
	prefix netip.Prefix
	why    string
}

// The public part of IPv6, and the prefixes that embed IPv4 addresses.
var (
	globalUnicast = netip.MustParsePrefix("2000::/3")
	nat64         = netip.MustParsePrefix("64:ff9b::/96")
)

// special returns why an address does not belong to the public internet, or "" if it
// does. An IPv4 address embedded in an IPv6 address is checked itself.
func special(a netip.Addr) string {
	if a.Zone() != "" {
		return "link-local"
	}
	a = a.Unmap()
	if nat64.Contains(a) {
		b := a.As16()
		return special(netip.AddrFrom4([4]byte(b[12:])))
	}
	for _, r := range specialRanges {
		if r.prefix.Contains(a) {
			return r.why
		}
	}
	if !a.Is4() && !globalUnicast.Contains(a) {
		return "reserved"
	}
	return ""
}

// checkAddress refuses to dial a special address, unless it is in a network that the
// operator has named.
func checkAddress(a netip.Addr, networks []netip.Prefix) error {
	why := special(a)
	if why == "" {
		return nil
	}
	for _, n := range networks {
		if n.Contains(a.Unmap().WithZone("")) {
			return nil
		}
	}
	return denied("the address %s is %s: the resource may not reach it (networks of its settings)", a, why)
}

// parseNetwork reads a network or a single address.
func parseNetwork(s string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(s); err == nil && a.Zone() == "" {
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(s)
	if err != nil || p.Addr().Is4In6() {
		return netip.Prefix{}, fmt.Errorf("%q is neither a network, such as 10.1.0.0/16 or fd00::/8, nor an address", clip(s))
	}
	if p != p.Masked() {
		return netip.Prefix{}, fmt.Errorf("%q has bits beyond its length: write %s", clip(s), p.Masked())
	}
	return p, nil
}
