package features_test

import (
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/caddymedia/internal/test/testcaddy"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// TestPanelEditsFromNothing: without configuration, the implied defaults and their items stay when
// entries are added.
func TestPanelEditsFromNothing(t *testing.T) {
	p := site.StartPanel(t, site.Account)
	stored := p.UploadFile(t, site.File("first.txt", "the first")).One(t)
	for _, route := range []string{"storages/default", "image_aliases/content", "file_aliases/content"} {
		if e := p.Entry(t, route); !e.Implicit {
			t.Errorf("%s: %+v, want an implicit one", route, e)
		}
	}
	folder := filepath.Join(p.Root, "archive")
	p.Put(t, http.StatusCreated, "storages/archive", site.LocalStorage(folder))
	p.Put(t, http.StatusCreated, "image_aliases/photos", `{"value":{"storage":"archive","webp":{"quality":70},"max_size":9007199254740991}}`)
	p.Put(t, http.StatusCreated, "file_aliases/reports", `{"value":{"storage":"archive","extensions":["txt"]}}`)
	p.Put(t, http.StatusCreated, "accounts/two", `{"value":{"aliases":["reports"]},"new_password":true}`)
	for _, route := range []string{"storages/default", "image_aliases/content", "file_aliases/content"} {
		if e := p.Entry(t, route); e.Implicit {
			t.Errorf("%s is implicit", route)
		}
	}
	if r := p.Fetch(t, stored.FullPath); r.Body != "the first" {
		t.Errorf("the first item: %d %q", r.Status, r.Body)
	}
	p.UploadFile(t, site.Field("alias", "reports"), site.Field("sub_folder", "/"), site.File("a.txt", "x")).One(t)
	if got := site.Files(t, folder); len(got) != 1 {
		t.Errorf("the new storage has %d files, want 1", len(got))
	}
	if got := p.Entry(t, "image_aliases/photos").Value["max_size"]; got != float64(9007199254740991) {
		t.Errorf("max_size %v", got)
	}
	for _, route := range []string{"accounts/two", "image_aliases/photos", "file_aliases/reports", "storages/archive"} {
		p.Remove(t, http.StatusNoContent, route)
		p.Must(t, http.StatusNotFound, http.MethodGet, "config/"+route, nil)
	}
	if r := p.Fetch(t, stored.FullPath); r.Body != "the first" {
		t.Errorf("the first item at the end: %d %q", r.Status, r.Body)
	}
}

// TestPanelWithoutMedia: the panel works if the configuration does not have the media app.
func TestPanelWithoutMedia(t *testing.T) {
	p := site.StartPanel(t, "")
	if !strings.Contains(p.Running(t), "tokens") {
		t.Fatalf("the configuration is %s", p.Running(t))
	}
	address := strings.Fields(p.Admin)[1]
	r, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, "http://"+address+"/config/apps/media", nil)
	if err != nil {
		t.Fatal(err)
	}
	if answer := p.Send(t, site.AdminClient, r); answer.Status != http.StatusOK {
		t.Fatalf("%d %s", answer.Status, answer.Body)
	}
	p.AwaitSwitch(t)
	p.Put(t, http.StatusCreated, "storages/archive", site.LocalStorage(p.Root))
	if got := p.Running(t); !strings.Contains(got, `"archive"`) || !strings.Contains(got, `"default"`) {
		t.Errorf("the configuration is %s", got)
	}
}

