package resumable

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/derived/derivedtest"
	"github.com/caddymedia/media/caddymedia/internal/core/upload"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
)

// holding are two nodes with one storage, one token store and an alias. Operations of the first one
// fail while broken returns an error.
type holding struct {
	*Store // the first node

	other  *Store
	alias  *item.Alias
	broken atomic.Pointer[func(op, key string) error]
	passed atomic.Int64 // of the clock
}

// eachHolding runs a test on every storage of the package's tests.
func eachHolding(t *testing.T, test func(t *testing.T, h *holding)) {
	t.Helper()
	for name := range derivedtest.Drivers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newHolding(t, name))
		})
	}
}

func newHolding(t *testing.T, driver string) *holding {
	t.Helper()
	h := &holding{}
	d := derivedtest.Drivers[driver](t, func(op, key string) error {
		if broken := h.broken.Load(); broken != nil {
			return (*broken)(op, key)
		}
		return nil
	})
	h.Store = storeOn(t, d)
	h.other = &Store{
		Issuer: h.Issuer, Active: new(Active), Expires: h.Expires, MaxOpen: h.MaxOpen, MaxBytes: h.MaxBytes, Log: h.Log,
		Storages: []*storagedrivers.Storage{storagedrivers.New("default", d, storagedrivers.Options{})},
		Uploader: &upload.Uploader{Staging: h.Uploader.Staging, Now: time.Now, Observer: upload.NopObserver{}, Log: h.Log},
	}
	for _, s := range []*Store{h.Store, h.other} {
		h.alias = derivedtest.NewAlias(t, item.DefaultAlias, s.Storages[0])
		s.Uploader.Aliases = map[item.Kind]map[string]*item.Alias{item.File: {h.alias.Name: h.alias}}
		s.Now = func() time.Time { return time.Now().Add(time.Duration(h.passed.Load())) }
	}
	return h
}

// finishing are the rights of the tests.
func (s *Store) finishing() Finishing {
	return Finishing{Authorize: func(context.Context, *Upload, bool) (Rights, *item.Failure) { return Rights{Issuer: s.Issuer}, nil }}
}

// held returns the ID of a held upload of a text, for an hour.
func (h *holding) held(t *testing.T, name, text string) string {
	t.Helper()
	return h.heldFor(t, time.Hour, name, text)
}

// heldFor is held for another time.
func (h *holding) heldFor(t *testing.T, hold time.Duration, name, text string) string {
	t.Helper()
	u := h.create(t, Record{Owner: owner, Kind: "file", Alias: item.DefaultAlias, Filename: name, Length: int64(len(text)), Hold: hold})
	u.add(t, 0, text)
	if failures := u.Finish(t.Context(), h.finishing()); failures != nil || u.Held == nil {
		t.Fatalf("held %+v, failures %v", u.Held, failures)
	}
	return u.ID
}

// keepOn keeps held uploads by a node, and returns the filenames.
func keepOn(t *testing.T, s *Store, ids ...string) ([]string, item.Failures) {
	t.Helper()
	kept, failures := s.Keep(t.Context(), Record{Owner: owner, Account: site.APIKey, Kind: "file", Alias: item.DefaultAlias, Parts: ids}, s.finishing())
	if failures != nil {
		return nil, failures
	}
	names := make([]string, len(kept))
	for i, u := range kept {
		names[i] = u.Outcome.Stored
	}
	return names, nil
}

// stored returns the texts of all items, sorted.
func (h *holding) stored(t *testing.T) (texts []string) {
	t.Helper()
	for _, key := range h.keys(t) {
		if !strings.HasPrefix(key, Folder) {
			b, _, err := read(t.Context(), h.Storages[0], key)
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, string(b))
		}
	}
	slices.Sort(texts)
	return texts
}

// left returns the keys of what is left of uploads, without outcomes.
func (h *holding) left(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(h.keys(t), func(key string) bool {
		return !strings.HasPrefix(key, Folder) || strings.HasPrefix(key, doneFolder)
	})
}

