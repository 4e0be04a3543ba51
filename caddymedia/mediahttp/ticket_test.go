package mediahttp_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/access"
	"github.com/caddymedia/media/caddymedia/internal/service"
	"github.com/caddymedia/media/caddymedia/media"
)

func TestTicket(t *testing.T) {
	t.Parallel()
	exact := func(seconds int64) *regexp.Regexp {
		return regexp.MustCompile(`^{"success":true,"ticket":"[A-Za-z0-9_-]{43}","expires_at":` +
			strconv.FormatInt(noon.Unix()+seconds, 10) + `}\n?$`)
	}
	for _, c := range []struct {
		name, header, body string
		seconds            int64
	}{
		{"urlencoded", urlencoded, "kind=image", 900},
		{"multipart", multipart, form(field("kind", "image"), field("alias", "exact"), field("sub_folder", "a b")), 900},
		{"all fields", urlencoded, "kind=file&alias=one&sub_folder=a/b&filename=a.txt&max_files=10000&max_size=9007199254740991&expires_in=86400", 86400},
		{"numbers in a multipart form", multipart, form(field("kind", "file"), field("max_files", "2"), field("expires_in", "1")), 1},
		{"empty fields", urlencoded, "kind=file&alias=&sub_folder=&filename=", 900},
		{"further fields", urlencoded, "kind=file&other=1&other=2", 900},
		{"root", urlencoded, "kind=file&sub_folder=/", 900},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := aSite(t)
			r := httpCase{Target: ticketPath, Header: c.header + bearer, Body: c.body, Status: 200}.Check(t, s)
			if !exact(c.seconds).MatchString(r.Body) {
				t.Errorf("response %s, want %s", r.Body, exact(c.seconds))
			}
		})
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
		post("alias twice", "kind=file&alias=one&alias=one", 400, "alias is sent twice"),
		post("empty alias twice", "kind=file&alias=&alias=", 400, "alias is sent twice"),
		post("unknown alias", "kind=file&alias=none", 400, "unknown alias"),
		post("alias of the other kind", "kind=image&alias=one", 400, "unknown alias"),
		post("long alias", "kind=file&alias="+strings.Repeat("a", 9999), 400, "unknown alias"),
		post("sub folder outside", "kind=file&sub_folder=../a", 400, ""),
		post("absolute sub folder", "kind=file&sub_folder=/a", 400, ""),
		post("control character", "kind=file&sub_folder=a%00b", 400, ""),
		post("no text", "kind=file&alias=exact&filename=%ff.txt", 400, ""),
		post("deep sub folder", "kind=file&sub_folder="+strings.Repeat("a/", 17), 400, ""),
		post("long sub folder", "kind=file&sub_folder="+strings.Repeat("a", 9999), 400, ""),
		post("restricted sub folder", "kind=file&alias=exact&sub_folder=a.php", 400, "php"),
		post("filename outside", "kind=file&filename=../a.txt", 400, ""),
		post("restricted filename", "kind=file&filename=a.php", 400, "php"),
		post("filename without an extension", "kind=image&filename=avatar", 400, "extension"),
		post("filename of the other kind", "kind=image&filename=a.txt", 400, ".txt"),
		post("long filename", "kind=file&filename="+strings.Repeat("a", 1025)+".txt", 400, ""),
		post("json", `{"kind":"file"}`, 400, "kind"),
		post("too large", "kind=file&x="+strings.Repeat("x", 64<<10), 413, "64 KiB"),
		{Name: "other type", Target: ticketPath, Header: "Content-Type: application/json\n" + bearer, Body: "{}", Status: 415},
		{Name: "no token", Target: ticketPath, Header: urlencoded, Body: "kind=file", Status: 401, Want: "WWW-Authenticate: Bearer"},
		{Name: "wrong token", Target: ticketPath, Header: urlencoded + "Authorization: Bearer " + strings.Repeat("A", 43), Body: "kind=file", Status: 401},
		{Name: "alias of others", Target: ticketPath, Header: urlencoded + "Authorization: Bearer $OTHER", Body: "kind=file&alias=one", Status: 403, Has: "may not use"},
		{Name: "default alias of others", Target: ticketPath, Header: urlencoded + "Authorization: Bearer $OTHER", Body: "kind=file", Status: 403},
		{Name: "query", Method: http.MethodPost, Target: ticketPath + "?kind=file", Header: urlencoded + bearer, Status: 400},
	}
	for _, name := range []string{"max_files", "max_size", "expires_in"} {
		for _, value := range []string{"0", "-1", "1.5", "x", "+1", "0x10", "1e3", " 1", "9223372036854775808", "1&" + name + "=1"} {
			cases = append(cases, post(name+" "+value, "kind=file&"+name+"="+strings.ReplaceAll(value, "+", "%2B"), 400, name))
		}
	}
	cases = append(
		cases,
		post("too many files", "kind=file&max_files=10001", 400, "10000"),
		post("too long", "kind=file&expires_in=86401", 400, "86400"),
	)
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

