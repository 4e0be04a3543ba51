package api

import (
	"slices"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

func TestVeil(t *testing.T) {
	t.Parallel()
	c := config{app: parsed(t, `{"cdn_base":"https://x","limits":{"max_files":3},
		"tokens":{"store":"redis","addresses":["h:1"],"password":"r","url":"{env.REDIS}"},
		"accounts":{"site.one":{"password_hash":"h1"},"site-one":{"password_hash":"h2","aliases":["a"]}},
		"storages":{"archive":{"driver":{"name":"sftp","address":"h","password":"{file./run/p}","private_key":"KEY"}},
			"plain":{"driver":{"name":"local","root":"/a"}},
			"cut":{"driver":{"name":"sftp","password":"a{env.X}"}},
			"x":{"driver":{"name":"unknown","place":"p","port":1}}}}`)}
	c.veil()
	mustEqual(t, c.app, `{"cdn_base":"https://x","limits":{"max_files":3},
		"tokens":{"store":"redis","addresses":["h:1"],"password":"{env.MEDIA_TOKENS_PASSWORD}","url":"{env.REDIS}"},
		"accounts":{"site.one":{"password_hash":"{env.MEDIA_ACCOUNTS_SITE_ONE_PASSWORD_HASH_2}"},"site-one":{"password_hash":"{env.MEDIA_ACCOUNTS_SITE_ONE_PASSWORD_HASH}","aliases":["a"]}},
		"storages":{"archive":{"driver":{"name":"sftp","address":"h","password":"{file./run/p}","private_key":"{env.MEDIA_STORAGES_ARCHIVE_PRIVATE_KEY}"}},
			"plain":{"driver":{"name":"local","root":"/a"}},
			"cut":{"driver":{"name":"sftp","password":"{env.MEDIA_STORAGES_CUT_PASSWORD}"}},
			"x":{"driver":{"name":"unknown","place":"{env.MEDIA_STORAGES_X_PLACE}","port":"{env.MEDIA_STORAGES_X_PORT}"}}}}`)
}

// TestVeilKeepsVariables: a variable of the configuration stands for no other secret.
func TestVeilKeepsVariables(t *testing.T) {
	t.Parallel()
	c := config{app: parsed(t, `{"accounts":{"site-one":{"password_hash":"{env.MEDIA_ACCOUNTS_SITE_ONE_PASSWORD_HASH}"},"site.one":{"password_hash":"h"}}}`)}
	got := c.veil()
	mustEqual(t, c.app, `{"accounts":{"site-one":{"password_hash":"{env.MEDIA_ACCOUNTS_SITE_ONE_PASSWORD_HASH}"},
		"site.one":{"password_hash":"{env.MEDIA_ACCOUNTS_SITE_ONE_PASSWORD_HASH_2}"}}}`)
	if want := []variable{{"MEDIA_ACCOUNTS_SITE_ONE_PASSWORD_HASH_2", "accounts/site.one/password_hash"}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
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

func TestVeilTokens(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ tokens, want string }{
		"redis": {
			`{"store":"redis","url":"u","password":"p","sentinel_password":"s","username":"n","tls_key_file":"/k"}`,
			`{"store":"redis","url":"{env.MEDIA_TOKENS_URL}","password":"{env.MEDIA_TOKENS_PASSWORD}",
				"sentinel_password":"{env.MEDIA_TOKENS_SENTINEL_PASSWORD}","username":"n","tls_key_file":"/k"}`,
		},
		"bolt":    {`{"store":"bolt","path":"/t.db"}`, `{"store":"bolt","path":"/t.db"}`},
		"memory":  {`{"store":"memory"}`, `{"store":"memory"}`},
		"foreign": {`{"store":"foreign","dsn":"s","n":1}`, `{"store":"foreign","dsn":"{env.MEDIA_TOKENS_DSN}","n":"{env.MEDIA_TOKENS_N}"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := config{app: parsed(t, `{"tokens":`+test.tokens+`}`)}
			c.veil()
			mustEqual(t, c.app, `{"tokens":`+test.want+`}`)
		})
	}
}
