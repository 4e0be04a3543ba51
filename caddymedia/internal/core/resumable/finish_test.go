package resumable

import (
	"context"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/derived/derivedtest"
	"github.com/caddymedia/media/caddymedia/internal/core/upload"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// TestFinal: a final upload consists of its parts, in their order. It is the same one if it is
// created again, also when it is finished and its parts are removed.
func TestFinal(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *Store) {
		a, b := s.part(t, "abc").ID, s.part(t, "def").ID
		open := s.create(t, Record{Owner: owner, Kind: "file", Form: Partial, Length: 3})
		open.add(t, 0, "x")
		final := func(parts ...string) (*Upload, error) {
			rec := Record{Owner: owner, Kind: "file", Form: Final, Parts: parts, Metadata: "filename YQ=="}
			return s.Create(t.Context(), s.Storages[0], Creation{Record: rec, Admit: admit})
		}
		whole := s.create(t, Record{Owner: owner, Kind: "file", Length: 0}).ID // no partial upload
		for _, parts := range [][]string{{open.ID}, {a, open.ID}, {a, whole}, {"x"}, {newID(s.Now(), &Record{}, 0, "default")}} {
			if _, err := final(parts...); !errors.Is(err, ErrParts) {
				t.Errorf("parts %v: %v", parts, err)
			}
		}
		u, err := final(b, a, b)
		if err != nil {
			t.Fatal(err)
		}
		if got := u.content(t); !u.Complete() || u.Length != 9 || string(got) != "defabcdef" {
			t.Errorf("got %q, length %d", got, u.Length)
		}
		again, err := final(b, a, b)
		if err != nil || again.ID != u.ID || string(again.content(t)) != "defabcdef" {
			t.Errorf("created again: %v, error %v", again, err)
		}
		u.finished(t, Outcome{Stored: "x.txt"})
		again, err = final(b, a, b)
		if err != nil || again.ID != u.ID || again.Outcome == nil || again.Outcome.Stored != "x.txt" || again.Offset() != 9 {
			t.Errorf("after the end: %+v, error %v", again, err)
		}
		if part, err := s.Find(t.Context(), owner, a); err != nil || part.Outcome == nil || part.Offset() != 3 {
			t.Errorf("a part after the end: %+v, error %v", part, err)
		}
		if _, err := final(a); !errors.Is(err, ErrParts) {
			t.Errorf("its parts again: %v", err)
		}
		if keys := s.keys(t); len(keys) != 6 { // the outcomes, the open part with its bytes, and the other upload
			t.Errorf("remaining: %v", keys)
		}
	})
}

// TestOtherVersion: an upload whose record has another version is unknown, and left to the program
// that has written it until it expires.
func TestOtherVersion(t *testing.T) {
	t.Parallel()
	for _, form := range []Form{Single, Final} {
		each(t, func(t *testing.T, s *Store) {
			rec := Record{Owner: owner, Kind: "file", Form: form, Length: 3}
			if form == Final {
				rec.Parts = []string{s.part(t, "abc").ID}
			}
			u := s.create(t, rec)
			key := recordKey(owner, u.ID)
			u.Version = version + 1
			if err := errors.Join(u.storage.Delete(t.Context(), key), put(t.Context(), u.storage, key, &u.Record)); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Find(t.Context(), owner, u.ID); !errors.Is(err, ErrUnknown) {
				t.Errorf("found: %v", err)
			}
			before := s.keys(t)
			all := SweepOptions{Wanted: func(string, time.Time) bool { return true }}
			if _, err := s.Sweep(t.Context(), u.storage, all); err != nil || !slices.Equal(s.keys(t), before) {
				t.Errorf("after a sweep: %v, %v", s.keys(t), err)
			}
			s.Now = func() time.Time { return time.Now().Add(2 * s.Expires) }
			if _, err := s.Sweep(t.Context(), u.storage, SweepOptions{}); err != nil || slices.Contains(s.keys(t), key) {
				t.Errorf("after its end: %v, %v", s.keys(t), err)
			}
		})
	}
}