// TestKeepCut: after each operation of the storage, those that follow may fail. Another node that
// is asked again stores all items once, and leaves nothing.
func TestKeepCut(t *testing.T) {
	t.Parallel()
	for name := range derivedtest.Drivers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for n := 0; ; n++ {
				h := newHolding(t, name)
				ids := []string{h.held(t, "a.txt", "a"), h.held(t, "a.txt", "b"), h.held(t, "c.txt", "")}
				var calls atomic.Int64
				cut := func(string, string) error {
					if calls.Add(1) > int64(n) {
						return errCut
					}
					return nil
				}
				h.broken.Store(&cut)
				first, failures := keepOn(t, h.Store, ids...)
				h.broken.Store(nil)
				if int(calls.Load()) <= n { // nothing failed
					if failures != nil || n == 0 {
						t.Fatal(failures)
					}
					return
				}
				names, failures := keepOn(t, h.other, ids...)
				if failures != nil || first != nil && !slices.Equal(first, names) {
					t.Fatalf("after %d operations: kept are %v, then %v, failures %v", n, first, names, failures)
				}
				if stored := h.stored(t); !slices.Equal(stored, []string{"", "a", "b"}) {
					t.Fatalf("after %d operations: stored are %q", n, stored)
				}
				again, failures := keepOn(t, h.Store, ids...)
				if failures != nil || !slices.Equal(again, names) {
					t.Fatalf("after %d operations: kept are %v, before %v, failures %v", n, again, names, failures)
				}
				h.passed.Store(int64(2 * time.Hour)) // what could not be removed
				if _, err := h.other.Sweep(t.Context(), h.other.Storages[0], SweepOptions{}); err != nil {
					t.Fatal(err)
				}
				if left := h.left(t); len(left) > 0 {
					t.Fatalf("after %d operations: left are %v", n, left)
				}
			}
		})
	}
}

// TestKeepAtOnce: of sets that share uploads, and are kept by several nodes at the same time, at
// most one is stored. The same set is stored once, and all its callers get the same names.
func TestKeepAtOnce(t *testing.T) {
	t.Parallel()
	eachHolding(t, func(t *testing.T, h *holding) {
		for round := range 10 {
			a, b, c := h.held(t, "a.txt", "a"), h.held(t, "b.txt", "b"), h.held(t, "c.txt", "c")
			sets := [][]string{{a, b}, {a, b}, {b, c}, {b, a}}
			var (
				mu      sync.Mutex
				winners = map[string]bool{}
				work    sync.WaitGroup
			)
			for i := range 8 {
				set, node := sets[i%len(sets)], []*Store{h.Store, h.other}[i/4]
				work.Go(func() {
					names, failures := keepOn(t, node, set...)
					mu.Lock()
					defer mu.Unlock()
					switch {
					case failures == nil:
						winners[fmt.Sprint(set, names)] = true
					case failures[0].Reason != item.Conflict && failures[0].Reason != item.Busy && failures[0].Reason != item.Unavailable:
						t.Errorf("%v", failures)
					}
				})
			}
			work.Wait()
			if stored := h.stored(t); len(winners) > 1 || len(stored) != 2*(round+1) && len(winners) == 1 {
				t.Fatalf("round %d: winners %v, stored %q", round, winners, stored)
			}
			if len(winners) == 0 { // each had a part of the others'
				if _, failures := keepOn(t, h.Store, a, b); failures != nil {
					t.Fatal(failures)
				}
			}
		}
	})
}

// TestKeepOvertaken: a set that claims an upload after another one has kept and removed it is not
// stored.
func TestKeepOvertaken(t *testing.T) {
	t.Parallel()
	h := newHolding(t, "local")                             // that in memory does one thing at a time
	a, b := h.held(t, "a.txt", ""), h.held(t, "b.txt", "b") // an empty one has no bytes that miss
	var begun atomic.Bool
	meanwhile := func(_, key string) (err error) {
		if strings.HasSuffix(key, a+"."+keptName) && begun.CompareAndSwap(false, true) {
			if _, failures := keepOn(t, h.other, a); failures != nil {
				err = failures
			}
		}
		return err
	}
	h.broken.Store(&meanwhile)
	if _, failures := keepOn(t, h.Store, a, b); len(failures) != 1 || failures[0].Filename != a || failures[0].Reason != item.Conflict {
		t.Errorf("%v", failures)
	}
	if stored := h.stored(t); !slices.Equal(stored, []string{""}) {
		t.Errorf("stored are %q", stored)
	}
}

// TestKeepRefused: what the checks refuse stays held, nothing is stored, and the others may be kept
// without it.
func TestKeepRefused(t *testing.T) {
	t.Parallel()
	eachHolding(t, func(t *testing.T, h *holding) {
		a, b := h.held(t, "a.txt", "a"), h.held(t, "b.pdf", "%PDF-1.4\n1 0 obj\n<<>>\nendobj\ntrailer<<>>\n%%EOF\n")
		delete(h.Uploader.Aliases[item.File][item.DefaultAlias].Extensions, "pdf")
		if _, failures := keepOn(t, h.Store, a, b); len(failures) != 1 || failures[0].Filename != "b.pdf" {
			t.Errorf("%v", failures)
		}
		for _, id := range []string{a, b} {
			if _, err := h.FindHeld(t.Context(), owner, id, ""); err != nil {
				t.Error(err)
			}
		}
		if _, failures := keepOn(t, h.other, a); failures != nil || !slices.Equal(h.stored(t), []string{"a"}) {
			t.Errorf("%v, stored are %q", failures, h.stored(t))
		}
	})
}

