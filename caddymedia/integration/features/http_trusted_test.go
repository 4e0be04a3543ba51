package features_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// members is the account of the users of a login, before its trust.
const members = site.LocalDefault + "image_alias content\nfile_alias content\nfile_alias notes {\nstorage replacing\n}\n" +
	"storage replacing {\ndriver local $ROOT/replacing\noverwrite_strategy overwrite\n}\naccount members {\n" +
	"may upload list delete move copy replace sign\nsub_folder users/{http.auth.user.id}\n"

// passwords is a log in with basic_auth, as in the recipe.
const passwords = "basic_auth /api/* argon2id {\nalice " + site.CheapHash + "\nbob " + site.CheapHash + "\n}\nmedia"

func basicAuth(user string) http.Header {
	return site.Headers("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(user+":"+site.Password)))
}

// TestUsersOfBasicAuth: two users of basic_auth have nothing to do with each other.
func TestUsersOfBasicAuth(t *testing.T) {
	s := site.Start(t, members+"trust {http.auth.user.id}\n}\n", passwords)
	twoUsers(t, s, basicAuth("alice"), basicAuth("bob"))
	if r := s.Get(t, "/api/items/file/content"); r.Status != http.StatusUnauthorized {
		t.Errorf("nobody: %d %s", r.Status, r.Body)
	}
	if lines := s.Logged(t); strings.Contains(lines, "a header names the users") {
		t.Error("the log warns about a header")
	}
}

// TestUsersOfForwardAuth: the same with an identity provider, which knows users by a cookie. Neither a
// client's own header nor a failed login makes a user.
func TestUsersOfForwardAuth(t *testing.T) {
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		session, err := r.Cookie("session")
		if err != nil {
			http.Redirect(w, r, "https://login.example/", http.StatusFound)
			return
		}
		if session.Value != "unnamed" {
			w.Header().Set("Remote-User", session.Value)
		}
	}))
	t.Cleanup(provider.Close)
	s := site.Start(t, members+"trust_header Remote-User\n}\n", "forward_auth /api/* "+provider.URL+" {\nuri /verify\ncopy_headers Remote-User\n}\nmedia")
	login := func(user string) http.Header {
		return site.Headers("Cookie", "session="+user, "Sec-Fetch-Site", "same-origin", "Remote-User", "mallory")
	}
	twoUsers(t, s, login("alice"), login("bob"))
	if r := s.Get(t, "/api/items/file/content", "Remote-User", "alice"); r.Status != http.StatusFound {
		t.Errorf("nobody: %d %s", r.Status, r.Body)
	}
	if r := s.Get(t, "/api/items/file/content", "Remote-User", "alice", "Cookie", "session=unnamed"); r.Status != http.StatusUnauthorized {
		t.Errorf("a login without a name: %d %s", r.Status, r.Body)
	}
	other := login("alice")
	other["Sec-Fetch-Site"] = []string{"cross-site"}
	if r := s.Do(t, http.MethodPost, "/api/upload/file", site.Merged(other, site.FormType), site.Form(site.File("x.txt", "x"))); r.Status != http.StatusForbidden {
		t.Errorf("another site: %d %s", r.Status, r.Body)
	}
	if lines := s.Logged(t); strings.Count(lines, "a header names the users") != 1 {
		t.Error("the log does not warn about the header once")
	}
}

