package adminapi

import (
	"slices"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

// TestVeil: each secret is replaced by a placeholder. Without a description of a module all its
// options are. A variable of the configuration stands for no other secret.
func TestVeil(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ app, want string }{
		"options": {`{"cdn_base":"https://x","limits":{"max_files":3}}`, `{"cdn_base":"https://x","limits":{"max_files":3}}`},
		"accounts": {
			`{"accounts":{"site.one":{"password_hash":"h1"},"site-one":{"password_hash":"h2","s3_secret":"s","aliases":["a"]}}}`,
			`{"accounts":{"site.one":{"password_hash":"{env.MEDIA_ACCOUNTS_SITE_ONE_PASSWORD_HASH_2}"},
				"site-one":{"password_hash":"{env.MEDIA_ACCOUNTS_SITE_ONE_PASSWORD_HASH}","s3_secret":"{env.MEDIA_ACCOUNTS_SITE_ONE_S3_SECRET}","aliases":["a"]}}}`,
		},
		"variables": {
			`{"accounts":{"site-one":{"password_hash":"{env.MEDIA_ACCOUNTS_SITE_ONE_PASSWORD_HASH}"},"site.one":{"password_hash":"h"}}}`,
			`{"accounts":{"site-one":{"password_hash":"{env.MEDIA_ACCOUNTS_SITE_ONE_PASSWORD_HASH}"},
				"site.one":{"password_hash":"{env.MEDIA_ACCOUNTS_SITE_ONE_PASSWORD_HASH_2}"}}}`,
		},
		"storages": {
			`{"storages":{"archive":{"driver":{"name":"sftp","address":"h","password":"{file./run/p}","private_key":"KEY"}},
				"plain":{"driver":{"name":"local","root":"/a"}},"cut":{"driver":{"name":"sftp","password":"a{env.X}"}},
				"x":{"driver":{"name":"unknown","place":"p","port":1}}}}`,
			`{"storages":{"archive":{"driver":{"name":"sftp","address":"h","password":"{file./run/p}","private_key":"{env.MEDIA_STORAGES_ARCHIVE_PRIVATE_KEY}"}},
				"plain":{"driver":{"name":"local","root":"/a"}},"cut":{"driver":{"name":"sftp","password":"{env.MEDIA_STORAGES_CUT_PASSWORD}"}},
				"x":{"driver":{"name":"unknown","place":"{env.MEDIA_STORAGES_X_PLACE}","port":"{env.MEDIA_STORAGES_X_PORT}"}}}}`,
		},
		"redis": {
			`{"tokens":{"store":"redis","url":"u","addresses":["h:1"],"password":"p","sentinel_password":"s","username":"n","tls_key_file":"/k"}}`,
			`{"tokens":{"store":"redis","url":"{env.MEDIA_TOKENS_URL}","addresses":["h:1"],"password":"{env.MEDIA_TOKENS_PASSWORD}",
				"sentinel_password":"{env.MEDIA_TOKENS_SENTINEL_PASSWORD}","username":"n","tls_key_file":"/k"}}`,
		},
		"signing keys": {
			`{"signing_key":["k1","{env.K}","k3"]}`, `{"signing_key":["{env.MEDIA_SIGNING_KEY_0}","{env.K}","{env.MEDIA_SIGNING_KEY_2}"]}`,
		},
		"bolt":          {`{"tokens":{"store":"bolt","path":"/t.db"}}`, `{"tokens":{"store":"bolt","path":"/t.db"}}`},
		"unknown store": {`{"tokens":{"store":"unknown","dsn":"s","n":1}}`, `{"tokens":{"store":"unknown","dsn":"{env.MEDIA_TOKENS_DSN}","n":"{env.MEDIA_TOKENS_N}"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := config{app: parsed(t, test.app)}
			got := c.veil()
			mustEqual(t, c.app, test.want)
			if want := (variable{"MEDIA_ACCOUNTS_SITE_ONE_PASSWORD_HASH_2", "accounts/site.one/password_hash"}); name == "variables" && !slices.Equal(got, []variable{want}) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

func TestCaddyfileOfNothing(t *testing.T) {
	t.Parallel()
	got, err := config{}.caddyfile("curl x")
	if err != nil {
		t.Fatal(err)
	}
	if got := string(canonical(got)); got != `{"text":"\tmedia\n","command":"curl x","variables":[],"omitted":[]}` {
		t.Errorf("got %s", got)
	}
}

func TestCaddyfile(t *testing.T) {
	t.Parallel()
	c := config{app: parsed(t, `{"accounts":{"shop":{"password_hash":"$2a$14$x"}},"spool_folder":"/\\{$X\\}",
		"storages":{"far":{"driver":{"name":"sftp","address":"h","user":"u","password":"p{$X}","agent":true}}}}`)}
	got, err := c.caddyfile("curl -sS localhost:2119/config/apps/media")
	if err != nil {
		t.Fatal(err)
	}
	const want = `	# Variables to set in the environment of Caddy. Keep the line of the old Caddyfile instead where
	# its value was not changed. curl -sS localhost:2119/config/apps/media/<path> prints each value:
	#   MEDIA_ACCOUNTS_SHOP_PASSWORD_HASH: accounts/shop/password_hash
	#   MEDIA_STORAGES_FAR_PASSWORD: storages/far/driver/password
	# Not in this block, because a Caddyfile cannot express it:
	#   spool_folder
	media {
		account shop {env.MEDIA_ACCOUNTS_SHOP_PASSWORD_HASH}
		storage far {
			driver sftp h {
				user u
				password {env.MEDIA_STORAGES_FAR_PASSWORD}
				agent on
			}
		}
	}
`
	if got.Text != want {
		t.Errorf("got:\n%s\nwant:\n%s", got.Text, want)
	}
	if config := "{\n" + want + "}\n"; string(caddyfile.Format([]byte(config))) != config {
		t.Error("not formatted by `caddy fmt`")
	}
	if len(got.Variables) != 2 || !slices.Equal(got.Omitted, []string{"spool_folder"}) {
		t.Errorf("got %+v", got)
	}
}
