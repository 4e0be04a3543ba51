package service

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/access"
	"github.com/caddymedia/media/caddymedia/internal/resumable"
	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/caddymedia/tokens/memory"
)

// TestFinishAlone: the upload of a ticket is stored without its client while the ticket has an item
// left. One that an earlier attempt may have stored needs no ticket any more: it counts already.
func TestFinishAlone(t *testing.T) {
	t.Parallel()
	keep := func(t *testing.T, s *Service, u *resumable.Upload) {
		t.Helper()
		attempt, err := s.issuer.Attempt(t.Context(), u.Request(), func() {})
		if err == nil {
			err = errors.Join(attempt.Keep(t.Context()), attempt.End(t.Context(), nil))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	take := func(t *testing.T, s *Service, ticket *access.Ticket, use string) {
		t.Helper()
		if err := s.issuer.Take(t.Context(), ticket, use, 1); err != nil {
			t.Fatal(err)
		}
	}
	drop := func(t *testing.T, s *Service, text string) {
		t.Helper()
		if err := s.issuer.Drop(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name   string
		before func(t *testing.T, s *Service, u *resumable.Upload, text string, ticket *access.Ticket)
		stored bool
		used   int // -1 for an ended ticket
	}{
		{"valid", func(*testing.T, *Service, *resumable.Upload, string, *access.Ticket) {}, true, 1},
		{"counted before", func(t *testing.T, s *Service, u *resumable.Upload, _ string, ticket *access.Ticket) {
			take(t, s, ticket, u.ID)
		}, true, 1},
		{"used up", func(t *testing.T, s *Service, _ *resumable.Upload, _ string, ticket *access.Ticket) {
			take(t, s, ticket, "other")
		}, false, 1},
		{"ended", func(t *testing.T, s *Service, _ *resumable.Upload, text string, _ *access.Ticket) {
			drop(t, s, text)
		}, false, -1},
		{"repeated and ended", func(t *testing.T, s *Service, u *resumable.Upload, text string, _ *access.Ticket) {
			keep(t, s, u)
			drop(t, s, text)
		}, true, -1},
		{"counted on another ticket", func(t *testing.T, s *Service, u *resumable.Upload, _ string, _ *access.Ticket) {
			keep(t, s, u)
		}, true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := nodes(t, 1)[0]
			text, ticket := s.ticket(t)
			u := s.complete(t, "content", hex.EncodeToString(ticket.ID[:]))
			c.before(t, s, u, text, ticket)
			_ = s.finishAlone(t.Context(), u)
			if err := u.Reload(t.Context()); err != nil {
				t.Fatal(err)
			}
			if stored := u.Outcome != nil; stored != c.stored || stored != (len(s.stored(t, "content")) == 1) {
				t.Errorf("outcome %+v, items %v", u.Outcome, s.stored(t, "content"))
			}
			if c.used >= 0 && s.used(t, ticket.ID) != c.used {
				t.Errorf("%d are counted, want %d", s.used(t, ticket.ID), c.used)
			}
		})
	}
}

// TestSweepTicket: the upload of a ticket is removed when it expires, although it was looked at a
// moment before.
func TestSweepTicket(t *testing.T) {
	t.Parallel()
	s, now := nodes(t, 1)[0], time.Now()
	s.now = func() time.Time { return now }
	s.uploads.Now = s.now
	u := s.complete(t, "content", strings.Repeat("0", 64)) // a ticket that has ended
	f := finisher{service: s, tried: map[string]retry{}, quiet: quietTime}
	for _, c := range []struct {
		after time.Duration
		want  bool
	}{{55 * time.Minute, true}, {59 * time.Minute, true}, {61 * time.Minute, false}} {
		now = u.Changed().Add(c.after)
		if err := f.sweep(t.Context(), u.Storage()); err != nil {
			t.Fatal(err)
		}
		now = u.Changed()
		if _, err := s.uploads.Find(t.Context(), u.Owner, u.ID); (err == nil) != c.want {
			t.Errorf("after %s: %v", c.after, err)
		}
	}
}

// TestSweepRunning: an upload that another process was finishing is looked at again by the next sweep, in
// case that process is dead.
func TestSweepRunning(t *testing.T) {
	t.Parallel()
	s := nodes(t, 1)[0]
	_, ticket := s.ticket(t)
	u := s.complete(t, "content", hex.EncodeToString(ticket.ID[:]))
	running, err := s.issuer.Attempt(t.Context(), u.Request(), func() {})
	if err != nil {
		t.Fatal(err)
	}
	f := finisher{service: s, tried: map[string]retry{}}
	for _, want := range []bool{false, true} {
		if err := errors.Join(f.sweep(t.Context(), u.Storage()), u.Reload(t.Context())); err != nil {
			t.Fatal(err)
		}
		if stored := u.Outcome != nil; stored != want {
			t.Errorf("finished: %t, want %t", stored, want)
		}
		if err := running.End(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
}

// ticket returns a new ticket for one file.
func (s *Service) ticket(t *testing.T) (text string, ticket *access.Ticket) {
	t.Helper()
	account, _ := s.issuer.Account(uploader)
	text, _, err := s.issuer.IssueTicket(t.Context(), account, access.Ticket{Kind: "file", Alias: "content", MaxFiles: 1}, time.Hour)
	if err == nil {
		_, ticket, err = s.issuer.VerifyTicket(t.Context(), access.IDOf(text))
	}
	if err != nil {
		t.Fatal(err)
	}
	return text, ticket
}

// used returns how many items are counted on a ticket.
func (s *Service) used(t *testing.T, id access.ID) int {
	t.Helper()
	_, ticket, err := s.issuer.VerifyTicket(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return ticket.Used()
}

// sharedTokens is a token store of several services.
type sharedTokens struct{ tokens.Store }

func newTokens() tokens.Store { return sharedTokens{memory.New(nil)} }

// Close does nothing.
func (sharedTokens) Close() error { return nil }
