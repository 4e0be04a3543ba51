package service

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/resumable"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/caddymedia/tokens/memory"
	"github.com/caddymedia/media/storagedrivers/local"
)

const uploader = "site"

// nodes are services that share two folders, as in several processes. The uploads are in one
// folder, and the items of the aliases "content" and "far" in each.
func nodes(t *testing.T, n int) []*Service {
	t.Helper()
	folders := []string{t.TempDir(), t.TempDir()}
	services, store := make([]*Service, n), newTokens()
	for i := range services {
		parts := partsOf(t)
		parts.Tokens = store
		parts.Accounts = []access.Account{{APIKey: uploader, PasswordHash: "x"}}
		parts.Storages = nil
		for j, name := range []string{"default", "far"} {
			driver := local.New(local.Config{Root: folders[j], Sync: new(false)}, slog.New(slog.DiscardHandler))
			parts.Storages = append(parts.Storages, Storage{Name: name, Driver: driver})
		}
		parts.Resumable.Storage = "default"
		parts.Aliases = aliasesOf(newAlias(t, item.File, "content"), newAlias(t, item.File, "far"))
		services[i] = start(t, parts)
	}
	return services
}

// begun returns an upload of a record with four bytes.
func (s *Service) begun(t *testing.T, rec resumable.Record) *resumable.Upload {
	t.Helper()
	rec.Kind, rec.Filename = "file", "a.txt"
	u, err := s.Uploads().Create(t.Context(), s.UploadStorage(item.File, rec.Alias), resumable.Creation{
		Record: rec, Admit: func(int64) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	err = u.Append(t.Context(), resumable.Body{
		Reader: strings.NewReader("text"), Interrupt: func() {}, Reserve: func() (func(), error) { return func() {}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// complete returns a complete upload that is not finished. ticket is the ID of its ticket, empty
// for a token.
func (s *Service) complete(t *testing.T, alias, ticket string) *resumable.Upload {
	t.Helper()
	actor := item.Actor{Origin: item.OriginHTTP, Account: uploader}
	return s.begun(t, resumable.Record{
		Owner: actor.Owner(), Origin: string(actor.Origin), Account: actor.Account, Alias: alias, Length: 4, Ticket: ticket,
	})
}

// stored returns the keys of the items of an alias.
func (s *Service) stored(t *testing.T, alias string) []string {
	t.Helper()
	a, _ := s.Alias(item.File, alias)
	var keys []string
	for info, err := range a.Storage.All(t.Context(), a.Key("")) {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, info.Key)
	}
	return keys
}

// TestFinishUpload: an upload that several processes finish at the same time, each for another
// ticket, becomes one item, which counts once. All have its outcome.
func TestFinishUpload(t *testing.T) {
	t.Parallel()
	final := []item.Reason{item.BadRequest, item.Forbidden, item.Conflict, item.TooLarge, item.BadContent}
	for _, alias := range []string{"content", "far"} {
		t.Run(alias, func(t *testing.T) {
			t.Parallel()
			services := nodes(t, 3)
			tickets := make([]*access.Ticket, len(services))
			for i, s := range services {
				_, tickets[i] = s.ticket(t)
			}
			u := services[0].complete(t, alias, hex.EncodeToString(tickets[0].ID[:]))
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var wg sync.WaitGroup
			for i, s := range services {
				mine, err := s.Uploads().Find(t.Context(), u.Owner, u.ID)
				if err != nil {
					t.Fatal(err)
				}
				how := resumable.Finishing{BaseURL: "https://example.com", Authorize: func(context.Context, *resumable.Upload, bool) (resumable.Rights, *item.Failure) {
					return resumable.Rights{Issuer: s.issuer, Ticket: tickets[i]}, nil
				}}
				wg.Go(func() {
					for { // as a client that asks again
						failures := mine.Finish(ctx, how)
						if failures == nil {
							break
						}
						if slices.Contains(final, failures[0].Reason) || ctx.Err() != nil {
							t.Errorf("the upload is not finished: %v, %v", failures, ctx.Err())
							return
						}
					}
					item, ok := s.ItemOf(mine, "https://example.com")
					if want := "https://example.com/static/file/" + alias + "/a.txt"; !ok || item.FullPath != want || item.Size != 4 {
						t.Errorf("item %+v, want %s", item, want)
					}
				})
			}
			wg.Wait()
			if keys := services[0].stored(t, alias); len(keys) != 1 {
				t.Errorf("items %v", keys)
			}
			used := 0
			for _, ticket := range tickets {
				used += services[0].used(t, ticket.ID)
			}
			if used != 1 {
				t.Errorf("%d are counted", used)
			}
			for info, err := range services[0].Uploads().Storages[0].All(t.Context(), resumable.Folder+"/") {
				if err != nil || !strings.Contains(info.Key, "/done/") {
					t.Errorf("remaining: %s, error %v", info.Key, err)
				}
			}
		})
	}
}

// TestStartFinishesUpload: a service finishes an upload whose client does not come back, unless its
// account was removed.
func TestStartFinishesUpload(t *testing.T) {
	t.Parallel()
	s := nodes(t, 1)[0]
	u := s.complete(t, "content", "")
	s.Start()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for ; u.Outcome == nil; time.Sleep(10 * time.Millisecond) {
		if err := cmp.Or(ctx.Err(), u.Reload(ctx)); err != nil {
			t.Fatalf("the start does not finish the upload: %v", err)
		}
	}
	if keys := s.stored(t, "content"); len(keys) != 1 {
		t.Errorf("items %v", keys)
	}
	gone := s.complete(t, "content", "")
	gone.Account = "removed"
	_ = s.finishAlone(t.Context(), gone)
	if gone.Outcome != nil {
		t.Errorf("for a removed account: %+v", gone.Outcome)
	}
}

// TestStartCountsUploads: a service reports the unfinished uploads of its storages.
func TestStartCountsUploads(t *testing.T) {
	t.Parallel()
	s := nodes(t, 1)[0]
	reported := make(chan resumable.Open, 2)
	s.observer = openObserver{s.observer, reported}
	s.begun(t, resumable.Record{Owner: "http x", Alias: "content", Length: 10})
	s.Start()
	if open := <-reported; open != (resumable.Open{Uploads: 1, Bytes: 4}) {
		t.Errorf("reported %+v", open)
	}
}

// openObserver passes on the unfinished uploads of the default storage.
type openObserver struct {
	Observer
	reported chan resumable.Open
}

func (o openObserver) ResumableOpen(storage string, open resumable.Open) {
	if storage == "default" {
		o.reported <- open
	}
}

// TestMaxBytes: unfinished uploads have room for 32 of the largest item, unless the configuration
// says otherwise, also if only those of an earlier configuration are left.
func TestMaxBytes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		given Resumable
		want  int64
	}{
		{Resumable{}, 64 << 20}, {Resumable{Off: true}, 64 << 20}, {Resumable{MaxBytes: 4 << 20}, 4 << 20},
	} {
		parts := partsOf(t)
		parts.Resumable = c.given
		s := start(t, parts)
		if got := s.resumable.MaxBytes; got != c.want || s.uploads.MaxBytes != c.want {
			t.Errorf("%+v: %d bytes, want %d", c.given, got, c.want)
		}
	}
	parts := partsOf(t)
	parts.Resumable.MaxBytes = 4<<20 - 1
	if _, err := New(parts); err == nil || !strings.Contains(err.Error(), "max_bytes is less than twice") {
		t.Errorf("too small: %v", err)
	}
}

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

// TestFinishKept: a service completes what a killed request to keep held uploads has left: the
// items of all of them are stored, or the uploads may be kept by another request.
func TestFinishKept(t *testing.T) {
	t.Parallel()
	for name, refuses := range map[string]bool{"stored": false, "refused": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			both := nodes(t, 2)
			dead, s := both[0], both[1]
			actor := item.Actor{Origin: item.OriginHTTP, Account: uploader}
			rec := resumable.Record{
				Owner: actor.Owner(), Origin: string(actor.Origin), Account: actor.Account, Kind: "file", Alias: "content", Length: 4, Hold: time.Hour,
			}
			how := resumable.Finishing{Authorize: func(context.Context, *resumable.Upload, bool) (resumable.Rights, *item.Failure) {
				return resumable.Rights{Issuer: s.issuer}, nil
			}}
			keep := rec
			keep.Hold = 0
			for range 2 {
				u := dead.begun(t, rec)
				if failures := u.Finish(t.Context(), how); failures != nil {
					t.Fatal(failures)
				}
				keep.Parts = append(keep.Parts, u.ID)
			}
			// The claims are there, and then the process is killed.
			killed := how
			killed.Authorize = func(context.Context, *resumable.Upload, bool) (resumable.Rights, *item.Failure) {
				panic(http.ErrAbortHandler)
			}
			func() {
				defer func() { _ = recover() }()
				dead.Uploads().Keep(t.Context(), keep, killed)
			}()
			if refuses {
				alias, _ := s.Alias(item.File, "content")
				alias.MaxSize = 1
			}
			f := finisher{service: s, tried: map[string]retry{}}
			if err := f.sweep(t.Context(), s.UploadStorage(item.File, "content")); err != nil {
				t.Fatal(err)
			}
			stored := len(s.stored(t, "content"))
			if want := map[bool]int{false: 2, true: 0}[refuses]; stored != want {
				t.Errorf("%d items are stored, want %d", stored, want)
			}
			for _, id := range keep.Parts {
				u, err := s.Uploads().Find(t.Context(), keep.Owner, id)
				if err == nil && refuses {
					err = u.Terminate(t.Context())
				}
				if err != nil || !refuses && u.Outcome == nil {
					t.Errorf("%s: %v", id, err)
				}
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

// TestSweepRunning: an upload that another process was finishing is looked at again by the next
// sweep, in case that process is dead.
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

// TestFinishAloneForUsers: a service finishes the upload of a user without him as long as the
// account has its users, its rights and the folder.
func TestFinishAloneForUsers(t *testing.T) {
	t.Parallel()
	const users = "users/" + UserID
	for _, c := range []struct {
		name         string
		trusts       bool // the account has users
		below        string
		rights       []access.Right
		user, folder string
		want         bool
	}{
		{"unchanged", true, users, nil, "Al/ice", "", true},
		{"below", true, users, nil, "alice", "users/alice/x", true},
		{"no folders any more", true, "", nil, "alice", "users/alice", true},
		{"other folder", true, "people/" + UserID, nil, "alice", "users/alice", false},
		{"folder of another user", true, users, nil, "bob", "users/alice", false},
		{"no users any more", false, "", nil, "alice", "users/alice", false},
		{"of the account before it had users", true, users, nil, "", "users/alice", false},
		{"fewer rights", true, "", []access.Right{access.List}, "alice", "users/alice", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			account := access.Account{APIKey: "members", PasswordHash: "x", Rights: c.rights}
			parts := partsOf(t)
			if c.trusts {
				account.PasswordHash, account.Trusted = "", true
				parts.Trust = &Trust{Placeholder: UserID, Users: account, Folder: c.below}
			}
			parts.Accounts = []access.Account{account}
			s := start(t, parts)
			if c.folder == "" {
				c.folder = s.Trust().Account(c.user).Folder
			}
			u := &resumable.Upload{Record: resumable.Record{Origin: "http", Account: "members", User: c.user, Alias: "content", SubFolder: c.folder}}
			if _, err := s.rightsAlone(t.Context(), u, false); (err == nil) != c.want {
				t.Errorf("error %v, want none: %t", err, c.want)
			}
		})
	}
}
