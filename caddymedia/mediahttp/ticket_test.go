package mediahttp_test

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/media"
)

// TestTicket: the form has further fields or none but the kind.
func TestTicket(t *testing.T) {
	t.Parallel()
	s := aSite(t)
	for _, c := range []struct {
		header, body string
		seconds      int64
	}{
		{urlencoded, "kind=image", 900},
		{multipart, form(field("kind", "image"), field("alias", "exact"), field("sub_folder", "a b"), field("max_files", "2")), 900},
		{urlencoded, "kind=file&alias=one&sub_folder=a/b&filename=a.txt&max_files=10000&max_size=9007199254740991&expires_in=86400&other=1&other=2", 86400},
		{urlencoded, "kind=file&alias=&sub_folder=/&filename=&expires_in=1", 1},
	} {
		r := httpCase{Target: ticketPath, Header: c.header + bearer, Body: c.body, Status: 200}.Check(t, s)
		want := `^{"success":true,"ticket":"[A-Za-z0-9_-]{43}","expires_at":` + strconv.FormatInt(noon.Unix()+c.seconds, 10) + `}\n?$`
		if !regexp.MustCompile(want).MatchString(r.Body) {
			t.Errorf("%s: response %s, want %s", c.body, r.Body, want)
		}
	}
}

func TestTicketRefused(t *testing.T) {
	t.Parallel()
	post := func(name, body string, status int, has string) httpCase {
		return httpCase{Name: name, Target: ticketPath, Header: urlencoded + bearer, Body: body, Status: status, Has: has}
	}
	cases := []httpCase{
		post("no kind", "alias=one", 400, "kind"),
		post("unknown kind", "kind=img", 400, "kind"),
		post("kind twice", "kind=file&kind=file", 400, "twice"),
		post("unknown alias", "kind=file&alias=none", 400, "unknown alias"),
		post("alias of the other kind", "kind=image&alias=one", 400, "unknown alias"),
		post("sub folder outside", "kind=file&sub_folder=../a", 400, ""),
		post("no text", "kind=file&alias=exact&filename=%ff.txt", 400, ""),
		post("restricted sub folder", "kind=file&alias=exact&sub_folder=a.php", 400, "php"),
		post("filename outside", "kind=file&filename=../a.txt", 400, ""),
		post("restricted filename", "kind=file&filename=a.php", 400, "php"),
		post("filename without an extension", "kind=image&filename=avatar", 400, "extension"),
		post("filename of the other kind", "kind=image&filename=a.txt", 400, ".txt"),
		post("max_files", "kind=file&max_files=0", 400, "max_files"),
		post("max_files twice", "kind=file&max_files=1&max_files=1", 400, "max_files"),
		post("max_size", "kind=file&max_size=0", 400, "max_size"),
		post("max_size twice", "kind=file&max_size=1&max_size=1", 400, "max_size"),
		post("expires_in", "kind=file&expires_in=0", 400, "expires_in"),
		post("expires_in twice", "kind=file&expires_in=1&expires_in=1", 400, "expires_in"),
		post("too many files", "kind=file&max_files=10001", 400, "10000"),
		post("too long", "kind=file&expires_in=86401", 400, "86400"),
		{Name: "no token", Target: ticketPath, Header: urlencoded, Body: "kind=file", Status: 401, Want: "WWW-Authenticate: Bearer"},
		{Name: "alias of others", Target: ticketPath, Header: urlencoded + "Authorization: Bearer $OTHER", Body: "kind=file&alias=one", Status: 403, Has: "may not use"},
		{Name: "default alias of others", Target: ticketPath, Header: urlencoded + "Authorization: Bearer $OTHER", Body: "kind=file", Status: 403},
		{Name: "query", Method: http.MethodPost, Target: ticketPath + "?kind=file", Header: urlencoded + bearer, Status: 400},
	}
	run(t, aSite, cases)
}

// TestTicketsPerMinute: an account gets a number of tickets a minute, and others get theirs.
func TestTicketsPerMinute(t *testing.T) {
	t.Parallel()
	s := newSite(t, media.Limits{TicketsPerMinute: 2})
	request := httpCase{Target: ticketPath, Header: urlencoded + bearer, Body: "kind=file", Status: 200}
	for range 2 {
		request.Check(t, s)
	}
	request.Status, request.Has, request.Want = 429, "too many tickets", "Retry-After: 30"
	request.Check(t, s)
	request.Status, request.Has, request.Want = 200, "", ""
	request.Header, request.Body = urlencoded+"Authorization: Bearer $OTHER", "kind=file&alias=two"
	request.Check(t, s)
}

// TestTicketOfTicket: a ticket gets no ticket, and is accepted as Bearer only.
func TestTicketOfTicket(t *testing.T) {
	t.Parallel()
	good := withTicket("kind=file&alias=one")
	body := form(file("a.txt", "text"))
	run(t, good, []httpCase{
		{Name: "ticket", Target: ticketPath, Header: urlencoded + ticketBearer, Body: "kind=file&alias=one", Status: 403, Has: "send a token"},
		{Name: "bearer", Target: filePath, Header: multipart + ticketBearer, Body: body, Status: 200},
		{Name: "bearer and key", Target: filePath, Header: multipart + ticketBearer + "Service-Api-Key: " + someKey, Body: body, Status: 200},
		{Name: "bearer and another key", Target: filePath, Header: multipart + ticketBearer + "Service-Api-Key: " + otherKey, Body: body, Status: 401},
		{
			Name: "in the header of tokens", Target: filePath, Header: multipart + "Service-Access-Token: $TICKET\nService-Api-Key: " + someKey,
			Body: body, Status: 401, Want: "WWW-Authenticate: Bearer", Has: "Bearer",
		},
		{
			Name: "in both headers", Target: filePath, Body: body, Status: 401,
			Header: multipart + ticketBearer + "Service-Access-Token: $TICKET\nService-Api-Key: " + someKey,
		},
	})
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
