package gcs

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	gcsdk "cloud.google.com/go/storage"
	"github.com/fsouza/fake-gcs-server/fakestorage"
	"go.uber.org/goleak"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
	"github.com/caddymedia/media/storagedrivers/internal/test"
	"github.com/caddymedia/media/storagedrivers/options"
)

func TestMain(m *testing.M) {
	drivertest.Waiting()
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"))
}

// inProcess starts a server within the process of the test.
func inProcess(t testing.TB) servers.GCS {
	t.Helper()
	server, err := fakestorage.NewServerWithOptions(fakestorage.Options{Scheme: "http", PublicHost: "127.0.0.1"})
	test.Must(t, err)
	t.Cleanup(server.Stop)
	return servers.GCS{Endpoint: server.URL()}
}

var buckets atomic.Int64

// newBucket creates an empty bucket and returns its name.
func newBucket(t testing.TB, server servers.GCS) string {
	t.Helper()
	name := fmt.Sprintf("media-test-%d", buckets.Add(1))
	server.Bucket(t, name)
	return name
}

// open returns a driver.
func open(t testing.TB, c Config) *driver {
	t.Helper()
	d, err := newDriver(c)
	test.Must(t, err)
	return d
}

// opened is open, but the driver is closed at the end of the test.
func opened(t testing.TB, c Config) *driver {
	t.Helper()
	d := open(t, c)
	t.Cleanup(func() {
		test.Is(t, d.Close(), nil, "closing")
	})
	return d
}

// harness returns a harness with a new bucket for each test.
func harness(server servers.GCS, prefix string) drivertest.Harness {
	bucketName := func(t *testing.T) string {
		return "b" + strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
				return r
			}
			return '-'
		}, strings.ToLower(t.Name())) + "b"
	}
	driver := func(t *testing.T) storagedrivers.Driver {
		return open(t, Config{Bucket: bucketName(t), Endpoint: server.Endpoint, Prefix: prefix})
	}
	return drivertest.Harness{
		New: func(t *testing.T) storagedrivers.Driver {
			server.Bucket(t, bucketName(t))
			return driver(t)
		},
		Another: driver,
		Leftovers: func(t *testing.T) []string {
			names := server.Objects(t, bucketName(t))
			for i, name := range names {
				names[i] = strings.TrimPrefix(name, prefix+"/")
			}
			return names
		},
		IgnoresConditions: true,
		Address:           strings.TrimPrefix(server.Endpoint, "http://"),
		Through: func(t *testing.T, address string, timeout time.Duration) storagedrivers.Driver {
			return open(t, Config{
				Bucket: bucketName(t), Endpoint: "http://" + address, Prefix: prefix, Timeout: options.Duration(timeout),
			})
		},
	}
}

func TestConformance(t *testing.T) {
	h := harness(inProcess(t).WithRewrites(t), "")
	h.NoMemoryTest = true
	drivertest.Run(t, h)
}

// TestConformanceFakeGCSServer also runs with a prefix.
func TestConformanceFakeGCSServer(t *testing.T) {
	_, server := servers.FakeGCS(t)
	h := harness(server.WithRewrites(t), "some/folder")
	h.OtherServer = true
	drivertest.Run(t, h)
}

// store stores an object like another program.
func store(t *testing.T, d *driver, name string, content []byte, change func(*gcsdk.Writer)) {
	t.Helper()
	client, err := d.connect(t.Context())
	test.Must(t, err)
	w := client.bucket.Object(name).NewWriter(t.Context())
	if change != nil {
		change(w)
	}
	if _, err = w.Write(content); err == nil {
		err = w.Close()
	}
	test.Must(t, err)
}

// TestContentEncoding: an object is returned as stored, even if browsers would get it decompressed.
func TestContentEncoding(t *testing.T) {
	t.Parallel()
	server := inProcess(t)
	d := opened(t, Config{Bucket: newBucket(t, server), Endpoint: server.Endpoint})
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write(make([]byte, 10_000))
	_ = w.Close()
	store(t, d, "text.txt", packed.Bytes(), func(w *gcsdk.Writer) { w.ContentEncoding = "gzip" })
	for _, rng := range []storagedrivers.Range{{}, {Offset: 5}, {Offset: 5, Length: 5}} {
		body, info, err := d.Open(t.Context(), "text.txt", rng)
		test.Must(t, err)
		n, err := rng.Within(int64(packed.Len()))
		test.Must(t, err)
		want := packed.Bytes()[rng.Offset : rng.Offset+n]
		got, err := io.ReadAll(body)
		if err != nil || !bytes.Equal(got, want) || info.Size != int64(packed.Len()) {
			t.Errorf("range %+v: %d bytes of %d, want %d of %d, error %v",
				rng, len(got), info.Size, len(want), packed.Len(), err)
		}
		body.Close()
	}
}

