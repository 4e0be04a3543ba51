package tus_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/resumable"
	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/test/testservice"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers/options"
)

// patchWith sends all digits to an upload, and calls between when half of them are read.
func (s *site) patchWith(t *testing.T, address, header string, between func()) *reply {
	t.Helper()
	r := s.Request(t, http.MethodPatch, address, tusHeader+tusBody+"Upload-Offset: 0\n"+header, "")
	r.ContentLength = int64(len(digits))
	r.Body = testservice.Meanwhile(digits, between)
	w := httptest.NewRecorder()
	s.Handler.ServeHTTP(w, r)
	return &reply{Status: w.Code, Header: w.Header(), Body: w.Body.String()}
}

// TestRightsEnd: the last request stores the item only if the account has its rights then. A
// later request with the rights stores it.
func TestRightsEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*testing.T, *site)
		status int
	}{
		"nothing changes": {func(*testing.T, *site) {}, 204},
		"other limits":    {func(t *testing.T, s *site) { s.Reload(s.Service(t, media.Limits{MaxUploads: 3}, account())) }, 204},
		"other storage": {func(t *testing.T, s *site) {
			before := s.Change
			s.Change = func(c *media.Config) {
				before(c)
				c.Resumable.Storage = "dated"
			}
			s.Reload(s.Service(t, media.Limits{}, account()))
		}, 204},
		"account removed": {func(t *testing.T, s *site) { s.Reload(s.Service(t, media.Limits{})) }, 401},
		"alias withdrawn": {func(t *testing.T, s *site) { s.Reload(s.Service(t, media.Limits{}, account("two"))) }, 401},
		"tokens ended": {func(t *testing.T, s *site) {
			if _, err := service.Of(s.First).Issuer().Revoke(t.Context(), someKey); err != nil {
				t.Error(err)
			}
		}, 401},
		"token store unavailable": {func(_ *testing.T, s *site) { s.Store.Fails.Store(true) }, 503},
	} {
		onEach(t, name, func(t *testing.T, b backend) {
			s := b.site(t, nil)
			address := s.create(t, len(digits), aText)
			got := s.patchWith(t, address, "", func() { c.change(t, s) })
			if got.Status != c.status || (got.Header.Get("Media-Filename") != "") != (c.status == 204) {
				t.Errorf("%+v, want %d", got, c.status)
			}
			if got.Status == 401 && got.Header.Get("WWW-Authenticate") == "" || got.Status == 503 && got.Header.Get("Retry-After") == "" {
				t.Errorf("%d with the header %v", got.Status, got.Header)
			}
			if items := s.items(t); len(items) != map[bool]int{true: 1}[c.status == 204] {
				t.Errorf("items %v", items)
			}
			s.Store.Fails.Store(false)
			s.Reload(s.Service(t, media.Limits{MaxUploads: 4}, account()))
			s.offset(t, address, len(digits)).Want(t, 200, "Media-Filename: a.txt")
			s.itemIs(t, digits)
			s.nothingOpen(t)
		})
	}
}

// TestDeletedDuringPatch: the end of an upload ends a silent request that adds bytes to it, and
// nothing remains.
func TestDeletedDuringPatch(t *testing.T) {
	t.Parallel()
	for _, header := range []string{"", sha1Of(digits)} {
		onEach(t, header, func(t *testing.T, b backend) {
			s := b.site(t, nil)
			server, begun := s.serveBegun(t, header == "") // HTTP/2 or HTTP/1.1
			address := s.create(t, len(digits), aText)
			ended := s.silentPatch(t, server, address, header)
			<-begun
			start := time.Now()
			s.send(t, http.MethodDelete, address, "", "").Want(t, 204, "")
			if status := <-ended; status != http.StatusNotFound && status != http.StatusConflict {
				t.Errorf("status %d", status)
			}
			if took := time.Since(start); took > patience {
				t.Errorf("it took %s", took)
			}
			if left := s.Objects(t); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// TestMaxUploadTime: a request of a silent client is ended, by the limit of the service or
// by the server. Clients continue after its status.
func TestMaxUploadTime(t *testing.T) {
	t.Parallel()
	const limit = 100 * time.Millisecond
	for name, c := range map[string]struct{ h2, server bool }{
		"HTTP/1.1": {}, "HTTP/1.1, server": {server: true}, "HTTP/2": {h2: true}, "HTTP/2, server": {true, true},
	} {
		onEach(t, name, func(t *testing.T, b backend) {
			limits := media.Limits{MaxUploadTime: options.Duration(limit)}
			if c.server {
				limits = media.Limits{}
			}
			s := newSiteOn(t, b(t, nil), limits, nil)
			server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if c.server {
					_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(limit))
				}
				s.Handler.ServeHTTP(w, r)
			}), c.h2)
			address := s.create(t, len(digits), aText)
			if status := <-s.silentPatch(t, server, address, ""); status != http.StatusServiceUnavailable {
				t.Errorf("status %d", status)
			}
			s.Reload(s.Service(t, media.Limits{}, account()))
			head := s.send(t, http.MethodHead, address, "", "").Want(t, 200, "")
			offset, _ := strconv.Atoi(head.Header.Get("Upload-Offset")) // 5, unless the machine is busy
			s.patch(t, address, offset, digits[offset:], "").Want(t, 204, "Media-Filename: a.txt")
			s.itemIs(t, digits)
		})
	}
}

