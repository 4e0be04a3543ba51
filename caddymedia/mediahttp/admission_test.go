package mediahttp

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/item"
)

// TestAdmission: redirects and HEAD requests are answered even if no further item may be opened.
func TestAdmission(t *testing.T) {
	t.Parallel()
	alias, _, _ := memoryAlias(t)
	store(t, alias, "a.jpg", "picture")
	store(t, alias, "a.svg", "<svg/>")
	h := New(nil, Options{})
	h.readers = newReaders(0)
	get := func(filename string) error {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		return h.serve(nil, httptest.NewRecorder(), r, target{alias: alias, filename: filename}, &admission{limit: 1})
	}
	if err := get("a.jpg"); !errors.Is(err, errAllBusy) {
		t.Errorf("an item: error %v, want busy", err)
	}
	alias.Redirect = &item.Redirect{Base: "https://example.com"}
	if err := get("a.jpg"); err != nil {
		t.Errorf("a redirect: %v", err)
	}
	if err := get("a.svg"); !errors.Is(err, errAllBusy) {
		t.Errorf("an item that is not redirected: error %v, want busy", err)
	}
	head := httptest.NewRequestWithContext(t.Context(), http.MethodHead, "/", nil)
	admitted := &admission{limit: 1}
	if err := h.enter(admitted, head); err != nil {
		t.Errorf("HEAD: %v", err)
	}
	admitted.end()
}

// TestBusyClientWarning: the log names the options once an hour.
func TestBusyClientWarning(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	now := time.Unix(10_000, 0)
	h := New(nil, Options{Log: slog.New(slog.NewTextHandler(&log, nil)), Now: func() time.Time { return now }})
	h.readers = newReaders(1)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	r.RemoteAddr = "192.0.2.1:1234"
	for _, later := range []time.Duration{0, time.Minute, time.Hour} {
		now = now.Add(later)
		h.warnOfBusyClient(r, 3)
	}
	if got := log.String(); strings.Count(got, "client=192.0.2.1 max_open_items=3\n") != 2 || strings.Count(got, "\n") != 2 {
		t.Errorf("logged %s", got)
	}
}
