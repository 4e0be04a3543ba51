package resumable

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers/memory"
)

// TestEndMultipart: an end that is cut anywhere, as by the end of the process, can be repeated, and
// then leaves nothing.
func TestEndMultipart(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for cut := int64(1); ; cut++ {
		d := memory.New()
		var armed atomic.Bool
		var removals atomic.Int64
		d.Fail = func(op, key string) error {
			if armed.Load() && op == "delete" && strings.HasPrefix(key, openFolder) && removals.Add(1) >= cut {
				return broken
			}
			return nil
		}
		s := storeOn(t, d)
		m := s.multipart(t)
		for number := range 3 {
			part := s.create(t, Record{
				Owner: owner, Kind: "file", Filename: "a.txt", Form: Part, Multipart: m.ID, Number: number + 1, Length: 5,
			})
			part.add(t, 0, "hello")
		}
		armed.Store(true)
		err := s.find(t, m).EndMultipart(t.Context())
		armed.Store(false)
		if err == nil {
			if left := s.keys(t); len(left) > 0 || removals.Load() < 4 {
				t.Errorf("after %d removals: %q", removals.Load(), left)
			}
			return
		}
		if err := s.find(t, m).EndMultipart(t.Context()); err != nil {
			t.Errorf("again after removal %d: %v", cut, err)
		}
		if left := s.keys(t); len(left) > 0 {
			t.Errorf("cut at removal %d: %q", cut, left)
		}
	}
}

// TestAbortedCompletion: the final upload of a multipart upload that is aborted after a crash is
// removed by the next sweep that looks at it, and counts no more.
func TestAbortedCompletion(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *Store) {
		m := s.multipart(t)
		part := s.partOf(t, m, 1, "hello")
		if err := part.CompletePart(t.Context(), m, nil); err != nil {
			t.Fatal(err)
		}
		final := s.create(t, Record{
			Owner: owner, Kind: "file", Filename: "a.txt", Form: Completion, Length: Unknown, Parts: []string{part.ID}, Multipart: m.ID,
		})
		if err := s.find(t, m).EndMultipart(t.Context()); err != nil {
			t.Fatal(err)
		}
		if left := s.keys(t); !slices.Equal(left, []string{recordKey(owner, final.ID)}) {
			t.Errorf("after the abort: %q", left)
		}
		looked := func(string, time.Time) bool { return true }
		if _, err := s.Sweep(t.Context(), s.Storages[0], SweepOptions{Wanted: looked}); err != nil {
			t.Error(err)
		}
		if left := s.keys(t); len(left) > 0 {
			t.Errorf("after a sweep: %q", left)
		}
	})
}

// multipart returns a new multipart upload.
func (s *Store) multipart(t *testing.T) *Upload {
	t.Helper()
	return s.create(t, Record{Owner: owner, Kind: "file", Filename: "a.txt", Form: Multipart, Length: Unknown})
}

// partOf returns a part of a multipart upload with all its bytes, which is not complete yet.
func (s *Store) partOf(t *testing.T, m *Upload, number int, text string) *Upload {
	t.Helper()
	part := s.create(t, Record{
		Owner: owner, Kind: "file", Filename: "a.txt", Form: Part, Multipart: m.ID, Number: number, Length: Unknown,
	})
	part.add(t, 0, text)
	return part
}

// TestPartsSentAgain: a part takes the place of the one of its number that was complete before, and
// of no other. Nothing is lost if two are completed at once.
func TestPartsSentAgain(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *Store) {
		m := s.multipart(t)
		complete := func(parts ...*Upload) {
			t.Helper()
			for _, part := range parts {
				if err := part.CompletePart(t.Context(), m, nil); err != nil {
					t.Fatal(err)
				}
			}
		}
		want := func(texts ...string) {
			t.Helper()
			found, err := s.MultipartParts(t.Context(), m)
			got := make([]string, 0, len(found))
			for _, part := range found {
				got = append(got, string(part.content(t)))
			}
			if err != nil || !slices.Equal(got, texts) {
				t.Errorf("%q, want %q: %v", got, texts, err)
			}
		}
		first, other, slow := s.partOf(t, m, 1, "one"), s.partOf(t, m, 2, "two"), s.partOf(t, m, 1, "slow")
		complete(first, other)
		before := len(s.keys(t))
		for range 3 {
			complete(s.partOf(t, m, 1, "again"))
		}
		want("again", "two")
		if after := len(s.keys(t)); after != before {
			t.Errorf("%d objects, before the part was sent again %d", after, before)
		}
		_, err := s.Create(t.Context(), s.Storages[0], Creation{Record: Record{
			Owner: owner, Kind: "file", Filename: "a.txt", Form: Completion, Multipart: m.ID, Parts: []string{first.ID, other.ID},
		}, Admit: admit})
		if !errors.Is(err, ErrParts) {
			t.Errorf("completed with the part that was replaced: %v", err)
		}
		complete(slow)
		want("slow", "two")

		if err := m.EndMultipart(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.partOf(t, m, 3, "late").CompletePart(t.Context(), m, nil); !errors.Is(err, ErrUnknown) {
			t.Errorf("a part of an ended upload: %v", err)
		}
	})
}

// TestPartsAtOnce: of parts of one number that are completed at the same time, one always stays.
func TestPartsAtOnce(t *testing.T) {
	t.Parallel()
	s := storeOn(t, memory.New())
	m := s.multipart(t)
	for round := range 20 {
		var all sync.WaitGroup
		for range 3 {
			part, own := s.partOf(t, m, 1, "x"), s.find(t, m)
			all.Go(func() {
				if err := part.CompletePart(t.Context(), own, nil); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if found, err := s.MultipartParts(t.Context(), m); len(found) != 1 || err != nil {
			t.Fatalf("round %d: %d parts, %v", round, len(found), err)
		}
	}
}

// TestPartsReadOnce: a completion reads each part once: those that the final upload was created of
// are not looked for again when it is finished.
func TestPartsReadOnce(t *testing.T) {
	t.Parallel()
	d := memory.New()
	s := storeOn(t, d)
	m := s.multipart(t)
	ids := make([]string, 0, 3)
	for number := range 3 {
		part := s.partOf(t, m, number+1, "part")
		if err := part.CompletePart(t.Context(), m, nil); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, part.ID)
	}
	var mu sync.Mutex
	read := map[string]int{}
	d.Fail = func(op, key string) error {
		if op == "open" {
			mu.Lock()
			defer mu.Unlock()
			read[key]++
		}
		return nil
	}
	u, err := s.Create(t.Context(), s.Storages[0], Creation{Record: Record{
		Owner: owner, Kind: "file", Filename: "a.txt", Form: Completion, Multipart: m.ID, Parts: ids,
	}, Admit: admit})
	if err != nil {
		t.Fatal(err)
	}
	if failures := u.Finish(t.Context(), Finishing{}); len(failures) != 1 || !strings.Contains(failures[0].Message, "alias") {
		t.Errorf("finished without an alias: %v", failures)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, id := range ids {
		if n := read[recordKey(owner, id)]; n != 1 {
			t.Errorf("the record of a part is read %d times, want once", n)
		}
	}
}