// TestTicketUpload: a ticket forces what it says, and what it does not say is free.
func TestTicketUpload(t *testing.T) {
	t.Parallel()
	alias, folder, text := field("alias", "one"), field("sub_folder", "a/b"), file("x.txt", "text")
	for _, c := range []struct {
		fields string
		uploadCase
	}{
		{"kind=file&alias=one", uploadCase{Name: "alias", Parts: []part{text}, Want: []string{"file/one/x.txt"}}},
		{"kind=file", uploadCase{Name: "default alias", Parts: []part{text}, Want: []string{"file/content/x.txt"}}},
		{"kind=file&alias=one", uploadCase{Name: "alias named", Parts: []part{alias, folder, text}, Want: []string{"file/one/a/b/x.txt"}}},
		{"kind=file&alias=one", uploadCase{Name: "alias named late", Target: "?alias=one", Parts: []part{text, alias}, Want: []string{"file/one/x.txt"}}},
		{"kind=file&alias=one", uploadCase{Name: "another alias", Parts: []part{field("alias", "two"), text}, Status: 403, Has: "the alias \"one\""}},
		{"kind=file&alias=one", uploadCase{Name: "another alias late", Parts: []part{text, field("alias", "two")}, Status: 403}},
		{"kind=file&alias=one", uploadCase{Name: "another alias in the query", Target: "?alias=two", Parts: []part{text}, Status: 403}},
		{"kind=file&alias=one", uploadCase{Name: "unknown alias", Parts: []part{field("alias", "none"), text}, Status: 403}},
		{"kind=file&alias=one", uploadCase{Name: "query corrected", Target: "?alias=two", Parts: []part{alias, text}, Want: []string{"file/one/x.txt"}}},
		{"kind=image", uploadCase{Name: "another kind", Parts: []part{text}, Status: 403, Has: "image"}},
		{"kind=file", uploadCase{Name: "another kind of images", Target: imagePath, Parts: []part{file("x.gif", samples["gif"])}, Status: 403, Has: "file"}},

		{"kind=file&sub_folder=a/b", uploadCase{Name: "sub folder", Parts: []part{text}, Want: []string{"file/content/a/b/x.txt"}}},
		{"kind=file&sub_folder=a/b", uploadCase{Name: "sub folder named", Target: "?sub_folder=a/b", Parts: []part{text, folder}, Want: []string{"file/content/a/b/x.txt"}}},
		{"kind=file&sub_folder=A B", uploadCase{Name: "sub folder sanitised", Parts: []part{field("sub_folder", "A B"), text}, Want: []string{"file/content/a-b/x.txt"}}},
		{"kind=file&sub_folder=a/b", uploadCase{Name: "another sub folder", Parts: []part{field("sub_folder", "a"), text}, Status: 403, Has: "sub_folder"}},
		{"kind=file&sub_folder=a/b", uploadCase{Name: "another sub folder late", Parts: []part{text, field("sub_folder", "a/b/c")}, Status: 403}},
		{"kind=file&sub_folder=a/b", uploadCase{Name: "another sub folder in the query", Target: "?sub_folder=/", Parts: []part{text}, Status: 403}},
		{"kind=file&sub_folder=a/b", uploadCase{Name: "hostile sub folder", Parts: []part{field("sub_folder", "a/b/.."), text}, Status: 403}},
		{"kind=file&sub_folder=/&alias=dated", uploadCase{Name: "root", Parts: []part{text}, Want: []string{"file/dated/x.txt"}}},
		{"kind=file&alias=dated", uploadCase{Name: "folder of the day", Parts: []part{text}, Want: []string{"file/dated/" + uploadDay + "/x.txt"}}},

		{"kind=file&filename=Avatar.TXT", uploadCase{Name: "filename", Parts: []part{text}, Want: []string{"file/content/avatar.txt"}}},
		{"kind=file&filename=a.txt&alias=exact", uploadCase{Name: "filename of a hostile name", Parts: []part{file("../../b.php", "text")}, Want: []string{"file/exact/a.txt"}}},
		{"kind=file&filename=a.txt&max_files=2", uploadCase{
			Name: "filename of two", Parts: []part{text, text},
			Want: []string{"file/content/a.txt", "file/content/a-" + noonSecond + ".txt"},
		}},
		{"kind=file&filename=a.txt&max_files=2&alias=replacing", uploadCase{Name: "filename of two, replacing", Parts: []part{text, text}, Status: 409, Want: []string{"x.txt", "x.txt"}}},
		{"kind=image&filename=a.png", uploadCase{Name: "filename of other content", Target: imagePath, Parts: []part{file("x.gif", samples["gif"])}, Status: 415, Want: []string{"x.gif"}}},

		{"kind=file&max_size=4", uploadCase{Name: "size", Parts: []part{text}, Want: []string{"file/content/x.txt"}}},
		{"kind=file&max_size=3", uploadCase{Name: "too large", Parts: []part{text}, Status: 413, Has: "3 bytes", Want: []string{"x.txt"}}},
		{"kind=file&max_size=3&alias=one", uploadCase{Name: "too large for the alias named", Parts: []part{alias, text}, Status: 413}},
		{"kind=file&max_size=3&alias=one", uploadCase{Name: "too large for the alias named late", Parts: []part{text, alias}, Status: 413}},
		{"kind=file&max_size=100&alias=small", uploadCase{Name: "too large for the alias", Parts: []part{file("x.txt", "eleven byte")}, Status: 413}},

		{"kind=file&max_files=2", uploadCase{Name: "two", Parts: []part{text, file("y.txt", "y")}, Want: []string{"file/content/x.txt", "file/content/y.txt"}}},
		{"kind=file", uploadCase{Name: "two of one", Parts: []part{text, text}, Status: 403}},
	} {
		c.Header = ticketBearer
		c.uploadCase.Run(t, withTicket(c.fields))
	}
}

// TestTicketScope: the scope of a caller is that of the ticket's form.
func TestTicketScope(t *testing.T) {
	t.Parallel()
	s := aSite(t)
	text := s.Ticket(t, url.Values{"kind": {"image"}, "alias": {"exact"}, "sub_folder": {"A b"}, "filename": {"C.jpg"}}.Encode())
	account, ticket, err := service.Of(s.First).Issuer().Verify(t.Context(), text, "")
	if err != nil {
		t.Fatal(err)
	}
	want := access.Scope{Kind: "image", Alias: "exact", SubFolder: "A b", Filename: "C.jpg"}
	if got := (access.Caller{Account: account, Ticket: ticket}).Scope(); got != want {
		t.Errorf("scope %+v, want %+v", got, want)
	}
}
