package tus_test

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// withTicketOf sends a request of the protocol with $TICKET.
func (s *site) withTicketOf(t *testing.T, method, address, header, body string) *reply {
	t.Helper()
	return s.roundTrip(t, s.Request(t, method, address, ticketBearer+"Tus-Resumable: 1.0.0\n"+tusBody+header, body))
}

// filled sends the bytes of a partial upload of four bytes with $TICKET.
func (s *site) filled(t *testing.T, address string) string {
	t.Helper()
	s.withTicketOf(t, http.MethodPatch, address, "Upload-Offset: 0\n", "text").Want(t, 204, "")
	return address
}

// TestTicket checks what a ticket allows.
func TestTicket(t *testing.T) {
	t.Parallel()
	create := func(t *testing.T, s *site, status int, header, body string) *reply {
		t.Helper()
		return s.withTicketOf(t, http.MethodPost, resumablePath, header, body).Want(t, status, "")
	}
	four := "Upload-Length: 4\n"
	runRules(t, []rule{
		{"alias", "kind=file&alias=one", func(t *testing.T, s *site) {
			create(t, s, 201, four+aText, "text").Want(t, 201, "Media-Full-Path: "+origin+"/static/file/one/a.txt")
		}},
		{"another alias", "kind=file&alias=one", func(t *testing.T, s *site) {
			create(t, s, 403, four+metadata("filename", "a.txt", "alias", "two"), "")
			create(t, s, 403, four+metadata("filename", "a.txt", "alias", "none"), "")
		}},
		{"another kind", "kind=image", func(t *testing.T, s *site) {
			create(t, s, 403, four+aText, "")
			s.withTicketOf(t, http.MethodHead, s.create(t, 4, aText), "", "").Want(t, 403, "")
		}},
		{"sub folder", "kind=file&sub_folder=a/b", func(t *testing.T, s *site) {
			create(t, s, 403, four+metadata("filename", "a.txt", "sub_folder", "a"), "text")
			create(t, s, 201, four+metadata("filename", "a.txt", "sub_folder", "a/b"), "text").Want(t, 201, "Media-Filename: a/b/a.txt")
		}},
		{"sub folder not named", "kind=file&sub_folder=a/b", func(t *testing.T, s *site) {
			create(t, s, 201, four+aText, "text").Want(t, 201, "Media-Filename: a/b/a.txt")
		}},
		{"filename", "kind=file&filename=B.txt", func(t *testing.T, s *site) {
			create(t, s, 201, four+metadata("filename", "../x.php"), "text").Want(t, 201, "Media-Filename: b.txt")
		}},
		{"max_size", "kind=file&max_size=3", func(t *testing.T, s *site) {
			create(t, s, 413, four+aText, "text")
			create(t, s, 413, "Upload-Defer-Length: 1\n"+aText, "text")
			address := create(t, s, 201, "Upload-Defer-Length: 1\n"+aText, "tex").Header.Get(location)
			s.withTicketOf(t, http.MethodPatch, address, "Upload-Offset: 3\n", "t").Want(t, 413, "")
			s.withTicketOf(t, http.MethodPatch, address, "Upload-Offset: 3\nUpload-Length: 4\n", "t").Want(t, 413, "")
			s.withTicketOf(t, http.MethodPatch, address, "Upload-Offset: 3\nUpload-Length: 3\n", "").Want(t, 204, "Media-Filename: a.txt")
		}},
		{"max_size of parts", "kind=file&max_size=3", func(t *testing.T, s *site) {
			create(t, s, 413, "Upload-Concat: partial\n"+four, "")
			create(t, s, 413, "Upload-Concat: partial\nUpload-Defer-Length: 1\n", "text")
			two := create(t, s, 201, "Upload-Concat: partial\nUpload-Length: 2\n", "ab").Header.Get(location)
			one := create(t, s, 201, "Upload-Concat: partial\nUpload-Defer-Length: 1\n", "c").Header.Get(location)
			s.withTicketOf(t, http.MethodPatch, one, "Upload-Offset: 1\nUpload-Length: 4\n", "").Want(t, 413, "")
			s.withTicketOf(t, http.MethodPatch, one, "Upload-Offset: 1\nUpload-Length: 1\n", "").Want(t, 204, "")
			create(t, s, 413, aText+"Upload-Concat: final;"+two+" "+two+"\n", "")
			create(t, s, 201, aText+"Upload-Concat: final;"+two+" "+one+"\n", "").Want(t, 201, "Media-Filename: a.txt")
		}},
		{"parts larger than the alias allows", "kind=file&alias=small", func(t *testing.T, s *site) {
			create(t, s, 413, "Upload-Concat: partial\nUpload-Length: 11\n", "")
			create(t, s, 413, "Upload-Concat: partial\nUpload-Defer-Length: 1\n"+metadata("alias", "one"), "eleven byte")
		}},
		{"unfinished uploads", "kind=file", func(t *testing.T, s *site) {
			addresses := make([]string, 0, 9)
			for i := range cap(addresses) { // one for its file, and eight for parts
				header := []string{aText, "Upload-Concat: partial\n"}[i%2]
				addresses = append(addresses, create(t, s, 201, four+header, "").Header.Get(location))
			}
			for _, header := range []string{aText, "Upload-Concat: partial\n"} {
				create(t, s, 429, four+header, "").Want(t, 429, "Retry-After: 60\nLocation")
			}
			s.create(t, 4, aText) // others of the account are not shut out
			s.withTicketOf(t, http.MethodDelete, addresses[0], "", "").Want(t, 204, "")
			create(t, s, 201, four+aText, "")
			create(t, s, 429, four+aText, "")
			create(t, s, 201, "Upload-Concat: final;"+s.filled(t, addresses[1])+"\n"+aText, "")
		}},
		{"max_size of the alias", "kind=file&alias=small&max_size=1000", func(t *testing.T, s *site) {
			create(t, s, 413, "Upload-Length: 11\n"+aText, "")
			create(t, s, 413, "Upload-Defer-Length: 1\n"+aText, "eleven byte")
		}},
		{"used up", "kind=file", func(t *testing.T, s *site) {
			other := create(t, s, 201, four+aText, "").Header.Get(location)
			address := create(t, s, 201, four+aText, "text").Header.Get(location)
			s.withTicketOf(t, http.MethodHead, address, "", "").Want(t, 200, "Media-Filename: a.txt")
			s.withTicketOf(t, http.MethodGet, address, "", "").Want(t, 200, "")
			s.withTicketOf(t, http.MethodHead, other, "", "").Want(t, 200, "Upload-Offset: 0")
			s.withTicketOf(t, http.MethodGet, other, "", "").Want(t, 200, "")
			s.withTicketOf(t, http.MethodPatch, other, "Upload-Offset: 0\n", "text").Want(t, 403, "")
			create(t, s, 403, four+aText, "")
			create(t, s, 403, four+"Upload-Concat: partial\n", "")
			s.withTicketOf(t, http.MethodDelete, other, "", "").Want(t, 204, "")
		}},
		{"a refused upload does not count", "kind=file", func(t *testing.T, s *site) {
			create(t, s, 415, four+metadata("filename", "a.zip"), "text")
			address := create(t, s, 201, four+metadata("filename", "a.zip"), "").Header.Get(location)
			s.withTicketOf(t, http.MethodPatch, address, "Upload-Offset: 0\n", "text").Want(t, 415, "")
			create(t, s, 201, four+aText, "text")
			create(t, s, 403, four+aText, "text")
		}},
		{"refused creations leave nothing, and count in the end", "kind=file", func(t *testing.T, s *site) {
			other := create(t, s, 201, four+aText, "").Header.Get(location)
			long := metadata("filename", "a.zip", "x", strings.Repeat("y", 2500))
			for range 10 {
				create(t, s, 415, four+long, "text").Want(t, 415, location)
			}
			if n := len(s.Objects(t)); n != 1 {
				t.Errorf("%d objects", n)
			}
			create(t, s, 403, four+long, "text")
			s.withTicketOf(t, http.MethodHead, other, "", "").Want(t, 200, "Upload-Offset: 0")
			s.Ticket(t, "kind=file")
			s.withTicketOf(t, http.MethodPatch, other, "Upload-Offset: 0\n", "text").Want(t, 204, "Media-Filename: a.txt")
		}},
		{"refused uploads leave little, and count in the end", "kind=file", func(t *testing.T, s *site) {
			for range 10 {
				long := metadata("filename", "a.zip", "x", strings.Repeat("y", 2500))
				address := create(t, s, 201, four+long, "").Header.Get(location)
				s.withTicketOf(t, http.MethodPatch, address, "Upload-Offset: 0\n", "text").Want(t, 415, "")
				s.withTicketOf(t, http.MethodHead, address, "", "").Want(t, 410, "")
			}
			bytes := 0
			for _, content := range s.Objects(t) {
				bytes += len(content)
			}
			if bytes > 10*512 {
				t.Errorf("%d bytes are left", bytes)
			}
			create(t, s, 403, four+aText, "")
		}},
		{"a final upload is counted once", "kind=file", func(t *testing.T, s *site) {
			part := create(t, s, 201, "Upload-Concat: partial\n"+four, "text").Header.Get(location)
			for range 2 {
				s.roundTrip(t, s.Request(t, http.MethodPost, resumablePath, ticketBearer+"Tus-Resumable: 1.0.0\n"+aText+
					"Upload-Concat: final;"+part+"\n", "")).Want(t, 201, "Media-Filename: a.txt")
			}
			s.Ticket(t, "kind=file&sub_folder=x")
			s.roundTrip(t, s.Request(t, http.MethodPost, resumablePath, ticketBearer+"Tus-Resumable: 1.0.0\n"+aText+
				"Upload-Concat: final;"+part+"\n", "")).Want(t, 403, "Media-Filename")
		}},
		{"scopes", "kind=file&alias=one", func(t *testing.T, s *site) {
			address, ofToken := create(t, s, 201, four+aText, "").Header.Get(location), s.create(t, 4, aText)
			s.withTicketOf(t, http.MethodHead, ofToken, "", "").Want(t, 403, "Upload-Offset")
			for _, other := range []string{"alias=two", "alias=one&sub_folder=a", "alias=one&filename=a.txt", "alias=content"} {
				s.Ticket(t, "kind=file&"+other)
				for _, method := range []string{http.MethodHead, http.MethodGet, http.MethodPatch, http.MethodDelete} {
					s.withTicketOf(t, method, address, "Upload-Offset: 0\n", "te").Want(t, 403, "Upload-Offset")
				}
			}
			s.Ticket(t, "kind=file&alias=one&max_files=7")
			s.withTicketOf(t, http.MethodPatch, address, "Upload-Offset: 0\n", "te").Want(t, 204, "Upload-Offset: 2")
			s.patch(t, address, 2, "xt", "").Want(t, 204, "Media-Filename: a.txt") // any token
		}},
		{"parts of another scope", "kind=file&alias=one", func(t *testing.T, s *site) {
			final := func(status int, parts ...string) {
				t.Helper()
				create(t, s, status, aText+"Upload-Concat: final;"+strings.Join(parts, " ")+"\n", "")
			}
			partial := "Upload-Concat: partial\n" + four
			mine, ofToken := create(t, s, 201, partial, "mine").Header.Get(location), s.part(t, "token")
			s.Ticket(t, "kind=file&alias=one&sub_folder=a")
			other := create(t, s, 201, partial, "text").Header.Get(location)
			final(403, mine)
			final(403, ofToken)
			final(403, other, mine)
			s.Ticket(t, "kind=file&alias=one")
			final(403, mine, other)
			final(201, mine)
			s.final(t, aText, ofToken, other).Want(t, 201, "") // a token may use all parts
		}},
		{"expired", "kind=file", func(t *testing.T, s *site) {
			address := create(t, s, 201, four+aText, "te").Header.Get(location)
			empty := create(t, s, 201, four+aText, "").Header.Get(location)
			s.Passed.Store(int64(time.Hour))
			s.withTicketOf(t, http.MethodPatch, address, "Upload-Offset: 2\n", "xt").Want(t, 401, "WWW-Authenticate: Bearer")
			s.Ticket(t, "kind=file")
			s.withTicketOf(t, http.MethodHead, empty, "", "").Want(t, 404, "")
			s.withTicketOf(t, http.MethodPatch, address, "Upload-Offset: 2\n", "xt").Want(t, 204, "Media-Filename: a.txt")
		}},
		{"counting unavailable", "kind=file", func(t *testing.T, s *site) {
			s.Store.NoTakes.Store(true)
			address := create(t, s, 201, four+aText, "").Header.Get(location)
			s.withTicketOf(t, http.MethodPatch, address, "Upload-Offset: 0\n", "text").Want(t, 503, "")
			s.Store.NoTakes.Store(false)
			s.withTicketOf(t, http.MethodHead, address, "", "").Want(t, 200, "Media-Filename: a.txt\nUpload-Offset: 4")
			create(t, s, 403, four+aText, "text")
		}},
	})
}
