package mediahttp_test

import (
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/service"
	"github.com/caddymedia/media/caddymedia/media"
)

// TestRightsEndDuringUpload: nothing is stored if the account loses its rights during the upload.
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
		{"tokens ended", end, 401},
		{"tokens ended after a reload", func(t *testing.T, s *site) {
			s.Reload(s.Service(t, media.Limits{MaxUploads: 4}, account()))
			end(t, s)
		}, 401},
		{"token store unavailable", func(_ *testing.T, s *site) { s.Store.Fails.Store(true) }, 503},
		{"no service any more", func(_ *testing.T, s *site) { s.Reload(nil) }, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, media.Limits{})
			body := form(file("late.txt", "text"))
			got := s.Upload(t, s.Token(t), meanwhile(body, func() { c.change(t, s) })).Want(t, c.want, "")
			if c.want == 401 && got.Header.Get("WWW-Authenticate") == "" || c.want == 503 && got.Header.Get("Retry-After") == "" {
				t.Errorf("%d with the header %v", got.Status, got.Header)
			}
			if _, stored := s.Stored(t, "file/one/late.txt"); stored != (c.want == 200) {
				t.Errorf("stored: %t", stored)
			}
		})
	}
}
