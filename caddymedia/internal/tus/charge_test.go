package tus_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/access"
	"github.com/caddymedia/media/caddymedia/internal/item"
	"github.com/caddymedia/media/caddymedia/internal/resumable"
	"github.com/caddymedia/media/caddymedia/internal/service"
	"github.com/caddymedia/media/storagedrivers"
)

// used returns how many items are counted on a ticket.
func (s *site) used(t *testing.T, ticket string) int {
	t.Helper()
	return s.loaded(t, ticket).Used()
}

// loaded returns a ticket as it is stored.
func (s *site) loaded(t *testing.T, ticket string) *access.Ticket {
	t.Helper()
	_, loaded, err := service.Of(s.first).Issuer().VerifyTicket(t.Context(), access.IDOf(ticket))
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// take reserves all items of a ticket, as uploads under way do. giveBack undoes it.
func (s *site) take(t *testing.T, ticket string, n int) (giveBack func()) {
	t.Helper()
	loaded := s.loaded(t, ticket)
	if loaded.MaxFiles != n {
		t.Fatalf("the ticket is for %d items", loaded.MaxFiles)
	}
	if err := service.Of(s.first).Issuer().Take(t.Context(), loaded, "other", n); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := service.Of(s.first).Issuer().GiveBack(t.Context(), loaded.ID, "other"); err != nil {
			t.Error(err)
		}
	}
}

