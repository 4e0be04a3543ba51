package drivertest

import (
	"errors"
	"io"
	"io/fs"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
)

var (
	create    = storagedrivers.PutOptions{Mode: storagedrivers.CreateOnly}
	overwrite = storagedrivers.PutOptions{Mode: storagedrivers.Overwrite}
	all       = storagedrivers.Range{}
)

// put stores c under key, which must succeed.
func (e *env) put(t *testing.T, key string, c content, opts storagedrivers.PutOptions) storagedrivers.Info {
	t.Helper()
	src := newSource(c)
	info, err := e.storage.Put(t.Context(), key, src, opts)
	if err != nil {
		t.Fatalf("storing %q: %v", key, err)
	}
	if src.closed {
		t.Errorf("storing %q closed the source", key)
	}
	if info.Key != key || info.Size != c.size {
		t.Errorf("stored %q of %d bytes, want %q of %d", info.Key, info.Size, key, c.size)
	}
	return info
}

// has asserts that key holds c.
func (e *env) has(t *testing.T, key string, c content) {
	t.Helper()
	body, info, err := e.storage.Open(t.Context(), key, all)
	if err != nil {
		t.Errorf("opening %q: %v", key, err)
		return
	}
	defer closed(t, body)
	if info.Key != key || info.Size != c.size {
		t.Errorf("opened %q of %d bytes, want %q of %d", info.Key, info.Size, key, c.size)
	}
	if err := equal(body, c.reader()); err != nil {
		t.Errorf("content of %q: %v", key, err)
	}
}

// hasNot asserts that there is no object under key.
func (e *env) hasNot(t *testing.T, key string) {
	t.Helper()
	_, err := e.storage.Stat(t.Context(), key)
	fails(t, err, fs.ErrNotExist, "stat of a missing object")
	body, _, err := e.storage.Open(t.Context(), key, all)
	if err == nil {
		closed(t, body)
	}
	fails(t, err, fs.ErrNotExist, "opening a missing object")
}

// open opens key, which must succeed. The reader is closed at the end of the test.
func (e *env) open(t *testing.T, key string) io.ReadCloser {
	t.Helper()
	body, _, err := e.storage.Open(t.Context(), key, all)
	if err != nil {
		t.Fatalf("opening %q: %v", key, err)
	}
	t.Cleanup(func() { _ = body.Close() }) // may be closed already
	return body
}

// fails asserts that err matches want.
func fails(t *testing.T, err, want error, what string) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: error %v, want %v", what, err, want)
	}
}

// never asserts that err matches none of the wrong errors, which would mislead a caller.
func never(t *testing.T, err error, what string, wrong ...error) {
	t.Helper()
	for _, w := range wrong {
		if errors.Is(err, w) {
			t.Errorf("%s: error %v, which must not match %v", what, err, w)
		}
	}
}

// succeeds asserts that err is nil.
func succeeds(t *testing.T, err error, what string) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

// closed closes c, which must succeed.
func closed(t *testing.T, c io.Closer) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Errorf("closing: %v", err)
	}
}
