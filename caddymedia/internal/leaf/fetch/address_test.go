package fetch

import (
	"context"
	"errors"
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

func TestGuardAllowsPublicAddresses(t *testing.T) {
	t.Parallel()
	g := newGuard(nil, []uint16{80, 443})
	for _, address := range []string{
		"8.8.8.8:443", "1.1.1.1:80", "99.255.255.255:80", "100.128.0.1:80", "172.15.0.1:80", "172.32.0.1:80", "192.167.0.1:80",
		"198.17.0.1:80", "198.20.0.1:80", "223.255.255.255:443", "168.63.129.15:80",
	} {
		if err := g.control(context.Background(), "tcp4", address, nil); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, address := range []string{"[2606:4700:4700::1111]:443", "[2001:4860:4860::8888]:80", "[2a00:1450::5eff:1]:443"} {
		if err := g.control(context.Background(), "tcp6", address, nil); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestGuardRefusesOtherNetworksAndPorts(t *testing.T) {
	t.Parallel()
	g := newGuard(nil, []uint16{80, 443})
	for _, tt := range []struct{ network, address string }{
		{"udp4", "8.8.8.8:443"},
		{"udp6", "[2606:4700:4700::1111]:443"},
		{"unix", "/run/docker.sock"},
		{"ip4", "8.8.8.8"},
		{"tcp4", "8.8.8.8:22"},
		{"tcp4", "8.8.8.8:0"},
		{"tcp4", "8.8.8.8"},
		{"tcp4", "example.com:80"},
		{"tcp6", "[2606:4700:4700::1111%eth0]:443"},
		{"tcp6", "[::ffff:8.8.8.8]:80"},
	} {
		if err := g.control(context.Background(), tt.network, tt.address, nil); !errors.Is(err, ErrRefused) {
			t.Errorf("%s %s: got %v, want it refused", tt.network, tt.address, err)
		}
	}
}

func TestAllowOpensOnlyItsOwnPrefix(t *testing.T) {
	t.Parallel()
	g := newGuard([]netip.Prefix{
		netip.MustParsePrefix("10.1.0.0/16"),
		netip.MustParsePrefix("168.63.129.16/32"),
		netip.MustParsePrefix("fd00:1::/64"),
		netip.MustParsePrefix("2606:4700:0:0:0:5efe:a00:0/112"),
	}, []uint16{80})
	tests := map[string]bool{
		"10.1.2.3:80": true, "10.2.2.3:80": false, "10.1.2.3:81": false, "168.63.129.16:80": true,
		"[fd00:1::1]:80": true, "[fd00:2::1]:80": false, "[fd00:1::1%eth0]:80": false, "[::ffff:10.1.2.3]:80": false,
		"[2606:4700::5efe:a00:1]:80": true, "[2606:4700::5efe:b00:1]:80": false, "[2002:a01:203::]:80": false,
	}
	for address, want := range tests {
		network := "tcp4"
		if address[0] == '[' {
			network = "tcp6"
		}
		if err := g.control(context.Background(), network, address, nil); (err == nil) != want {
			t.Errorf("%s: got %v, want it allowed: %v", address, err, want)
		}
	}
}

func TestName(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 10_000)
	tests := []struct{ disposition, path, want string }{
		// The address, decoded once.
		{"", "/pictures/photo.jpg", "photo.jpg"},
		{"", "/pictures/", ""},
		{"", "", ""},
		{"", "/a%20b%C3%A4.jpg", "a bä.jpg"},
		{"", "/a%2520b.jpg", "a%20b.jpg"},
		{"", "/a%2F..%2fb.jpg", "b.jpg"},
		{"", "/a%5Cb.jpg", "b.jpg"},
		{"", "/a;b=c.jpg", "a;b=c.jpg"},
		// The name from the server comes first, and its extended form before the plain one.
		{`attachment; filename="photo.jpg"`, "/x.png", "photo.jpg"},
		{`inline; filename=photo.jpg`, "/x.png", "photo.jpg"},
		{`ATTACHMENT; FileName="photo.jpg"`, "/x.png", "photo.jpg"},
		{`attachment; filename="plain.jpg"; filename*=UTF-8''n%C3%A4me.jpg`, "/x.png", "näme.jpg"},
		{`attachment; filename*=utf-8'de'n%C3%A4me.jpg; filename="plain.jpg"`, "/x.png", "näme.jpg"},
		{`attachment; filename*=koi8-r''%C1.jpg; filename="plain.jpg"`, "/x.png", "а.jpg"},
		{`attachment; filename*=ISO-8859-1''caf%E9.jpg`, "/x.png", "café.jpg"},
		{`attachment; filename*=windows-1252''%805.jpg`, "/x.png", "€5.jpg"},
		{`attachment; filename*=x-unknown''%C1.jpg; filename="plain.jpg"`, "/x.png", "plain.jpg"},
		{`attachment; filename*=x-unknown''%C1.jpg`, "/x.png", "x.png"},
		{`attachment; filename*=UTF-8''%2525.jpg`, "/x.png", "%25.jpg"},
		{`attachment; filename*0="long-"; filename*1="name.jpg"`, "/x.png", "long-name.jpg"},
		{`attachment; filename="a \"b\".jpg"`, "/x.png", `a "b".jpg`},
		{"attachment; filename=\"n\u00e4me.jpg\"", "/x.png", "näme.jpg"},
		{`attachment; filename="%41.jpg"`, "/x.png", "%41.jpg"},
		// As senders encode it.
		{`attachment; filename="=?UTF-8?B?xYhlLmpwZw==?="`, "/x.png", "ňe.jpg"},
		{`attachment; filename="=?utf-8?B?Li4vYS8/LmpwZw==?="`, "/x.png", "?.jpg"},
		{"attachment; filename=\"\xe9.jpg\"", "/x.png", "é.jpg"},
		{"", "/a/%E9.jpg", "é.jpg"},
		{"", "/a/=%3Fwindows-1250%3FQ%3F=9E%3F=.jpg", "ž.jpg"},
		// Only its last segment.
		{`attachment; filename="../../etc/passwd"`, "/x.png", "passwd"},
		{`attachment; filename="/etc/passwd"`, "/x.png", "passwd"},
		{`attachment; filename="C:\dir\photo.jpg"`, "/x.png", "photo.jpg"},
		{`attachment; filename*=UTF-8''..%2F..%5Cphoto.jpg`, "/x.png", "photo.jpg"},
		// An invalid header is ignored.
		{`attachment`, "/x.png", "x.png"},
		{`attachment; filename=""`, "/x.png", "x.png"},
		{`attachment; filename="dir/"`, "/x.png", "x.png"},
		{`attachment; filename="a.jpg`, "/x.png", "x.png"},
		{`attachment; filename=a b.jpg`, "/x.png", "x.png"},
		{`attachment; filename="a.jpg"; filename="b.jpg"`, "/x.png", "x.png"},
		{`filename="a.jpg"`, "/x.png", "x.png"},
		{`attachment; filename*=UTF-8''%zz.jpg`, "/x.png", "x.png"},
		// Longer than any stored name, but bounded.
		{"attachment; filename=" + long, "/x.png", long[:maxName]},
		{"", "/" + long, long[:maxName]},
	}
	for _, tt := range tests {
		at, err := url.Parse("http://example.test" + tt.path)
		if err != nil {
			t.Fatal(err)
		}
		if got := name(tt.disposition, at); got != tt.want {
			t.Errorf("name(%.60q, %.60q) = %.60q, want %.60q", tt.disposition, tt.path, got, tt.want)
		}
	}
}
