package panel

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddytls"
)

func TestAddresses(t *testing.T) {
	t.Parallel()
	route := func(handler string, hosts ...string) caddyhttp.Route {
		r := caddyhttp.Route{HandlersRaw: []json.RawMessage{json.RawMessage(handler)}}
		if hosts != nil {
			match := caddyhttp.MatchHost(hosts)
			r.MatcherSets = caddyhttp.MatcherSets{{&match}}
		}
		return r
	}
	const nested = `{"handler":"subroute","routes":[{"handle":[{"handler":"media_admin"}]}]}`
	https := caddytls.ConnectionPolicies{new(caddytls.ConnectionPolicy)}
	for name, tt := range map[string]struct {
		server *caddyhttp.Server
		want   []string
	}{
		"no host": {
			&caddyhttp.Server{Listen: []string{":8080"}, Routes: caddyhttp.RouteList{route(nested)}},
			[]string{"http://localhost:8080/media-admin/"},
		},
		"listener": {
			&caddyhttp.Server{Listen: []string{"127.0.0.1:80"}, Routes: caddyhttp.RouteList{route(nested)}},
			[]string{"http://127.0.0.1/media-admin/"},
		},
		"IPv6": {
			&caddyhttp.Server{Listen: []string{"[::1]:80"}, Routes: caddyhttp.RouteList{route(nested)}},
			[]string{"http://[::1]/media-admin/"},
		},
		"hosts": {
			&caddyhttp.Server{Listen: []string{":443"}, TLSConnPolicies: https, Routes: caddyhttp.RouteList{
				route(`{"handler":"media"}`, "other.example.com"), route(nested, "a.example.com", "b.example.com"),
			}},
			[]string{"https://a.example.com/media-admin/", "https://b.example.com/media-admin/"},
		},
		"another port": {
			&caddyhttp.Server{Listen: []string{":8443"}, TLSConnPolicies: https, Routes: caddyhttp.RouteList{route(nested, "a.example.com")}},
			[]string{"https://a.example.com:8443/media-admin/"},
		},
		"unix socket": {&caddyhttp.Server{Listen: []string{"unix//run/caddy.sock"}}, nil},
		"nothing":     {new(caddyhttp.Server), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := addresses(tt.server, "/media-admin/"); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
