package adminapi

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// parsed decodes a JSON object.
func parsed(t *testing.T, text string) object {
	t.Helper()
	var o object
	if err := decode([]byte(text), &o); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return o
}

// loaded returns a configuration with the parts that the app adds.
func loaded(t *testing.T, text string) config {
	t.Helper()
	c, err := loadConfig(parsed(t, text), true)
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return c
}

// mustEqual compares values as JSON.
func mustEqual(t *testing.T, got any, want string) {
	t.Helper()
	if g, w := sorted(t, canonical(got)), sorted(t, []byte(want)); g != w {
		t.Errorf("got\n%s\nwant\n%s", g, w)
	}
}

// sorted returns JSON with sorted keys.
func sorted(t *testing.T, text []byte) string {
	t.Helper()
	var value any
	if err := decode(text, &value); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return string(canonical(value))
}

// statusOf returns the status of an error and the option at fault.
func statusOf(err error) (int, string) {
	if failed, ok := errors.AsType[*failure](err); ok {
		return failed.status, failed.Option
	}
	return 0, ""
}

func TestBlame(t *testing.T) {
	t.Parallel()
	const provision = "loading new config: loading media app module: provision media: "
	change := change{section: storages, name: "x", Value: object{driverGroup: object{driverName: "sftp"}}}
	for message, want := range map[string]struct{ text, option string }{
		provision + `storage "x": sub_folder_format: bad`: {`storage "x": sub_folder_format: bad`, "sub_folder_format"},
		provision + `storage "x": loading the driver: loading module 'sftp': provision media.storages.sftp: sftp storage: address is missing`:                     {`storage "x": sftp storage: address is missing`, "driver.address"},
		provision + `storage "x": overwrite_strategy is append_time or overwrite, not "y"`:                                                                        {`storage "x": overwrite_strategy is append_time or overwrite, not "y"`, "overwrite_strategy"},
		provision + `storage "y": sftp storage: address is missing`:                                                                                               {`storage "y": sftp storage: address is missing`, ""},
		"loading new config: loading http app module: provision http: server srv0: loading media app module: provision media: account \"k\" has no password hash": {`account "k" has no password hash`, ""},
		"loading new config: starting app http: listening on :80":                                                                                                 {"starting app http: listening on :80", ""},
		"loading new config: loading media app module: decoding module config: media: json: unknown field":                                                        {"decoding module config: media: json: unknown field", ""},
		"module name 'sftp': provision media.storages.sftp: sftp storage: address is missing":                                                                     {"sftp storage: address is missing", ""},
		"module name 's3': media.storages.s3: invalid configuration: s3 storage without a bucket":                                                                 {"s3 storage without a bucket", ""},
		`module name 's3': decoding module config: media.storages.s3: json: unknown field "x"`:                                                                    {`json: unknown field "x"`, ""},
		"module name 'x': unknown module: media.storages.x":                                                                                                       {"unknown module: media.storages.x", ""},
		`something else`: {`something else`, ""},
	} {
		text := reasonOf(message)
		if text != want.text {
			t.Errorf("%s\ngives %s\nwant  %s", message, text, want.text)
		}
		if _, option := statusOf(change.blame(&failure{status: http.StatusBadRequest, Message: text})); option != want.option {
			t.Errorf("%s: blames %q, want %q", text, option, want.option)
		}
	}
}

// TestSyncAutosave: the saved configuration is synced after each change that is made, and only
// then. A change stands if that fails, which the log says.
func TestSyncAutosave(t *testing.T) {
	t.Parallel()
	core, log := observer.New(zap.WarnLevel)
	e := editorOf(t, &admin{body: `{"image_aliases":{"b":{}}}`})
	synced, failure := 0, error(nil)
	e.log, e.sync = zap.New(core), func(string) error { synced++; return failure }
	add := change{section: fileAliases, name: "a", condition: condition{isNew: true}, Value: object{}}

	for i, change := range []func() error{
		func() error { _, err := e.put(t.Context(), add); return err },
		func() error { return e.remove(t.Context(), fileAliases, "a", condition{tags: "*"}) },
		func() error { failure = errors.New("disk"); _, err := e.put(t.Context(), add); return err },
	} {
		if err := change(); err != nil || synced != i+1 || log.Len() != i/2 {
			t.Errorf("change %d: error %v, %d syncs, log %v", i, err, synced, log.All())
		}
	}
	if _, err := e.put(t.Context(), add); err == nil || synced != 3 {
		t.Errorf("a refused change: error %v, %d syncs", err, synced)
	}
}

// TestS3Secret: the secret of an account for S3 is set beside a generated password, kept, replaced
// and removed, and never shown.
func TestS3Secret(t *testing.T) {
	t.Parallel()
	caddy := &admin{body: `{}`}
	e := editorOf(t, caddy)
	for _, step := range []struct {
		change
		want string // the secret in the configuration
	}{
		{change{condition: condition{isNew: true}, Secrets: map[string]string{"s3_secret": "the first secret"}, NewPassword: true}, "the first secret"},
		{change{}, "the first secret"},
		{change{NewPassword: true}, "the first secret"},
		{change{Secrets: map[string]string{"s3_secret": "the second secret"}}, "the second secret"},
		{change{Secrets: map[string]string{"s3_secret": ""}}, ""},
	} {
		step.section, step.name, step.Value = accounts, "shop", object{}
		if !step.isNew {
			step.tags = "*"
		}
		saved, err := e.put(t.Context(), step.change)
		if err != nil || (saved.Password != "") != step.NewPassword {
			t.Fatalf("%+v: %v", saved, err)
		}
		c := loaded(t, caddy.body)
		account, shown := c.Accounts["shop"], c.view(accounts, "shop")
		if account.S3Secret != step.want || account.PasswordHash == "" || slices.Contains(shown.Secrets, "s3_secret") != (step.want != "") || len(shown.Value) > 0 {
			t.Errorf("want %q, got %+v, shown %+v", step.want, account, shown)
		}
	}
}

func TestSyncFile(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := filepath.Join(folder, "autosave.json")
	if err := syncFile(file); err != nil {
		t.Errorf("missing: %v", err)
	}
	if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syncFile(file); err != nil {
		t.Errorf("there: %v", err)
	}
	if err := syncFile(folder); err == nil {
		t.Error("a folder in its place was synced")
	}
}
