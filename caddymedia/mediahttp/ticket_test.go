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

const ticketPath = "/api/auth/ticket"

// ticket requests a ticket with a token, and sets $TICKET.
func (s *site) ticket(t *testing.T, fields string) string {
	t.Helper()
	r := httpCase{target: ticketPath, header: urlencoded + bearer, body: fields, status: 200}.check(t, s)
	var answer struct {
		Success   bool   `json:"success"`
		Ticket    string `json:"ticket"`
		ExpiresAt int64  `json:"expires_at"`
	}
	r.decode(t, &answer)
	s.known = append(s.known, answer.Ticket)
	s.vars = append([]string{"$TICKET", answer.Ticket}, s.vars...)
	return answer.Ticket
}

const ticketBearer = "Authorization: Bearer $TICKET\n"

// withTicket returns a site whose $TICKET has the fields.
func withTicket(fields string) func(*testing.T) *site {
	return func(t *testing.T) *site {
		t.Helper()
		s := aSite(t)
		s.ticket(t, fields)
		return s
	}
}

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
			r := httpCase{target: ticketPath, header: c.header + bearer, body: c.body, status: 200}.check(t, s)
			if !exact(c.seconds).MatchString(r.body) {
				t.Errorf("response %s, want %s", r.body, exact(c.seconds))
			}
		})
	}
}

