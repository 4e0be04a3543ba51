package plugin_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"

	_ "github.com/caddymedia/media/caddymedia/drivers/redis"
	_ "github.com/caddymedia/media/caddymedia/drivers/s3"
	_ "github.com/caddymedia/media/caddymedia/drivers/sftp"
)

// hash is the hash of an unknown password.
const hash = "$argon2id$v=19$m=47104,t=1,p=1$A4jf1aqXBp1xxJ37lPh12A$WaFuBSrB5SmdEcA4byiDJ83t54g74DSO4UiWcMTjXHQ"

// configOf returns a configuration with the media app alone. It logs nothing.
func configOf(app string) *caddy.Config {
	return &caddy.Config{
		Admin: &caddy.AdminConfig{Disabled: true},
		Logging: &caddy.Logging{Logs: map[string]*caddy.CustomLog{
			"default": {BaseLog: caddy.BaseLog{WriterRaw: json.RawMessage(`{"output":"discard"}`)}},
		}},
		AppsRaw: caddy.ModuleMap{"media": json.RawMessage(app)},
	}
}

// storages returns the JSON of one storage with further options.
func storages(more string) string {
	return `"storages": {"main": {"driver": {"name": "local", "root": "/nowhere/media"}` + more + `}}`
}

// TestProvisionErrors: an error names the invalid option and the part of the configuration that it
// belongs to.
func TestProvisionErrors(t *testing.T) { // not parallel: Caddy has globals
	t.Setenv("MEDIA_TEST_SECRET", "expanded secret")
	for _, c := range []struct {
		name string
		app  string
		want []string
	}{
		{"storage that is null", `"storages": {"main": null}`, []string{`storage "main" is empty`}},
		{"driver without a name", `"storages": {"main": {"driver": {"root": "/x"}}}`, []string{`storage "main"`, "name"}},
		{"long name of a storage", `"storages": {"` + strings.Repeat("a", 65) + `": {"driver": {"name": "local", "root": "/x"}}}`, []string{`storage "aaa`, "64"}},
		{"empty name of a storage", `"storages": {"": {"driver": {"name": "local", "root": "/x"}}}`, []string{`storage ""`}},
		{"sub_folder_format up", storages(`, "sub_folder_format": "../x"`), []string{`storage "main"`, "sub_folder_format"}},
		{"sub_folder_format absolute", storages(`, "sub_folder_format": "/%Y"`), []string{`storage "main"`, "sub_folder_format"}},
		{"sub_folder_format conversion", storages(`, "sub_folder_format": "%c"`), []string{`storage "main"`, "sub_folder_format"}},
		{"sub_folder_format restricted", storages(`, "sub_folder_format": "%Y.php"`), []string{`storage "main"`, "sub_folder_format"}},

		{
			"alias that names none of two storages",
			`"storages": {"a": {"driver": {"name": "local", "root": "/a"}}, "b": {"driver": {"name": "local", "root": "/b"}}}`,
			[]string{`image alias "content"`, "storage is missing"},
		},
		{"file alias that is null", `"file_aliases": {"one": null}`, []string{`file alias "one"`, "empty"}},
		{"dots for a name", `"file_aliases": {"..": {}}`, []string{`file alias ".."`}},
		{"prefix without a variable", `"image_aliases": {"one": {"prefix": "{env.MEDIA_TEST_MISSING}"}}`, []string{`image alias "one"`, "prefix", "env.MEDIA_TEST_MISSING"}},
		{"prefix with a hole", `"image_aliases": {"one": {"prefix": "a//b"}}`, []string{`image alias "one"`, "prefix"}},
		{"prefix of slashes", `"image_aliases": {"one": {"prefix": "//"}}`, []string{`image alias "one"`, "prefix"}},
		{"prefix with a backslash", `"image_aliases": {"one": {"prefix": "a\\b"}}`, []string{`image alias "one"`, "prefix"}},
		{"max_pixels", `"image_aliases": {"one": {"max_pixels": -1}}`, []string{`image alias "one"`, "max_pixels is a number above zero"}},
		{"rendition that is null", `"image_aliases": {"one": {"renditions": {"thumb": null}}}`, []string{`image alias "one"`, "renditions.thumb: width or height is missing"}},
		{"width of a rendition", `"image_aliases": {"one": {"renditions": {"thumb": {"width": -1}}}}`, []string{"renditions.thumb.width is a number above zero"}},
		{"format without a variable", `"image_aliases": {"one": {"renditions": {"a": {"width": 1, "format": "{env.MEDIA_TEST_MISSING}"}}}}`, []string{"renditions.a.format", "env.MEDIA_TEST_MISSING"}},
		{"spool_folder that is not there", `"spool_folder": "/nowhere/media"`, []string{"spool_folder", "/nowhere/media"}},
		{"public redirect to no address", `"image_aliases": {"one": {"redirect": {"to": "public", "base": "ftp://x"}}}`, []string{`image alias "one"`, "redirect", "base"}},
		{"signing by a folder", storages("") + `, "file_aliases": {"one": {"redirect": {"to": "presigned"}}}`, []string{`file alias "one"`, "redirect", `storage "main" cannot sign`}},
		{"signed address of ours", `"file_aliases": {"one": {"redirect": {"to": "presigned", "base": "https://x"}}}`, []string{"redirect", "takes no address"}},
		{"extension with a dot inside", `"file_aliases": {"one": {"extensions": ["tar.gz"]}}`, []string{`file alias "one"`, `"tar.gz"`}},
		{"empty extension", `"file_aliases": {"one": {"extensions": ["pdf", ""]}}`, []string{`file alias "one"`, `""`}},
		{"extension with a space", `"file_aliases": {"one": {"extensions": ["pdf "]}}`, []string{`file alias "one"`, `"pdf "`}},

		{"cdn_base without a variable", `"cdn_base": "{env.MEDIA_TEST_MISSING}"`, []string{"cdn_base", "env.MEDIA_TEST_MISSING"}},
		{"root without a variable", `"storages": {"main": {"driver": {"name": "local", "root": "{env.MEDIA_TEST_MISSING}"}}}`, []string{`storage "main"`, "root", "env.MEDIA_TEST_MISSING"}},

		{"account that is null", `"accounts": {"shop": null}`, []string{`account "shop"`, "password_hash is missing"}},
		{"account with half a hash", `"accounts": {"shop": {"password_hash": "$argon2id$garbage"}}`, []string{`account "shop"`, "hash"}},
		{"account with a bcrypt hash without its last letter", `"accounts": {"shop": {"password_hash": "$2a$04$2BeK4uKx1Z2KxN8dyfHMh.Wn7o4iaIkECOf5IAYZbQLnNw/QwpRl"}}`, []string{`account "shop"`, "hash"}},
		{"account with half a bcrypt hash", `"accounts": {"shop": {"password_hash": "$2a$14$garbage"}}`, []string{`account "shop"`, "hash"}},
		{"account with a hash cut short", `"accounts": {"shop": {"password_hash": "` + hash[:strings.LastIndex(hash, "$")+1] + `"}}`, []string{`account "shop"`, "hash"}},
		{"account with a hash of no rounds", `"accounts": {"shop": {"password_hash": "` + strings.Replace(hash, "t=1", "t=0", 1) + `"}}`, []string{`account "shop"`, "hash"}},
		{"account without a variable", `"accounts": {"shop": {"password_hash": "{env.MEDIA_TEST_MISSING}"}}`, []string{`account "shop"`, "env.MEDIA_TEST_MISSING"}},
		{"bad key", `"accounts": {"a b": {"password_hash": "` + hash + `"}}`, []string{`account "a b"`}},
		{"empty key", `"accounts": {"": {"password_hash": "` + hash + `"}}`, []string{`account ""`}},
		{"long key", `"accounts": {"` + strings.Repeat("k", 129) + `": {"password_hash": "` + hash + `"}}`, []string{`account "kkk`, "128"}},

		{"unknown token store", `"tokens": {"store": "sqlite"}`, []string{`tokens: unknown token store "sqlite"; there are bolt, memory, redis`}},
		{"token store without a name", `"tokens": {}`, []string{"tokens", "store"}},
		{"token store without a variable", `"tokens": {"store": "bolt", "path": "{env.MEDIA_TEST_MISSING}"}`, []string{"tokens", "path", "env.MEDIA_TEST_MISSING"}},
		{"redis", `"tokens": {"store": "redis", "url": "http://user:{env.MEDIA_TEST_SECRET}@host"}`, []string{"tokens", "url"}},

		{"origin without a variable", `"cors": ["{env.MEDIA_TEST_MISSING}"]`, []string{"cors: ", "env.MEDIA_TEST_MISSING"}},
		{"storage of uploads without a variable", `"resumable": {"storage": "{env.MEDIA_TEST_MISSING}"}`, []string{"resumable: storage", "env.MEDIA_TEST_MISSING"}},
		{"no group", `"resumable": "off"`, []string{"resumable"}},
		{"unknown field of uploads", `"resumable": {"max": 1}`, []string{`unknown field "max"`}},

		{"unknown field", `"cdn": "x"`, []string{`unknown field "cdn"`}},
		{"unknown field of a storage", storages(`, "strategy": "x"`), []string{`unknown field "strategy"`}},
		{"unknown field of a driver", `"storages": {"main": {"driver": {"name": "local", "root": "/x", "fsync": true}}}`, []string{`storage "main"`, `unknown field "fsync"`}},
		{"unknown field of an image alias", `"image_aliases": {"one": {"extensions": ["jpg"]}}`, []string{`unknown field "extensions"`}},
		{"unknown field of a file alias", `"file_aliases": {"one": {"svg": "keep"}}`, []string{`unknown field "svg"`}},
		{"unknown field of an account", `"accounts": {"shop": {"password": "x"}}`, []string{`unknown field "password"`}},
		{"unknown field of the tokens", `"tokens": {"store": "memory", "size": 1}`, []string{`unknown field "size"`}},
		{"unknown field of the limits", `"limits": {"max_size": 1}`, []string{`unknown field "max_size"`}},
	} {
		t.Run(c.name, func(t *testing.T) { wantError(t, "{"+c.app+"}", c.want...) })
	}
}

