package s3

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"testing"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/cloudtest"
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
