package fetch

import (
	"context"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// FuzzAddress searches for an address whose checked form is not the one to be dialled.
func FuzzAddress(f *testing.F) {
	for _, address := range slices.Concat(hostile, malformed, []string{"https://example.test/a.jpg", "http://bücher.test:80/"}) {
		f.Add(withPort(address, 80))
	}
	base, err := url.Parse("https://base.test/dir/page?q#f")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, address string) {
		ports := []uint16{80, 443}
		for _, base := range []*url.URL{{}, base} {
			u, err := parse(base, address, ports)
			if err != nil || len(u.String()) > maxAddress { // escaped, it may be too long to parse again
				continue
			}
			if u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.Opaque != "" {
				t.Errorf("%q became %#v", address, u)
			}
			if p := u.Port(); p != "" && strings.TrimLeft(p, "0") != "80" && strings.TrimLeft(p, "0") != "443" {
				t.Errorf("%q has port %q", address, p)
			}
			host := u.Hostname()
			if host == "" || strings.ContainsFunc(host, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`/\@%?#`, r) }) {
				t.Errorf("%q has host %q", address, host)
			}
			if net.ParseIP(host) == nil && strings.Trim(host, "0123456789.") == "" && strings.Trim(host, ".") != "" {
				t.Errorf("%q has host %q, which may be an address", address, host)
			}
			again, err := parse(&url.URL{}, u.String(), ports)
			if err != nil {
				t.Fatalf("%.100q became %.100q, and that is refused: %v", address, u.String(), err)
			}
			if again.Host != u.Host || again.Scheme != u.Scheme {
				t.Errorf("%.100q became %.100q, and that %.100q", address, u.String(), again.String())
			}
		}
	})
}

// FuzzGuard searches for an address that passes although the standard library knows that it is not
// public.
func FuzzGuard(f *testing.F) {
	for _, address := range hostile {
		if u, err := url.Parse(withPort(address, 80)); err == nil {
			if addr, err := netip.ParseAddr(u.Hostname()); err == nil {
				f.Add(addr.AsSlice())
			}
		}
	}
	g := newGuard(nil, []uint16{80})
	f.Fuzz(func(t *testing.T, b []byte) {
		addr, ok := netip.AddrFromSlice(b)
		if !ok {
			return
		}
		network := "tcp6"
		if addr.Is4() {
			network = "tcp4"
		}
		if g.control(context.Background(), network, netip.AddrPortFrom(addr, 80).String(), nil) != nil {
			return
		}
		if !addr.IsGlobalUnicast() || addr.IsPrivate() || addr.Is4In6() {
			t.Errorf("%s passes", addr)
		}
		if addr.Is6() && (b[0]&0xe0 != 0x20 || b[0] == 0x20 && b[1] == 0x02) {
			t.Errorf("%s passes", addr)
		}
	})
}

// FuzzName searches for a name with a folder, or without a bound.
func FuzzName(f *testing.F) {
	f.Add(`attachment; filename="plain.jpg"; filename*=UTF-8''n%C3%A4me.jpg`, "/x.png")
	f.Add(`attachment; filename*0="../a"; filename*1*=%2Fb`, "/%2e%2e%2fx")
	f.Add(`inline; filename="C:\a\b"`, `/a\b`)
	f.Fuzz(func(t *testing.T, disposition, path string) {
		got := name(disposition, &url.URL{Path: path})
		if len(got) > maxName || strings.ContainsAny(got, `/\`) {
			t.Errorf("name(%q, %q) = %q", disposition, path, got)
		}
	})
}
