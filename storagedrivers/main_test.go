package storagedrivers_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	create    = storagedrivers.PutOptions{Mode: storagedrivers.CreateOnly}
	overwrite = storagedrivers.PutOptions{Mode: storagedrivers.Overwrite}
	all       = storagedrivers.Range{}
)

// stub is the memory driver with some methods replaced.
type stub struct {
	*memory.Driver
	put func(
		ctx context.Context, key string, r io.ReadSeeker, opts storagedrivers.PutOptions,
	) (storagedrivers.Info, error)
	open func(
		ctx context.Context, key string, rng storagedrivers.Range,
	) (io.ReadCloser, storagedrivers.Info, error)
	stat     func(ctx context.Context, key string) (storagedrivers.Info, error)
	remove   func(ctx context.Context, key string, opts storagedrivers.DeleteOptions) error
	features *storagedrivers.Features
}

func (s *stub) Put(
	ctx context.Context, key string, r io.ReadSeeker, opts storagedrivers.PutOptions,
) (storagedrivers.Info, error) {
	if s.put != nil {
		return s.put(ctx, key, r, opts)
	}
	return s.Driver.Put(ctx, key, r, opts)
}

func (s *stub) Open(
	ctx context.Context, key string, rng storagedrivers.Range,
) (io.ReadCloser, storagedrivers.Info, error) {
	if s.open != nil {
		return s.open(ctx, key, rng)
	}
	return s.Driver.Open(ctx, key, rng)
}

func (s *stub) Stat(ctx context.Context, key string) (storagedrivers.Info, error) {
	if s.stat != nil {
		return s.stat(ctx, key)
	}
	return s.Driver.Stat(ctx, key)
}

func (s *stub) Delete(ctx context.Context, key string, opts storagedrivers.DeleteOptions) error {
	if s.remove != nil {
		return s.remove(ctx, key, opts)
	}
	return s.Driver.Delete(ctx, key, opts)
}

func (s *stub) Features() storagedrivers.Features {
	if s.features != nil {
		return *s.features
	}
	return s.Driver.Features()
}

// open returns a storage that is closed at the end of the test.
func open(t *testing.T, d storagedrivers.Driver, opts storagedrivers.Options) *storagedrivers.Storage {
	t.Helper()
	s := storagedrivers.New("test", d, opts)
	t.Cleanup(func() {
		test.Is(t, s.Close(), nil, "closing the storage")
	})
	return s
}

// onEach returns a function that returns a new storage on d. Storages do not share a circuit.
func onEach(t *testing.T, d storagedrivers.Driver) func() *storagedrivers.Storage {
	t.Helper()
	t.Cleanup(func() { test.Is(t, d.Close(), nil) })
	return func() *storagedrivers.Storage {
		return open(t, d, storagedrivers.Options{Close: func() error { return nil }})
	}
}

// put stores text under key.
func put(t *testing.T, s *storagedrivers.Storage, key, text string) {
	t.Helper()
	_, err := s.Put(t.Context(), key, strings.NewReader(text), overwrite)
	test.Must(t, err)
}

// has asserts that key holds text.
func has(t *testing.T, s *storagedrivers.Storage, key, text string) {
	t.Helper()
	body, _, err := s.Open(t.Context(), key, all)
	test.Must(t, err)
	got, err := io.ReadAll(body)
	if err = errors.Join(err, body.Close()); err != nil || string(got) != text {
		t.Errorf("%q holds %d bytes, want %d, equal %t, error %v", key, len(got), len(text), string(got) == text, err)
	}
}

// everyOp calls every method, each on another storage, and returns the errors by the name of the
// operation.
func everyOp(t *testing.T, storage func() *storagedrivers.Storage, key string) map[string]error {
	t.Helper()
	ctx := t.Context()
	closing := func(c io.Closer, err error) error {
		if err == nil {
			return c.Close()
		}
		return err
	}
	_, putErr := storage().Put(ctx, key, strings.NewReader("text"), overwrite)
	body, _, openErr := storage().Open(ctx, key, all)
	_, statErr := storage().Stat(ctx, key)
	_, listErr := storage().List(ctx, storagedrivers.ListOptions{})
	s := storage()
	staged, err := s.Stage(ctx)
	test.Must(t, err)
	commitErr := commit(ctx, s, staged, key, create)
	test.Is(t, staged.Close(), nil)
	return map[string]error{
		"put": putErr, "open": closing(body, openErr), "stat": statErr, "list": listErr,
		"delete": storage().Delete(ctx, key), "check": storage().Check(ctx), "commit": commitErr,
	}
}