// TestRefusedEarly: a large object is not sent if its name exists.
func TestRefusedEarly(t *testing.T) {
	t.Parallel()
	server := inProcess(t)
	m := &meddler{answer: func(*http.Request, *httptest.ResponseRecorder) {}}
	d := opened(t, Config{Bucket: newBucket(t, server), Endpoint: m.before(t, server)})
	_, err := d.Put(t.Context(), "key", zeros(1), create)
	test.Must(t, err)
	before := m.calls.Load()
	_, err = d.Put(t.Context(), "key", zeros(chunkSize), create)
	test.Is(t, err, fs.ErrExist)
	test.Equal(t, m.calls.Load()-before, 1, "requests")
}

// TestShrunkSource: a source that is shorter than announced stores nothing.
func TestShrunkSource(t *testing.T) {
	t.Parallel()
	server := inProcess(t)
	d := opened(t, Config{Bucket: newBucket(t, server), Endpoint: server.Endpoint})
	_, err := d.Put(t.Context(), "key", shrinking{zeros(100)}, create)
	test.Is(t, err, storagedrivers.ErrSizeMismatch)
	_, err = d.Stat(t.Context(), "key")
	test.Is(t, err, fs.ErrNotExist, "stat")
}

type shrinking struct{ *bytes.Reader }

func (s shrinking) Seek(offset int64, whence int) (int64, error) {
	n, err := s.Reader.Seek(offset, whence)
	if whence == io.SeekEnd {
		n += 10
	}
	return n, err
}

// TestRestart: the driver works again after its server has restarted.
func TestRestart(t *testing.T) {
	t.Parallel()
	process, server := servers.FakeGCS(t)
	server.Bucket(t, "bucket")
	d := opened(t, Config{Bucket: "bucket", Endpoint: server.Endpoint, Timeout: options.Duration(5 * time.Second)})
	_, err := d.Put(t.Context(), "key", zeros(100), create)
	test.Must(t, err)
	process.Stop()
	_, err = d.Stat(t.Context(), "key")
	test.Is(t, err, storagedrivers.ErrUnavailable, "from a server that is down")
	process.Start()
	server.Bucket(t, "bucket")
	_, err = d.Put(t.Context(), "key", zeros(100), create)
	test.Is(t, err, nil, "storing after the restart")
}

// TestPageIsOneRequest: a full page needs one request. The service returns at most 1,000 names at a
// time, so one more would need a second request.
func TestPageIsOneRequest(t *testing.T) {
	t.Parallel()
	const most, objects = 1000, 2500
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		query := r.URL.Query()
		from, _ := strconv.Atoi(cmp.Or(query.Get("pageToken"), query.Get("startOffset"))) // none is the first
		limit, err := strconv.Atoi(query.Get("maxResults"))
		if err != nil {
			limit = most
		}
		to := min(from+min(limit, most), objects)
		items := make([]string, 0, to-from)
		for i := from; i < to; i++ {
			items = append(items, fmt.Sprintf(`{"name":"%04d","size":"1","generation":"1"}`, i))
		}
		next := ""
		if to < objects {
			next = fmt.Sprintf(`"nextPageToken":"%04d",`, to)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"kind":"storage#objects",%s"items":[%s]}`, next, strings.Join(items, ","))
	}))
	defer server.Close()
	d := opened(t, Config{Bucket: "bucket", Endpoint: server.URL})
	pages, listed := int32(0), 0
	for opts := (storagedrivers.ListOptions{}); ; pages++ {
		page, err := d.List(t.Context(), opts)
		test.Must(t, err)
		for _, info := range page.Objects {
			if want := fmt.Sprintf("%04d", listed); info.Key != want {
				t.Fatalf("listed %s, want %s", info.Key, want)
			}
			listed++
		}
		if opts.Cursor = page.Next; opts.Cursor == "" {
			pages++
			break
		}
	}
	if listed != objects || requests.Load() != pages {
		t.Errorf("%d objects on %d pages by %d requests, want %d, and as many requests as pages",
			listed, pages, requests.Load(), objects)
	}
}