// TestPanelStaleEdit: the second of two concurrent edits of an entry is refused, and its answer has
// the current state.
func TestPanelStaleEdit(t *testing.T) {
	p := site.StartPanel(t, site.Basic)
	const route = "config/file_aliases/shared"
	p.Put(t, http.StatusCreated, "file_aliases/shared", `{"value":{"prefix":"one"}}`)
	first := p.Entry(t, "file_aliases/shared").Tag
	now := p.Must(t, http.StatusOK, http.MethodPut, route, `{"value":{"prefix":"two"}}`, "If-Match", first).Header.Get("Etag")
	for _, r := range []*site.Reply{
		p.Must(t, http.StatusPreconditionFailed, http.MethodPut, route, `{"value":{"prefix":"three"}}`, "If-Match", first),
		p.Must(t, http.StatusPreconditionFailed, http.MethodPut, route, `{"value":{"prefix":"three"}}`, "If-None-Match", "*"),
		p.Must(t, http.StatusPreconditionFailed, http.MethodDelete, route, nil, "If-Match", first),
	} {
		var answer struct {
			Error   string
			Current site.Entry
		}
		if err := json.Unmarshal([]byte(r.Body), &answer); err != nil || answer.Error == "" || answer.Current.Value["prefix"] != "two" || r.Header.Get("Etag") != now {
			t.Errorf("%s with the tag %s", r.Body, r.Header.Get("Etag"))
		}
	}
	p.Must(t, http.StatusPreconditionRequired, http.MethodPut, route, `{"value":{}}`)
	p.Must(t, http.StatusPreconditionRequired, http.MethodDelete, route, nil)
	p.Must(t, http.StatusNotFound, http.MethodPut, "config/file_aliases/gone", `{"value":{}}`, "If-Match", now)
	p.Must(t, http.StatusNotFound, http.MethodDelete, "config/file_aliases/gone", nil, "If-Match", now)
	// Changes elsewhere do not conflict, and the tag is that of the first change.
	p.Put(t, http.StatusCreated, "file_aliases/other", `{"value":{"prefix":"other"}}`)
	p.Must(t, http.StatusNoContent, http.MethodDelete, route, nil, "If-Match", now)
}

// TestPanelBrokenEdit: the reason of a refusal by Caddy is reported. The old configuration
// continues to serve, including an upload in progress.
func TestPanelBrokenEdit(t *testing.T) {
	p := site.StartPanel(t, site.Basic)
	before := p.Running(t)
	content := strings.Repeat("x", 1<<20)
	body, head := site.Form(site.File("flight.txt", content)), make(chan struct{})
	reader, writer := io.Pipe()
	go func() {
		io.WriteString(writer, body[:len(body)/2])
		<-head
		io.WriteString(writer, body[len(body)/2:])
		writer.Close()
	}()
	flight := p.Request(t, http.MethodPost, "/api/upload/file", site.Merged(p.Credentials(t), site.FormType), reader)
	client := &http.Client{Transport: new(http.Transport)}
	defer client.CloseIdleConnections()
	landed := make(chan *site.Reply, 1)
	go func() { landed <- p.Send(t, client, flight) }()

	for _, c := range []struct{ route, body, want, option string }{
		{"storages/x", `{"value":{}}`, "driver", "driver.name"},
		{"storages/x", `{"value":{"driver":{"name":"none"}}}`, "none", "driver.name"},
		{"storages/x", `{"value":{"driver":{"name":"local"}}}`, "root", "driver.root"},
		{"storages/x", `{"value":{"driver":{"name":"local","root":"{env.MEDIA_NOT_SET}"}}}`, "root", "driver.root"},
		{"storages/x", `{"value":{"driver":{"name":"local","root":"/x"},"sub_folder_format":"../%Y"}}`, "sub_folder_format", "sub_folder_format"},
		{"storages/x", `{"value":{"driver":{"name":"ftp","timeout":"10"}}}`, "such as 30s", "driver.timeout"},
		{"storages/x", `{"value":{"driver":{"name":"s3","bucket":"b","region":"r","access_key_id":"x"}}}`, `storage "x": access_key_id and`, "driver.access_key_id"},
		{"image_aliases/x", `{"value":{"storage":"none"}}`, `no storage "none"`, "storage"},
		{"image_aliases/x", `{"value":{"prefix":"/"}}`, `prefix "/" overlaps`, "prefix"},
		{"image_aliases/x", `{"value":{"max_size":"32 MiB"}}`, "whole number of bytes", "max_size"},
		{"image_aliases/x", `{"value":{"webp":{"quality":101}}}`, "1 to 100", "webp.quality"},
		{"image_aliases/x", `{"value":{"renditions":{"a":{}}}}`, "width or height is missing", "renditions.a.width"},
		{"image_aliases/x", `{"value":{"renditions":{"A":{"width":5}}}}`, "a-z", "renditions.A"},
		{"image_aliases/x", `{"value":{"prefix":"/","renditions":{"a":{"width":5}}}}`, "prefix other than /", "renditions"},
		{"file_aliases/x", `{"value":{"extensions":["php"]}}`, "php", "extensions"},
		{"accounts/x", `{"value":{"aliases":["none"]},"new_password":true}`, "none", "aliases"},
		{"accounts/x", `{"new_password":true}`, "value", ""},
		{"accounts/x", `{"value":{}}`, "password_hash", "password_hash"},
		{"accounts/a%20b", `{"value":{},"new_password":true}`, "API key", ""},
		{"storages/UP", `{"value":{"driver":{"name":"local","root":"/x"}}}`, "name", ""},
		{"file_aliases/x", `{"value":{},"new_password":true}`, "password", ""},
		{"file_aliases/x", `{"value":`, "JSON", ""},
	} {
		r := p.Must(t, http.StatusBadRequest, http.MethodPut, "config/"+c.route, c.body, "If-None-Match", "*")
		var answer struct{ Error, Option string }
		r.Decode(t, &answer)
		if !strings.Contains(answer.Error, c.want) || answer.Option != c.option || strings.Contains(answer.Error, "provision") {
			t.Errorf("%s %s: %+v, want %q for %q", c.route, c.body, answer, c.want, c.option)
		}
	}
	p.Must(t, http.StatusNotFound, http.MethodPut, "config/limits/x", `{"value":{}}`, "If-None-Match", "*")
	p.Must(t, http.StatusMethodNotAllowed, http.MethodPost, "config/storages/x", `{"value":{}}`)
	p.Must(t, http.StatusRequestEntityTooLarge, http.MethodPut, "config/file_aliases/x",
		`{"value":{"prefix":"`+strings.Repeat("x", 1<<20)+`"}}`, "If-None-Match", "*")
	if after := p.Running(t); after != before {
		t.Errorf("the configuration was changed to %s", after)
	}
	p.UploadFile(t, site.File("beside.txt", "x")).One(t)

	// Successful changes do not interrupt the upload either.
	p.Put(t, http.StatusCreated, "file_aliases/new", `{"value":{"prefix":"new"}}`)
	p.Put(t, http.StatusOK, "storages/default", site.LocalStorage(filepath.Join(p.Root, "moved")))
	close(head)
	stored := (<-landed).One(t)
	if got := string(site.Files(t, p.Root)["file/content/"+stored.Filename]); got != content {
		t.Errorf("of the upload in flight %d bytes are stored, want %d", len(got), len(content))
	}
}

