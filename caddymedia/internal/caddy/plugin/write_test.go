package plugin_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/encode/gzip"

	_ "github.com/caddymedia/media/caddymedia" // plug in all modules
	"github.com/caddymedia/media/caddymedia/internal/caddy/plugin"
	"github.com/caddymedia/media/caddymedia/internal/test/testcaddy"
)

// TestCaddyfileOfGolden: the JSON of each golden file is written as a Caddyfile with the same JSON.
func TestCaddyfileOfGolden(t *testing.T) {
	t.Parallel()
	testcaddy.GoldenApps(t, func(t *testing.T, app []byte) {
		t.Helper()
		block, omitted, err := plugin.Caddyfile(app)
		if err != nil || len(omitted) > 0 {
			t.Fatalf("omitted %q, error %v, in\n%s", omitted, err, block)
		}
		// A text that is not formatted would be a warning.
		if again := testcaddy.AdaptApp(t, "{\n"+block+"}\n"); !bytes.Equal(again, app) {
			t.Errorf("got:\n%s\nwant:\n%s\nof:\n%s", again, app, block)
		}
	})
}

func TestCaddyfile(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		app, want string
		omitted   []string
	}{
		"nothing":  {`{}`, "media\n", nil},
		"settings": {`{"health_interval": "90s", "cdn_base": "https://x"}`, "media {\n\tcdn_base https://x\n\thealth_interval 1m30s\n}\n", nil},
		"effort without quality": {
			`{"image_aliases": {"a": {"webp": {"effort": "small"}}}}`, "media {\n\timage_alias a {\n\t\twebp small\n\t}\n}\n", nil,
		},
		"defaults that are written": {
			`{"image_aliases": {"a": {"negotiate": false, "svg": "", "max_size": 0}}, "accounts": {"k": {"password_hash": "{env.H}", "aliases": []}}}`,
			"media {\n\taccount k {env.H}\n\timage_alias a\n}\n", nil,
		},
		"rights of an account": {
			`{"accounts": {"k": {"password_hash": "{env.H}", "aliases": ["a"], "may": ["upload", "{env.R}"]}}}`,
			"media {\n\taccount k {env.H} {\n\t\taliases a\n\t\tmay upload {env.R}\n\t}\n}\n", nil,
		},
		"keys of a host": {
			`{"storages": {"far": {"driver": {"name": "sftp", "address": "h", "user": "u", "timeout": "2m", "host_key": ["ssh-ed25519 A x", "ssh-rsa B"]}}}}`,
			"media {\n\tstorage far {\n\t\tdriver sftp h {\n\t\t\tuser u\n\t\t\thost_key \"ssh-ed25519 A x\"\n\t\t\thost_key \"ssh-rsa B\"\n\t\t\ttimeout 2m\n\t\t}\n\t}\n}\n", nil,
		},
		"first option not set": {
			`{"tokens": {"store": "redis", "addresses": ["a:1", "b:1"]}}`,
			"media {\n\ttokens redis {\n\t\taddresses a:1 b:1\n\t}\n}\n", nil,
		},
		"variables of Caddyfiles": {
			`{"storages": {"a": {"driver": {"name": "local", "root": "/srv/{$X}"}}}, "file_aliases": {"a": {"cache_control": "{$X}"}, "b": {}}, "spool_folder": "/\\{$X\\}"}`,
			"media {\n\tfile_alias b\n}\n",
			[]string{"file_aliases/a", "spool_folder", "storages"},
		},
		"option beside off": {
			`{"resumable": {"off": true, "max_open": 5}}`, "media {\n\tresumable off\n}\n", []string{"resumable/max_open"},
		},
		"driver with an option of another type": {
			`{"storages": {"a": {"driver": {"name": "sftp", "connections": "{env.N}"}}, "b": {"driver": {"name": "local", "root": "/b"}}}}`,
			"media {\n\tstorage b {\n\t\tdriver local /b\n\t}\n}\n",
			[]string{"storages/a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			block, omitted, err := plugin.Caddyfile([]byte(test.app))
			block = strings.ReplaceAll("\n"+block, "\n\t", "\n")[1:] // it stands in the block of the global options
			if err != nil || block != test.want || !slices.Equal(omitted, test.omitted) {
				t.Errorf("got:\n%s, omitted %q, error %v; want:\n%s, omitted %q", block, omitted, err, test.want, test.omitted)
			}
		})
	}
	for _, wrong := range []string{`{"unknown": 1}`, `[]`, `{"limits": {"max_files": "x"}}`} {
		if block, _, err := plugin.Caddyfile([]byte(wrong)); err == nil {
			t.Errorf("%s: no error, but %s", wrong, block)
		}
	}
}

func TestGolden(t *testing.T) {
	t.Parallel()
	testcaddy.Golden(t)
}
