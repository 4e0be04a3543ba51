package resumable

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/local"
)

// between is a driver that calls step before each of the operations by which a state is found.
type between struct {
	*local.Driver
	step func()
}

func (b *between) Open(ctx context.Context, key string, rng storagedrivers.Range) (io.ReadCloser, storagedrivers.Info, error) {
	b.step()
	return b.Driver.Open(ctx, key, rng)
}

func (b *between) Stat(ctx context.Context, key string) (storagedrivers.Info, error) {
	b.step()
	return b.Driver.Stat(ctx, key)
}

// TestFindWhileFinished: an upload that another process finishes while its state is found is either
// whole or finished, wherever that happens.
func TestFindWhileFinished(t *testing.T) {
	t.Parallel()
	for _, hide := range []func(storagedrivers.Driver) storagedrivers.Driver{
		func(d storagedrivers.Driver) storagedrivers.Driver { return d },
		func(d storagedrivers.Driver) storagedrivers.Driver { return struct{ storagedrivers.Driver }{d} }, // no Appender
	} {
		for step := range 12 {
			cfg := local.Config{Root: t.TempDir(), Sync: new(false)}
			s := storeOn(t, hide(local.New(cfg, slog.New(slog.DiscardHandler))))
			u := s.create(t, Record{Owner: owner, Length: Unknown})
			for _, text := range []string{"abc", "def"} {
				if err := u.Append(t.Context(), body(u.offset, strings.NewReader(text))); err != nil {
					t.Fatal(err)
				}
			}
			if err := u.SetLength(t.Context(), 6); err != nil {
				t.Fatal(err)
			}
			steps := 0
			other := storeOn(t, hide(&between{local.New(cfg, slog.New(slog.DiscardHandler)), func() {
				if steps++; steps-1 == step {
					if err := s.find(t, u).record(t.Context(), Outcome{Stored: "a.txt"}); err != nil {
						t.Error(err)
					}
				}
			}}))
			found, err := other.Find(t.Context(), owner, u.ID)
			if err != nil || !found.Complete() {
				t.Errorf("step %d of %d: found %+v, error %v", step, steps, found, err)
			}
		}
	}
}

// TestAppendAfterFinish: a request whose upload was finished by another one, since it found it, is
// refused, and leaves nothing.
func TestAppendAfterFinish(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *Store) {
		u := s.create(t, Record{Owner: owner, Length: 3})
		late := s.find(t, u)
		if err := u.Append(t.Context(), body(0, strings.NewReader("abc"))); err != nil {
			t.Fatal(err)
		}
		if err := u.record(t.Context(), Outcome{Stored: "a.txt"}); err != nil {
			t.Fatal(err)
		}
		if err := late.Append(t.Context(), body(0, strings.NewReader("def"))); !errors.Is(err, ErrOffset) {
			t.Errorf("error %v", err)
		}
		if keys := s.keys(t); len(keys) != 1 || keys[0] != outcomeKey(u.ID) {
			t.Errorf("remaining: %v", keys)
		}
	})
}

// TestAppendNothingAfterFinish: a request that knows the last offset of an upload, but not its
// length, learns that the upload is finished.
func TestAppendNothingAfterFinish(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *Store) {
		u := s.create(t, Record{Owner: owner, Length: Unknown})
		if err := u.Append(t.Context(), body(0, strings.NewReader("abc"))); err != nil {
			t.Fatal(err)
		}
		late := s.find(t, u)
		if err := errors.Join(u.SetLength(t.Context(), 3), u.record(t.Context(), Outcome{Stored: "a.txt"})); err != nil {
			t.Fatal(err)
		}
		if err := late.Append(t.Context(), body(3, strings.NewReader(""))); !errors.Is(err, ErrOffset) || late.Outcome == nil {
			t.Errorf("outcome %v, error %v", late.Outcome, err)
		}
	})
}