// made is an answer of the panel with the password of an account.
type made struct {
	Section, Name, Password string
	APIKey                  string `json:"api_key"`
}

// TestPanelAccounts creates an account with a working password that is shown once, changes it, and
// removes the account. Each change revokes the tokens that it must.
func TestPanelAccounts(t *testing.T) {
	p := site.StartPanel(t, site.Basic)
	upload := func(token string, want int) {
		t.Helper()
		header := site.Merged(site.AuthHeader("new.site", token), site.FormType)
		if r := p.Do(t, http.MethodPost, "/api/upload/file", header, site.Form(site.File("a.txt", "x"))); r.Status != want {
			t.Errorf("an upload: %d, want %d", r.Status, want)
		}
	}
	login := func(password string, want int) string {
		t.Helper()
		r := p.Login(t, "new.site", password)
		var answer struct{ Token string }
		if err := json.Unmarshal([]byte(r.Body), &answer); err != nil || r.Status != want {
			t.Fatalf("a login answers %d %s, want %d", r.Status, r.Body, want)
		}
		return answer.Token
	}
	renew := func(status int) string {
		t.Helper()
		var answer made
		p.Put(t, status, "accounts/new.site", `{"value":{"aliases":["content"]},"new_password":true}`).Decode(t, &answer)
		if answer.APIKey != "new.site" || len(answer.Password) < 20 {
			t.Fatalf("%+v", answer)
		}
		return answer.Password
	}
	first := renew(http.StatusCreated)
	token := login(first, http.StatusOK)
	upload(token, http.StatusOK)
	second := renew(http.StatusOK)
	login(first, http.StatusUnauthorized)
	upload(token, http.StatusUnauthorized)
	token = login(second, http.StatusOK)
	p.Put(t, http.StatusOK, "accounts/new.site", `{"value":{}}`)
	login(second, http.StatusOK) // another change keeps the password

	// The tokens of an account end with it, also if it is created again unchanged.
	hash := regexp.MustCompile(`"new\.site":.*?"(\$argon2id[^"]+)"`).FindStringSubmatch(p.Running(t))[1]
	p.Remove(t, http.StatusNoContent, "accounts/new.site")
	upload(token, http.StatusUnauthorized)
	p.Put(t, http.StatusCreated, "accounts/new.site", map[string]any{
		"value": map[string]any{}, "secrets": map[string]string{"password_hash": hash},
	})
	upload(token, http.StatusUnauthorized)
	login(second, http.StatusOK)
	for _, answer := range *p.Seen {
		if strings.Contains(answer.Body, "argon2id") {
			t.Errorf("a hash is shown: %s", answer.Body)
		}
	}
	if log := p.Logged(t); strings.Contains(log, first) || strings.Contains(log, second) || strings.Contains(log, hash) {
		t.Error("the log has a password or its hash")
	}
}

