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
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// TestTerminate: nothing remains, also of a request that is adding bytes.
func TestTerminate(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *Store) {
		u := s.create(t, Record{Owner: owner, Length: 10})
		r, w := io.Pipe()
		ended := make(chan error)
		go func() {
			b := body(0, r)
			b.Interrupt = func() { r.CloseWithError(errCut) }
			ended <- s.find(t, u).Append(t.Context(), b)
		}()
		if _, err := w.Write([]byte("xxx")); err != nil {
			t.Fatal(err)
		}
		if err := s.find(t, u).Terminate(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err == nil {
			t.Error("the request succeeds")
		}
		if _, err := s.Find(t.Context(), owner, u.ID); !errors.Is(err, ErrUnknown) {
			t.Errorf("then %v", err)
		}
		later := *u
		if err := later.Append(t.Context(), body(0, strings.NewReader("123"))); !errors.Is(err, ErrUnknown) {
			t.Errorf("a later request: %v", err)
		}
		a := &appending{Upload: u, writer: new(writer), body: body(0, strings.NewReader("123")), limit: 10}
		if err := a.run(t.Context()); err != nil { // by another process
			t.Fatal(err)
		}
		if err := u.confirm(t.Context()); !errors.Is(err, ErrUnknown) {
			t.Errorf("a request of another process: %v", err)
		}
		if keys := s.keys(t); len(keys) > 0 {
			t.Errorf("remaining: %v", keys)
		}
	})
}

// TestTerminateWithin: an upload can be terminated although a request that adds bytes does not end.
func TestTerminateWithin(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *Store) {
		u := s.create(t, Record{Owner: owner, Length: 3})
		terminate := func() {
			if err := s.find(t, u).Terminate(t.Context()); err != nil {
				t.Error(err)
			}
		}
		err := u.Append(t.Context(), body(0, &acting{strings.NewReader("123"), terminate}))
		if !errors.Is(err, ErrUnknown) && !errors.Is(err, ErrOffset) || len(s.keys(t)) > 0 {
			t.Errorf("error %v, remaining: %v", err, s.keys(t))
		}
	})
}

func TestOwner(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *Store) {
		u := s.create(t, Record{Owner: owner, Length: 0})
		done := s.create(t, Record{Owner: owner, Length: 0})
		done.finished(t, Outcome{Stored: "a"})
		for _, id := range []string{u.ID, done.ID, "", "x", strings.ToUpper(u.ID), u.ID + "x", "../" + u.ID[3:], newID(s.Now(), &Record{}, 0, "default")} {
			if _, err := s.Find(t.Context(), "http other", id); !errors.Is(err, ErrUnknown) {
				t.Errorf("%q of another owner: %v", id, err)
			}
		}
	})
}

func TestMaxOpen(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *Store) {
		s.MaxOpen = 3
		first := s.create(t, Record{Owner: owner, Length: 0})
		for range 2 {
			s.create(t, Record{Owner: owner, Length: 0})
		}
		more := func(owner string) error {
			_, err := s.Create(t.Context(), s.Storages[0], Creation{Record: Record{Owner: owner}, Admit: admit})
			return err
		}
		if err := more(owner); !errors.Is(err, ErrTooMany) {
			t.Errorf("one more: %v", err)
		}
		if err := more("http other"); err != nil {
			t.Errorf("of another owner: %v", err)
		}
		first.finished(t, Outcome{Stored: "a"})
		if err := more(owner); err != nil {
			t.Errorf("after one is finished: %v", err)
		}
		refused := errors.New("refused")
		_, err := s.Create(t.Context(), s.Storages[0], Creation{
			Record: Record{Owner: "x"}, Admit: func(int64) error { return refused },
		})
		if !errors.Is(err, refused) {
			t.Errorf("not admitted: %v", err)
		}
	})
}

