package plugin_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddymedia/media/caddymedia/internal/plugin"
)

// TestSecrets: the secrets of storages and accounts are returned as configured and expanded.
func TestSecrets(t *testing.T) { // not parallel: Caddy has globals
	t.Setenv("MEDIA_TEST_SECRET", "expanded secret")
	t.Setenv("MEDIA_TEST_KEY", "expanded key of 32 bytes or more")
	app := provisioned(t, `{"signing_key": ["{env.MEDIA_TEST_KEY}", "literal key of 32 bytes, or more"], "storages": {
		"a": {"driver": {"name": "ftp", "address": "host", "user": "somebody", "password": "{env.MEDIA_TEST_SECRET}"}},
		"b": {"driver": {"name": "s3", "bucket": "b", "region": "r", "access_key_id": "id", "secret_access_key": "literal secret"}}},
		"image_aliases": {"one": {"storage": "a"}}, "accounts": {"shop": {"password_hash": "`+hash+`"}}}`)
	got := app.Secrets()
	for _, want := range []string{"{env.MEDIA_TEST_SECRET}", "expanded secret", "literal secret", hash, "expanded key of 32 bytes or more", "literal key of 32 bytes, or more"} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is not among the secrets", want)
		}
	}
	for _, plain := range []string{"host", "somebody", "b", "r"} {
		if slices.Contains(got, plain) {
			t.Errorf("%q is among the secrets", plain)
		}
	}
}

// TestNamedBy: accounts that may use all aliases are not returned.
func TestNamedBy(t *testing.T) {
	app := provisioned(t, `{"image_aliases": {"one": {}, "two": {}}, "accounts": {
		"c": {"password_hash": "`+hash+`", "aliases": ["one"]}, "a": {"password_hash": "`+hash+`", "aliases": ["two", "one"]},
		"b": {"password_hash": "`+hash+`"}}}`)
	if got := app.NamedBy("one"); !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("one is named by %q", got)
	}
	if got := app.NamedBy("three"); len(got) != 0 {
		t.Errorf("three is named by %q", got)
	}
}

// TestTokenStore: the name is that of the configuration.
func TestTokenStore(t *testing.T) {
	for _, store := range []string{"memory", "bolt", "redis"} {
		app := provisioned(t, `{"tokens": {"store": "`+store+`"}}`)
		if got := app.TokenStore(); got != store {
			t.Errorf("%q is called %q", store, got)
		}
	}
}

// TestTryStorage: a trial uses its own driver and leaves nothing behind.
func TestTryStorage(t *testing.T) {
	root := filepath.Join(t.TempDir(), "new")
	driver := `{"name": "local", "root": "` + root + `"}`
	if err := caddy.Run(configOf(`{"storages": {"main": {"driver": ` + driver + `}}}`)); err != nil {
		t.Fatal(err)
	}
	defer caddy.Stop()
	app, err := plugin.Active()
	if err != nil {
		t.Fatal(err)
	}
	before := plugin.Pooled()
	raw := []byte(driver)
	trial, err := app.TryStorage(t.Context(), raw)
	if err != nil || !trial.Report.OK() || !trial.Driver.Local || trial.Features.Together.String() != "atomic" {
		t.Errorf("%+v, error %v", trial, err)
	}
	if string(raw) != driver || plugin.Pooled() != before {
		t.Errorf("%s, %d drivers and the like are open, want %d", raw, plugin.Pooled(), before)
	}
	if storage, _ := app.Service().Storage("main"); !storage.Probe(t.Context()).OK() {
		t.Error("the storage of the same place does not work any more")
	}
	left, err := os.ReadDir(root)
	if err != nil || slices.ContainsFunc(left, func(e os.DirEntry) bool { return !strings.HasPrefix(e.Name(), ".") }) {
		t.Errorf("left are %v, error %v", left, err)
	}
	for _, wrong := range []string{`{}`, `{"name": "floppy"}`, `{"name": "local"}`, `{"name": "ftp", "password": "a secret", "tls": "x", "address": "h", "user": "u"}`} {
		_, err := app.TryStorage(t.Context(), []byte(wrong))
		refused, ok := errors.AsType[*plugin.ConfigError](err)
		if !ok || strings.Contains(wrong, "a secret") != slices.Contains(refused.Secrets, "a secret") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}
