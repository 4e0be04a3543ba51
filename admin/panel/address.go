package panel

import (
	"bytes"
	"cmp"
	"net"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// addresses returns the addresses of a panel that a server is provisioning, for the log: one for each
// host name of its site. A site without a host name is named by its listener, or localhost.
func addresses(server *caddyhttp.Server, path string) []string {
	if len(server.Listen) == 0 {
		return nil
	}
	host, port, err := net.SplitHostPort(server.Listen[0])
	if err != nil {
		return nil // a unix socket
	}
	scheme, usual := "http", "80"
	if len(server.TLSConnPolicies) > 0 {
		scheme, usual = "https", "443"
	}
	hosts := siteHosts(server.Routes)
	if len(hosts) == 0 {
		hosts = []string{cmp.Or(host, "localhost")}
	}
	all := make([]string, 0, len(hosts))
	for _, host := range hosts {
		all = append(all, scheme+"://"+strings.TrimSuffix(net.JoinHostPort(host, port), ":"+usual)+path)
	}
	return all
}

// siteHosts returns the host names of the first route with a panel that is not provisioned yet. Caddy
// drops the JSON of a handler when it has provisioned it.
func siteHosts(routes caddyhttp.RouteList) []string {
	for _, route := range routes {
		for _, handler := range route.HandlersRaw {
			if !bytes.Contains(handler, []byte(`"handler":"media_admin"`)) {
				continue
			}
			for _, set := range route.MatcherSets {
				for _, matcher := range set {
					if hosts, ok := matcher.(*caddyhttp.MatchHost); ok {
						return *hosts
					}
				}
			}
			return nil
		}
	}
	return nil
}