// TestMaxOpenAtOnce: however many uploads several clients of an owner create at once, there are
// MaxOpen and one for each client at most.
func TestMaxOpenAtOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *Store) {
		const clients = 20
		var created atomic.Int64
		var all sync.WaitGroup
		for range clients {
			all.Go(func() {
				for range 15 {
					rec := Record{Owner: owner, Kind: "file", Length: 1}
					switch _, err := s.Create(t.Context(), s.Storages[0], Creation{Record: rec, Admit: admit}); {
					case err == nil:
						created.Add(1)
					case !errors.Is(err, ErrTooMany):
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		if n := int(created.Load()); n < s.MaxOpen || n > s.MaxOpen+clients || len(s.keys(t)) != n {
			t.Errorf("%d uploads, %d objects", n, len(s.keys(t)))
		}
	})
}

// TestMaxOpenFinal: final uploads that are not finished are bounded too.
func TestMaxOpenFinal(t *testing.T) {
	t.Parallel()
	s := storeOn(t, memory.New())
	s.MaxOpen = 3
	part := s.create(t, Record{Owner: owner, Kind: "file", Form: Partial, Length: 0})
	created := 0
	for s.mayCreate(t, Creation{Record: Record{Form: Final, Parts: []string{part.ID}, Metadata: fmt.Sprint(created)}}) && created < 20 {
		created++
	}
	if created != 3 {
		t.Errorf("%d final uploads, want 3", created)
	}
}

// TestSweepEnds: a sweep ends at its first removal when the storage is closed, or its context has
// ended.
func TestSweepEnds(t *testing.T) {
	t.Parallel()
	uploads := func(ctx context.Context, s *Store) error {
		_, err := s.Sweep(ctx, s.Storages[0], SweepOptions{})
		return err
	}
	outcomes := func(ctx context.Context, s *Store) error { return s.SweepOutcomes(ctx, s.Storages[0], SweepOptions{}) }
	for name, sweep := range map[string]func(context.Context, *Store) error{"uploads": uploads, "data": uploads, "outcomes": outcomes} {
		for _, isClosed := range []bool{true, false} {
			t.Run(fmt.Sprint(name, " closed ", isClosed), func(t *testing.T) {
				t.Parallel()
				d := memory.New()
				s := storeOn(t, d)
				for range 3 {
					u := s.create(t, Record{Owner: owner, Kind: "file", Length: 9})
					for offset := int64(0); offset < 4; offset += 2 {
						u.add(t, offset, "12")
					}
					switch name {
					case "outcomes":
						u.finished(t, Outcome{Stored: "a"})
					case "data":
						if err := s.Storages[0].Delete(t.Context(), recordKey(owner, u.ID)); err != nil {
							t.Fatal(err)
						}
					}
				}
				now := time.Now().Add(3 * s.Expires)
				s.Now = func() time.Time { return now }
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				removals := 0
				d.Fail = func(op, _ string) error {
					if op != "delete" {
						return nil
					}
					removals++
					if isClosed {
						return storagedrivers.ErrClosed
					}
					cancel()
					return ctx.Err()
				}
				want := map[bool]error{true: storagedrivers.ErrClosed, false: context.Canceled}[isClosed]
				if err := sweep(ctx, s); !errors.Is(err, want) || removals != 1 {
					t.Errorf("%d removals, error %v, want 1 and %v", removals, err, want)
				}
			})
		}
	}
}

// TestSweep: expired uploads, their outcomes and data without a record are removed, and others
// stay.
func TestSweep(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *Store) {
		run := func(opts SweepOptions) Open {
			open, err := s.Sweep(t.Context(), s.Storages[0], opts)
			if err := errors.Join(err, s.SweepOutcomes(t.Context(), s.Storages[0], opts)); err != nil {
				t.Fatal(err)
			}
			return open
		}
		// sweep also checks that a dry run finds what it removes.
		sweep := func(want Open, leftovers ...Leftover) (idle []string) {
			t.Helper()
			for _, dry := range []bool{true, false} {
				var kinds []Leftover
				var errs error
				idle = nil
				before := s.keys(t)
				open := run(SweepOptions{
					DryRun: dry, Quiet: time.Minute,
					Found: func(kind Leftover, _ storagedrivers.Info, err error) {
						kinds, errs = append(kinds, kind), errors.Join(errs, err)
					},
					Wanted: func(string, time.Time) bool { return true }, Idle: func(u *Upload) { idle = append(idle, u.ID) },
				})
				if open != want || !slices.Equal(kinds, leftovers) || errs != nil {
					t.Errorf("dry run %t: open %+v, found %v, error %v; want %+v, %v", dry, open, kinds, errs, want, leftovers)
				}
				if dry && !slices.Equal(s.keys(t), before) {
					t.Errorf("a dry run left %v of %v", s.keys(t), before)
				}
			}
			return idle
		}
		u, done := s.create(t, Record{Owner: owner, Length: 5}), s.create(t, Record{Owner: owner, Length: 0})
		u.add(t, 0, "123")
		done.finished(t, Outcome{Stored: "a"})
		orphan := dataKey(newID(s.Now(), &Record{}, 0, "default"), bytesName)
		if err := putBytes(t.Context(), s.Storages[0], orphan, []byte("x")); err != nil {
			t.Fatal(err)
		}
		run(SweepOptions{OlderThan: time.Hour}) // all is younger
		if idle := sweep(Open{1, 3}, DataWithoutRecord); len(idle) > 0 || len(s.keys(t)) != 3 || slices.Contains(s.keys(t), orphan) {
			t.Errorf("idle %v, remaining %v", idle, s.keys(t))
		}
		later := time.Now().Add(2 * time.Minute)
		s.Now = func() time.Time { return later }
		if idle := sweep(Open{1, 3}); !slices.Equal(idle, []string{u.ID}) {
			t.Errorf("idle %v", idle)
		}
		later = later.Add(s.Expires)
		for _, id := range []string{u.ID, done.ID} {
			if _, err := s.Find(t.Context(), owner, id); !errors.Is(err, ErrUnknown) {
				t.Errorf("expired: %v", err)
			}
		}
		later = later.Add(48 * time.Hour)
		if idle := sweep(Open{}, ExpiredUpload, ExpiredOutcome); len(idle) > 0 || len(s.keys(t)) > 0 {
			t.Errorf("idle %v, remaining %v", idle, s.keys(t))
		}
	})
}

// TestRandomID: an ID has at least 128 random bits, in characters of 5 bits each.
func TestRandomID(t *testing.T) {
	t.Parallel()
	id := func() string { return newID(time.Unix(1795176000, 0), &Record{}, 0, "default") }
	first, differs := id(), map[int]bool{}
	for range 100 {
		for at, other := range []byte(id()) {
			if other != first[at] {
				differs[at] = true
			}
		}
	}
	if 5*len(differs) < 128 {
		t.Errorf("%d characters differ", len(differs))
	}
}

// TestList: the pages have all unfinished uploads, and leave out one whose record is damaged.
func TestList(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *Store) {
		names := []string{"one", "two", "one", "one"}
		want := make([]string, len(names))
		for i, name := range names {
			want[i] = s.create(t, Record{Owner: "http " + name, Account: name, Length: 5}).Name()
		}
		s.create(t, Record{Owner: owner, Length: 0}).finished(t, Outcome{})
		damaged := recordKey(owner, newID(s.Now(), &Record{}, 0, "default"))
		if err := putBytes(t.Context(), s.Storages[0], damaged, []byte("{")); err != nil {
			t.Fatal(err)
		}
		slices.Sort(want)
		for _, limit := range []int{1, 2, 100} {
			var got []string
			for cursor, first := "", true; first || cursor != ""; first = false {
				uploads, next, err := s.List(t.Context(), s.Storages[0], cursor, limit)
				if err != nil {
					t.Fatal(err)
				}
				for _, u := range uploads {
					got = append(got, u.Name())
				}
				cursor = next
			}
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("limit %d: %v, want %v", limit, got, want)
			}
		}
	})
}