// TestInterruptedFinal: a sweep removes a final upload whose removal was interrupted, and one that
// misses a part. The other parts of an unfinished one stay.
func TestInterruptedFinal(t *testing.T) {
	t.Parallel()
	for _, finished := range []bool{true, false} {
		each(t, func(t *testing.T, s *Store) {
			parts := make([]*Upload, 0, 3)
			rec := Record{Owner: owner, Kind: "file", Form: Final, Metadata: "filename YQ=="}
			for range 3 {
				part := s.part(t, "abc")
				parts, rec.Parts = append(parts, part), append(rec.Parts, part.ID)
			}
			u := s.create(t, rec)
			if finished {
				if err := put(t.Context(), u.storage, outcomeKey(u.ID), &Outcome{Record: u.Record, Finished: s.Now(), Stored: "a"}); err != nil {
					t.Fatal(err)
				}
			}
			if err := parts[1].removeAll(t.Context()); err != nil {
				t.Fatal(err)
			}
			_, err := s.Sweep(t.Context(), u.storage, SweepOptions{
				Wanted: func(string, time.Time) bool { return true },
				Idle: func(idle *Upload) {
					if idle.Form.HasItem() {
						t.Error("the final upload is idle")
					}
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			outcomes := 0
			for _, key := range s.keys(t) {
				if strings.HasPrefix(key, doneFolder) {
					outcomes++
				}
			}
			want := [2]int{4, 0} // the other parts
			if finished {
				want = [2]int{3, 3}
			}
			if got := [2]int{len(s.keys(t)), outcomes}; got != want {
				t.Errorf("finished %t: remaining %v", finished, s.keys(t))
			}
		})
	}
}

// TestRepeatedParts: a final upload is at most twice as long as its distinct parts.
func TestRepeatedParts(t *testing.T) {
	t.Parallel()
	s := storeOn(t, memory.New())
	long, short, empty := s.part(t, strings.Repeat("x", 10)).ID, s.part(t, "x").ID, s.part(t, "").ID
	for _, c := range []struct {
		parts []string
		want  error
	}{
		{[]string{long, long}, nil},
		{[]string{long, short, short, long}, nil},
		{slices.Concat([]string{long}, slices.Repeat([]string{short}, 12)), nil},
		{slices.Repeat([]string{empty}, 5), nil},
		{[]string{long, long, long}, ErrRepeated},
		{slices.Repeat([]string{short}, 340), ErrRepeated},
		{[]string{long, short, long, long}, ErrRepeated},
	} {
		rec := Record{Owner: owner, Kind: "file", Form: Final, Parts: c.parts}
		if _, err := s.Create(t.Context(), s.Storages[0], Creation{Record: rec, Admit: admit}); !errors.Is(err, c.want) {
			t.Errorf("%d parts: %v, want %v", len(c.parts), err, c.want)
		}
	}
}

// TestFinalPieces: a final upload has no more pieces than one that is received as a whole.
func TestFinalPieces(t *testing.T) {
	t.Parallel()
	s := storeOn(t, memory.New())
	parts := make([]string, 0, 50)
	for range cap(parts) {
		part := s.create(t, Record{Owner: owner, Kind: "file", Form: Partial, Length: 101})
		parts = append(parts, part.ID)
		for offset := range part.Length {
			if err := putBytes(t.Context(), s.Storages[0], pieceKey(part.ID, offset), []byte("x")); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		parts int
		want  error
	}{{99, nil}, {100, ErrPieces}} {
		rec := Record{Owner: owner, Kind: "file", Form: Final, Parts: slices.Concat(parts, parts)[:c.parts]}
		if _, err := s.Create(t.Context(), s.Storages[0], Creation{Record: rec, Admit: admit}); !errors.Is(err, c.want) {
			t.Errorf("%d parts: %v", c.parts, err)
		}
	}
}

// TestFinishCut: an upload whose outcome is stored is not finished again, after a process was
// killed before it removed the rest.
func TestFinishCut(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *Store) {
		u := s.create(t, Record{Owner: owner, Length: 0})
		if err := u.finishCut(t.Context()); !errors.Is(err, ErrUnknown) {
			t.Errorf("without an outcome: %v", err)
		}
		cut := Outcome{Record: u.Record, Stored: "a.txt", Finished: s.Now()}
		if err := cut.put(t.Context(), u); err != nil {
			t.Fatal(err)
		}
		if failures := u.Finish(t.Context(), Finishing{}); failures != nil || u.Outcome == nil || u.Outcome.Stored != "a.txt" {
			t.Errorf("outcome %+v, failures %v", u.Outcome, failures)
		}
		if keys := s.keys(t); len(keys) != 1 || keys[0] != outcomeKey(u.ID) {
			t.Errorf("remaining: %v", keys)
		}
	})
}

// TestRecords: the refusal of an item that may be stored, or that says nothing about the item, is
// not recorded.
func TestRecords(t *testing.T) {
	t.Parallel()
	final, temporary := item.Failures{{Reason: item.BadContent}}, item.Failures{{Reason: item.Busy}}
	for name, c := range map[string]struct {
		attempt  attempt
		failures item.Failures
		want     bool
	}{
		"refused":          {attempt{}, final, true},
		"temporary":        {attempt{}, temporary, false},
		"repeated":         {attempt{isRepeated: true, kept: true}, final, false},
		"unauthorized":     {attempt{unauthorized: true}, final, false},
		"without a client": {attempt{how: Finishing{Refusals: RecordNone}, kept: true}, final, false},
		"creation":         {attempt{how: Finishing{Refusals: RecordKept}}, final, false},
		"creation, kept":   {attempt{how: Finishing{Refusals: RecordKept}, kept: true}, final, true},
	} {
		c.attempt.lease, c.attempt.Upload = new(access.Attempt), new(Upload)
		if got := c.attempt.records(c.failures); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// withTickets returns a function that issues a new ticket for one file, and one that returns the
// number of its items.
func (s *Store) withTickets(t *testing.T) (issue func() *access.Ticket, used func(*access.Ticket) int) {
	t.Helper()
	issue = func() *access.Ticket {
		text, _, err := s.Issuer.IssueTicket(t.Context(), site, access.Ticket{Kind: "file", MaxFiles: 1}, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		return &access.Ticket{ID: access.IDOf(text), MaxFiles: 1}
	}
	return issue, func(ticket *access.Ticket) int {
		_, ticket, err := s.Issuer.VerifyTicket(t.Context(), ticket.ID)
		if err != nil {
			t.Fatal(err)
		}
		return ticket.Used()
	}
}

// createOf creates an empty upload of a ticket.
func (s *Store) createOf(t *testing.T, ticket *access.Ticket) *Upload {
	t.Helper()
	return s.create(t, Record{Owner: owner, Kind: "file", Ticket: hex.EncodeToString(ticket.ID[:]), TicketExpires: s.Now().Add(time.Hour)})
}

// TestCount: an item is counted on the ticket that created its upload or, if that has ended or is
// used up, on that of the caller, who may have a token. It does not count any more when it is
// refused. A repeated attempt does not count it again.
func TestCount(t *testing.T) {
	t.Parallel()
	s := storeOn(t, memory.New())
	issue, used := s.withTickets(t)
	for _, c := range []struct {
		name            string
		ended, usedUp   bool // the ticket that created the upload
		token, repeated bool // the caller has a token; an earlier attempt was kept
		creator, caller int  // items that are counted
	}{
		{name: "valid", creator: 1},
		{name: "valid, finished by a token", token: true, creator: 1},
		{name: "ended", ended: true, caller: 1},
		{name: "ended, finished by a token", ended: true, token: true},
		{name: "used up", usedUp: true, creator: 1, caller: 1},
		{name: "used up, finished by a token", usedUp: true, token: true, creator: 1},
		{name: "repeated", repeated: true},
		{name: "repeated and ended", ended: true, repeated: true},
	} {
		creator, caller := issue(), issue()
		a := &attempt{Upload: s.createOf(t, creator), isRepeated: c.repeated, rights: Rights{Issuer: s.Issuer, Ticket: caller}}
		a.lease = a.Upload.leased(t)
		if c.ended {
			a.Ticket = hex.EncodeToString(make([]byte, len(creator.ID)))
		}
		if c.usedUp {
			if err := s.Issuer.Take(t.Context(), creator, "another upload", 1); err != nil {
				t.Fatal(err)
			}
		}
		if c.token {
			a.rights.Ticket = nil
		}
		before := used(creator)
		if failure := a.count(t.Context()); failure != nil || used(creator) != c.creator || used(caller) != c.caller {
			t.Errorf("%s: %d are counted for the creator, %d for the caller, %v", c.name, used(creator), used(caller), failure)
		}
		a.Outcome = &Outcome{Refused: "no"}
		if a.end(t.Context()); used(creator) != before || used(caller) != 0 {
			t.Errorf("%s: %d and %d are counted after the refusal", c.name, used(creator), used(caller))
		}
	}
}

// actors records the actors of requests.
type actors struct {
	upload.NopObserver
	all []item.Actor
}

func (o *actors) Began(op upload.Operation) func(bool) {
	o.all = append(o.all, op.Actor)
	return o.NopObserver.Began(op)
}

// TestFinishParty: an upload of a ticket shares the resources of the account as its client when it
// is finished, by any process.
func TestFinishParty(t *testing.T) {
	t.Parallel()
	s, o := storeOn(t, memory.New()), new(actors)
	s.Uploader.Observer = o
	rec := Record{Owner: "http k", Origin: "http", Account: "k", Kind: "file", Filename: "a.txt", Ticket: "00", Client: "192.0.2.1"}
	_ = s.create(t, rec).Finish(t.Context(), Finishing{}) // refused: there is no alias
	if len(o.all) != 1 || o.all[0].Party() != rec.party() || rec.party().Client == "" {
		t.Errorf("got %+v, want %+v", o.all, rec.party())
	}
}

// keep keeps an attempt to finish an upload, as of a process that was killed then.
func (u *Upload) keep(t *testing.T) {
	t.Helper()
	lease := u.leased(t)
	if err := errors.Join(lease.Keep(t.Context()), lease.End(t.Context(), nil)); err != nil {
		t.Fatal(err)
	}
}

// leased begins an attempt to finish an upload.
func (u *Upload) leased(t *testing.T) *access.Attempt {
	t.Helper()
	lease, err := u.lease(t.Context(), func() {})
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// TestAuthorizeKeeps: an attempt is kept with its time once its item is counted, unless its caller
// lacks the rights, or its ticket has ended or is used up: that says nothing about the item, which
// another caller may store. It is forgotten if nothing is stored.
func TestAuthorizeKeeps(t *testing.T) {
	t.Parallel()
	s := storeOn(t, memory.New())
	issue, used := s.withTickets(t)
	for _, c := range []struct {
		refuses, usedUp, ended bool
		outcome                upload.Outcome
		want                   bool
	}{
		{outcome: upload.MaybeStored, want: true},
		{outcome: upload.NothingStored},
		{refuses: true, outcome: upload.MaybeStored},
		{usedUp: true, outcome: upload.MaybeStored},
		{ended: true, outcome: upload.MaybeStored},
	} {
		ticket := issue()
		if c.usedUp {
			if err := s.Issuer.Take(t.Context(), ticket, "another upload", 1); err != nil {
				t.Fatal(err)
			}
		}
		u := s.createOf(t, ticket)
		mine := ticket
		if c.ended {
			mine = &access.Ticket{ID: access.ID{1}, MaxFiles: 1}
			u.Ticket = hex.EncodeToString(mine.ID[:])
		}
		lease := u.leased(t)
		a := &attempt{Upload: u, lease: lease, how: Finishing{Authorize: func(context.Context, *Upload, bool) (Rights, *item.Failure) {
			if c.refuses {
				return Rights{}, &item.Failure{Reason: item.Forbidden}
			}
			return Rights{Issuer: s.Issuer, Ticket: mine}, nil
		}}}
		settle, failure := a.authorize(t.Context(), upload.Commitment{})
		if (failure != nil) != (c.refuses || c.usedUp || c.ended) || (used(ticket) == 1) == (c.refuses || c.ended) {
			t.Errorf("%+v: %v, %d are counted", c, failure, used(ticket))
		}
		if failure != nil && a.records(item.Failures{failure}) {
			t.Errorf("%+v: it becomes the outcome: %v", c, failure)
		}
		if failure == nil {
			settle(c.outcome)
		}
		a.end(t.Context())
		next := u.leased(t)
		if next.IsRepeated != c.want || c.want && !next.Began.Equal(lease.Began) {
			t.Errorf("%+v: repeated %t, began %s, want %s", c, next.IsRepeated, next.Began, lease.Began)
		}
		if err := next.End(t.Context(), nil); err != nil {
			t.Error(err)
		}
	}
}

// TestTerminateCounted: a terminated upload returns its item to the ticket, unless the item may
// be stored, or is just being stored. One whose creation fails stays then.
func TestTerminateCounted(t *testing.T) {
	t.Parallel()
	s := storeOn(t, memory.New())
	issue, used := s.withTickets(t)
	for _, drop := range []bool{false, true} {
		for state, mayBeStored := range map[string]bool{"new": false, "kept": true, "running": true} {
			ticket := issue()
			u := s.createOf(t, ticket)
			if err := s.Issuer.Take(t.Context(), ticket, u.ID, 1); err != nil {
				t.Fatal(err)
			}
			switch state {
			case "kept":
				u.keep(t)
			case "running":
				lease := u.leased(t)
				defer lease.End(t.Context(), nil)
			}
			if drop {
				if u.Drop(t.Context(), nil) == mayBeStored {
					t.Errorf("%s: removed %t", state, mayBeStored)
				}
			} else if err := u.Terminate(t.Context()); err != nil {
				t.Error(err)
			}
			if n := used(ticket); (n == 1) != mayBeStored {
				t.Errorf("%s: %d are counted", state, n)
			}
		}
	}
}

// TestFinishElsewhere: an upload that another process is finishing is busy. After that it is
// finished by no other, although it was found before.
func TestFinishElsewhere(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *Store) {
		u := s.create(t, Record{Owner: owner, Length: 0})
		other := s.find(t, u)
		lease := other.leased(t)
		if failures := u.Finish(t.Context(), Finishing{}); len(failures) != 1 || failures[0].Reason != item.Busy {
			t.Errorf("meanwhile: %v", failures)
		}
		if err := errors.Join(other.record(t.Context(), Outcome{Stored: "a.txt"}), lease.Forget(t.Context())); err != nil {
			t.Fatal(err)
		}
		if failures := u.Finish(t.Context(), Finishing{}); failures != nil || u.Outcome == nil || u.Outcome.Stored != "a.txt" {
			t.Errorf("afterwards: %+v, %v", u.Outcome, failures)
		}
	})
}

// TestFinishForgotten: an attempt finds the item of an earlier one that was killed, also if the
// token store has forgotten that one. An equal item that was stored before an upload was complete
// is not its own.
func TestFinishForgotten(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *Store) {
		alias := derivedtest.NewAlias(t, "default", s.Storages[0])
		s.Uploader.Aliases = map[item.Kind]map[string]*item.Alias{item.File: {alias.Name: alias}}
		how := Finishing{Authorize: func(context.Context, *Upload, bool) (Rights, *item.Failure) {
			return Rights{Issuer: s.Issuer}, nil
		}}
		complete := func(rec Record) *Upload {
			rec.Owner, rec.Kind, rec.Alias, rec.Filename = owner, "file", "default", "a.txt"
			u := s.create(t, rec)
			if len(rec.Parts) == 0 {
				u.add(t, 0, "123")
			}
			return u
		}
		finish := func(u *Upload) string {
			u = s.find(t, u)
			if failures := u.Finish(t.Context(), how); failures != nil || u.Outcome == nil {
				t.Fatalf("outcome %+v, failures %v", u.Outcome, failures)
			}
			return u.Outcome.Stored
		}
		part := complete(Record{Form: Partial, Length: 3})
		late := complete(Record{Length: Unknown})
		u := complete(Record{Length: 3})
		lease := u.leased(t)
		killed := &attempt{Upload: u, how: how, lease: lease, repetition: upload.Repetition{ID: u.ID, Began: lease.Began}}
		if _, failures := killed.storeItems(t.Context()); failures != nil {
			t.Fatal(failures)
		}
		if err := lease.End(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		s.Issuer = newIssuer(t)
		if stored := finish(u); stored != "a.txt" {
			t.Errorf("stored again as %s", stored)
		}
		time.Sleep(20 * time.Millisecond) // the clock of a file system may be coarse
		if err := late.SetLength(t.Context(), 3); err != nil {
			t.Fatal(err)
		}
		for what, other := range map[string]*Upload{
			"another": complete(Record{Length: 3}), "a late length": late, "parts": complete(Record{Form: Final, Parts: []string{part.ID}}),
		} {
			if stored := finish(other); stored == "a.txt" {
				t.Errorf("%s: has the item of the first upload", what)
			}
		}
	})
}

// TestOutcomeFits: the largest permitted fields fit, also if each character is escaped.
func TestOutcomeFits(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("\x01", 1024)
	rec := Record{
		Owner: "http " + strings.Repeat("k", 1024), Account: strings.Repeat("k", 1024), Ticket: long, Origin: "http",
		Scope:    access.Scope{Kind: "file", Alias: strings.Repeat("a", 64), SubFolder: strings.Repeat("ж", 250), Filename: strings.Repeat("ж", 100)},
		Filename: long, SubFolder: long, Metadata: long, Concat: long,
	}
	for _, o := range []Outcome{
		{Record: rec, Refused: long},
		{Record: rec, Stored: strings.Repeat("ж", 500), Variant: true, Renditions: slices.Repeat([]string{long[:64]}, 16)},
	} {
		if b, err := o.encode(); err != nil || len(b) > 4<<10 {
			t.Errorf("%d bytes, error %v", len(b), err)
		}
	}
}

// TestOutcomeForgets: an outcome has no address of a client, and that of a refused item no names.
func TestOutcomeForgets(t *testing.T) {
	t.Parallel()
	rec := Record{Owner: owner, Client: "192.0.2.1", Filename: "secret.txt", SubFolder: "secret", Metadata: "secret", Concat: "secret"}
	for _, o := range []Outcome{{Record: rec, Stored: "a.txt"}, {Record: rec, Refused: "no"}} {
		b, err := o.encode()
		text := string(b)
		if err != nil || strings.Contains(text, rec.Client) || strings.Contains(text, "secret") != (o.Refused == "") {
			t.Errorf("outcome %s, error %v", text, err)
		}
	}
}

// TestFinish: of two attempts, both have the outcome of one. At most 4 KiB remain.
func TestFinish(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *Store) {
		u := s.create(t, Record{Owner: owner, Length: 3, Metadata: strings.Repeat("x", 8<<10)})
		u.add(t, 0, "123")
		other := s.find(t, u)
		u.finished(t, Outcome{Stored: "a.txt"})
		if err := other.record(t.Context(), Outcome{Stored: "b.txt"}); err != nil || other.Outcome.Stored != "a.txt" {
			t.Errorf("the second attempt: %+v, error %v", other.Outcome, err)
		}
		found := s.find(t, u)
		if found.Outcome == nil || found.Outcome.Stored != "a.txt" || found.Offset() != 3 {
			t.Errorf("found %+v", found)
		}
		keys := s.keys(t)
		if len(keys) != 1 || keys[0] != outcomeKey(u.ID) {
			t.Errorf("remaining: %v", keys)
		}
		if info, err := s.Storages[0].Stat(t.Context(), outcomeKey(u.ID)); err != nil || info.Size > maxOutcome {
			t.Errorf("outcome of %d bytes, error %v", info.Size, err)
		}
		if err := found.Terminate(t.Context()); err != nil {
			t.Fatal(err)
		}
		if keys := s.keys(t); len(keys) > 0 {
			t.Errorf("remaining after the end: %v", keys)
		}
	})
}