func wantError(t *testing.T, app string, want ...string) {
	t.Helper()
	err := caddy.Validate(configOf(app))
	if err == nil {
		t.Errorf("%.200s is accepted", app)
		return
	}
	for _, part := range want {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q, want %q in it", err, part)
		}
	}
	if strings.Contains(err.Error(), "expanded secret") {
		t.Errorf("error %q contains a secret", err)
	}
}

func TestNegativeLimits(t *testing.T) { // not parallel: Caddy has globals
	for _, limit := range []string{
		"max_body", "max_uploads", "max_upload_time", "max_files", "max_fields", "max_field_size", "max_part_header",
		"max_image_size", "max_file_size", "max_pixels", "max_frames", "max_frame_pixels", "max_side", "max_chunk_size",
		"image_workers", "image_memory", "image_queue", "image_wait", "image_time", "max_open_items", "login_failures", "tickets_per_minute", "password_checks",
	} {
		t.Run(limit, func(t *testing.T) { wantError(t, fmt.Sprintf(`{"limits": {%q: -1}}`, limit), "limits", limit) })
	}
}

// TestOverlappingBackends: two storages in one folder of one backend count as one, whatever their
// other options.
func TestOverlappingBackends(t *testing.T) { // not parallel: Caddy has globals
	const (
		folder = `"name": "local", "root": "/tmp/one"`
		bucket = `"name": "s3", "bucket": "b", "region": "eu-west-1", "access_key_id": "a", "secret_access_key": "a"`
		host   = `"name": "sftp", "address": "files.example", "user": "u", "password": "a", "insecure_skip_host_key": true`
	)
	for _, c := range []struct{ name, keeps, prefix, replaces, otherPrefix string }{
		{"equal settings", folder, "same", folder, "same"},
		{"sync", folder, "same", folder + `, "sync": false`, "same"},
		{"timeout", bucket, "same", bucket + `, "timeout": "5s"`, "same"},
		{"credentials", bucket, "same", strings.ReplaceAll(bucket, `"a"`, `"b"`), "same"},
		{"password", host, "same", strings.ReplaceAll(host, `"a"`, `"b"`), "same"},
		{"folder level", folder, "same/deep", `"name": "local", "root": "/tmp/one/same"`, "deep"},
		{"folder level of a bucket", bucket, "same/deep", bucket + `, "prefix": "same"`, "deep"},
		{"folder of renditions", folder, "same", `"name": "local", "root": "/tmp/one/same@renditions/1"`, "/"},
		{"folder within the other", host, "/", host + `, "root": "deep"`, "same"},
	} {
		t.Run(c.name, func(t *testing.T) {
			wantError(t, fmt.Sprintf(`{
				"storages": {
					"keeps": {"driver": {%s}},
					"replaces": {"driver": {%s}, "overwrite_strategy": "overwrite"}
				},
				"image_aliases": {"one": {"storage": "keeps", "prefix": %q}},
				"file_aliases": {"two": {"storage": "replaces", "prefix": %q}}
			}`, c.keeps, c.replaces, c.prefix, c.otherPrefix), `file alias "two"`, "overlaps", `alias "one"`, `storage "keeps"`)
		})
	}
}

