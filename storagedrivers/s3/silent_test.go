package s3

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/options"
)

// mute is a service that does not respond to the requests for which silent returns true.
type mute struct {
	*httptest.Server
	mu     sync.Mutex
	silent func(*http.Request) bool
	asked  []string
}

func newMute(t *testing.T, silent func(*http.Request) bool) *mute {
	t.Helper()
	m := &mute{silent: silent}
	done := make(chan struct{})
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.mu.Lock()
		m.asked = append(m.asked, r.Method)
		m.mu.Unlock()
		if m.silent(r) {
			select {
			case <-done:
			case <-r.Context().Done():
			}
			return
		}
		if r.Method == http.MethodPost {
			_, _ = w.Write([]byte(`<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>`))
			return
		}
		w.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(m.Close)
	t.Cleanup(func() { close(done) }) // first
	return m
}

func (m *mute) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.asked)
}

func (m *mute) driver(t *testing.T) *driver {
	t.Helper()
	s := &service{config: Config{
		Endpoint: m.URL, AccessKeyID: "id", SecretAccessKey: "secret",
		Bucket: "bucket", Timeout: options.Duration(5 * time.Second),
	}}
	d := s.driver(t, s.config)
	t.Cleanup(func() { d.Close() })
	return d
}

// TestSilentService: a silent service gets one request, and another short one if the first may have
// been carried out.
func TestSilentService(t *testing.T) {
	t.Parallel()
	all := func(*http.Request) bool { return true }
	parts := func(r *http.Request) bool { return r.URL.Query().Has("partNumber") || r.Method == http.MethodDelete }
	for name, tt := range map[string]struct {
		silent func(*http.Request) bool
		known  bool // the service heeds conditions
		size   int
		opts   storagedrivers.PutOptions
		want   []string
	}{
		"experiment":  {all, false, 100, create, []string{"PUT", "DELETE"}},
		"whole":       {all, true, 100, create, []string{"PUT", "HEAD"}},
		"large":       {all, true, partSize + 1, create, []string{"HEAD"}},
		"large, over": {all, true, partSize + 1, overwrite, []string{"POST"}},
		"parts":       {parts, true, partSize + 1, overwrite, []string{"POST", "PUT", "PUT", "DELETE"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMute(t, tt.silent)
			d := m.driver(t)
			if tt.known {
				d.conditions.Store(&conditions{accepted: true, kept: true})
			}
			_, err := d.Put(t.Context(), "key", content('a', tt.size), tt.opts)
			test.Is(t, err, storagedrivers.ErrUnavailable)
			m.mu.Lock()
			defer m.mu.Unlock()
			test.Same(t, m.asked, tt.want, "asked")
		})
	}
}

// TestSharedExperiment: a caller that has waited for an experiment without a response makes no
// other.
func TestSharedExperiment(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	m := newMute(t, func(*http.Request) bool { return true })
	d := m.driver(t)
	now := time.Unix(1000, 0)
	d.now = func() time.Time {
		now = now.Add(time.Second)
		return now
	}
	_, first := d.knownConditions(t.Context())
	if !errors.Is(first, storagedrivers.ErrUnavailable) {
		t.Fatalf("error %v, want unavailable", first)
	}
	probes := m.count()
	last := d.unanswered.Load()
	d.unanswered.Store(&unanswered{now.Add(time.Hour), last.err}) // the next caller asks before
	if _, err := d.knownConditions(t.Context()); !errors.Is(err, first) || m.count() != probes {
		t.Errorf("error %v after %d requests, want that of the first after %d", err, m.count(), probes)
	}
	d.unanswered.Store(last)
	if _, err := d.knownConditions(t.Context()); err == nil || m.count() == probes {
		t.Errorf("error %v after %d requests, want a new experiment", err, m.count())
	}
}
