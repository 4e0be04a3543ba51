package mediahttp_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/access"
	"github.com/caddymedia/media/caddymedia/internal/service"
	"github.com/caddymedia/media/caddymedia/media"
)

// TestTicketCounts: a ticket counts stored items only, and is used up without its body being read.
func TestTicketCounts(t *testing.T) {
	t.Parallel()
	s := withTicket("kind=file&max_files=3")(t)
	text := file("x.txt", "text")
	send := func(status int, parts ...part) {
		t.Helper()
		r := s.Do(t, http.MethodPost, filePath, multipart+ticketBearer, form(parts...))
		if r.Status != status {
			t.Errorf("%d %s, want %d", r.Status, r.Body, status)
		}
	}
	left := func(want int) {
		t.Helper()
		_, ticket, err := service.Of(s.First).Issuer().Verify(t.Context(), s.Vars[1], "")
		if err != nil || ticket.Left() != want {
			t.Errorf("%+v, %v, want %d left", ticket, err, want)
		}
	}
	send(415, text, file("x.php", "text"))
	send(400)
	left(3)
	send(200, text, text)
	left(1)
	send(403, text, text)
	left(1)
	s.Driver.Fail = failByName
	send(502, file("forbidden.txt", "text")) // refused after it was counted
	left(1)
	send(200, text)
	left(0)
	r := s.Request(t, http.MethodPost, filePath, multipart+ticketBearer, "x")
	r.Body = unreadable{t}
	s.Unread(t, r, 403)
	s.Ticket(t, "kind=file") // another one counts by itself
	send(200, text)
}

// unreadable is a body that must not be read.
type unreadable struct{ t *testing.T }

func (u unreadable) Read([]byte) (int, error) {
	u.t.Error("the body is read")
	return 0, http.ErrBodyReadAfterClose
}

func (unreadable) Close() error { return nil }

// TestTicketEnds: a ticket ends with its time, its account, its right, and the account's tokens.
func TestTicketEnds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*testing.T, *site)
		want   int
	}{
		{"nothing", func(*testing.T, *site) {}, 200},
		{"almost expired", func(_ *testing.T, s *site) { s.Passed.Store(int64(14 * time.Minute)) }, 200}, // with time for the body
		{"expired", func(_ *testing.T, s *site) { s.Passed.Store(int64(15 * time.Minute)) }, 401},
		{"revoked", func(t *testing.T, s *site) {
			if n, err := service.Of(s.First).Issuer().Revoke(t.Context(), someKey); n != 2 || err != nil { // with its token
				t.Errorf("revoked %d: %v", n, err)
			}
		}, 401},
		{"another account revoked", func(t *testing.T, s *site) {
			if _, err := service.Of(s.First).Issuer().Revoke(t.Context(), otherKey); err != nil {
				t.Error(err)
			}
		}, 200},
		{"account removed", func(t *testing.T, s *site) { s.First = s.Service(t, media.Limits{}) }, 401},
		{"alias withdrawn", func(t *testing.T, s *site) { s.First = s.Service(t, media.Limits{}, account("two")) }, 401},
		{"password changed", func(t *testing.T, s *site) {
			s.First = s.Service(t, media.Limits{}, access.Account{APIKey: someKey, PasswordHash: "other"})
		}, 401},
		{"reloaded", func(t *testing.T, s *site) { s.First = s.Service(t, media.Limits{}, account()) }, 200},
		{"store unavailable", func(_ *testing.T, s *site) { s.Store.Fails.Store(true) }, 503},
		{"counting unavailable", func(_ *testing.T, s *site) { s.Store.NoTakes.Store(true) }, 503},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := withTicket("kind=file&alias=one")(t)
			c.change(t, s)
			s.Current.Store(s.First)
			httpCase{
				Target: filePath, Header: multipart + "Authorization: Bearer " + s.Vars[1], Body: form(file("a.txt", "text")), Status: c.want,
			}.Check(t, s)
		})
	}
}

// TestTicketEndsDuringUpload: nothing is stored if the ticket ends during the upload, or if another
// upload uses it up.
func TestTicketEndsDuringUpload(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*testing.T, *site)
		want   int
	}{
		{"nothing", func(*testing.T, *site) {}, 200},
		{"expired", func(_ *testing.T, s *site) { s.Passed.Store(int64(time.Hour)) }, 401},
		{"used up", func(t *testing.T, s *site) {
			s.Do(t, http.MethodPost, filePath, multipart+ticketBearer, form(file("b.txt", "text")))
		}, 403},
		{"counting unavailable", func(_ *testing.T, s *site) { s.Store.NoTakes.Store(true) }, 503},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := withTicket("kind=file&alias=one")(t)
			body := form(file("late.txt", "text"))
			s.Upload(t, s.Vars[1], meanwhile(body, func() { c.change(t, s) })).Want(t, c.want, "")
			if _, stored := s.Stored(t, "file/one/late.txt"); stored != (c.want == 200) {
				t.Errorf("stored: %t", stored)
			}
		})
	}
}

// TestTicketConcurrent: of ten uploads at once with three items left, exactly three are stored. Those
// that are too many at a time are refused for that reason.
func TestTicketConcurrent(t *testing.T) {
	t.Parallel()
	s := withTicket("kind=file&alias=one&max_files=3")(t)
	body := form(file("a.txt", "text"))
	statuses := make(chan int, 10)
	for range cap(statuses) {
		go func() {
			statuses <- s.Upload(t, s.Vars[1], strings.NewReader(body)).Status
		}()
	}
	counts := map[int]int{}
	for range cap(statuses) {
		counts[<-statuses]++
	}
	if counts[200] != 3 || counts[403]+counts[429] != 7 || counts[429] > 5 {
		t.Errorf("statuses %v", counts)
	}
	if stored := len(s.Objects(t)); stored != 3 {
		t.Errorf("%d objects are stored", stored)
	}
}

// TestTicketOfEndedToken: a ticket is not issued if its token is revoked meanwhile.
func TestTicketOfEndedToken(t *testing.T) {
	t.Parallel()
	s := aSite(t)
	var saved []string
	s.Store.Saved = func(key string) {
		if entry, err := s.Store.Get(t.Context(), key); err != nil || !strings.Contains(string(entry.Value), `"ticket"`) {
			return
		}
		saved = append(saved, key)
		for _, token := range s.Known {
			if err := service.Of(s.First).Issuer().Drop(t.Context(), token); err != nil {
				t.Error(err)
			}
		}
	}
	httpCase{Target: ticketPath, Header: urlencoded + bearer, Body: "kind=file", Status: 401}.Check(t, s)
	if len(saved) != 1 {
		t.Fatalf("%d tickets were saved", len(saved))
	}
	if entry, err := s.Store.Get(t.Context(), saved[0]); err != nil || entry.Value != nil {
		t.Error("the ticket is still valid")
	}
}