// found returns the upload of an address.
func (s *site) found(t *testing.T, address string) *resumable.Upload {
	t.Helper()
	u, err := service.Of(s.first).Uploads().Find(t.Context(), "http "+someKey, address[strings.LastIndex(address, "/")+1:])
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// complete creates an upload with $TICKET that has all bytes but is not finished, because tickets
// cannot be counted then.
func (s *site) complete(t *testing.T) (address string) {
	t.Helper()
	address = s.withTicketOf(t, http.MethodPost, resumablePath, "Upload-Length: 4\n"+aText, "").want(t, 201, "").header.Get(location)
	s.store.noTakes.Store(true)
	s.withTicketOf(t, http.MethodPatch, address, "Upload-Offset: 0\n", "text").want(t, 503, "")
	s.store.noTakes.Store(false)
	return address
}

// TestCharge: an upload that one ticket creates and another credential finishes is counted
// on the first one, or on the other one if the first one has ended or is used up.
func TestCharge(t *testing.T) {
	t.Parallel()
	const fields = "kind=file&alias=one&max_files=2&expires_in=3600"
	for _, c := range []struct {
		name        string
		between     func(t *testing.T, s *site, first string)
		first, last int // counted items; -1 for an ended ticket
		lastLine    string
	}{
		{"both are valid", func(*testing.T, *site, string) {}, 1, 0, ""},
		{"the first one has ended", func(t *testing.T, s *site, first string) {
			if err := service.Of(s.first).Issuer().Drop(t.Context(), first); err != nil {
				t.Error(err)
			}
		}, -1, 1, ""},
		{"the first one is used up", func(t *testing.T, s *site, first string) { s.take(t, first, 2) }, 2, 1, ""},
	} {
		for _, by := range []string{"ticket", "token"} {
			t.Run(c.name+", finished by a "+by, func(t *testing.T) {
				t.Parallel()
				s := aSite(t)
				first := s.ticket(t, fields)
				address := s.withTicketOf(t, http.MethodPost, resumablePath, "Upload-Length: 4\n"+aText, "te").want(t, 201, "").header.Get(location)
				last := s.ticket(t, fields)
				c.between(t, s, first)
				wantLast := c.last
				if by == "token" {
					s.patch(t, address, 2, "xt", "").want(t, 204, "Media-Filename: a.txt")
					wantLast = 0
				} else {
					s.withTicketOf(t, http.MethodPatch, address, "Upload-Offset: 2\n", "xt").want(t, 204, "Media-Filename: a.txt")
				}
				if c.first >= 0 && s.used(t, first) != c.first {
					t.Errorf("%d are counted on the first ticket, want %d", s.used(t, first), c.first)
				}
				if s.used(t, last) != wantLast {
					t.Errorf("%d are counted on the last ticket, want %d", s.used(t, last), wantLast)
				}
			})
		}
	}
}

// TestChargeFaults fails each operation of the storage while an upload is finished. It is
// counted once if another ticket continues it, and not at all if it is ended before it has a name.
func TestChargeFaults(t *testing.T) {
	t.Parallel()
	onEach(t, "507", func(t *testing.T, b backend) {
		for n := range 200 {
			after, end := n/2, n%2 > 0
			s, f := withFault(t, b)
			first := s.ticket(t, "kind=file&max_files=9")
			address := s.withTicketOf(t, http.MethodPost, resumablePath, "Upload-Length: 4\n"+aText, "").want(t, 201, "").header.Get(location)
			f.arm(storagedrivers.ErrNoSpace, after)
			r := s.request(t, http.MethodPatch, address, ticketBearer+"Tus-Resumable: 1.0.0\nUpload-Offset: 0\n"+tusBody, "text")
			got := s.roundTrip(t, r)
			hit := f.disarm()
			if u := s.found(t, address); end && got.status != 204 && u.Outcome == nil && !s.isKept(t, u) {
				s.withTicketOf(t, http.MethodDelete, address, "", "").want(t, 204, "")
				if s.used(t, first) != 0 || len(s.items(t)) > 0 {
					t.Errorf("operation %d (%s), ended: %d items, %d are counted", after, hit, len(s.items(t)), s.used(t, first))
				}
				continue
			}
			second := s.ticket(t, "kind=file&max_files=9")
			if head := s.withTicketOf(t, http.MethodHead, address, "", "").want(t, 200, ""); head.header.Get("Upload-Offset") == "0" {
				s.withTicketOf(t, http.MethodPatch, address, "Upload-Offset: 0\n", "text").want(t, 204, "")
			}
			if counted := s.used(t, first) + s.used(t, second); counted != 1 || len(s.items(t)) != 1 {
				t.Errorf("operation %d (%s): %d items, %d are counted", after, hit, len(s.items(t)), counted)
			}
			if hit == "" {
				return
			}
		}
		t.Error("endless operations")
	})
}

// isKept reports whether an attempt to finish an upload may have stored its item.
func (s *site) isKept(t *testing.T, u *resumable.Upload) bool {
	t.Helper()
	attempt, err := service.Of(s.first).Issuer().Attempt(t.Context(), u.Request(), func() {})
	if err == nil {
		err = attempt.End(t.Context(), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return attempt.IsRepeated
}

// TestReserved: an upload whose ticket is used up by another one under way is not lost.
func TestReserved(t *testing.T) {
	t.Parallel()
	s := withTicket(t, "kind=file")
	ticket := s.vars[1]
	incomplete := s.withTicketOf(t, http.MethodPost, resumablePath, "Upload-Length: 4\n"+aText, "te").want(t, 201, "").header.Get(location)
	giveBack := s.take(t, ticket, 1)
	s.withTicketOf(t, http.MethodPatch, incomplete, "Upload-Offset: 2\n", "xt").want(t, 403, "")
	s.withTicketOf(t, http.MethodHead, incomplete, "", "").want(t, 200, "Upload-Offset: 2")
	giveBack()
	r := s.request(t, http.MethodPatch, incomplete, ticketBearer+"Tus-Resumable: 1.0.0\nUpload-Offset: 2\n"+tusBody, "")
	r.ContentLength, r.Body = 2, io.NopCloser(&meanwhile{
		first: strings.NewReader("x"), second: strings.NewReader("t"), between: func() { giveBack = s.take(t, ticket, 1) },
	})
	w := httptest.NewRecorder()
	if s.handler.ServeHTTP(w, r); w.Code != 403 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	s.withTicketOf(t, http.MethodHead, incomplete, "", "").want(t, 403, "")
	giveBack()
	s.withTicketOf(t, http.MethodHead, incomplete, "", "").want(t, 200, "Media-Filename: a.txt\nUpload-Offset: 4")
	if used := s.used(t, ticket); used != 1 {
		t.Errorf("%d are counted", used)
	}
}

// TestTicketEndsWhileFinishing: the upload of a caller without rights any more stays for
// another one with them.
func TestTicketEndsWhileFinishing(t *testing.T) {
	t.Parallel()
	s := withTicket(t, "kind=file")
	address := s.complete(t)
	s.store.ended.Store(true)
	s.withTicketOf(t, http.MethodHead, address, "", "").want(t, 403, "")
	s.store.ended.Store(false)
	s.passed.Store(int64(time.Hour))
	s.ticket(t, "kind=file")
	s.withTicketOf(t, http.MethodHead, address, "", "").want(t, 200, "Media-Filename: a.txt")
}

// TestEndGivesBack: an upload that is ended after its item was counted, but before it was
// stored, does not count. A kill of the process causes that.
func TestEndGivesBack(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		end  func(t *testing.T, s *site, address string)
	}{
		{"by its ticket", func(t *testing.T, s *site, address string) {
			s.withTicketOf(t, http.MethodDelete, address, "", "").want(t, 204, "")
		}},
		{"by another ticket", func(t *testing.T, s *site, address string) {
			s.ticket(t, "kind=file")
			s.withTicketOf(t, http.MethodDelete, address, "", "").want(t, 204, "")
		}},
		{"by a token", func(t *testing.T, s *site, address string) {
			s.send(t, http.MethodDelete, address, "", "").want(t, 204, "")
		}},
		{"by an administrator", func(t *testing.T, s *site, address string) {
			if err := service.Of(s.first).TerminateUpload(t.Context(), s.found(t, address), item.Actor{Origin: item.OriginPanel}); err != nil {
				t.Error(err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := withTicket(t, "kind=file")
			ticket, address := s.vars[1], s.complete(t)
			if err := service.Of(s.first).Issuer().Take(t.Context(), s.loaded(t, ticket), s.found(t, address).ID, 1); err != nil {
				t.Fatal(err)
			}
			c.end(t, s, address)
			if used := s.used(t, ticket); used != 0 {
				t.Errorf("%d are counted", used)
			}
		})
	}
}
