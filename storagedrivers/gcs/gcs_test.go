package gcs

import (
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	gcsdk "cloud.google.com/go/storage"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
	"github.com/caddymedia/media/storagedrivers/options"
)

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
