package mediahttp_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/service"
	"github.com/caddymedia/media/caddymedia/media"
)

// upload sends an upload of body and returns the response.
func (s *site) upload(t *testing.T, token string, body io.Reader) (status int, header http.Header, text string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/upload/file?alias=one", body)
	r.Header.Set("Content-Type", multipartType)
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return w.Code, w.Header(), w.Body.String()
}

// meanwhile calls between when half of a body is read.
type meanwhile struct {
	first, second io.Reader
	between       func()
}

func (m *meanwhile) Read(p []byte) (int, error) {
	n, err := m.first.Read(p)
	if err != io.EOF {
		return n, err
	}
	if m.between != nil {
		m.between()
		m.between = nil
	}
	return m.second.Read(p)
}

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
		{"other limits", func(t *testing.T, s *site) { s.reload(s.service(t, media.Limits{MaxUploads: 3}, account())) }, 200},
		{"account removed", func(t *testing.T, s *site) { s.reload(s.service(t, media.Limits{})) }, 401},
		{"alias withdrawn", func(t *testing.T, s *site) { s.reload(s.service(t, media.Limits{}, account("two"))) }, 401},
		{"tokens ended", end, 401},
		{"tokens ended after a reload", func(t *testing.T, s *site) {
			s.reload(s.service(t, media.Limits{MaxUploads: 4}, account()))
			end(t, s)
		}, 401},
		{"token store unavailable", func(_ *testing.T, s *site) { s.store.fails.Store(true) }, 503},
		{"no service any more", func(_ *testing.T, s *site) { s.reload(nil) }, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, media.Limits{})
			body := form(file("late.txt", "text"))
			status, header, text := s.upload(t, s.token(t), &meanwhile{
				first: strings.NewReader(body[:len(body)/2]), second: strings.NewReader(body[len(body)/2:]),
				between: func() { c.change(t, s) },
			})
			if status != c.want {
				t.Errorf("%d %s, want %d", status, text, c.want)
			}
			if status == 401 && header.Get("WWW-Authenticate") == "" || status == 503 && header.Get("Retry-After") == "" {
				t.Errorf("%d with the header %v", status, header)
			}
			if _, stored := s.stored(t, "file/one/late.txt"); stored != (c.want == 200) {
				t.Errorf("stored: %t", stored)
			}
		})
	}
}
