package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/cloudtest"
	"github.com/caddymedia/media/storagedrivers/internal/test"
	"github.com/caddymedia/media/storagedrivers/options"
)

var (
	create    = storagedrivers.PutOptions{Mode: storagedrivers.CreateOnly}
	overwrite = storagedrivers.PutOptions{Mode: storagedrivers.Overwrite}
)

// sizes of an object that is sent whole, and of one that is sent in parts.
var sizes = map[string]int{"whole": 100, "parts": partSize + 100}

func content(letter byte, size int) *bytes.Reader {
	return bytes.NewReader(bytes.Repeat([]byte{letter}, size))
}

func put(t *testing.T, d *driver, key string, r io.ReadSeeker, opts storagedrivers.PutOptions) storagedrivers.Info {
	t.Helper()
	info, err := d.Put(t.Context(), key, r, opts)
	test.Must(t, err, "storing", key)
	return info
}

// has asserts that key contains size letters.
func has(t *testing.T, d *driver, key string, letter byte, size int) {
	t.Helper()
	body, info, err := d.Open(t.Context(), key, storagedrivers.Range{})
	if err != nil {
		t.Errorf("opening %s: %v", key, err)
		return
	}
	defer body.Close()
	got, err := io.ReadAll(body)
	if err != nil || info.Size != int64(size) || !bytes.Equal(got, bytes.Repeat([]byte{letter}, size)) {
		t.Errorf("%s holds %d bytes, info of %d, error %v, want %d of %c", key, len(got), info.Size, err, size, letter)
	}
}

// commits reports whether a request makes an object appear.
func commits(r *http.Request) bool {
	query := r.URL.Query()
	return r.Method == http.MethodPut && !query.Has("partNumber") || r.Method == http.MethodPost && query.Has("uploadId")
}

// both runs a test with the service in the process and with the real one.
func both(t *testing.T, test func(t *testing.T, s *service)) {
	t.Helper()
	t.Run("gofakes3", func(t *testing.T) {
		t.Parallel()
		test(t, fake(t))
	})
	t.Run("versitygw", func(t *testing.T) {
		t.Parallel()
		test(t, real(t))
	})
}

func holds(t *testing.T, d *driver, want []string) {
	t.Helper()
	got := leftovers(t, d)
	slices.Sort(got)
	slices.Sort(want)
	test.Same(t, got, want, "the bucket has")
}

func TestLostReply(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *service) { cloudtest.LostReply(t, s.cloud(conditions{accepted: true})) })
}

func TestRepeatedRequest(t *testing.T) {
	t.Parallel()
	cloudtest.RepeatedRequest(t, real(t).cloud(conditions{accepted: true, kept: true}))
}

func TestCancelledCommit(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *service) { cloudtest.CancelledCommit(t, s.cloud(conditions{accepted: true})) })
}

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

// TestWithoutLength: an object whose length a proxy has removed has all its bytes, or is an error.
func TestWithoutLength(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		head string // Content-Length
		tag  string
		fail bool
	}{
		"download":            {"7", `"tag"`, false},
		"download and status": {"", `"tag"`, true},
		"another object":      {"7", `"other"`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("X-Amz-Request-Id", "1")
				w.Header().Set("ETag", `"tag"`)
				if r.Method != http.MethodHead {
					_, _ = io.WriteString(w, "con")
					w.(http.Flusher).Flush()
					_, _ = io.WriteString(w, "tent")
					return
				}
				w.Header().Set("ETag", tt.tag)
				if tt.head != "" {
					w.Header().Set("Content-Length", tt.head)
				}
			}))
			t.Cleanup(s.Close)
			d := (&mute{Server: s}).driver(t)
			for rng, want := range map[storagedrivers.Range]string{{}: "content", {Offset: 2, Length: 3}: "nte"} {
				body, info, err := d.Open(t.Context(), "key", rng)
				if tt.fail {
					test.Fails(t, err, "open")
					continue
				}
				test.Must(t, err)
				b, err := io.ReadAll(body)
				test.Must(t, errors.Join(err, body.Close()))
				test.Equal(t, string(b), want)
				test.Equal(t, info.Size, 7, "the size")
			}
			if _, err := d.Stat(t.Context(), "key"); (err != nil) != (tt.head == "") {
				t.Errorf("stat: %v", err)
			}
		})
	}
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

// TestUploadsShareMemory: uploads wait for room, continue with the room that is left, and release
// it when their callers cancel.
func TestUploadsShareMemory(t *testing.T) {
	t.Parallel()
	s := fake(t)
	d := s.driver(t, s.fresh(t))
	defer d.Close()
	if !d.buffers.room.TryAcquire(maxBuffered - partSize) {
		t.Fatal("there is no room")
	}
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			_, err := d.Put(t.Context(), fmt.Sprint(i), content('a', 2*partSize), create)
			test.Is(t, err, nil)
		})
	}
	group.Wait()
	_, release, err := d.buffers.get(t.Context(), partSize)
	test.Must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	for _, size := range sizes {
		_, err := d.Put(ctx, "none", content('a', size), overwrite)
		test.Is(t, err, context.DeadlineExceeded, "storing", size, "bytes without room")
	}
	release()
	put(t, d, "object", content('a', 2*partSize), overwrite)
	holds(t, d, []string{"0", "1", "2", "3", "object"})
}

// unknown is a source whose size is not known.
type unknown struct{ io.ReadSeeker }

func (u unknown) Seek(offset int64, whence int) (int64, error) {
	if whence == io.SeekEnd {
		return 0, storagedrivers.ErrSizeUnknown
	}
	return u.ReadSeeker.Seek(offset, whence)
}

// TestStreamsHaveTheirOwnMemory: a source of unknown size does not wait for memory, and takes none
// of that of other uploads.
func TestStreamsHaveTheirOwnMemory(t *testing.T) {
	t.Parallel()
	s := fake(t)
	d := s.driver(t, s.fresh(t))
	defer d.Close()
	if !d.buffers.room.TryAcquire(maxBuffered) || !d.streams.room.TryAcquire(maxStreamed-partSize) {
		t.Fatal("there is no room")
	}
	store := func(key string) error {
		_, err := d.Put(t.Context(), key, unknown{content('a', 3*partSize+1)}, create)
		return err
	}
	test.Is(t, store("object"), nil)
	if !d.streams.room.TryAcquire(partSize) {
		t.Fatal("the object has kept its memory")
	}
	test.Is(t, store("other"), storagedrivers.ErrBusy, "storing without room")
	holds(t, d, []string{"object"})
}
