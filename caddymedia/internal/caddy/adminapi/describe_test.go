package adminapi

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddymedia/media/caddymedia/internal/caddy/plugin"
	"github.com/caddymedia/media/storagedrivers/options"
)

// TestImplicit: default storages and aliases are marked as implicit.
func TestImplicit(t *testing.T) {
	for app, want := range map[string][2]bool{ // storages, aliases
		`{}`:                                 {true, true},
		`{"file_aliases": {"docs": {}}}`:     {true, false},
		`{"image_aliases": {"content": {}}}`: {true, false},
		`{"image_aliases": {"content": {}}, "file_aliases": {"content": {"max_size": 5}}}`: {true, false},
		`{"storages": {"default": {"driver": {"name": "local", "root": "$ROOT"}}}}`:        {false, true},
		`{"storages": {"main": {"driver": {"name": "local", "root": "$ROOT"}}}}`:           {false, true},
	} {
		load(t, app)
		storages := get[struct{ Storages []storageAnswer }](t, "/storages").Storages
		aliases := get[struct{ Aliases []aliasAnswer }](t, "/aliases").Aliases
		if len(storages) != 1 || storages[0].Implicit != want[0] || aliases[0].Implicit != want[1] {
			t.Errorf("%s: %+v, %+v", app, storages, aliases)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	}
}

// full configures everything that can be described. Every secret is the word "hunter22".
const full = `{"storages": {
		"archive": {"driver": {"name": "sftp", "address": "127.0.0.1:1", "user": "media", "password": "hunter22", "insecure_skip_host_key": true},
			"overwrite_strategy": "overwrite", "sanitize": false, "sub_folder_format": "%Y"},
		"bucket": {"driver": {"name": "s3", "bucket": "b", "endpoint": "http://127.0.0.1:1", "access_key_id": "id", "secret_access_key": "hunter22"}},
		"far": {"driver": {"name": "ftp", "address": "127.0.0.1:1", "user": "media", "password": "hunter22"}},
		"main": {"driver": {"name": "local", "root": "$ROOT"}},
		"odd": {"driver": {"name": "foreign", "fault": "strange", "word": "hunter22"}}},
	"image_aliases": {"photos": {"storage": "main", "webp": {"quality": 70}, "trash": "36h", "cdn_base": "https://cdn.example.com/"}},
	"file_aliases": {"docs": {"storage": "archive", "prefix": "papers", "max_size": 1024, "extensions": ["pdf", "txt"]},
		"all": {"storage": "bucket", "prefix": "/"}},
	"accounts": {"site-one": {"password_hash": "` + hash + `", "aliases": ["photos"], "s3_secret": "hunter22hunter22"},
		"site-two": {"password_hash": "` + hash + `", "s3_secret": "hunter22hunter22"}}}`

func TestStorages(t *testing.T) {
	root := load(t, full)
	all := get[struct{ Storages []storageAnswer }](t, "/storages").Storages
	names := make([]string, len(all))
	for i, s := range all {
		names[i] = s.Name
	}
	if !slices.Equal(names, []string{"archive", "bucket", "far", "main", "odd"}) {
		t.Fatalf("storages %q", names)
	}
	archive, main, odd := all[0], all[3], all[4]
	if archive.Driver != "sftp" || archive.OverwriteStrategy != "overwrite" || archive.Sanitize || archive.SubFolderFormat != "%Y" ||
		archive.Implicit || !reflect.DeepEqual(archive.UsedBy, []use{{Kind: "file", Alias: "docs"}}) {
		t.Errorf("%+v", archive)
	}
	want := map[string]any{
		"address": "127.0.0.1:1", "user": "media", "password": "set", "passphrase": "not set", "private_key": "not set",
		"insecure_skip_host_key": true,
	}
	if !reflect.DeepEqual(archive.Settings, want) {
		t.Errorf("settings %v, want %v", archive.Settings, want)
	}
	if main.OverwriteStrategy != "append_time" || !main.Sanitize || main.Settings["root"] != root ||
		!reflect.DeepEqual(main.UsedBy, []use{{Kind: "img", Alias: "photos"}}) {
		t.Errorf("%+v", main)
	}
	if odd.Settings["word"] != "set" || odd.Driver != "foreign" {
		t.Errorf("a driver of another module: %+v", odd)
	}
	if one := get[storageAnswer](t, "/storages/main"); one.Name != "main" || one.Driver != "local" {
		t.Errorf("%+v", one)
	}
}

func TestAliases(t *testing.T) {
	load(t, full)
	all := get[struct{ Aliases []aliasAnswer }](t, "/aliases").Aliases
	if len(all) != 3 {
		t.Fatalf("%+v", all)
	}
	photos, everything, docs := all[0], all[1], all[2]
	if photos.Kind != "img" || photos.Name != "photos" || photos.Storage != "main" || photos.Prefix != "img/photos" ||
		photos.Address != "https://cdn.example.com/static/img/photos" || photos.Overwrite || !photos.Sanitize || photos.MaxSize != 32<<20 ||
		!slices.Equal(photos.Extensions, []string{"gif", "jpeg", "jpg", "png", "svg"}) || !photos.WebP || photos.Trash != 36*60*60 ||
		!slices.Equal(photos.Accounts, []string{"site-one"}) ||
		!reflect.DeepEqual(photos.Settings["webp"], map[string]any{"quality": 70.}) {
		t.Errorf("%+v", photos)
	}
	if everything.Name != "all" || everything.Prefix != "" || len(everything.Accounts) != 0 {
		t.Errorf("%+v", everything)
	}
	if docs.Address != "/static/file/docs" || !docs.Overwrite || docs.Sanitize || docs.WebP || docs.Trash != 0 || docs.MaxSize != 1024 ||
		docs.Settings["prefix"] != "papers" || docs.Settings["storage"] != "archive" {
		t.Errorf("%+v", docs)
	}
}

func TestAccounts(t *testing.T) {
	load(t, full)
	w := ask(t, New(), http.MethodGet, "/accounts", "")
	if want := `{"accounts":[{"api_key":"site-one","aliases":["photos"],"may":["upload"],"buckets":["image-photos"]},` +
		`{"api_key":"site-two","aliases":[],"may":["upload"],"buckets":["image-photos","file-all","file-docs"]}],"s3_endpoints":[]}` + "\n"; w.Body.String() != want {
		t.Errorf("got %s, want %s", w.Body, want)
	}
	load(t, `{"accounts": {"members": {"trust": "{http.auth.user.id}", "sub_folder": "users/{http.auth.user.id}"}}}`)
	w = ask(t, New(), http.MethodGet, "/accounts", "")
	if want := `{"accounts":[{"api_key":"members","aliases":[],"may":["upload"],"trusted":true,"buckets":null}],"s3_endpoints":[]}` + "\n"; w.Body.String() != want {
		t.Errorf("got %s, want %s", w.Body, want)
	}
}

// TestS3Endpoints: the addresses of the S3 front are those of its sites, without the host names of
// buckets.
func TestS3Endpoints(t *testing.T) {
	site := func(listen, more, hosts, options string) string {
		return `{"listen": ["` + listen + `"], "automatic_https": {"disable": true}, ` + more + `"routes": [
			{"match": [{"host": ["other.example.com"]}], "handle": [{"handler": "static_response"}]},
			{` + hosts + `"handle": [{"handler": "subroute", "routes": [{"handle": [{"handler": "media_s3"` + options + `}]}]}]}]}`
	}
	config := `{"admin": {"disabled": true, "config": {"persist": false}}, "logging": {"logs": {"default": {"writer": {"output": "discard"}}}},
		"apps": {"media": {"tokens": {"store": "memory"}}, "http": {"servers": {
			"a": ` + site("127.0.0.1:0", "", `"match": [{"host": ["a.example.com", "*.a.example.com"]}], `, `, "domain": "a.example.com"`) + `,
			"b": ` + site("127.0.0.2:0", `"tls_connection_policies": [{}], `, `"match": [{"host": ["b.example.com"]}], `, `, "region": "eu-north-1"`) + `,
			"c": ` + site(":0", "", "", "") + `}}}}`
	if err := caddy.Load([]byte(config), true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stop() })
	w := ask(t, New(), http.MethodGet, "/accounts", "")
	if want := `{"accounts":[],"s3_endpoints":[{"address":"https://b.example.com:0","region":"eu-north-1"},` +
		`{"address":"http://*:0","region":"us-east-1"},{"address":"http://a.example.com:0","region":"us-east-1"}]}` + "\n"; w.Body.String() != want {
		t.Errorf("got %s, want %s", w.Body, want)
	}
}