// TestPanelUsers creates an account for the users of another login. It gets no password, and the
// Caddyfile of the panel has it.
func TestPanelUsers(t *testing.T) {
	p := site.StartPanel(t, site.Basic)
	const value = `{"value":{"trust":"{http.auth.user.id}","sub_folder":"users/{http.auth.user.id}"}`
	var answer made
	p.Put(t, http.StatusCreated, "accounts/members", value+`}`).Decode(t, &answer)
	if answer.Password != "" {
		t.Errorf("it has the password %s", answer.Password)
	}
	p.Put(t, http.StatusBadRequest, "accounts/members", value+`,"new_password":true}`)
	p.Put(t, http.StatusBadRequest, "accounts/others", value+`}`)
	if r := p.Must(t, http.StatusOK, http.MethodGet, "config/caddyfile", nil); !strings.Contains(r.Body, `trust {http.auth.user.id}`) {
		t.Errorf("%d %s", r.Status, r.Body)
	}
}

// The secrets of the storage that TestPanelSecrets edits. They must not appear in any output.
const (
	firstSecret  = "the-first-s3cret-of-a-bucket"
	secondSecret = "the-second-s3cret-of-a-bucket"
	envSecret    = "the-s3cret-of-the-environment"
)

// TestPanelSecrets: an omitted secret is kept, an empty one is removed, and none is in an answer or
// in the log.
func TestPanelSecrets(t *testing.T) {
	t.Setenv("MEDIA_TEST_SECRET", envSecret)
	p := site.StartPanel(t, site.Basic)
	const route = "storages/bucket"
	body := func(region string, secrets map[string]string) map[string]any {
		return map[string]any{"secrets": secrets, "value": map[string]any{"driver": map[string]any{
			"name": "s3", "bucket": "b", "region": region, "endpoint": "http://127.0.0.1:1", "access_key_id": "the-id",
		}}}
	}
	has := func(want string) {
		t.Helper()
		var running struct {
			Storages map[string]struct{ Driver map[string]any }
		}
		if err := json.Unmarshal([]byte(p.Running(t)), &running); err != nil {
			t.Fatal(err)
		}
		if got, _ := running.Storages["bucket"].Driver["secret_access_key"].(string); got != want {
			t.Errorf("the secret is %q, want %q", got, want)
		}
		isSet := slices.Contains(p.Entry(t, route).Secrets, "driver.secret_access_key")
		if isSet != (want != "") {
			t.Errorf("shown as set: %t", isSet)
		}
	}
	named := func(secret string) map[string]string {
		return map[string]string{"driver.secret_access_key": secret}
	}
	p.Put(t, http.StatusCreated, route, body("one", named(firstSecret)))
	has(firstSecret)
	tag := p.Entry(t, route).Tag
	p.Put(t, http.StatusOK, route, body("two", nil))
	has(firstSecret)
	p.Put(t, http.StatusOK, route, body("one", named(secondSecret)))
	has(secondSecret)
	if p.Entry(t, route).Tag == tag {
		t.Error("another secret has the same tag")
	}

	// A refused edit does not reveal a secret in it.
	for _, secret := range []string{"{env.MEDIA_TEST_NOT_SET_" + firstSecret + "}", firstSecret} {
		broken := body("one", named(secret))
		broken["value"].(map[string]any)["driver"].(map[string]any)["endpoint"] = "ftp://" + firstSecret + "@x"
		p.Put(t, http.StatusBadRequest, route, broken)
	}
	p.Put(t, http.StatusBadRequest, route, map[string]any{"value": map[string]any{"driver": map[string]any{
		"name": "s3", "bucket": "b", "secret_access_key": firstSecret,
	}}})
	has(secondSecret)

	// Probe without saving, with the saved secret and with a new one.
	for _, secrets := range []map[string]string{nil, named(firstSecret)} {
		trial := map[string]any{"driver": body("one", nil)["value"].(map[string]any)["driver"], "secrets": secrets, "keep": "bucket"}
		if r := p.Must(t, http.StatusOK, http.MethodPost, "probe", trial); !strings.Contains(r.Body, `"ok":false`) {
			t.Errorf("a probe of nothing: %s", r.Body)
		}
	}
	p.Must(t, http.StatusNotFound, http.MethodPost, "probe", map[string]any{"driver": map[string]any{"name": "s3"}, "keep": "none"})

	// A change to another driver removes the secrets.
	p.Put(t, http.StatusOK, route, site.LocalStorage(p.Root+"/x"))
	has("")
	p.Put(t, http.StatusOK, route, body("one", named("{env.MEDIA_TEST_SECRET}")))
	has("{env.MEDIA_TEST_SECRET}")
	if r := p.Must(t, http.StatusOK, http.MethodGet, "config", nil); !strings.Contains(r.Body, "{env.MEDIA_TEST_SECRET}") ||
		!strings.Contains(r.Body, "{env.MEDIA_ACCOUNTS_SITE_ONE_PASSWORD_HASH}") ||
		!strings.Contains(r.Header.Get("Content-Disposition"), "attachment") {
		t.Errorf("the download: %v %s", r.Header, r.Body)
	}
	p.Put(t, http.StatusOK, route, body("one", named(secondSecret)))
	for _, route := range []string{"kinds", "storages", "storages/bucket", "aliases", "accounts", "health", "config", "session", "config/" + route, "config/accounts/" + site.APIKey} {
		p.Must(t, http.StatusOK, http.MethodGet, route, nil)
	}
	withoutKeys := body("one", named(""))
	delete(withoutKeys["value"].(map[string]any)["driver"].(map[string]any), "access_key_id")
	p.Put(t, http.StatusOK, route, withoutKeys)
	has("")

	p.WaitForLog(t, `"user":"admin","what":"PUT"`)
	p.WaitForLog(t, `"section":"storages","name":"bucket","client":"127.0.0.1","result":201`)
	log := p.Logged(t)
	for _, secret := range []string{firstSecret, secondSecret, envSecret, site.CheapHash} {
		for _, answer := range *p.Seen {
			if strings.Contains(answer.Body, secret) {
				t.Errorf("%q is shown: %s", secret, answer.Body)
			}
		}
		if secret == site.CheapHash {
			continue
		}
		for line := range strings.Lines(log) {
			// Caddy itself logs why it refuses a configuration. A secret written into another
			// option is not protected there.
			if strings.Contains(line, secret) && !strings.Contains(line, `"logger":"admin.api"`) {
				t.Errorf("%q is logged: %s", secret, line)
			}
		}
	}
}

