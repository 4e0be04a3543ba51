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
func (p *place) put(t *testing.T, key string, c content, opts storagedrivers.PutOptions) storagedrivers.Info {
	t.Helper()
	src := newSource(c)
	info, err := p.storage.Put(t.Context(), key, src, opts)
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
func (p *place) has(t *testing.T, key string, c content) {
	t.Helper()
	body, info, err := p.storage.Open(t.Context(), key, all)
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
func (p *place) hasNot(t *testing.T, key string) {
	t.Helper()
	_, err := p.storage.Stat(t.Context(), key)
	fails(t, err, fs.ErrNotExist, "stat of a missing object")
	body, _, err := p.storage.Open(t.Context(), key, all)
	if err == nil {
		closed(t, body)
	}
	fails(t, err, fs.ErrNotExist, "opening a missing object")
}

// open opens key, which must succeed; the test's end closes it, if nobody did before.
func (p *place) open(t *testing.T, key string) io.ReadCloser {
	t.Helper()
	body, _, err := p.storage.Open(t.Context(), key, all)
	if err != nil {
		t.Fatalf("opening %q: %v", key, err)
	}
	t.Cleanup(func() { _ = body.Close() }) // whoever cares closes it before
	return body
}

// fails asserts that what was tried ended with want.
func fails(t *testing.T, err, want error, what string) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: error %v, want %v", what, err, want)
	}
}

// never asserts that an error is none of those that would mislead a caller.
func never(t *testing.T, err error, what string, wrong ...error) {
	t.Helper()
	for _, w := range wrong {
		if errors.Is(err, w) {
			t.Errorf("%s: error %v, which must not match %v", what, err, w)
		}
	}
}

// succeeds asserts that what was tried did not fail.
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
