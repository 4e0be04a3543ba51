package tus_test

import (
	"cmp"
	"context"
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/resumable"
	"github.com/caddymedia/media/caddymedia/internal/test/testservice"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

const location = "Location"

// The names of package testservice that the tests use most.
const (
	someKey       = testservice.SomeKey
	origin        = testservice.Origin
	uploadDay     = testservice.UploadDay
	resumablePath = testservice.ResumablePath
	imagesPath    = "/api/upload/image/resumable"

	bearer       = testservice.Bearer
	ticketBearer = testservice.TicketBearer
	tusHeader    = testservice.TusHeader
	tusBody      = testservice.TusBody
	aText        = "Upload-Metadata: filename YS50eHQ=\n" // a.txt
)

var (
	noon     = testservice.Noon
	account  = testservice.Account
	metadata = testservice.Metadata
	pngOf    = testservice.PNGOf
)

type reply = testservice.Reply

// site is a service with the requests of the protocol.
type site struct{ *testservice.Site }

// newSiteOn starts a service on a backend. change, if set, changes its configuration. No storage is
// unreachable: counting uploads would wait for it.
func newSiteOn(t *testing.T, backend storagedrivers.Driver, limits media.Limits, change func(*media.Config)) *site {
	t.Helper()
	return &site{testservice.NewOn(t, backend, limits, func(c *media.Config) {
		c.Storages = slices.DeleteFunc(c.Storages, func(s media.Storage) bool { return s.Name == "broken" })
		delete(c.ImageAliases, "broken")
		delete(c.FileAliases, "broken")
		if change != nil {
			change(c)
		}
	})}
}

// aSite starts a service with the defaults, in memory.
func aSite(t *testing.T) *site {
	t.Helper()
	return newSiteOn(t, memory.New(), media.Limits{}, nil)
}

// send sends a request of the protocol and checks what every response promises.
func (s *site) send(t *testing.T, method, address, header, body string) *reply {
	t.Helper()
	return s.roundTrip(t, s.Request(t, method, address, tusHeader+header, body))
}

// roundTrip is send of a whole request.
func (s *site) roundTrip(t *testing.T, r *http.Request) *reply {
	t.Helper()
	w := httptest.NewRecorder()
	s.Handler.ServeHTTP(w, r)
	got := &reply{Status: w.Code, Header: w.Result().Header, Body: w.Body.String()}
	for name, want := range map[string]string{
		"Tus-Resumable": "1.0.0", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
	} {
		if h := got.Header.Get(name); h != want {
			t.Errorf("%s %s: %d: header %s: %q, want %q", r.Method, r.URL.Path, got.Status, name, h, want)
		}
	}
	if got.Body != "" && got.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%s %s: %d: a body of type %q", r.Method, r.URL.Path, got.Status, got.Header.Get("Content-Type"))
	}
	for name, values := range got.Header {
		if strings.ContainsFunc(strings.Join(values, ""), func(c rune) bool { return c < ' ' || c == 0x7f }) {
			t.Errorf("control characters in %s: %q", name, values)
		}
	}
	return got
}

// create creates an upload and returns its address.
func (s *site) create(t *testing.T, length int, header string) string {
	t.Helper()
	return s.send(t, http.MethodPost, resumablePath, fmt.Sprintf("Upload-Length: %d\n%s", length, header), "").Want(t, 201, "").Header.Get(location)
}

// patch adds bytes to an upload.
func (s *site) patch(t *testing.T, address string, offset int, bytes, header string) *reply {
	t.Helper()
	return s.send(t, http.MethodPatch, address, fmt.Sprintf("%sUpload-Offset: %d\n%s", tusBody, offset, header), bytes)
}

// offset checks the offset of an upload.
func (s *site) offset(t *testing.T, address string, want int) *reply {
	t.Helper()
	return s.send(t, http.MethodHead, address, "", "").Want(t, 200, fmt.Sprintf("Upload-Offset: %d\n", want))
}

// part creates a partial upload with bytes.
func (s *site) part(t *testing.T, bytes string) string {
	t.Helper()
	address := s.create(t, len(bytes), "Upload-Concat: partial\n")
	s.patch(t, address, 0, bytes, "").Want(t, 204, fmt.Sprintf("Upload-Offset: %d\n", len(bytes)))
	return address
}

// final requests the concatenation of parts.
func (s *site) final(t *testing.T, header string, parts ...string) *reply {
	t.Helper()
	return s.send(t, http.MethodPost, resumablePath, "Upload-Concat: final;"+strings.Join(parts, " ")+"\n"+header, "")
}

func sha1Of(bytes string) string {
	sum := sha1.Sum([]byte(bytes))
	return "Upload-Checksum: sha1 " + base64.StdEncoding.EncodeToString(sum[:]) + "\n"
}

// itemIs checks the content of the item of aText.
func (s *site) itemIs(t *testing.T, want string) {
	t.Helper()
	if got, ok := s.Stored(t, "file/content/a.txt"); !ok || got != want {
		t.Errorf("the item is %.100q, %t, want %q", got, ok, want)
	}
}

// items returns the stored items by key.
func (s *site) items(t *testing.T) map[string]string {
	t.Helper()
	items := s.Objects(t)
	maps.DeleteFunc(items, func(key, _ string) bool { return strings.HasPrefix(key, resumable.Folder+"/") })
	return items
}

// awaitOutcome waits for the end of an upload, at most a minute.
func awaitOutcome(t *testing.T, u *resumable.Upload) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for ; u.Outcome == nil; time.Sleep(10 * time.Millisecond) {
		if err := cmp.Or(ctx.Err(), u.Reload(ctx)); err != nil {
			t.Fatalf("the upload is not finished: %v", err)
		}
	}
}

// rule is a demand of the protocol, in the words of its specification, or one of the service.
type rule struct {
	text   string
	ticket string // the fields of $TICKET; empty for none
	check  func(*testing.T, *site)
}

// runRules checks each rule on its own sites, in parallel.
func runRules(t *testing.T, rules []rule) {
	t.Helper()
	for _, c := range rules {
		onEach(t, c.text, func(t *testing.T, b backend) {
			s := b.site(t, nil)
			if c.ticket != "" {
				s.Ticket(t, c.ticket)
			}
			c.check(t, s)
		})
	}
}