// TestEndTokens: only the tokens of the account are revoked.
func TestEndTokens(t *testing.T) {
	const known = "$argon2id$v=19$m=64,t=1,p=1$4Zz0Ov8UYBl8SIBaXP3PIQ$A6oNBFDUyPJsjGVdXdDqkc7pFDG6P+xnupYfNmFID4o" // of "secret"
	load(t, `{"accounts": {"one": {"password_hash": "`+known+`"}, "two": {"password_hash": "`+known+`"}}}`)
	app, err := plugin.Active()
	if err != nil {
		t.Fatal(err)
	}
	tokens := map[string]string{}
	for _, key := range []string{"one", "one", "two"} {
		token, _, err := app.Service().Issuer().Issue(t.Context(), key, "secret", netip.Addr{})
		if err != nil {
			t.Fatal(err)
		}
		tokens[key] = token
	}
	ended := request[map[string]int](t, http.MethodDelete, "/accounts/one/tokens")
	if !maps.Equal(ended, map[string]int{"ended": 2}) {
		t.Errorf("%v", ended)
	}
	for key, want := range map[string]bool{"one": false, "two": true} {
		if _, _, err := app.Service().Issuer().Verify(t.Context(), tokens[key], key); (err == nil) != want {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// request sends a request and decodes the successful answer.
func request[T any](t testing.TB, method, address string) T {
	t.Helper()
	return decoded[T](t, ask(t, New(), method, address, ""), http.StatusOK)
}

// TestKinds: all drivers are listed with their options, without those that the server generates.
func TestKinds(t *testing.T) {
	load(t, `{}`)
	kinds := get[kindsAnswer](t, "/kinds")
	delete(kinds.Drivers, "foreign") // that of the tests
	if got := slices.Sorted(maps.Keys(kinds.Drivers)); !slices.Equal(got, []string{"azblob", "ftp", "gcs", "local", "s3", "sftp"}) {
		t.Errorf("drivers %q", got)
	}
	for name, driver := range kinds.Drivers {
		if driver.Title == "" || driver.Icon == "" || driver.Rank == 0 || driver.Help == "" || len(driver.Options) == 0 || driver.Options[0].Help == "" {
			t.Errorf("%s is not described: %+v", name, driver)
		}
	}
	optionsOf := func(s *options.Schema) []string {
		names := make([]string, len(s.Options))
		for i, option := range s.Options {
			names[i] = option.Name
		}
		return names
	}
	if got := optionsOf(kinds.Account); !slices.Equal(got, []string{"aliases", "may", "s3_secret", "trust", "trust_header", "sub_folder", "hold"}) {
		t.Errorf("options of an account %q", got)
	}
	if got := optionsOf(kinds.Storage); !slices.Equal(got, []string{"sub_folder_format", "overwrite_strategy", "sanitize", "cache"}) {
		t.Errorf("options of a storage %q", got)
	}
	if !slices.Contains(optionsOf(kinds.ImageAlias), "webp") || !slices.Contains(optionsOf(kinds.FileAlias), "extensions") {
		t.Errorf("options of aliases %q, %q", optionsOf(kinds.ImageAlias), optionsOf(kinds.FileAlias))
	}
}

type healthOfAll struct {
	Storages []storageHealth
	Checks   []checkHealth `json:"checks"`
	Tokens   tokensHealth
	Encoder  string `json:"webp_encoder"`
	Version  string
}

// waitForChecks returns the health after the first check of every storage.
func waitForChecks(t *testing.T) healthOfAll {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		health := get[healthOfAll](t, "/health")
		if !slices.ContainsFunc(health.Storages, func(s storageHealth) bool { return s.Health.State == "unknown" }) {
			return health
		}
		if time.Now().After(deadline) {
			t.Fatalf("not all storages are checked: %+v", health)
		}
	}
}

func TestHealth(t *testing.T) {
	load(t, full)
	health := waitForChecks(t)
	if len(health.Storages) != 5 || health.Tokens != (tokensHealth{Store: "memory", OK: true}) || health.Encoder == "" || health.Version != plugin.Version() {
		t.Fatalf("%+v", health)
	}
	for _, s := range health.Storages {
		up := s.Name == "main"
		if (s.Health.State == "up") != up || (s.Health.Message == "") != up || (s.Health.Detail == "") != up || (len(s.Guarantees) == 3) != up {
			t.Errorf("%+v", s)
		}
		for _, at := range []string{s.Health.Since, s.Health.Checked} {
			if _, err := time.Parse(time.RFC3339, at); err != nil {
				t.Errorf("%s: %v", s.Name, err)
			}
		}
	}
	if archive := health.Storages[0]; !strings.Contains(archive.Health.Message, "refused the connection") {
		t.Errorf("%+v", archive)
	}
}

// TestTokenStoreDown: the health reports a token store that cannot be reached.
func TestTokenStoreDown(t *testing.T) {
	load(t, `{"tokens": {"store": "redis", "addresses": ["127.0.0.1:1"], "password": "hunter22"}, "accounts": {"site-one": {"password_hash": "`+hash+`"}}}`)
	health := get[healthOfAll](t, "/health")
	if health.Tokens.OK || health.Tokens.Store != "redis" || health.Tokens.Message == "" || health.Tokens.Detail == "" {
		t.Errorf("%+v", health.Tokens)
	}
	wantError(t, ask(t, New(), http.MethodDelete, "/accounts/site-one/tokens", ""), http.StatusServiceUnavailable, "token store")
}

// TestNoSecrets: no answer has a secret, literal or expanded, not even in an error.
func TestNoSecrets(t *testing.T) {
	t.Setenv("MEDIA_TEST_SECRET", "expanded-hunter")
	root := load(t, strings.Replace(full, `"password": "hunter22", "insecure`, `"password": "{env.MEDIA_TEST_SECRET}", "insecure`, 1))
	files(t, root+"/img/photos", "a.jpg")
	waitForChecks(t)
	for _, c := range []struct{ method, address, body string }{
		{"GET", "/kinds", ""},
		{"GET", "/storages", ""},
		{"GET", "/storages/archive", ""},
		{"GET", "/storages/odd", ""},
		{"GET", "/aliases", ""},
		{"GET", "/accounts", ""},
		{"GET", "/items/img/photos", ""},
		{"GET", "/items/img/photos/a.jpg", ""},
		{"GET", "/items/file/docs", ""},
		{"GET", "/items/file/all?search=x", ""},
		{"GET", "/items/file/docs/a.pdf", ""},
		{"GET", "/uploads", ""},
		{"DELETE", "/uploads/archive/x", ""},
		{"GET", "/health", ""},
		{"POST", "/usage", ""},
		{"GET", "/usage", ""},
		{"GET", "/changes", ""},
		{"POST", "/storages/archive/probe", ""},
		{"POST", "/storages/odd/probe", ""},
		{"POST", "/probe", `{"driver": {"name": "foreign", "fault": "strange", "word": "submitted-hunter"}}`},
		{"POST", "/probe", `{"driver": {"name": "ftp", "address": "127.0.0.1:1", "user": "x", "password": "submitted-hunter"}}`},
		{"POST", "/probe", `{"driver": {"name": "ftp", "address": "submitted-hunter:x:y", "user": "x", "password": "submitted-hunter"}}`},
		{"POST", "/probe", `{"driver": {"name": "sftp", "address": "127.0.0.1:1", "user": "x", "insecure_skip_host_key": true, "private_key": "/nowhere/submitted-hunter"}}`},
		{"POST", "/probe", `{"driver": {"name": "s3", "bucket": "b", "secret_access_key": "{env.MEDIA_TEST_SECRET}"}}`},
	} {
		w := ask(t, New(), c.method, c.address, c.body)
		if !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s %s: %s", c.method, c.address, w.Body)
		}
		for _, secret := range []string{"hunter22", "expanded-hunter", "submitted-hunter", hash, "argon2id", "MEDIA_TEST_SECRET"} {
			if strings.Contains(w.Body.String(), secret) {
				t.Errorf("%s %s: %d has %q: %s", c.method, c.address, w.Code, secret, w.Body)
			}
		}
	}
}