// TestDuringFinal: requests for a final upload and for its parts, while it is stored.
func TestDuringFinal(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		during func(t *testing.T, s *site, final, part string)
		later  int // status of HEAD afterwards
	}{
		"PATCH": {func(t *testing.T, s *site, final, part string) {
			s.patch(t, final, len(digits), "", "").Want(t, 403, "")
			s.patch(t, final, len(digits), "x", "").Want(t, 403, "")
			s.patch(t, part, 5, "x", "").Want(t, 413, "")
			s.patch(t, part, 0, "x", "").Want(t, 409, "")
		}, 200},
		"DELETE of a part": {func(t *testing.T, s *site, _, part string) {
			s.send(t, http.MethodDelete, part, "", "").Want(t, 204, "")
		}, 200},
		"HEAD":   {headLocked, 200},
		"DELETE": {nil, 404},
	} {
		onEach(t, name, func(t *testing.T, b backend) {
			stop := &stopAt{prefix: "file/", reached: make(chan bool), resume: make(chan bool)}
			s := b.site(t, stop.fail)
			first, second := s.part(t, digits[:5]), s.part(t, digits[5:])
			before := s.Objects(t)
			stop.armed(true)
			var both sync.WaitGroup
			var posted, deleted *reply
			answered := make(chan bool, 1)
			both.Go(func() { posted = s.final(t, aText, first, second) })
			<-stop.reached
			final := s.created(t, before)
			if c.during != nil {
				c.during(t, s, final, second)
			} else {
				both.Go(func() {
					deleted = s.send(t, http.MethodDelete, final, "", "")
					answered <- true
				})
				select {
				case <-answered:
					t.Error("DELETE was answered before the end of the other request")
				case <-time.After(20 * time.Millisecond):
				}
			}
			close(stop.resume)
			both.Wait()
			posted.Want(t, 201, "Media-Filename: a.txt\nLocation: "+final)
			if deleted != nil {
				deleted.Want(t, 204, "")
			}
			s.send(t, http.MethodHead, final, "", "").Want(t, c.later, "")
			s.itemIs(t, digits)
			s.nothingOpen(t)
		})
	}
}

// TestPartDeleted: a part that is removed before its bytes are read makes no item.
func TestPartDeleted(t *testing.T) {
	t.Parallel()
	onEach(t, "DELETE", func(t *testing.T, b backend) {
		stop := &stopAt{reached: make(chan bool), resume: make(chan bool)}
		s := b.site(t, stop.fail)
		first, second := s.part(t, digits[:5]), s.part(t, digits[5:])
		before := s.Objects(t)
		stop.prefix = resumable.Folder + "/data/"
		stop.ops = []string{"open"}
		stop.armed(true)
		var posted sync.WaitGroup
		posted.Go(func() {
			s.final(t, aText, first, second).Want(t, 503, "Retry-After: 1\nMedia-Filename")
		})
		<-stop.reached
		final := s.created(t, before)
		s.send(t, http.MethodDelete, second, "", "").Want(t, 204, "")
		close(stop.resume)
		posted.Wait()
		s.final(t, aText, first, second).Want(t, 400, location)
		s.send(t, http.MethodHead, final, "", "").Want(t, 404, "")
		if items := s.items(t); len(items) > 0 {
			t.Errorf("items %v", items)
		}
	})
}

// created returns the address of the upload that was created since before.
func (s *site) created(t *testing.T, before map[string]string) string {
	t.Helper()
	prefix := resumable.Folder + "/open/"
	for _, key := range slices.Sorted(maps.Keys(s.Objects(t))) {
		if _, old := before[key]; !old && strings.HasPrefix(key, prefix) {
			_, id, _ := strings.Cut(key[len(prefix):], ".")
			return resumablePath + "/" + id
		}
	}
	t.Fatal("no upload was created")
	return ""
}

// stopAt is the fail of a backend that stops at the first operation on certain keys.
type stopAt struct {
	prefix  string   // of the keys
	ops     []string // all, if there are none
	reached chan bool
	resume  chan bool

	mu sync.Mutex
	on bool
}

func (s *stopAt) armed(on bool) (was bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was, s.on = s.on, on
	return was
}

func (s *stopAt) fail(op, key string) error {
	if len(s.ops) > 0 && !slices.Contains(s.ops, op) || !strings.HasPrefix(key, s.prefix) || !s.armed(false) {
		return nil
	}
	s.reached <- true
	<-s.resume
	return nil
}