// twoUsers checks that bob can do nothing with what alice has, and the other way round.
func twoUsers(t *testing.T, s *site.Site, alice, bob http.Header) {
	t.Helper()
	send := func(as http.Header, method, path string, status int, body string, header ...string) *site.Reply {
		t.Helper()
		r := s.Do(t, method, path, site.Merged(as, site.Headers(header...)), body)
		if r.Status != status {
			t.Errorf("%s %s: %d, want %d: %.300s", method, path, r.Status, status, r.Body)
		}
		return r
	}
	post := func(as http.Header, path string, status int, body string) {
		t.Helper()
		send(as, http.MethodPost, path, status, body, "Content-Type", "application/x-www-form-urlencoded")
	}
	for user, as := range map[string]http.Header{"alice": alice, "bob": bob} {
		for path, file := range map[string]site.Part{
			"/api/upload/image": site.File("a.gif", sample.GIF(t)), "/api/upload/file": site.File("a.txt", user), "/api/upload/file?alias=notes": site.File("a.txt", user),
		} {
			r := s.Do(t, http.MethodPost, path, site.Merged(as, site.FormType), site.Form(file))
			if got := r.One(t).Filename; !strings.HasPrefix(got, "users/"+user+"/a.") {
				t.Errorf("%s stores %s", user, got)
			}
		}
	}
	tus := []string{"Tus-Resumable", "1.0.0"}
	created := send(alice, http.MethodPost, "/api/upload/file/resumable", http.StatusCreated, "",
		append(tus, "Upload-Length", "4", "Upload-Metadata", "filename "+base64.StdEncoding.EncodeToString([]byte("b.txt")))...)
	upload := created.Header.Get("Location")
	send(bob, http.MethodHead, upload, http.StatusNotFound, "", tus...)
	send(bob, http.MethodPatch, upload, http.StatusNotFound, "text", append(tus, "Upload-Offset", "0", "Content-Type", "application/offset+octet-stream")...)
	send(bob, http.MethodDelete, upload, http.StatusNotFound, "", tus...)
	send(alice, http.MethodPatch, upload, http.StatusNoContent, "text", append(tus, "Upload-Offset", "0", "Content-Type", "application/offset+octet-stream")...)

	const list, notes = "/api/items/file/content", "/api/items/file/notes"
	const his, hers = "users/bob/a.txt", "users/alice/a.txt"
	send(bob, http.MethodGet, list+"/"+hers, http.StatusNotFound, "")
	send(bob, http.MethodGet, list+"?folder=users/alice", http.StatusNotFound, "")
	send(bob, http.MethodDelete, list+"/"+hers, http.StatusNotFound, "")
	send(bob, http.MethodPut, notes+"/"+hers, http.StatusNotFound, "x", "If-Match", "*")
	post(bob, list+"/"+hers, http.StatusNotFound, "to=users/bob/x.txt")
	post(bob, list+"/"+hers, http.StatusNotFound, "copy_to=users/bob/x.txt")
	post(bob, list+"/"+his, http.StatusNotFound, "to=users/alice/x.txt")
	post(bob, list, http.StatusOK, "action=delete&filename="+hers)
	post(bob, list, http.StatusNotFound, "action=delete&folder=users/alice")
	post(bob, notes, http.StatusOK, "action=delete&folder=&everything=yes")
	post(bob, "/api/auth/ticket", http.StatusForbidden, "kind=file")
	for _, query := range []string{"?recursive=1", "?search=a", "?order=-modified&recursive=1"} {
		var listed struct{ Result []struct{ Filename string } }
		r := send(bob, http.MethodGet, list+query, http.StatusOK, "")
		if err := json.Unmarshal([]byte(r.Body), &listed); err != nil || len(listed.Result) != 1 || listed.Result[0].Filename != his {
			t.Errorf("%s: %s", query, r.Body)
		}
	}
	stored := []string{"file/content/users/alice/a.txt", "file/content/users/alice/b.txt", "file/content/users/bob/a.txt", "replacing/file/notes/users/alice/a.txt"}
	var found []string
	for _, name := range stored {
		if matches, _ := filepath.Glob(filepath.Join(s.Root, name)); len(matches) == 1 {
			found = append(found, name)
		}
	}
	if !slices.Equal(found, stored) {
		t.Errorf("%q are stored, want %q", found, stored)
	}
	if lines := s.Logged(t); !strings.Contains(lines, `"account":"members","user":"alice"`) || !strings.Contains(lines, `"account":"members","user":"bob"`) {
		t.Error("the audit lines do not name the users")
	}
}
