package resumable

import (
	"bytes"
	"crypto/sha1"
	"errors"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// TestExpires: what a ticket began ends soon after it, and without a byte after 15 minutes.
func TestExpires(t *testing.T) {
	t.Parallel()
	now := time.Unix(1795176000, 0)
	for _, c := range []struct {
		name    string
		ticket  string
		expires time.Duration // of the ticket, from now
		offset  int64
		store   time.Duration
		want    time.Duration
	}{
		{"token", "", 0, 0, 24 * time.Hour, 24 * time.Hour},
		{"token with bytes", "", 0, 5, 24 * time.Hour, 24 * time.Hour},
		{"ticket", "a", 15 * time.Minute, 5, 24 * time.Hour, 75 * time.Minute},
		{"long ticket", "a", 10 * time.Hour, 5, 24 * time.Hour, 11 * time.Hour},
		{"ended ticket", "a", -10 * time.Hour, 5, 24 * time.Hour, time.Hour},
		{"ticket, no byte", "a", 10 * time.Hour, 0, 24 * time.Hour, 15 * time.Minute},
		{"ticket, short store", "a", 15 * time.Minute, 5, 10 * time.Minute, 10 * time.Minute},
		{"ticket, no byte, short store", "a", 15 * time.Minute, 0, 10 * time.Minute, 10 * time.Minute},
	} {
		u := &Upload{
			store: &Store{Expires: c.store}, changed: now, offset: c.offset,
			Record: Record{Ticket: c.ticket, TicketExpires: now.Add(c.expires)},
		}
		if got := u.Expires().Sub(now); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		u.ID = newID(now, &u.Record, 0, "default")
		if least := u.store.least(u.ID, c.offset); least > c.want {
			t.Errorf("%s: a sweep looks at it after %s only", c.name, least)
		}
	}
}

// TestSweepTickets: the uploads of a ticket are removed when they expire, and not before, also if
// they were looked at a moment earlier.
func TestSweepTickets(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *Store) {
		now := time.Now()
		s.Now, s.Expires = func() time.Time { return now }, 24*time.Hour
		of := func(ticket string) Record {
			return Record{Owner: owner, Kind: "file", Ticket: ticket, TicketExpires: now.Add(time.Hour), Length: 5}
		}
		empty, begun, token := s.create(t, of("a")), s.create(t, of("a")), s.create(t, of(""))
		begun.add(t, 0, "123")
		for _, c := range []struct {
			after time.Duration
			want  []*Upload
		}{
			{14 * time.Minute, []*Upload{empty, begun, token}},
			{16 * time.Minute, []*Upload{begun, token}},
			{110 * time.Minute, []*Upload{begun, token}},
			{121 * time.Minute, []*Upload{token}},
		} {
			at := now
			now = now.Add(c.after)
			open, err := s.Sweep(t.Context(), s.Storages[0], SweepOptions{})
			if err != nil || open.Uploads != len(c.want) {
				t.Errorf("after %s: %d uploads, error %v", c.after, open.Uploads, err)
			}
			for _, u := range []*Upload{empty, begun, token} {
				if _, err := s.Find(t.Context(), owner, u.ID); (err == nil) != slices.Contains(c.want, u) {
					t.Errorf("after %s: %v", c.after, err)
				}
			}
			now = at
		}
	})
}

// acting is a reader that calls act before it returns the bytes.
type acting struct {
	io.Reader
	act func()
}

func (a *acting) Read(p []byte) (int, error) {
	if act := a.act; act != nil {
		a.act = nil
		act()
	}
	return a.Reader.Read(p)
}

// TestExpiresWhileWritten: an upload does not expire while a request adds bytes, however slowly.
// Other processes see them in time.
func TestExpiresWhileWritten(t *testing.T) {
	t.Parallel()
	for _, verified := range []bool{false, true} {
		s := storeOn(t, memory.New())
		began := time.Now()
		var passed atomic.Int64 // since it began
		s.Now = func() time.Time { return began.Add(time.Duration(passed.Load())) }
		u := s.create(t, Record{Owner: owner, Kind: "file", Length: 6})
		var seen []string
		part := func(text string) io.Reader {
			return &acting{strings.NewReader(text), func() {
				passed.Add(int64(s.Expires * 3 / 4))
				seen = s.keys(t)
				if _, err := s.Sweep(t.Context(), s.Storages[0], SweepOptions{}); err != nil {
					t.Error(err)
				}
			}}
		}
		b := body(0, io.MultiReader(part("12"), part("34"), part("56")))
		if verified {
			sum := sha1.Sum([]byte("123456"))
			b.Sum, b.Hash = sum[:], sha1.New()
		}
		if err := u.Append(t.Context(), b); err != nil || !u.Complete() {
			t.Fatalf("verified %t: offset %d, error %v", verified, u.Offset(), err)
		}
		passed.Store(int64(time.Since(began))) // as for the storage
		if u = s.find(t, u); !bytes.Equal(u.content(t), []byte("123456")) {
			t.Errorf("verified %t: it has %q", verified, u.content(t))
		}
		if stored := slices.Contains(seen, pieceKey(u.ID, 0)); stored == verified {
			t.Errorf("verified %t: others see %v", verified, seen)
		}
	}
}

// TestDamaged: an upload whose record, or length, has lost its bytes is unknown, and is removed.
func TestDamaged(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *Store) {
		now := time.Now()
		s.Now = func() time.Time { return now }
		for _, damage := range []func(u *Upload) string{
			func(u *Upload) string { return recordKey(owner, u.ID) },
			func(u *Upload) string { return dataKey(u.ID, lengthName) },
		} {
			for _, left := range []string{"", "{", "[]", "\"x\""} {
				u := s.create(t, Record{Owner: owner, Kind: "file", Length: Unknown})
				u.add(t, 0, "12")
				_, err := s.Storages[0].Put(t.Context(), damage(u), strings.NewReader(left), storagedrivers.PutOptions{Mode: storagedrivers.Overwrite})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := s.Find(t.Context(), owner, u.ID); !errors.Is(err, ErrUnknown) {
					t.Errorf("%q in %s: %v", left, damage(u), err)
				}
			}
		}
		now = now.Add(s.Expires + time.Minute)
		if _, err := s.Sweep(t.Context(), s.Storages[0], SweepOptions{}); err != nil || len(s.keys(t)) > 0 {
			t.Errorf("remaining %v, error %v", s.keys(t), err)
		}
	})
}