func TestTicketRefused(t *testing.T) {
	t.Parallel()
	post := func(name, body string, status int, has string) httpCase {
		return httpCase{name: name, target: ticketPath, header: urlencoded + bearer, body: body, status: status, has: has}
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
		{name: "other type", target: ticketPath, header: "Content-Type: application/json\n" + bearer, body: "{}", status: 415},
		{name: "no token", target: ticketPath, header: urlencoded, body: "kind=file", status: 401, want: "WWW-Authenticate: Bearer"},
		{name: "wrong token", target: ticketPath, header: urlencoded + "Authorization: Bearer " + strings.Repeat("A", 43), body: "kind=file", status: 401},
		{name: "alias of others", target: ticketPath, header: urlencoded + "Authorization: Bearer $OTHER", body: "kind=file&alias=one", status: 403, has: "may not use"},
		{name: "default alias of others", target: ticketPath, header: urlencoded + "Authorization: Bearer $OTHER", body: "kind=file", status: 403},
		{name: "query", method: http.MethodPost, target: ticketPath + "?kind=file", header: urlencoded + bearer, status: 400},
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
	request := httpCase{target: ticketPath, header: urlencoded + bearer, body: "kind=file", status: 200}
	for range 2 {
		request.check(t, s)
	}
	request.status, request.has, request.want = 429, "too many tickets", "Retry-After: 30"
	request.check(t, s)
	request.status, request.has, request.want = 200, "", ""
	request.header, request.body = urlencoded+"Authorization: Bearer $OTHER", "kind=file&alias=two"
	request.check(t, s)
}

// TestTicketOfTicket: a ticket gets no ticket, and is accepted as Bearer only.
func TestTicketOfTicket(t *testing.T) {
	t.Parallel()
	good := withTicket("kind=file&alias=one")
	body := form(file("a.txt", "text"))
	run(t, good, []httpCase{
		{name: "ticket", target: ticketPath, header: urlencoded + ticketBearer, body: "kind=file&alias=one", status: 403, has: "send a token"},
		{name: "bearer", target: filePath, header: multipart + ticketBearer, body: body, status: 200},
		{name: "bearer and key", target: filePath, header: multipart + ticketBearer + "Service-Api-Key: " + someKey, body: body, status: 200},
		{name: "bearer and another key", target: filePath, header: multipart + ticketBearer + "Service-Api-Key: " + otherKey, body: body, status: 401},
		{
			name: "in the header of tokens", target: filePath, header: multipart + "Service-Access-Token: $TICKET\nService-Api-Key: " + someKey,
			body: body, status: 401, want: "WWW-Authenticate: Bearer", has: "Bearer",
		},
		{
			name: "in both headers", target: filePath, body: body, status: 401,
			header: multipart + ticketBearer + "Service-Access-Token: $TICKET\nService-Api-Key: " + someKey,
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
		{"kind=file&alias=one", uploadCase{name: "alias", parts: []part{text}, want: []string{"file/one/x.txt"}}},
		{"kind=file", uploadCase{name: "default alias", parts: []part{text}, want: []string{"file/content/x.txt"}}},
		{"kind=file&alias=one", uploadCase{name: "alias named", parts: []part{alias, folder, text}, want: []string{"file/one/a/b/x.txt"}}},
		{"kind=file&alias=one", uploadCase{name: "alias named late", target: "?alias=one", parts: []part{text, alias}, want: []string{"file/one/x.txt"}}},
		{"kind=file&alias=one", uploadCase{name: "another alias", parts: []part{field("alias", "two"), text}, status: 403, has: "the alias \"one\""}},
		{"kind=file&alias=one", uploadCase{name: "another alias late", parts: []part{text, field("alias", "two")}, status: 403}},
		{"kind=file&alias=one", uploadCase{name: "another alias in the query", target: "?alias=two", parts: []part{text}, status: 403}},
		{"kind=file&alias=one", uploadCase{name: "unknown alias", parts: []part{field("alias", "none"), text}, status: 403}},
		{"kind=file&alias=one", uploadCase{name: "query corrected", target: "?alias=two", parts: []part{alias, text}, want: []string{"file/one/x.txt"}}},
		{"kind=image", uploadCase{name: "another kind", parts: []part{text}, status: 403, has: "image"}},
		{"kind=file", uploadCase{name: "another kind of images", target: imagePath, parts: []part{file("x.gif", samples["gif"])}, status: 403, has: "file"}},

		{"kind=file&sub_folder=a/b", uploadCase{name: "sub folder", parts: []part{text}, want: []string{"file/content/a/b/x.txt"}}},
		{"kind=file&sub_folder=a/b", uploadCase{name: "sub folder named", target: "?sub_folder=a/b", parts: []part{text, folder}, want: []string{"file/content/a/b/x.txt"}}},
		{"kind=file&sub_folder=A B", uploadCase{name: "sub folder sanitised", parts: []part{field("sub_folder", "A B"), text}, want: []string{"file/content/a-b/x.txt"}}},
		{"kind=file&sub_folder=a/b", uploadCase{name: "another sub folder", parts: []part{field("sub_folder", "a"), text}, status: 403, has: "sub_folder"}},
		{"kind=file&sub_folder=a/b", uploadCase{name: "another sub folder late", parts: []part{text, field("sub_folder", "a/b/c")}, status: 403}},
		{"kind=file&sub_folder=a/b", uploadCase{name: "another sub folder in the query", target: "?sub_folder=/", parts: []part{text}, status: 403}},
		{"kind=file&sub_folder=a/b", uploadCase{name: "hostile sub folder", parts: []part{field("sub_folder", "a/b/.."), text}, status: 403}},
		{"kind=file&sub_folder=/&alias=dated", uploadCase{name: "root", parts: []part{text}, want: []string{"file/dated/x.txt"}}},
		{"kind=file&alias=dated", uploadCase{name: "folder of the day", parts: []part{text}, want: []string{"file/dated/" + uploadDay + "/x.txt"}}},

		{"kind=file&filename=Avatar.TXT", uploadCase{name: "filename", parts: []part{text}, want: []string{"file/content/avatar.txt"}}},
		{"kind=file&filename=a.txt&alias=exact", uploadCase{name: "filename of a hostile name", parts: []part{file("../../b.php", "text")}, want: []string{"file/exact/a.txt"}}},
		{"kind=file&filename=a.txt&max_files=2", uploadCase{
			name: "filename of two", parts: []part{text, text},
			want: []string{"file/content/a.txt", "file/content/a-" + noonSecond + ".txt"},
		}},
		{"kind=file&filename=a.txt&max_files=2&alias=replacing", uploadCase{name: "filename of two, replacing", parts: []part{text, text}, status: 409, want: []string{"x.txt", "x.txt"}}},
		{"kind=image&filename=a.png", uploadCase{name: "filename of other content", target: imagePath, parts: []part{file("x.gif", samples["gif"])}, status: 415, want: []string{"x.gif"}}},

		{"kind=file&max_size=4", uploadCase{name: "size", parts: []part{text}, want: []string{"file/content/x.txt"}}},
		{"kind=file&max_size=3", uploadCase{name: "too large", parts: []part{text}, status: 413, has: "3 bytes", want: []string{"x.txt"}}},
		{"kind=file&max_size=3&alias=one", uploadCase{name: "too large for the alias named", parts: []part{alias, text}, status: 413}},
		{"kind=file&max_size=3&alias=one", uploadCase{name: "too large for the alias named late", parts: []part{text, alias}, status: 413}},
		{"kind=file&max_size=100&alias=small", uploadCase{name: "too large for the alias", parts: []part{file("x.txt", "eleven byte")}, status: 413}},

		{"kind=file&max_files=2", uploadCase{name: "two", parts: []part{text, file("y.txt", "y")}, want: []string{"file/content/x.txt", "file/content/y.txt"}}},
		{"kind=file", uploadCase{name: "two of one", parts: []part{text, text}, status: 403}},
	} {
		c.header = ticketBearer
		c.uploadCase.run(t, withTicket(c.fields))
	}
}

// TestTicketScope: the scope of a caller is that of the ticket's form.
func TestTicketScope(t *testing.T) {
	t.Parallel()
	s := aSite(t)
	text := s.ticket(t, url.Values{"kind": {"image"}, "alias": {"exact"}, "sub_folder": {"A b"}, "filename": {"C.jpg"}}.Encode())
	account, ticket, err := service.Of(s.first).Issuer().Verify(t.Context(), text, "")
	if err != nil {
		t.Fatal(err)
	}
	want := access.Scope{Kind: "image", Alias: "exact", SubFolder: "A b", Filename: "C.jpg"}
	if got := (access.Caller{Account: account, Ticket: ticket}).Scope(); got != want {
		t.Errorf("scope %+v, want %+v", got, want)
	}
}
