package mediahttp_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddymedia/media/caddymedia/mediaapp"
	"github.com/caddymedia/media/caddymedia/mediahttp"
	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/caddymedia/tokens/memory"
)

func init() { caddy.RegisterModule(failingModule{}) }

// failingModule keeps tokens in memory, and can be set to fail.
type failingModule struct{ memory.Module }

// CaddyModule returns the Caddy module information.
func (failingModule) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "media.tokens.failing", New: func() caddy.Module { return new(failingModule) }}
}

func (*failingModule) PoolKey() string { return "failing" }

func (*failingModule) NewStore(*slog.Logger) (tokens.Store, error) {
	return failingStore{memory.New(nil)}, nil
}

type failingStore struct{ *memory.Store }

var storeFails atomic.Bool

func (s failingStore) Load(ctx context.Context, id tokens.ID) (tokens.Record, error) {
	if storeFails.Load() {
		return tokens.Record{}, tokens.ErrUnavailable
	}
	return s.Store.Load(ctx, id)
}

// service is the handler in a Caddy without a server of its own.
type service struct {
	root    string
	handler *mediahttp.Handler
}

const (
	someKey = "site"
	// someHash is that of "password".
	someHash = "$2a$04$Km6xKM3vpXmHK6LBvvu7kekjfRE3UocbP0r1wFiaUowapdygQGJ6y"
)

// configure runs a configuration of the media app with accounts and limits.
func (s *service) configure(t *testing.T, accounts, limits map[string]any) {
	t.Helper()
	err := caddy.Run(&caddy.Config{
		Admin: &caddy.AdminConfig{Disabled: true, Config: &caddy.ConfigSettings{Persist: new(bool)}},
		Logging: &caddy.Logging{Logs: map[string]*caddy.CustomLog{
			"default": {BaseLog: caddy.BaseLog{WriterRaw: json.RawMessage(`{"output":"discard"}`)}},
		}},
		AppsRaw: caddy.ModuleMap{"media": mustJSON(t, map[string]any{
			"tokens": map[string]any{"store": "failing"}, "accounts": accounts, "limits": limits,
			"storages": map[string]any{
				"main": map[string]any{"driver": map[string]any{"name": "local", "root": s.root}, "sub_folder_format": "/"},
			},
			"file_aliases": map[string]any{"one": map[string]any{"storage": "main"}, "two": map[string]any{"storage": "main"}},
		})},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// serve runs a service with one account, until the end of the test.
func serve(t *testing.T, limits map[string]any) *service {
	t.Helper()
	s := &service{root: filepath.Join(t.TempDir(), "items"), handler: new(mediahttp.Handler)}
	s.configure(t, oneAccount(), limits)
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := s.handler.Provision(caddy.ActiveContext()); err != nil {
		t.Fatal(err)
	}
	return s
}

func oneAccount(aliases ...string) map[string]any {
	return map[string]any{someKey: map[string]any{"password_hash": someHash, "aliases": aliases}}
}

func (s *service) token(t *testing.T) string {
	t.Helper()
	app, err := mediaapp.Active()
	if err != nil {
		t.Fatal(err)
	}
	token, _, err := app.Issuer().Issue(t.Context(), someKey, "password", netip.Addr{})
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// upload answers an upload of body.
func (s *service) upload(t *testing.T, token string, body io.Reader) (status int, header http.Header, text string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/upload/file?alias=one", body)
	r.Header.Set("Content-Type", multipartType)
	r.Header.Set("Authorization", "Bearer "+token)
	r = r.WithContext(context.WithValue(r.Context(), caddyhttp.VarsCtxKey, map[string]any{}))
	w := httptest.NewRecorder()
	if err := s.handler.ServeHTTP(w, r, caddyhttp.HandlerFunc(nil)); err != nil {
		t.Error(err)
	}
	return w.Code, w.Header(), w.Body.String()
}

// meanwhile calls between when half of a body was read.
type meanwhile struct {
	first, second io.Reader
	between       func()
}

func (m *meanwhile) Read(p []byte) (int, error) {
	n, err := m.first.Read(p)
	if err != io.EOF {
		return n, err
	}
	if m.between != nil {
		m.between()
		m.between = nil
	}
	return m.second.Read(p)
}

// TestRightsEndDuringUpload stores nothing of an upload whose account has lost its rights since it began.
func TestRightsEndDuringUpload(t *testing.T) { // not parallel: Caddy has globals
	end := func(t *testing.T, _ *service) {
		app, err := mediaapp.Active()
		if err == nil {
			_, err = app.Issuer().Revoke(t.Context(), someKey)
		}
		if err != nil {
			t.Error(err)
		}
	}
	for _, c := range []struct {
		name   string
		change func(*testing.T, *service)
		want   int
	}{
		{"nothing changes", func(*testing.T, *service) {}, 200},
		{"other limits", func(t *testing.T, s *service) { s.configure(t, oneAccount(), map[string]any{"max_files": 3}) }, 200},
		{"account removed", func(t *testing.T, s *service) { s.configure(t, nil, nil) }, 401},
		{"alias withdrawn", func(t *testing.T, s *service) { s.configure(t, oneAccount("two"), nil) }, 401},
		{"tokens ended", end, 401},
		{"tokens ended after a reload", func(t *testing.T, s *service) {
			s.configure(t, oneAccount(), map[string]any{"max_files": 4})
			end(t, s)
		}, 401},
		{"token store unavailable", func(*testing.T, *service) { storeFails.Store(true) }, 503},
		{"Caddy stops", func(t *testing.T, _ *service) {
			if err := caddy.Stop(); err != nil {
				t.Error(err)
			}
		}, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, nil)
			t.Cleanup(func() { storeFails.Store(false) })
			form := formOf(t, "late.txt")
			status, header, text := s.upload(t, s.token(t), &meanwhile{
				first: strings.NewReader(form[:len(form)/2]), second: strings.NewReader(form[len(form)/2:]),
				between: func() { c.change(t, s) },
			})
			if status != c.want {
				t.Errorf("%d %s, want %d", status, text, c.want)
			}
			if status == 401 && header.Get("WWW-Authenticate") == "" || status == 503 && header.Get("Retry-After") == "" {
				t.Errorf("%d with the header %v", status, header)
			}
			_, err := os.Stat(filepath.Join(s.root, "file", "one", "late.txt"))
			if stored := err == nil; stored != (c.want == 200) || err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Errorf("stored: %v, %v", stored, err)
			}
		})
	}
}
