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

func (b *between) List(ctx context.Context, opts storagedrivers.ListOptions) (storagedrivers.Page, error) {
	b.step()
	return b.Driver.List(ctx, opts)
}

// TestFindWhileFinished: an upload that another process finishes while its state is found is either
// whole or finished, wherever that happens.
func TestFindWhileFinished(t *testing.T) {
	t.Parallel()
	for _, segments := range []bool{false, true} {
		for step := range 4 {
			cfg := local.Config{Root: t.TempDir(), Sync: new(false)}
			s := storeOn(t, local.New(cfg, slog.New(slog.DiscardHandler)))
			u := s.create(t, Record{Owner: owner, Length: 6})
			for _, text := range []string{"abc", "def"} {
				a := &appending{Upload: u, writer: new(writer), body: body(u.offset, strings.NewReader(text)), limit: 10}
				run := a.run
				if segments {
					run = a.runSegments
				}
				if err := run(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			steps := 0
			other := storeOn(t, &between{local.New(cfg, slog.New(slog.DiscardHandler)), func() {
				if steps++; steps-1 == step {
					if err := s.find(t, u).record(t.Context(), Outcome{Stored: "a.txt"}); err != nil {
						t.Error(err)
					}
				}
			}})
			found, err := other.Find(t.Context(), owner, u.ID)
			if err != nil || !found.Complete() {
				t.Errorf("segments %v, step %d: found %+v, error %v", segments, step, found, err)
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
