package uploads_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/media"
)

// TestTicketUpload: a ticket forces what it says, and what it does not say is free. Package upload
// tests what is forced.
func TestTicketUpload(t *testing.T) {
	t.Parallel()
	alias, folder, text := field("alias", "one"), field("sub_folder", "a/b"), file("x.txt", "text")
	image := file("x.gif", gifPicture)
	for _, c := range []struct {
		fields string
		uploadCase
	}{
		{"kind=file&alias=one", uploadCase{Name: "alias", Parts: []part{text}, Want: []string{"file/one/x.txt"}}},
		{"kind=file", uploadCase{Name: "default alias", Parts: []part{text}, Want: []string{"file/content/x.txt"}}},
		{"kind=file&alias=one", uploadCase{Name: "alias named", Parts: []part{alias, folder, text}, Want: []string{"file/one/a/b/x.txt"}}},
		{"kind=file&alias=one", uploadCase{Name: "another alias late", Parts: []part{text, field("alias", "two")}, Status: 403, Has: "the alias \"one\""}},
		{"kind=file&alias=one", uploadCase{Name: "another alias in the query", Target: "?alias=two", Parts: []part{text}, Status: 403}},
		{"kind=file&alias=one", uploadCase{Name: "query corrected", Target: "?alias=two", Parts: []part{alias, text}, Want: []string{"file/one/x.txt"}}},
		{"kind=image", uploadCase{Name: "another kind", Parts: []part{text}, Status: 403, Has: "image"}},
		{"kind=file&sub_folder=A B", uploadCase{Name: "sub folder sanitised", Parts: []part{field("sub_folder", "A B"), text}, Want: []string{"file/content/a-b/x.txt"}}},
		{"kind=file&sub_folder=a/b", uploadCase{Name: "another sub folder late", Parts: []part{text, field("sub_folder", "a/b/c")}, Status: 403, Has: "sub_folder"}},
		{"kind=file&sub_folder=a/b", uploadCase{Name: "another sub folder in the query", Target: "?sub_folder=/", Parts: []part{text}, Status: 403}},
		{"kind=file&alias=dated", uploadCase{Name: "folder of the day", Parts: []part{text}, Want: []string{"file/dated/" + uploadDay + "/x.txt"}}},
		{"kind=file&filename=a.txt&alias=exact", uploadCase{Name: "filename", Parts: []part{file("../../b.php", "text")}, Want: []string{"file/exact/a.txt"}}},
		{"kind=file&filename=a.txt&max_files=2&alias=replacing", uploadCase{Name: "filename of two", Parts: []part{text, text}, Status: 409, Want: []string{"x.txt", "x.txt"}}},
		{"kind=image&filename=a.png", uploadCase{Name: "filename of other content", Parts: []part{image}, Status: 415, Want: []string{"x.gif"}}.Image()},
		{"kind=file&max_size=3&alias=one", uploadCase{Name: "too large", Parts: []part{text, alias}, Status: 413, Has: "3 bytes", Want: []string{"x.txt"}}},
		{"kind=file", uploadCase{Name: "two of one", Parts: []part{text, text}, Status: 403}},
	} {
		c.Header = ticketBearer
		c.Run(t, withTicket(c.fields))
	}
}

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

// TestTicketUnderWay: a ticket has as many uploads under way as it has files, and two more. Other
// tickets and the tokens of the account have room.
func TestTicketUnderWay(t *testing.T) {
	t.Parallel()
	for fields, most := range map[string]int{"kind=file": 3, "kind=file&max_files=3": 5} {
		s := newSite(t, media.Limits{MaxUploads: 20})
		running := service.Of(s.First)
		_, ticket, err := running.Issuer().Verify(t.Context(), s.Ticket(t, fields), "")
		if err != nil {
			t.Fatal(err)
		}
		actor := item.Actor{Origin: item.OriginHTTP, Account: someKey, Client: "192.0.2.1", Ticket: ticket.HexID()}
		send := func(method, target, header string, status int) {
			t.Helper()
			c := httpCase{Method: method, Target: target, Header: header, Body: form(), Status: status}
			if r := c.Check(t, s); (r.Header.Get("Retry-After") != "") != (status == http.StatusTooManyRequests) {
				t.Errorf("%s: %v", fields, r.Header)
			}
		}
		for range most {
			send(http.MethodPost, filePath, multipart+ticketBearer, http.StatusBadRequest) // it is admitted, and has no file
			ended, ok := running.BeginUpload(actor, ticket, most)
			if !ok {
				t.Fatal("no upload can begin")
			}
			defer ended()
		}
		send(http.MethodPost, filePath, multipart+ticketBearer, http.StatusTooManyRequests)
		send(http.MethodPut, putPath+"content/a.txt", ticketBearer, http.StatusTooManyRequests)
		send(http.MethodPost, filePath, multipart+bearer, http.StatusBadRequest)
		s.Ticket(t, fields)
		send(http.MethodPost, filePath, multipart+ticketBearer, http.StatusBadRequest)
	}
}

