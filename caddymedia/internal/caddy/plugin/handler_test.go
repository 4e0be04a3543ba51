package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddytls"

	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/caddymedia/mediahttp"
	"github.com/caddymedia/media/caddymedia/tokens/memory"
)

func TestMountPrefix(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ original, path, want string }{
		{"/api/upload/file", "/api/upload/file", ""},
		{"/media/api/upload/file", "/api/upload/file", "/media"},
		{"/a/b/api/upload/file?alias=x", "/api/upload/file", "/a/b"},
		{"/m%20%C3%A9/api/upload/file", "/api/upload/file", "/m%20%C3%A9"},
		{"/put", "/api/upload/file", ""},
		{"//evil.example/api/upload/file", "/api/upload/file", ""},
	} {
		original := httptest.NewRequest(http.MethodPost, "http://example.com"+c.original, nil)
		r := httptest.NewRequest(http.MethodPost, c.path, nil)
		r = r.WithContext(context.WithValue(r.Context(), caddyhttp.OriginalRequestCtxKey, *original))
		if got := MountPrefix(r); got != c.want {
			t.Errorf("%s for %s: prefix %q, want %q", c.path, c.original, got, c.want)
		}
	}
	if got := MountPrefix(httptest.NewRequest(http.MethodPost, "/api/upload/file", nil)); got != "" {
		t.Errorf("without an original request: prefix %q", got)
	}
}

// TestHandlerOptions: the client and its proxy are those that Caddy determines, not those in
// headers of the request.
func TestHandlerOptions(t *testing.T) {
	t.Parallel()
	options := HandlerOptions(nil)
	for _, c := range []struct {
		client  any
		trusted any
		want    string
	}{
		{"192.0.2.1", true, "192.0.2.1"},
		{"2001:db8::1", false, "2001:db8::1"},
		{"@", nil, "@"},
		{"", nil, ""},
		{5, 1, ""},
		{nil, nil, ""},
	} {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.Header.Set("X-Forwarded-For", "198.51.100.1")
		vars := map[string]any{caddyhttp.ClientIPVarKey: c.client, caddyhttp.TrustedProxyVarKey: c.trusted}
		r = r.WithContext(context.WithValue(r.Context(), caddyhttp.VarsCtxKey, vars))
		if got := options.Client(r); got != c.want {
			t.Errorf("client %v is %q, want %q", c.client, got, c.want)
		}
		if got := options.TrustedProxy(r); got != (c.trusted == true) {
			t.Errorf("trusted %v: %t", c.trusted, got)
		}
	}
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	if options.Client(r) != "" || options.TrustedProxy(r) {
		t.Error("a request without variables has a client or a proxy")
	}
}

// TestHandlerErrors: handle_errors handles the errors of the service, and the next handler serves
// other addresses.
func TestHandlerErrors(t *testing.T) {
	t.Parallel()
	closed, err := media.New(media.Config{Tokens: memory.New(nil)})
	if err == nil {
		err = closed.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	h := &Handler{contract: mediahttp.New(closed, mediahttp.Options{})}
	next := 0
	serve := func(target string) error {
		r := httptest.NewRequest(http.MethodGet, target, nil)
		return h.ServeHTTP(httptest.NewRecorder(), r, caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error {
			next++
			return nil
		}))
	}
	if err := serve("/elsewhere"); err != nil || next != 1 {
		t.Errorf("another address: error %v, %d went on", err, next)
	}
	failed, ok := errors.AsType[caddyhttp.HandlerError](serve("/static/img/content/a.png"))
	if !ok || failed.StatusCode != http.StatusServiceUnavailable || !errors.Is(failed, service.ErrClosed) || next != 1 {
		t.Errorf("a closed service: %+v, %d went on", failed, next)
	}
}

// TestUseOutlivesReloads: Use returns the running app, even after several reloads during the call.
func TestUseOutlivesReloads(t *testing.T) {
	t.Parallel()
	apps := make([]*App, 3)
	for i := range apps {
		service, err := media.New(media.Config{Tokens: memory.New(nil)})
		if err != nil {
			t.Fatal(err)
		}
		apps[i] = &App{service: service}
	}
	first, second, third := apps[0], apps[1], apps[2]
	running := []*App{second, third}
	active := func() (*App, error) {
		app := running[0]
		if len(running) > 1 {
			running = running[1:]
		}
		return app, nil
	}
	for _, gone := range []*App{first, second} {
		if err := gone.service.Close(); err != nil {
			t.Fatal(err)
		}
	}
	app, release, err := first.use(active)
	if err != nil || app != third {
		t.Fatalf("got %p, error %v, want %p", app, err, third)
	}
	release()
	if err := third.service.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := first.use(active); err == nil {
		t.Error("a closed app can be used")
	}
}

// TestAddresses: the addresses are those of the site with the handler.
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
			if got := Addresses(tt.server, "media_admin", "localhost", "/media-admin/"); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
