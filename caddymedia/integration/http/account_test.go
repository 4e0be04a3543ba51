package http_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// TestAccountOfSomeAliases: other aliases are forbidden, also if the form names them after the
// file. Nothing of the file is stored.
func TestAccountOfSomeAliases(t *testing.T) {
	limited := "account " + site.APIKey + " " + site.CheapHash + " {\naliases news\n}\n"
	s := site.Start(t, limited+site.LocalDefault+"image_alias content\nimage_alias news\nfile_alias content", "media")
	picture := site.File("a.gif", sample.GIF(t))
	upload := func(path string, parts ...site.Part) *site.Reply {
		return s.Do(t, http.MethodPost, path, site.Merged(s.Credentials(t), site.FormType), site.Form(parts...))
	}
	upload("/api/upload/image", picture, site.Field("alias", "news")).One(t)
	upload("/api/upload/image?alias=news", picture).One(t)
	before := len(site.Files(t, s.Root))
	for name, r := range map[string]*site.Reply{
		"alias after the file":  upload("/api/upload/image", picture, site.Field("alias", "content")),
		"alias before the file": upload("/api/upload/image", site.Field("alias", "content"), picture),
		"no alias":              upload("/api/upload/image", picture),
		"query":                 upload("/api/upload/image?alias=content", picture),
		"body over query":       upload("/api/upload/image?alias=news", picture, site.Field("alias", "content")),
		"other kind":            upload("/api/upload/file", site.File("a.txt", "x")),
	} {
		t.Run(name, func(t *testing.T) { r.Failures(t, http.StatusForbidden) })
	}
	if after := len(site.Files(t, s.Root)); after != before {
		t.Errorf("%d files are stored, want %d", after, before)
	}
}

// TestAccountRemoved: removing or changing an account in the configuration revokes its tokens.
func TestAccountRemoved(t *testing.T) {
	const sites = site.LocalDefault + "image_alias content\n"
	// The hash of another password.
	const changed = "account " + site.APIKey + " $2a$04$2BeK4uKx1Z2KxN8dyfHMh.Wn7o4iaIkECOf5IAYZbQLnNw/QwpRlu\n"
	only := strings.TrimPrefix(site.TwoAccounts, site.Account)
	for name, after := range map[string]string{"removed": only, "changed": only + changed} {
		t.Run(name, func(t *testing.T) {
			s := site.Start(t, site.TwoAccounts+sites, "media")
			header, others := s.Credentials(t), site.AuthHeader(site.OtherKey, s.Token(t, site.OtherKey))
			upload := func(header http.Header) *site.Reply {
				return s.Do(t, http.MethodPost, "/api/upload/image", site.Merged(header, site.FormType), site.Form(site.File("a.gif", sample.GIF(t))))
			}
			upload(header).One(t)
			s.Load(t, site.Config{Media: after + sites, Site: "media"})
			upload(header).Failures(t, http.StatusUnauthorized)
			upload(others).One(t)
			if r := s.Login(t, site.APIKey, site.Password); name == "removed" && r.Status != http.StatusUnauthorized {
				t.Errorf("login with the removed account: %d %s", r.Status, r.Body)
			}
			s.Load(t, site.Config{Media: site.TwoAccounts + sites, Site: "media"})
			upload(s.Credentials(t)).One(t)
		})
	}
}

// TestNoAccounts: without accounts all logins are refused.
func TestNoAccounts(t *testing.T) {
	s := site.Start(t, site.LocalDefault, "media")
	if r := s.Login(t, site.APIKey, site.Password); r.Status != http.StatusUnauthorized {
		t.Errorf("login: %d %s", r.Status, r.Body)
	}
	header := site.Merged(site.AuthHeader(site.APIKey, strings.Repeat("A", 43)), site.FormType)
	s.Do(t, http.MethodPost, "/api/upload/image", header, site.Form(site.File("a.gif", sample.GIF(t)))).Failures(t, http.StatusUnauthorized)
	s.WantNothing(t)
}

// TestTokenExpires: an expired token is refused.
func TestTokenExpires(t *testing.T) {
	s := site.Start(t, site.Basic+"token_lifetime 3s", "media")
	header := site.Merged(s.Credentials(t), site.FormType)
	body := site.Form(site.File("a.gif", sample.GIF(t)))
	s.Do(t, http.MethodPost, "/api/upload/image", header, body).One(t)
	site.Eventually(t, "the token expires", func() bool {
		return s.Do(t, http.MethodPost, "/api/upload/image", header, body).Status == http.StatusUnauthorized
	})
}