// TestNamed: an upload is found by its name as long as it is unfinished.
func TestNamed(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *Store) {
		u := s.create(t, Record{Owner: owner, Length: 3, Account: "site"})
		u.add(t, 0, "12")
		named := func(name string) (*Upload, error) { return s.Named(t.Context(), s.Storages[0], name) }
		got, err := named(u.Name())
		if err != nil || got.ID != u.ID || got.Account != "site" || got.Offset() != 2 {
			t.Fatalf("%+v, error %v", got, err)
		}
		u.finished(t, Outcome{Stored: "a"})
		for _, name := range []string{u.Name(), u.ID, "", ".", "x." + u.ID, "../done/" + u.Name(), strings.ToUpper(u.Name())} {
			if _, err := named(name); !errors.Is(err, ErrUnknown) {
				t.Errorf("%q: %v", name, err)
			}
		}
	})
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
			var u *Upload
			steps, finding := 0, false
			d := hide(derivedtest.NewLocal(t, func(op, _ string) error {
				if !finding || op != "open" && op != "stat" {
					return nil
				}
				if steps++; steps-1 == step {
					finding = false
					u.finished(t, Outcome{Stored: "a.txt"})
				}
				return nil
			}))
			s, other := storeOn(t, d), storeOn(t, d)
			u = s.create(t, Record{Owner: owner, Length: Unknown})
			u.add(t, 0, "abc")
			u.add(t, 3, "def")
			if err := u.SetLength(t.Context(), 6); err != nil {
				t.Fatal(err)
			}
			finding = true
			found, err := other.Find(t.Context(), owner, u.ID)
			if err != nil || !found.Complete() {
				t.Errorf("step %d of %d: found %+v, error %v", step, steps, found, err)
			}
		}
	}
}

