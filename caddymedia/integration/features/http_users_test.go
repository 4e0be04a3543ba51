package features_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// logFilter is the one of Caddyfile.example, as TestExampleIsTidy checks.
const logFilter = `format filter {
	request>headers>Http_service_api_key delete
	request>headers>Http_service_access_token delete
	request>headers>Service-Api-Key delete
	request>headers>Service-Access-Token delete
	request>headers>Authorization delete
	request>uri query {
		delete signature
		delete X-Amz-Signature
		delete X-Amz-Security-Token
	}
	request>headers>Referer query {
		delete signature
		delete X-Amz-Signature
		delete X-Amz-Security-Token
	}
	uri query {
		delete signature
		delete X-Amz-Signature
		delete X-Amz-Security-Token
	}
	resp_headers>Location delete
}
`

// TestLogsHaveNoSecrets: with the filter of Caddyfile.example no log, not even the debug log,
// contains a password, a token or the signature of an address, also of S3. Keys appear only in
// records of changes of items.
func TestLogsHaveNoSecrets(t *testing.T) {
	for name, drop := range map[string]bool{"option set": false, "option missing": true} {
		t.Run(name, func(t *testing.T) {
			s := site.StartConfig(t, site.Config{
				Media: site.Basic, Site: "log\nrewrite /old* /new?{query}\nroute /broken {\nerror 500\n}\nredir /moved* https://bucket.example/?{query} 302\nroute /file-content/* {\nmedia_s3\n}\nmedia", Log: logFilter, DropUnderscores: drop,
			})
			token := s.Token(t, site.APIKey)
			const wrong, signature, session = "wrong-guess-of-a-password", "signature-of-an-address", "token-of-a-session"
			address := strings.Repeat("5ec2e7", 10) + "5ec2"
			s.Login(t, site.APIKey, wrong)
			s.Login(t, "unknown-key-of-nobody", wrong)
			presigned := "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=shop%2F20261128%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20261128T040506Z" +
				"&X-Amz-Expires=600&X-Amz-SignedHeaders=host&X-Amz-Signature=" + address + "&X-Amz-Security-Token=" + session
			referer := site.Headers("Referer", s.URL+"/static/file/content/a.pdf?expires=1&signature="+signature+"&"+presigned)
			spellings := []http.Header{
				site.AuthHeader(site.APIKey, token),
				site.Headers("http_service_api_key", site.APIKey, "http_service_access_token", token),
				site.Headers("Service-Api-Key", site.APIKey, "Service-Access-Token", token),
				site.Headers("Authorization", "Bearer "+token),
				site.Merged(site.AuthHeader(site.APIKey, token), site.AuthHeader(site.APIKey, token)),
				site.Merged(site.AuthHeader(site.APIKey, token), site.Headers("Service-Access-Token", "x"+token)),
			}
			for _, header := range spellings {
				for _, request := range []struct{ method, path, body string }{
					{http.MethodPost, "/api/upload/image", site.Form(site.File("a.gif", sample.GIF(t)))},
					{http.MethodPost, "/api/upload/image", site.Form(site.File("a.gif", "no image"))},
					{http.MethodPost, "/api/upload/image", site.Form()},
					{http.MethodGet, "/static/img/content/none.gif", ""},
					{http.MethodGet, "/static/file/content/none.txt?expires=1&signature=" + signature + "&v=1", ""},
					{http.MethodGet, "/broken?signature=" + signature, ""},
					{http.MethodGet, "/old?signature=" + signature, ""},
					{http.MethodGet, "/moved?signature=" + signature, ""},
					{http.MethodPut, "/file-content/a.txt?" + presigned, "x"},
					{http.MethodGet, "/file-content/a.txt?x=1&X%2dAmz%2DSignature=" + address, ""},
					{http.MethodGet, "/broken?" + presigned, ""},
					{http.MethodGet, "/old?" + presigned, ""},
					{http.MethodGet, "/moved?" + presigned, ""},
				} {
					s.Do(t, request.method, request.path, site.Merged(header, site.FormType, referer), request.body)
				}
			}
			s.Get(t, "/last-request")
			s.WaitForLog(t, "/last-request")
			log := s.Logged(t)
			if !strings.Contains(log, `"logger":"http.log.access`) || !strings.Contains(log, `"logger":"http.log.error`) {
				t.Fatalf("the log lacks accesses or errors:\n%s", log)
			}
			for line := range strings.Lines(log) {
				for _, secret := range []string{token, site.Password, wrong, site.CheapHash, signature, address, session} {
					if strings.Contains(line, secret) {
						t.Errorf("%q is logged: %s", secret, line)
					}
				}
				if namesKey(line, site.APIKey) {
					t.Errorf("the key is logged: %s", line)
				}
			}
		})
	}
}

