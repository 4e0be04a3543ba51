package http_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

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

// TestNoAccountIsLogged: a site on which no client can log in says so at its start.
func TestNoAccountIsLogged(t *testing.T) {
	s := site.Start(t, site.LocalDefault, "media")
	s.WaitForLog(t, "no account: no client can upload")
	s.Load(t, site.Config{Media: site.Basic, Site: "media"})
	if n := strings.Count(s.Logged(t), "no account"); n != 1 {
		t.Errorf("it is logged %d times", n)
	}
}