// TestKeepLost: an upload that ends while it is being kept takes the others with it, and they stay
// held.
func TestKeepLost(t *testing.T) {
	t.Parallel()
	eachHolding(t, func(t *testing.T, h *holding) {
		a, b := h.held(t, "a.txt", "a"), h.held(t, "b.txt", "b")
		how := h.finishing()
		how.Authorize = func(ctx context.Context, _ *Upload, _ bool) (Rights, *item.Failure) {
			ending, err := h.other.FindHeld(ctx, owner, b, "")
			if err == nil {
				err = ending.Terminate(ctx)
			}
			if failure, ok := errors.AsType[*item.Failure](err); !ok || failure.Reason != item.Conflict {
				t.Errorf("ended meanwhile: %v", err)
			}
			return Rights{}, item.Failf(item.Forbidden, "no more")
		}
		_, failures := h.Keep(t.Context(), Record{Owner: owner, Kind: "file", Alias: item.DefaultAlias, Parts: []string{a, b}}, how)
		if len(failures) != 1 || failures[0].Reason != item.Forbidden {
			t.Errorf("%v", failures)
		}
		u, err := h.other.FindHeld(t.Context(), owner, b, "")
		if err = errors.Join(err, u.Terminate(t.Context())); err != nil {
			t.Fatal(err)
		}
		if _, failures := keepOn(t, h.Store, a, b); len(failures) != 1 || failures[0].Filename != b || failures[0].Reason != item.Missing {
			t.Errorf("%v", failures)
		}
		if _, failures := keepOn(t, h.Store, a); failures != nil || len(h.left(t)) > 0 {
			t.Errorf("%v, left are %v", failures, h.left(t))
		}
	})
}

// TestKeepKilled: an upload that a killed request has claimed may be kept or ended after another
// one of its set is over.
func TestKeepKilled(t *testing.T) {
	t.Parallel()
	eachHolding(t, func(t *testing.T, h *holding) {
		long, short := h.held(t, "long.txt", "long"), h.heldFor(t, time.Minute, "short.txt", "short")
		how := h.finishing()
		how.Authorize = func(context.Context, *Upload, bool) (Rights, *item.Failure) { panic(errCut) }
		func() {
			defer func() { _ = recover() }()
			h.Keep(t.Context(), Record{Owner: owner, Account: site.APIKey, Kind: "file", Alias: item.DefaultAlias, Parts: []string{long, short}}, how)
		}()
		if _, failures := keepOn(t, h.other, long); len(failures) != 1 || failures[0].Reason != item.Conflict {
			t.Errorf("before: %v", failures)
		}
		h.passed.Store(int64(2 * time.Minute))
		h.sweep(t)
		if _, failures := keepOn(t, h.other, long); failures != nil || !slices.Equal(h.stored(t), []string{"long"}) {
			t.Errorf("%v, stored are %q", failures, h.stored(t))
		}
	})
}

// TestHoldEnds: held uploads end with their time, whatever that of others is, with the parts of a
// final one. The outcomes of those that were kept end with it too.
func TestHoldEnds(t *testing.T) {
	t.Parallel()
	eachHolding(t, func(t *testing.T, h *holding) {
		for _, s := range []*Store{h.Store, h.other} {
			s.Expires = 10 * time.Minute
		}
		final := h.create(t, Record{
			Owner: owner, Kind: "file", Alias: item.DefaultAlias, Filename: "final.txt", Form: Final, Hold: time.Hour,
			Parts: []string{h.part(t, "fi").ID, h.part(t, "nal").ID},
		})
		if failures := final.Finish(t.Context(), h.finishing()); failures != nil {
			t.Fatal(failures)
		}
		kept, waits := h.held(t, "kept.txt", "kept"), h.held(t, "waits.txt", "waits")
		if _, failures := keepOn(t, h.Store, kept); failures != nil {
			t.Fatal(failures)
		}
		h.passed.Store(int64(59 * time.Minute))
		h.sweep(t)
		for _, id := range []string{final.ID, waits} {
			if u, err := h.FindHeld(t.Context(), owner, id, ""); err != nil || !strings.HasPrefix(u.Filename, string(u.content(t))) {
				t.Errorf("before its end: %v", err)
			}
		}
		if _, failures := keepOn(t, h.other, kept); failures != nil {
			t.Errorf("again: %v", failures)
		}
		h.passed.Store(int64(61 * time.Minute))
		if _, failures := keepOn(t, h.other, kept, waits, final.ID); len(failures) != 3 || failures[0].Reason != item.Missing {
			t.Errorf("%v", failures)
		}
		h.sweep(t)
		if keys := h.keys(t); !slices.Equal(keys, []string{"file/content/kept.txt"}) {
			t.Errorf("left are %v", keys)
		}
	})
}

