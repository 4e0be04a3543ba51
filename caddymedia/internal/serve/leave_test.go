package serve

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// TestLeavesDuringRead: if the client disconnects during a read, the storage has not failed.
func TestLeavesDuringRead(t *testing.T) {
	t.Parallel()
	alias, d, _ := memoryAlias(t)
	store(t, alias, "a.jpg", strings.Repeat("x", 3*smallItem))
	ctx, cancel := context.WithCancel(t.Context())
	s := storagedrivers.New("left", leaving{d, cancel}, storagedrivers.Options{Close: func() error { return nil }})
	object, err := s.OpenSeeker(ctx, alias.Key("a.jpg"))
	if err != nil {
		t.Fatal(err)
	}
	out := newItemWriter(httptest.NewRecorder(), object, func() {})
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
	http.ServeContent(out, r, "", object.Info.ModTime, object)
	if err := out.finish(); err != nil {
		t.Error(err)
	}
	if !out.short(r.Method) || !errors.Is(out.failed, context.Canceled) || !out.aborted(ctx) {
		t.Errorf("short %t, aborted %t (%v)", out.short(r.Method), out.aborted(ctx), out.failed)
	}
	if err := errors.Join(object.Close(), s.Close()); err != nil {
		t.Error(err)
	}
}

// leaving is a remote driver. Its client disconnects after 100,000 bytes are read.
type leaving struct {
	*memory.Driver
	leave func()
}

func (d leaving) Open(
	ctx context.Context, key string, rng storagedrivers.Range,
) (io.ReadCloser, storagedrivers.Info, error) {
	body, info, err := d.Driver.Open(ctx, key, rng)
	if err != nil {
		return nil, info, err
	}
	rest := readFunc(func() error {
		d.leave()
		return ctx.Err()
	})
	return io.NopCloser(io.MultiReader(io.LimitReader(body, 100_000), rest)), info, nil
}

// readFunc is a reader without any bytes.
type readFunc func() error

func (f readFunc) Read([]byte) (int, error) { return 0, f() }
