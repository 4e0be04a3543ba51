package cache

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers"
)

// sameTime is a backend whose objects all have one time.
type sameTime struct{ *backend }

func (b sameTime) Stat(ctx context.Context, key string) (storagedrivers.Info, error) {
	info, err := b.backend.Stat(ctx, key)
	info.ModTime = time.Unix(1_700_000_000, 0)
	return info, err
}

func (b sameTime) Open(ctx context.Context, key string, rng storagedrivers.Range) (io.ReadCloser, storagedrivers.Info, error) {
	body, info, err := b.backend.Open(ctx, key, rng)
	info.ModTime = time.Unix(1_700_000_000, 0)
	return body, info, err
}

// TestReplacedBehindInTime: two generations of the same size and time differ by their entity tags.
func TestReplacedBehindInTime(t *testing.T) {
	t.Parallel()
	old, now := random(1, 300*kib), random(2, 300*kib)
	b := sameTime{newBackend()}
	d := New(b, open(t, t.TempDir(), 0), "backend", small)
	t.Cleanup(func() { d.Close() })
	put(t, b, "object", old)
	has(t, d, "object", all, old)
	put(t, b, "object", now)
	has(t, d, "object", all, now)
}