// sweep sweeps twice, as parts end with their upload.
func (h *holding) sweep(t *testing.T) {
	t.Helper()
	for range 2 {
		_, err := h.Sweep(t.Context(), h.Storages[0], SweepOptions{})
		if err := errors.Join(err, h.SweepOutcomes(t.Context(), h.Storages[0], SweepOptions{})); err != nil {
			t.Fatal(err)
		}
	}
}

// holdFile holds a file of the text "text" in a node, for the first attempt at a request that began
// at a time.
func (s *Store) holdFile(ctx context.Context, began time.Time, content io.ReadSeeker) (*Upload, error) {
	rec := Record{Owner: owner, Account: site.APIKey, Kind: "file", Alias: item.DefaultAlias, Filename: "a.txt", Hold: time.Hour}
	return s.HoldFile(ctx, s.Storages[0], Creation{Record: rec, Same: "request 0", Began: began}, upload.Checked{Content: content, Size: 4},
		Rights{Issuer: s.Issuer}, func() (func(), error) { return func() {}, nil })
}

// TestHoldLate: an upload is held from its arrival on, however long ago the first attempt at its
// request began. Another attempt finds it, also if the account may have no other one.
func TestHoldLate(t *testing.T) {
	t.Parallel()
	eachHolding(t, func(t *testing.T, h *holding) {
		began := h.Now().Add(-23 * time.Hour)
		u, err := h.holdFile(t.Context(), began, strings.NewReader("text"))
		if err != nil {
			t.Fatal(err)
		}
		found, err := h.FindHeld(t.Context(), owner, u.ID, "")
		if err != nil || found.Expires().Sub(h.Now()) < 59*time.Minute {
			t.Fatalf("%v, ends at %v, now %v", err, u.Expires(), h.Now())
		}
		h.other.MaxOpen = 1
		if again, err := h.other.holdFile(t.Context(), began, strings.NewReader("text")); err != nil || again.ID != u.ID {
			t.Errorf("again: %v", err)
		}
	})
}

// TestHoldDropped: a failed request removes what it has held. Whatever remains of that, what a
// repetition holds may be kept.
func TestHoldDropped(t *testing.T) {
	t.Parallel()
	for name := range derivedtest.Drivers {
		for n := range 6 {
			h := newHolding(t, name)
			began := h.Now()
			u, err := h.holdFile(t.Context(), began, strings.NewReader("text"))
			if err != nil {
				t.Fatal(err)
			}
			var calls atomic.Int64
			cut := func(op, _ string) error {
				if (op == "delete" || op == "put") && calls.Add(1) > int64(n) {
					return errCut
				}
				return nil
			}
			h.broken.Store(&cut)
			u.Drop(t.Context(), nil)
			h.broken.Store(nil)
			u, err = h.other.holdFile(t.Context(), began, strings.NewReader("text"))
			if errors.Is(err, ErrOffset) {
				continue // until a sweep has removed the bytes without a record
			}
			if err != nil {
				t.Fatalf("after %d changes: %v", n, err)
			}
			if _, failures := keepOn(t, h.other, u.ID); failures != nil {
				t.Errorf("after %d changes: %v", n, failures)
			}
		}
	}
}

// slowFile is a file during whose first read something else happens.
type slowFile struct {
	*strings.Reader
	meanwhile func()
}

func (f *slowFile) Read(p []byte) (int, error) {
	if f.meanwhile != nil {
		f.meanwhile()
		f.meanwhile = nil
	}
	return f.Reader.Read(p)
}

// TestHoldLost: an attempt that has lost its lease does not remove what another attempt holds.
func TestHoldLost(t *testing.T) {
	t.Parallel()
	eachHolding(t, func(t *testing.T, h *holding) {
		began, isLost := h.Now(), false
		ctx := storagedrivers.WithLease(t.Context(), func() bool { return isLost })
		content := &slowFile{strings.NewReader("text"), func() {
			isLost = true
			if _, err := h.other.holdFile(t.Context(), began, strings.NewReader("text")); err != nil {
				t.Error(err)
			}
		}}
		u, err := h.holdFile(ctx, began, content)
		if err == nil {
			t.Error("two attempts hold a file")
		}
		if _, err := h.other.FindHeld(t.Context(), owner, u.ID, ""); err != nil {
			t.Error(err)
		}
	})
}
