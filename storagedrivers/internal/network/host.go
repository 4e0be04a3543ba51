package network

import (
	"net"
	"net/netip"
	"slices"
	"strings"
)

// Host returns the host of an address, and its port unless that is one of defaults, in one
// spelling: lower case, without a dot at the end, IP addresses in their shortest form.
func Host(address string, defaults ...string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		host, port = strings.Trim(address, "[]"), ""
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if ip, err := netip.ParseAddr(host); err == nil {
		host = ip.Unmap().String()
	}
	if port == "" || slices.Contains(defaults, port) {
		return host
	}
	return net.JoinHostPort(host, port)
}

// ServiceHost is [Host] for the URL of a service. It includes the path, but not the scheme.
func ServiceHost(address string) string {
	_, rest, _ := strings.Cut(address, "://")
	host, path, _ := strings.Cut(rest, "/")
	return strings.TrimRight(Host(host, "80", "443")+"/"+path, "/")
}

// WithoutScheme returns a URL without its scheme, for display.
func WithoutScheme(address string) string {
	return strings.TrimPrefix(strings.TrimPrefix(address, "https://"), "http://")
}

// Login returns the folder of a user on a host, for display: "user@host ~/folder".
func Login(user, address, root string) string {
	where := address
	if user != "" {
		where = user + "@" + address
	}
	switch {
	case root == "":
		return where
	case strings.HasPrefix(root, "/"):
		return where + " " + root
	}
	return where + " ~/" + root
}