// namesKey reports whether a line of the log has an API key, except in the audit log and in events,
// which name the actor.
func namesKey(line, key string) bool {
	if strings.Contains(line, `"logger":"media.audit"`) || strings.Contains(line, `"logger":"events"`) {
		line = strings.Replace(line, `"account":"`+key+`"`, "", 1)
	}
	return strings.Contains(line, `"`+key+`"`) || strings.Contains(line, `[`+key)
}

// TestExampleIsTidy: Caddyfile.example adapts without a warning and is formatted by `caddy fmt`.
// Its log filter is the one tested for secrets.
func TestExampleIsTidy(t *testing.T) {
	example := site.ExampleCaddyfile(t)
	_, warnings, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(example), map[string]any{"filename": "Caddyfile.example"})
	if err != nil || len(warnings) != 0 {
		t.Errorf("adapting: %v, warnings %v", err, warnings)
	}
	if got := string(caddyfile.Format([]byte(example))); got != example {
		t.Errorf("caddy fmt makes of it:\n%s", got)
	}
	if !strings.Contains(strings.Join(strings.Fields(example), " "), strings.Join(strings.Fields(logFilter), " ")) {
		t.Errorf("its log filter is not:\n%s", logFilter)
	}
}

// TestExampleRuns runs Caddyfile.example, unchanged except for the port, and follows the first
// steps of a new user.
func TestExampleRuns(t *testing.T) {
	s, output := site.RunExample(t, "off")
	r := s.Login(t, "try-out", "only for trying out")
	var answer struct {
		Success   bool   `json:"success"`
		Token     string `json:"token"`
		ExpiresAt int64  `json:"expires_at"`
	}
	r.Decode(t, &answer)
	if !answer.Success {
		t.Fatalf("no token: %d %s", r.Status, r.Body)
	}
	if in := time.Until(time.Unix(answer.ExpiresAt, 0)); in < 23*time.Hour || in > 25*time.Hour {
		t.Errorf("the token expires in %v, want 24h", in)
	}
	header := site.Merged(site.AuthHeader("try-out", answer.Token), site.FormType)
	img, before := sample.JPEG(t, 30, 20), time.Now().Format("06-01/02")
	image := s.Do(t, http.MethodPost, "/api/upload/image", header, site.Form(site.File("Test Filename ěščř.JPG", img), site.Field("alias", "content"))).One(t)
	document := s.Do(t, http.MethodPost, "/api/upload/file", header, site.Form(site.File("Manual.pdf", sample.PDF), site.Field("sub_folder", "manuals"))).One(t)
	folder, _, _ := strings.Cut(image.Filename, "/test-filename")
	if folder != before && folder != time.Now().Format("06-01/02") {
		t.Errorf("it is stored in %s", folder)
	}
	for got, want := range map[string]string{
		image.FullPath: s.URL + "/static/img/content/" + folder + "/test-filename-escr.jpg", document.FullPath: s.URL + "/static/file/content/manuals/manual.pdf",
		s.Fetch(t, image.FullPath).Body: img, s.Fetch(t, document.FullPath).Body: sample.PDF,
	} {
		if got != want {
			t.Errorf("got %.200q, want %.200q", got, want)
		}
	}
	if r := s.Get(t, "/"); r.Status != http.StatusNotFound || !strings.Contains(r.Body, site.TokenPath) {
		t.Errorf("elsewhere: %d %q", r.Status, r.Body)
	}
	s.Do(t, http.MethodPost, "/api/upload/file", header, site.Form(site.File("x.php", "x"))).Failures(t, http.StatusUnsupportedMediaType)
	log := output()
	if !strings.Contains(log, "http.log.access") || strings.Contains(log, answer.Token) {
		t.Errorf("the log lacks accesses, or has the token:\n%s", log)
	}
	const public = `"accounts":["try-out"],"panel_users":["admin"]`
	if n := strings.Count(log, public); n != 1 {
		t.Errorf("%d warnings of the public password:\n%s", n, log)
	}
	for line := range strings.Lines(strings.ReplaceAll(log, public, "")) {
		if namesKey(line, "try-out") {
			t.Errorf("the key is logged: %s", line)
		}
	}
	// The folders of the user have only the ID that each Caddy makes for itself.
	home := filepath.Dir(filepath.Dir(s.Root))
	for _, name := range site.FilesBelow(t, home) {
		if !strings.HasPrefix(name, "media-data/") && name != "Caddyfile" && name != "data/caddy/instance.uuid" {
			t.Errorf("it wrote %s", name)
		}
	}
}

// members is the account of the users of a login, before its trust.
const members = site.LocalDefault + "file_alias content\nfile_alias notes {\nstorage replacing\n}\n" +
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

// TestUsersOfForwardAuth: the same with an identity provider, which knows users by a cookie.
// Neither a client's own header nor a failed login makes a user.
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

