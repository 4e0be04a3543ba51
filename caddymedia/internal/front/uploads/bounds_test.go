package uploads_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/test/testservice"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers/options"
)

// TestMaxUploads: an account's second upload is refused while its first one is running, and allowed
// later. The refused body is not read.
func TestMaxUploads(t *testing.T) {
	t.Parallel()
	s := newSite(t, media.Limits{MaxUploads: 1})
	token := s.Token(t)
	body := form(file("a.txt", "text"))
	s.Upload(t, token, meanwhile(body, func() {
		second := strings.NewReader(body)
		got := s.Upload(t, token, second)
		if got.Status != http.StatusTooManyRequests || got.Header.Get("Retry-After") == "" || second.Len() != len(body) {
			t.Errorf("the second: %+v, %d bytes unread", got, second.Len())
		}
	})).Want(t, 200, "")
	s.Upload(t, token, strings.NewReader(body)).Want(t, 200, "")
}

func TestMaxUploadTime(t *testing.T) {
	t.Parallel()
	s := newSite(t, media.Limits{MaxUploadTime: options.Duration(30 * time.Millisecond)})
	body := form(file("a.txt", "text"))
	got := s.Upload(t, s.Token(t), io.MultiReader(strings.NewReader(body[:strings.Index(body, "text")]), testservice.Endless{}))
	if got.Status != http.StatusBadRequest || !strings.Contains(got.Body, "longer than 30ms") {
		t.Errorf("%+v", got)
	}
}

// TestRightsEndDuringUpload: nothing is stored if the account loses its rights during the upload,
// or if the ticket ends or is used up by another one.
func TestRightsEndDuringUpload(t *testing.T) {
	t.Parallel()
	end := func(t *testing.T, s *site) {
		t.Helper()
		running, release := s.Running()
		defer release()
		if _, err := service.Of(running).Issuer().Revoke(t.Context(), someKey); err != nil {
			t.Error(err)
		}
	}
	for _, c := range []struct {
		name   string
		change func(*testing.T, *site)
		want   int
	}{
		{"nothing changes", func(*testing.T, *site) {}, 200},
		{"other limits", func(t *testing.T, s *site) { s.Reload(s.Service(t, media.Limits{MaxUploads: 3}, account())) }, 200},
		{"account removed", func(t *testing.T, s *site) { s.Reload(s.Service(t, media.Limits{})) }, 401},
		{"alias withdrawn", func(t *testing.T, s *site) { s.Reload(s.Service(t, media.Limits{}, account("two"))) }, 401},
		{"right withdrawn", func(t *testing.T, s *site) {
			changed := account()
			changed.Rights = []access.Right{access.List}
			s.Reload(s.Service(t, media.Limits{}, changed))
		}, 401},
		{"tokens ended", end, 401},
		{"tokens ended after a reload", func(t *testing.T, s *site) {
			s.Reload(s.Service(t, media.Limits{MaxUploads: 4}, account()))
			end(t, s)
		}, 401},
		{"token store unavailable", func(_ *testing.T, s *site) { s.Store.Fails.Store(true) }, 503},
		{"ticket", func(*testing.T, *site) {}, 200},
		{"ticket expired", func(_ *testing.T, s *site) { s.Passed.Store(int64(time.Hour)) }, 401},
		{"ticket used up", func(t *testing.T, s *site) {
			s.Do(t, http.MethodPost, filePath, multipart+ticketBearer, form(file("b.txt", "text")))
		}, 403},
		{"ticket that cannot be counted", func(_ *testing.T, s *site) { s.Store.NoTakes.Store(true) }, 503},
		{"no service any more", func(_ *testing.T, s *site) { s.Reload(nil) }, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, body := newSite(t, media.Limits{}), form(file("late.txt", "text"))
			credential := s.Token(t)
			if strings.HasPrefix(c.name, "ticket") {
				credential = s.Ticket(t, "kind=file&alias=one")
			}
			got := s.Upload(t, credential, meanwhile(body, func() { c.change(t, s) })).Want(t, c.want, "")
			if c.want == 401 && got.Header.Get("WWW-Authenticate") == "" || c.want == 503 && got.Header.Get("Retry-After") == "" {
				t.Errorf("%d with the header %v", got.Status, got.Header)
			}
			if _, stored := s.Stored(t, "file/one/late.txt"); stored != (c.want == 200) {
				t.Errorf("stored: %t", stored)
			}
		})
	}
}