// TestPanelSecretsWithBraces: text in braces may be part of a secret. It is neither in answers nor
// in the log, including the messages of Caddy itself.
func TestPanelSecretsWithBraces(t *testing.T) {
	const part = "a-part-of-the-s3cret"
	p := site.StartPanel(t, site.Basic)
	for option, driver := range map[string]map[string]any{
		"secret_access_key": {"name": "s3", "bucket": "b", "region": "x", "access_key_id": "k"},
		"key":               {"name": "azblob", "container": "b", "account": "x"},
		"private_key":       {"name": "sftp", "address": "127.0.0.1:1", "user": "x", "insecure_skip_host_key": true},
		"password":          {"name": "ftp", "address": "127.0.0.1:1", "user": "x"},
	} {
		for _, secret := range []string{"x{" + part + "}", "{" + part + "}", "{env." + part + "}x", "{a}{" + part} {
			secrets := map[string]string{"driver." + option: secret}
			body := map[string]any{"value": map[string]any{"driver": driver}, "secrets": secrets}
			p.Must(t, http.StatusBadRequest, http.MethodPut, "config/storages/x", body, "If-None-Match", "*")
			p.Must(t, http.StatusBadRequest, http.MethodPost, "probe", map[string]any{"driver": driver, "secrets": secrets})
		}
	}
	for _, answer := range *p.Seen {
		if strings.Contains(answer.Body, part) {
			t.Errorf("answered: %s", answer.Body)
		}
	}
	p.WaitForLog(t, "change in the panel")
	for line := range strings.Lines(p.Logged(t)) {
		if strings.Contains(line, part) {
			t.Errorf("logged: %s", line)
		}
	}
}

