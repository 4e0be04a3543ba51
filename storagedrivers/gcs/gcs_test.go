package gcs

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	gcsdk "cloud.google.com/go/storage"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
	"github.com/caddymedia/media/storagedrivers/internal/lostreply"
	"github.com/caddymedia/media/storagedrivers/options"
)

// store stores an object like another program.
func store(t *testing.T, d *driver, name string, content []byte, change func(*gcsdk.Writer)) {
	t.Helper()
	client, err := d.connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w := client.bucket.Object(name).NewWriter(t.Context())
	if change != nil {
		change(w)
	}
	if _, err = w.Write(content); err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestStoredHeaders(t *testing.T) {
	t.Parallel()
	server := inProcess(t)
	d := opened(t, Config{Bucket: newBucket(t, server), Endpoint: server.Endpoint, Prefix: "in"})
	for _, size := range []int{100, 9 * mib} {
		key := fmt.Sprint(size)
		_, err := d.Put(t.Context(), key, zeros(size), storagedrivers.PutOptions{
			ContentType: "image/png", CacheControl: "max-age=60",
		})
		if err != nil {
			t.Fatal(err)
		}
		client, err := d.connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		attrs, err := client.bucket.Object("in/" + key).Attrs(t.Context())
		if err != nil || attrs.ContentType != "image/png" || attrs.CacheControl != "max-age=60" {
			t.Errorf("got %+v, error %v", attrs, err)
		}
	}
}

// TestCopiedHeaders: a copy within the service has the headers of its own options.
func TestCopiedHeaders(t *testing.T) {
	t.Parallel()
	server := inProcess(t)
	d := opened(t, Config{Bucket: newBucket(t, server), Endpoint: server.Endpoint})
	source, err := d.Put(t.Context(), "a.txt", zeros(100), storagedrivers.PutOptions{ContentType: "text/plain"})
	if err != nil {
		t.Fatal(err)
	}
	info, err := d.Put(t.Context(), "b.png", nil, storagedrivers.PutOptions{
		Mode: storagedrivers.Overwrite, ID: "OWN", ContentType: "image/png", CacheControl: "max-age=60", Source: &source,
	})
	if err != nil || info.Size != 100 {
		t.Fatalf("copied %+v, error %v", info, err)
	}
	object, err := d.object(t.Context(), "b.png")
	if err != nil {
		t.Fatal(err)
	}
	attrs, err := object.Attrs(t.Context())
	if err != nil || attrs.ContentType != "image/png" || attrs.CacheControl != "max-age=60" || attrs.Metadata[lostreply.Key] != "OWN" {
		t.Errorf("got %+v, error %v", attrs, err)
	}
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
		if err != nil {
			t.Fatal(err)
		}
		n, err := rng.Within(int64(packed.Len()))
		if err != nil {
			t.Fatal(err)
		}
		want := packed.Bytes()[rng.Offset : rng.Offset+n]
		got, err := io.ReadAll(body)
		if err != nil || !bytes.Equal(got, want) || info.Size != int64(packed.Len()) {
			t.Errorf("range %+v: %d bytes of %d, want %d of %d, error %v",
				rng, len(got), info.Size, len(want), packed.Len(), err)
		}
		body.Close()
	}
}

// TestForeignNames: invalid keys, and names outside of the folder, are not listed.
func TestForeignNames(t *testing.T) {
	t.Parallel()
	server := inProcess(t)
	d := opened(t, Config{Bucket: newBucket(t, server), Endpoint: server.Endpoint, Prefix: "in"})
	for _, name := range []string{
		"in/a", "in/b/", "in/.hidden", "in/c//d", "in/e.", "in/f", "ink", "out", "in", "in/z",
	} {
		store(t, d, name, []byte(name), nil)
	}
	var got []string
	var opts storagedrivers.ListOptions
	for opts.Limit = 2; ; {
		page, err := d.List(t.Context(), opts)
		if err != nil {
			t.Fatal(err)
		}
		for _, info := range page.Objects {
			got = append(got, info.Key)
		}
		if opts.Cursor = page.Next; opts.Cursor == "" {
			break
		}
	}
	if fmt.Sprint(got) != "[a f z]" {
		t.Errorf("listed %q", got)
	}
	if err := d.Check(t.Context()); err != nil {
		t.Errorf("checking: %v", err)
	}
}

// TestRefusedEarly: a large object is not sent if its name exists.
func TestRefusedEarly(t *testing.T) {
	t.Parallel()
	server := inProcess(t)
	m := &meddler{answer: func(*http.Request, *httptest.ResponseRecorder) {}}
	d := opened(t, Config{Bucket: newBucket(t, server), Endpoint: m.before(t, server)})
	if _, err := d.Put(t.Context(), "key", zeros(1), create); err != nil {
		t.Fatal(err)
	}
	before := m.calls.Load()
	if _, err := d.Put(t.Context(), "key", zeros(chunkSize), create); !errors.Is(err, fs.ErrExist) {
		t.Errorf("error %v", err)
	}
	if n := m.calls.Load() - before; n != 1 {
		t.Errorf("%d requests", n)
	}
}

// TestShrunkSource: a source that is shorter than announced stores nothing.
func TestShrunkSource(t *testing.T) {
	t.Parallel()
	server := inProcess(t)
	d := opened(t, Config{Bucket: newBucket(t, server), Endpoint: server.Endpoint})
	_, err := d.Put(t.Context(), "key", shrinking{zeros(100)}, create)
	if !errors.Is(err, storagedrivers.ErrSizeMismatch) {
		t.Errorf("error %v", err)
	}
	if _, err := d.Stat(t.Context(), "key"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("stat: error %v", err)
	}
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
	if _, err := d.Put(t.Context(), "key", zeros(100), create); err != nil {
		t.Fatal(err)
	}
	process.Stop()
	if _, err := d.Stat(t.Context(), "key"); !errors.Is(err, storagedrivers.ErrUnavailable) {
		t.Errorf("from a server that is down: error %v", err)
	}
	process.Start()
	server.Bucket(t, "bucket")
	if _, err := d.Put(t.Context(), "key", zeros(100), create); err != nil {
		t.Errorf("storing after the restart: %v", err)
	}
}