// TestAppendAfterFinish: a request whose upload was finished by another one, since it found it, is
// refused, and leaves nothing. So is one without bytes that knows the last offset, but not the
// length.
func TestAppendAfterFinish(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		length   int64
		received string // when the request finds the upload
		offset   int64
		body     string
	}{{3, "", 0, "def"}, {Unknown, "abc", 3, ""}} {
		each(t, func(t *testing.T, s *Store) {
			u := s.create(t, Record{Owner: owner, Length: c.length})
			u.add(t, 0, c.received)
			late := s.find(t, u)
			u.add(t, c.offset, "abc"[c.offset:])
			if err := errors.Join(u.SetLength(t.Context(), 3), u.record(t.Context(), Outcome{Stored: "a.txt"})); err != nil {
				t.Fatal(err)
			}
			if err := late.Append(t.Context(), body(c.offset, strings.NewReader(c.body))); !errors.Is(err, ErrOffset) || c.body == "" && late.Outcome == nil {
				t.Errorf("%+v: outcome %v, error %v", c, late.Outcome, err)
			}
			if keys := s.keys(t); len(keys) != 1 || keys[0] != outcomeKey(u.ID) {
				t.Errorf("%+v: remaining: %v", c, keys)
			}
		})
	}
}

// FuzzID: the ID in an address is refused, or all keys of its upload are valid and below the folder
// of the uploads.
func FuzzID(f *testing.F) {
	id := newID(time.Unix(1795176000, 0), &Record{}, 0, "default")
	short := id[:clientAt] + id[len(id)-tagLength:]
	for _, seed := range []string{"", id, short, id[1:], id + "a", strings.ToUpper(id), "../" + id[3:], "%2e%2e" + id[6:], id[:10] + "/" + id[11:], id[:10] + "\x00" + id[11:], id[:9] + "ä" + id[11:]} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, id string) {
		if !validID(id) {
			return
		}
		if len(ticketTag(id)) != tagLength || len(clientTag(id)) != tagLength || len(storageTag(id)) != tagLength || sizeOf(id) < 0 {
			t.Errorf("%q has no tags", id)
		}
		for _, key := range []string{recordKey(owner, id), pieceKey(id, 1<<40), outcomeKey(id)} {
			if err := storagedrivers.ValidKey(key); err != nil || !strings.HasPrefix(key, Folder+"/") {
				t.Errorf("key %q: %v", key, err)
			}
		}
		if found, ok := idOfRecord(recordKey(owner, id)); !ok || found != id {
			t.Errorf("the record of %q is of %q, %t", id, found, ok)
		}
		if found, ok := idOfData(pieceKey(id, 0)); !ok || found != id {
			t.Errorf("the data of %q is of %q, %t", id, found, ok)
		}
	})
}
