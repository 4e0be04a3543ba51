package plugin

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddymedia/media/caddymedia/internal/service"
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

// TestHandlerOptions: the client and its proxy are those that Caddy determines, not those in headers of
// the request.
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

// TestHandlerErrors: handle_errors handles the errors of the service, and the next handler serves other
// addresses.
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