// TestTicketLastFiles: uploads whose file is stored, and whose answer is not sent yet, take no room
// of the files that a ticket has left.
func TestTicketLastFiles(t *testing.T) {
	t.Parallel()
	s := newSite(t, media.Limits{MaxUploads: 20})
	running := service.Of(s.First)
	_, ticket, err := running.Issuer().Verify(t.Context(), s.Ticket(t, "kind=file&max_files=5"), "")
	if err != nil {
		t.Fatal(err)
	}
	actor := item.Actor{Origin: item.OriginHTTP, Account: someKey, Client: "192.0.2.1", Ticket: ticket.HexID()}
	for n := range 5 {
		body := form(file(fmt.Sprintf("%d.txt", n), "x"))
		httpCase{Method: http.MethodPost, Target: filePath, Header: multipart + ticketBearer, Body: body, Status: http.StatusOK}.Check(t, s)
		ended, ok := running.BeginUpload(actor, ticket, 2)
		if !ok {
			t.Fatalf("no upload can begin after %d files", n+1)
		}
		defer ended()
	}
}

// TestTicketRefusals: a ticket is used up by ten refused items for each of its files, whatever the
// way in. Aborted uploads and those that are too many do not count.
func TestTicketRefusals(t *testing.T) {
	t.Parallel()
	bad := file("a.png", "text")
	aborted := form(bad)[:len(form(bad))-20]
	for name, c := range map[string]struct {
		fields, method, target, header, body string
		want                                 int // refusals, of at most 12
	}{
		"form":               {"kind=image", http.MethodPost, imagePath, multipart, form(bad), 10},
		"form of two files":  {"kind=image&max_files=2", http.MethodPost, imagePath, multipart, form(bad, bad), 10},
		"PUT":                {"kind=image", http.MethodPut, imagePath + "/content/a.png", "", "text", 10},
		"aborted":            {"kind=image", http.MethodPost, imagePath, multipart, aborted, 12},
		"more than are left": {"kind=image", http.MethodPost, imagePath, multipart, form(file("a.png", pngPicture), file("b.png", pngPicture)), 12},
	} {
		s := withTicket(c.fields)(t)
		refused := 0
		for range 12 {
			r := s.Do(t, c.method, c.target, c.header+ticketBearer, c.body)
			if r.Status == 403 && strings.Contains(r.Body, "used up") {
				break
			}
			if r.Status < 400 || r.Status >= 500 {
				t.Fatalf("%s: %d %s", name, r.Status, r.Body)
			}
			refused++
		}
		if refused != c.want {
			t.Errorf("%s: used up after %d", name, refused)
		}
	}
}

// TestTicketBodyEnds: the body of an upload ends with the ticket.
func TestTicketBodyEnds(t *testing.T) {
	t.Parallel()
	s := withTicket("kind=file&expires_in=60")(t)
	r := s.Request(t, http.MethodPost, filePath, multipart+ticketBearer, "x")
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		body, w := io.Pipe()
		r.Body = body
		var sending sync.WaitGroup
		sending.Go(func() {
			for range 1000 {
				time.Sleep(time.Second)
				if _, err := w.Write([]byte("x")); err != nil {
					return
				}
			}
		})
		answer := httptest.NewRecorder()
		s.Handler.ServeHTTP(answer, r)
		body.Close()
		sending.Wait()
		if took := time.Since(begin); answer.Code != 400 || took > 62*time.Second {
			t.Errorf("%d %s after %v", answer.Code, answer.Body, took)
		}
	})
}
