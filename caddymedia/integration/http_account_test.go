package integration

import (
	"net/http"
	"strings"
	"testing"
)

// TestAccountOfSomeAliases: other aliases are forbidden, also if the form names them after the
// file. Nothing of the file is stored.
func TestAccountOfSomeAliases(t *testing.T) {
	limited := "account " + apiKey + " " + cheapHash + " {\naliases news\n}\n"
	s := startSite(t, limited+localDefault+"image_alias content\nimage_alias news\nfile_alias content", "media")
	picture := file("a.gif", gifOf(t))
	upload := func(path string, parts ...formPart) *reply {
		return s.do(t, http.MethodPost, path, merged(s.credentials(t), formType), form(parts...))
	}
	upload("/api/upload/image", picture, field("alias", "news")).one(t)
	upload("/api/upload/image?alias=news", picture).one(t)
	before := len(files(t, s.root))
	for name, r := range map[string]*reply{
		"alias after the file":  upload("/api/upload/image", picture, field("alias", "content")),
		"alias before the file": upload("/api/upload/image", field("alias", "content"), picture),
		"no alias":              upload("/api/upload/image", picture),
		"query":                 upload("/api/upload/image?alias=content", picture),
		"body over query":       upload("/api/upload/image?alias=news", picture, field("alias", "content")),
		"other kind":            upload("/api/upload/file", file("a.txt", "x")),
	} {
		t.Run(name, func(t *testing.T) { r.failures(t, http.StatusForbidden) })
	}
	if after := len(files(t, s.root)); after != before {
		t.Errorf("%d files are stored, want %d", after, before)
	}
}

// TestAccountRemoved: removing or changing an account in the configuration revokes its tokens.
func TestAccountRemoved(t *testing.T) {
	const sites = localDefault + "image_alias content\n"
	// The hash of another password.
	const changed = "account " + apiKey + " $2a$04$2BeK4uKx1Z2KxN8dyfHMh.Wn7o4iaIkECOf5IAYZbQLnNw/QwpRlu\n"
	only := strings.TrimPrefix(twoAccount, account)
	for name, after := range map[string]string{"removed": only, "changed": only + changed} {
		t.Run(name, func(t *testing.T) {
			s := startSite(t, twoAccount+sites, "media")
			header, others := s.credentials(t), documented(otherKey, s.token(t, otherKey))
			upload := func(header http.Header) *reply {
				return s.do(t, http.MethodPost, "/api/upload/image", merged(header, formType), form(file("a.gif", gifOf(t))))
			}
			upload(header).one(t)
			s.load(t, siteConfig{Media: after + sites, Site: "media"})
			upload(header).failures(t, http.StatusUnauthorized)
			upload(others).one(t)
			if r := s.login(t, apiKey, password); name == "removed" && r.status != http.StatusUnauthorized {
				t.Errorf("login with the removed account: %d %s", r.status, r.body)
			}
			s.load(t, siteConfig{Media: twoAccount + sites, Site: "media"})
			upload(s.credentials(t)).one(t)
		})
	}
}

// TestNoAccounts: without accounts all logins are refused.
func TestNoAccounts(t *testing.T) {
	s := startSite(t, localDefault, "media")
	if r := s.login(t, apiKey, password); r.status != http.StatusUnauthorized {
		t.Errorf("login: %d %s", r.status, r.body)
	}
	header := merged(documented(apiKey, strings.Repeat("A", 43)), formType)
	s.do(t, http.MethodPost, "/api/upload/image", header, form(file("a.gif", gifOf(t)))).failures(t, http.StatusUnauthorized)
	s.wantNothing(t)
}

// TestTokenExpires: an expired token is refused.
func TestTokenExpires(t *testing.T) {
	s := startSite(t, basic+"token_lifetime 3s", "media")
	header := merged(s.credentials(t), formType)
	body := form(file("a.gif", gifOf(t)))
	s.do(t, http.MethodPost, "/api/upload/image", header, body).one(t)
	eventually(t, "the token expires", func() bool {
		return s.do(t, http.MethodPost, "/api/upload/image", header, body).status == http.StatusUnauthorized
	})
}