// TestPanelCaddyfile: changes of the panel are in its Caddyfile, which has the configuration that
// runs if the variables have the values that the command prints.
func TestPanelCaddyfile(t *testing.T) {
	p := site.StartPanel(t, site.Basic)
	p.Put(t, http.StatusCreated, "image_aliases/photos", `{"value":{"max_size":1000001,"cache_control":"public, max-age=60","webp":{"effort":"small"}}}`)
	p.Put(t, http.StatusCreated, "accounts/new.site", `{"value":{"aliases":["photos"]},"new_password":true}`)
	p.Put(t, http.StatusCreated, "storages/bucket", map[string]any{
		"secrets": map[string]string{"driver.secret_access_key": firstSecret},
		"value": map[string]any{"driver": map[string]any{
			"name": "s3", "bucket": "b", "region": "r", "endpoint": "http://127.0.0.1:1", "access_key_id": "k",
		}},
	})
	var made struct {
		Text      string
		Command   string
		Variables []struct{ Name, Path string }
		Omitted   []string
	}
	p.As("viewer").Must(t, http.StatusOK, http.MethodGet, "config/caddyfile", nil).Decode(t, &made)
	if len(made.Variables) != 3 || len(made.Omitted) != 0 {
		t.Errorf("got %+v", made)
	}
	for _, secret := range []string{firstSecret, site.CheapHash, "$argon2id"} {
		if strings.Contains(made.Text, secret) {
			t.Errorf("%q is shown: %s", secret, made.Text)
		}
	}
	running := p.Running(t)
	values := map[string]string{}
	for _, v := range made.Variables {
		values["{env."+v.Name+"}"] = printed(t, made.Command+"/"+v.Path)
	}
	adapted := envName.ReplaceAllStringFunc(string(testcaddy.AdaptApp(t, "{\n"+made.Text+"}\n")), func(placeholder string) string {
		return values[placeholder]
	})
	var got, want any
	if err := json.Unmarshal([]byte(adapted), &got); err != nil {
		t.Fatalf("%v in %s", err, adapted)
	}
	if err := json.Unmarshal([]byte(running), &want); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the Caddyfile has:\n%s\nrunning:\n%s", adapted, running)
	}
	p.Must(t, http.StatusMethodNotAllowed, http.MethodPut, "config/caddyfile", `{}`)
}

var envName = regexp.MustCompile(`\{env\.MEDIA_[A-Z0-9_]+\}`)

// printed returns the text that a command prints, which is curl with an address.
func printed(t *testing.T, command string) (text string) {
	t.Helper()
	address, ok := strings.CutPrefix(command, "curl -sS ")
	if !ok {
		t.Fatal(command)
	}
	resp, err := http.Get("http://" + address)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&text); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", command, resp.Status, err)
	}
	return text
}

// TestPanelChangesLast: the panel reports correctly whether its changes survive a restart.
func TestPanelChangesLast(t *testing.T) {
	t.Parallel()
	c := site.NewChild(t)
	address := servers.FreeAddress(t)
	c.Sites = "http://" + address + " {\n" + site.PanelBlock + "}\n"
	p := &site.Panel{
		Site: &site.Site{URL: "http://" + address, Address: address, Client: &http.Client{Transport: new(http.Transport)}},
		User: "admin", Seen: new([]*site.Reply),
	}
	says := func(want string) {
		t.Helper()
		p.AwaitSwitch(t)
		if r := p.Must(t, http.StatusOK, http.MethodGet, "session", nil); !strings.Contains(r.Body, want) {
			t.Errorf("session %s, want %s", r.Body, want)
		}
	}
	c.Start("tokens memory\n" + site.Account)
	says(`"lasting":false`)
	p.Put(t, http.StatusCreated, "file_aliases/first", `{"value":{"prefix":"first"}}`)
	says("--resume")
	c.Kill()

	c.Start("tokens memory\n" + site.Account)
	p.AwaitSwitch(t)
	p.Must(t, http.StatusNotFound, http.MethodGet, "config/file_aliases/first", nil)
	p.Put(t, http.StatusCreated, "file_aliases/second", `{"value":{"prefix":"second"}}`)
	c.Kill()

	c.Resume()
	says(`"lasting":true,"lasting_note":""`)
	p.Must(t, http.StatusOK, http.MethodGet, "config/file_aliases/second", nil)
	p.Put(t, http.StatusCreated, "file_aliases/third", `{"value":{"prefix":"third"}}`)
	says(`"lasting":true,"lasting_note":""`)
	c.Kill()

	c.Resume()
	p.AwaitSwitch(t)
	p.Must(t, http.StatusOK, http.MethodGet, "config/file_aliases/third", nil)
}