// TestDownloadsErrors: an error names the invalid option.
func TestDownloadsErrors(t *testing.T) { // not parallel: Caddy has globals
	for config, want := range map[string]string{
		`{"allow": ["example.com"]}`:         `downloads: allow: "example.com" is neither`,
		`{"allow": ["10.0.0.0/33"]}`:         `downloads: allow: "10.0.0.0/33" is neither`,
		`{"allow": [""]}`:                    `downloads: allow: "" is neither`,
		`{"allow": ["::ffff:10.0.0.1"]}`:     `downloads: allow: "::ffff:10.0.0.1" is neither`,
		`{"allow": ["::ffff:10.0.0.0/104"]}`: `downloads: allow: "::ffff:10.0.0.0/104" is neither`,
		`{"allow": ["fe80::1%eth0"]}`:        `downloads: allow: "fe80::1%eth0" is neither`,
		`{"allow": ["{env.MEDIA_NOT_IT}"]}`:  "downloads: allow: ",
		`{"ports": ["http"]}`:                `downloads: ports: "http" is no port`,
		`{"ports": ["0"]}`:                   `downloads: ports: "0" is no port`,
		`{"ports": ["65536"]}`:               `downloads: ports: "65536" is no port`,
		`{"max_redirects": -1}`:              "downloads: max_redirects is a number above zero",
		`{"timeout": -1}`:                    "downloads: timeout is a duration above zero",
		`{"deny": []}`:                       `unknown field "deny"`,
	} {
		t.Run(config, func(t *testing.T) { wantError(t, `{"downloads": `+config+`}`, want) })
	}
	t.Setenv("MEDIA_TEST_NETWORK", "fd00::/8")
	provisioned(t, `{"downloads": {"allow": ["{env.MEDIA_TEST_NETWORK}", "192.168.1.7", "::1"], "ports": ["80"], "max_redirects": 1, "timeout": "5m"}}`)
	provisioned(t, `{"downloads": null}`)
}