// twoUsers checks that bob can do nothing with what alice has.
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
	for user, as := range map[string]http.Header{"alice": alice, "bob": bob} {
		for _, path := range []string{"/api/upload/file", "/api/upload/file?alias=notes"} {
			r := s.Do(t, http.MethodPost, path, site.Merged(as, site.FormType), site.Form(site.File("a.txt", user)))
			if got := r.One(t).Filename; got != "users/"+user+"/a.txt" {
				t.Errorf("%s stores %s", user, got)
			}
		}
	}
	created := send(alice, http.MethodPost, "/api/upload/file/resumable", http.StatusCreated, "",
		tus("Upload-Length", "4", "Upload-Metadata", "filename "+base64.StdEncoding.EncodeToString([]byte("b.txt")))...)
	upload, patch := created.Header.Get("Location"), tus("Upload-Offset", "0", "Content-Type", "application/offset+octet-stream")
	send(bob, http.MethodPatch, upload, http.StatusNotFound, "text", patch...)
	send(alice, http.MethodPatch, upload, http.StatusNoContent, "text", patch...)

	const list, notes, hers = "/api/items/file/content", "/api/items/file/notes", "users/alice/a.txt"
	send(bob, http.MethodGet, list+"/"+hers, http.StatusNotFound, "")
	send(bob, http.MethodDelete, list+"/"+hers, http.StatusNotFound, "")
	send(bob, http.MethodPut, notes+"/"+hers, http.StatusNotFound, "x", "If-Match", "*")
	send(bob, http.MethodPost, notes, http.StatusOK, "action=delete&folder=&everything=yes", "Content-Type", "application/x-www-form-urlencoded")
	send(bob, http.MethodPost, "/api/auth/ticket", http.StatusForbidden, "kind=file", "Content-Type", "application/x-www-form-urlencoded")
	var listed struct{ Result []struct{ Filename string } }
	r := send(bob, http.MethodGet, list+"?recursive=1", http.StatusOK, "")
	if err := json.Unmarshal([]byte(r.Body), &listed); err != nil || len(listed.Result) != 1 || listed.Result[0].Filename != "users/bob/a.txt" {
		t.Errorf("bob sees %s", r.Body)
	}
	for _, name := range []string{"file/content/users/alice/a.txt", "file/content/users/alice/b.txt", "file/content/users/bob/a.txt", "replacing/file/notes/users/alice/a.txt"} {
		if !site.Exists(filepath.Join(s.Root, name)) {
			t.Errorf("%s is not stored", name)
		}
	}
	if lines := s.Logged(t); !strings.Contains(lines, `"account":"members","user":"alice"`) || !strings.Contains(lines, `"account":"members","user":"bob"`) {
		t.Error("the audit lines do not name the users")
	}
}

// TestForgedAddress: a client that forges X-Forwarded-For gets no additional attempts. Behind a
// proxy that Caddy trusts, each client has its own.
func TestForgedAddress(t *testing.T) {
	media := site.Basic + "limits {\nlogin_failures 3\n}\n"
	forged := func(i int) []string {
		return []string{
			"X-Forwarded-For", fmt.Sprintf("10.0.0.%d", i), "X-Real-Ip", fmt.Sprintf("10.0.1.%d", i),
			"Forwarded", fmt.Sprintf("for=10.0.2.%d", i), "True-Client-Ip", fmt.Sprintf("10.0.3.%d", i), "Cf-Connecting-Ip", fmt.Sprintf("10.0.4.%d", i),
		}
	}
	s := site.Start(t, media, "media")
	for i := range 6 {
		want := http.StatusUnauthorized
		if i >= 3 {
			want = http.StatusTooManyRequests
		}
		if r := s.Login(t, fmt.Sprint("nobody-", i), "x", forged(i)...); r.Status != want {
			t.Errorf("guess %d: %d, want %d", i, r.Status, want)
		}
	}
	proxied := site.StartConfig(t, site.Config{
		Media: strings.Replace(media, "failures 3", "failures 4", 1), Site: "media", Servers: "trusted_proxies static 127.0.0.1\ntrusted_proxies_strict",
	})
	for i := range 12 {
		client := fmt.Sprintf("192.0.2.%d", i%2)
		want := http.StatusUnauthorized
		if i >= 8 {
			want = http.StatusTooManyRequests
		}
		// The proxy appends the address of the client to the forged value.
		if r := proxied.Login(t, fmt.Sprint("nobody-", i), "x", "X-Forwarded-For", fmt.Sprintf("10.0.0.%d, %s", i, client)); r.Status != want {
			t.Errorf("guess %d of %s: %d, want %d", i/2, client, r.Status, want)
		}
	}
	if r := proxied.Login(t, site.APIKey, site.Password, "X-Forwarded-For", "192.0.2.9"); r.Status != http.StatusOK {
		t.Errorf("another client: %d", r.Status)
	}
}
