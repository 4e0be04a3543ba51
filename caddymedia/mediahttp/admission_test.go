package mediahttp

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddymedia/media/caddymedia/ingest"
)

// TestAdmission: redirects and HEAD are answered while no item more may be open.
func TestAdmission(t *testing.T) {
	t.Parallel()
	alias, _, _ := memoryAlias(t)
	store(t, alias, "a.jpg", "picture")
	store(t, alias, "a.svg", "<svg/>")
	h := &Handler{readers: newReaders(0)}
	get := func(filename string) error {
		r := httptest.NewRequestWithContext(from(t, "192.0.2.1"), http.MethodGet, "/", nil)
		return h.serve(nil, httptest.NewRecorder(), r, alias, filename, &admission{readers: h.readers, limit: 1})
	}
	if err := get("a.jpg"); !errors.Is(err, errAllBusy) {
		t.Errorf("an item: error %v, want busy", err)
	}
	alias.Redirect = &ingest.Redirect{Base: "https://example.com"}
	if err := get("a.jpg"); err != nil {
		t.Errorf("a redirect: %v", err)
	}
	if err := get("a.svg"); !errors.Is(err, errAllBusy) {
		t.Errorf("an item that is not redirected: error %v, want busy", err)
	}
	head := httptest.NewRequestWithContext(from(t, "192.0.2.1"), http.MethodHead, "/", nil)
	admitted := &admission{readers: h.readers, limit: 1}
	if err := admitted.enter(head); err != nil {
		t.Errorf("HEAD: %v", err)
	}
	admitted.end()
}

// TestBusyClientWarning: the log names the options once an hour.
func TestBusyClientWarning(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zap.WarnLevel)
	now := time.Unix(10_000, 0)
	h := &Handler{readers: newReaders(1), log: zap.New(core), now: func() time.Time { return now }}
	for _, later := range []time.Duration{0, time.Minute, time.Hour} {
		now = now.Add(later)
		h.warnOfBusyClient(from(t, "192.0.2.1"), 3)
	}
	if logs.Len() != 2 || logs.All()[0].ContextMap()["client"] != "192.0.2.1" {
		t.Errorf("logged %v", logs.All())
	}
}
