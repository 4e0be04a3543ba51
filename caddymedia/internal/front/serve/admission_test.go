package serve

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/front/caller"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
)

// gate returns the gate of no service.
func gate(options caller.Options) *caller.Gate {
	return caller.New[*service.Service](nil, options)
}

func TestAdmissions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const limit = 3
		r := newAdmissions(100)
		leave := make([]func(), 0, limit)
		for range limit {
			done, err := r.enter(t.Context(), clientOwner("192.0.2.1"), limit)
			if err != nil {
				t.Fatal(err)
			}
			leave = append(leave, done)
		}
		start := time.Now()
		if _, err := r.enter(t.Context(), clientOwner("192.0.2.1"), limit); !errors.Is(err, errClientBusy) || time.Since(start) != admissionPatience {
			t.Errorf("one more: error %v after %v", err, time.Since(start))
		}
		other, err := r.enter(t.Context(), clientOwner("192.0.2.2"), limit)
		if err != nil {
			t.Errorf("another client: %v", err)
		}
		other()
		var waiting sync.WaitGroup
		waiting.Go(func() {
			done, err := r.enter(t.Context(), clientOwner("192.0.2.1"), limit)
			if err != nil {
				t.Errorf("one that waits: %v", err)
				return
			}
			done()
		})
		ctx, cancel := context.WithCancel(t.Context())
		waiting.Go(func() {
			if _, err := r.enter(ctx, clientOwner("192.0.2.1"), limit); !errors.Is(err, context.Canceled) {
				t.Errorf("one that stops waiting: %v", err)
			}
		})
		synctest.Wait()
		cancel()
		synctest.Wait()
		leave[0]()
		waiting.Wait()
		for _, done := range leave[1:] {
			done()
		}
		if n := r.clients.Busy() + int(r.open.Used()); n != 0 {
			t.Errorf("%d are open, want none", n)
		}
	})
}

// TestAdmissionsWaiting: in a full queue, further requests of a client are refused at once. Package
// queue tests the order of those that wait.
func TestAdmissionsWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newAdmissions(2) // of which one client gets one
		leave, err := r.enter(t.Context(), clientOwner("192.0.2.1"), 1)
		if err != nil {
			t.Fatal(err)
		}
		var waiting sync.WaitGroup
		for range 2 {
			waiting.Go(func() {
				done, err := r.enter(t.Context(), clientOwner("192.0.2.1"), 1)
				if err != nil {
					t.Error(err)
					return
				}
				done()
			})
		}
		synctest.Wait()
		start := time.Now()
		if _, err := r.enter(t.Context(), clientOwner("192.0.2.1"), 1); !errors.Is(err, errClientBusy) || time.Since(start) != 0 {
			t.Errorf("one too many: error %v after %v", err, time.Since(start))
		}
		leave()
		waiting.Wait()
	})
}

// TestAdmissionsOfAll: a client may have as many items open as it leaves free, so that another one
// can still open some.
func TestAdmissionsOfAll(t *testing.T) {
	t.Parallel()
	r := newAdmissions(8)
	var leave []func()
	for _, c := range []struct {
		client string
		want   int
	}{{"2001:db8::1", 4}, {"2001:db8::2", 0}, {"2001:db8:0:1::1", 2}, {"192.0.2.1", 1}} {
		for n := 0; ; n++ {
			done, err := r.enter(t.Context(), clientOwner(c.client), 10)
			if err == nil {
				leave = append(leave, done)
				continue
			}
			if n != c.want || !errors.Is(err, errAllBusy) {
				t.Errorf("%s opened %d, error %v", c.client, n, err)
			}
			break
		}
	}
	for _, done := range leave {
		done()
	}
	if n := r.clients.Busy() + int(r.open.Used()); n != 0 {
		t.Errorf("%d are open, want none", n)
	}
}

func TestClientOwner(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b string
		same bool
	}{
		{"192.0.2.1", "::ffff:192.0.2.1", true},
		{"192.0.2.1", "192.0.2.2", false},
		{"2001:db8::1", "2001:db8::ffff", true},
		{"2001:db8::1", "2001:db8:0:1::1", false},
		{"fe80::1%eth0", "fe80::1", true},
		{"", "no address", true},
	} {
		if got := clientOwner(tt.a) == clientOwner(tt.b); got != tt.same {
			t.Errorf("%q and %q are one client: %t", tt.a, tt.b, got)
		}
	}
}

// TestAdmissionEndsOnce: an admission that ended early is not released again with its request.
func TestAdmissionEndsOnce(t *testing.T) {
	t.Parallel()
	s := &Server{admissions: newAdmissions(4)}
	a, other := &admission{limit: 4}, &admission{limit: 4}
	for _, a := range []*admission{a, a, other} {
		if err := s.enter(t.Context(), a, http.MethodGet); err != nil {
			t.Fatal(err)
		}
	}
	a.end()
	a.end()
	if n := s.admissions.clients.Busy(); n != 1 {
		t.Errorf("%d are open, want one", n)
	}
	other.end()
}

// TestAdmission: redirects and HEAD requests are answered even if no further item may be opened.
func TestAdmission(t *testing.T) {
	t.Parallel()
	alias, _, _ := memoryAlias(t)
	store(t, alias, "a.jpg", "image")
	store(t, alias, "a.svg", "<svg/>")
	s := New(gate(caller.Options{}))
	s.admissions = newAdmissions(0)
	get := func(filename string) error {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		return s.serve(r.Context(), nil, httptest.NewRecorder(), r, target{alias: alias, filename: filename}, &admission{limit: 1})
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
	admitted := &admission{limit: 1}
	if err := s.enter(t.Context(), admitted, http.MethodHead); err != nil {
		t.Errorf("HEAD: %v", err)
	}
	admitted.end()
}

// TestBusyClientWarning: the log names the options once an hour.
func TestBusyClientWarning(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	now := time.Unix(10_000, 0)
	s := New(gate(caller.Options{Log: slog.New(slog.NewTextHandler(&log, nil)), Now: func() time.Time { return now }}))
	s.admissions = newAdmissions(1)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	r.RemoteAddr = "192.0.2.1:1234"
	for _, later := range []time.Duration{0, time.Minute, time.Hour} {
		now = now.Add(later)
		s.warnOfBusyClient(r, 3)
	}
	if got := log.String(); strings.Count(got, "client=192.0.2.1 max_open_items=3\n") != 2 || strings.Count(got, "\n") != 2 {
		t.Errorf("logged %s", got)
	}
}
