package edit

import (
	"testing"

	_ "github.com/caddymedia/media/caddymedia/tokens/bolt"
)

func TestVeil(t *testing.T) {
	t.Parallel()
	c := config{parsed(t, `{"cdn_base":"https://x","limits":{"max_files":3},
		"tokens":{"store":"redis","addresses":["h:1"],"password":"r","url":"{env.REDIS}"},
		"accounts":{"site.one":{"password_hash":"h1"},"site-one":{"password_hash":"h2","aliases":["a"]}},
		"storages":{"archive":{"driver":{"name":"sftp","address":"h","password":"{file./run/p}","private_key":"KEY"}},
			"plain":{"driver":{"name":"local","root":"/a"}},
			"cut":{"driver":{"name":"sftp","password":"a{env.X}"}},
			"x":{"driver":{"name":"foreign","place":"p","port":1}}}}`)}
	c.veil()
	mustEqual(t, c.app, `{"cdn_base":"https://x","limits":{"max_files":3},
		"tokens":{"store":"redis","addresses":["h:1"],"password":"{env.MEDIA_TOKENS_PASSWORD}","url":"{env.REDIS}"},
		"accounts":{"site.one":{"password_hash":"{env.MEDIA_ACCOUNTS_SITE_ONE_PASSWORD_HASH_2}"},"site-one":{"password_hash":"{env.MEDIA_ACCOUNTS_SITE_ONE_PASSWORD_HASH}","aliases":["a"]}},
		"storages":{"archive":{"driver":{"name":"sftp","address":"h","password":"{file./run/p}","private_key":"{env.MEDIA_STORAGES_ARCHIVE_PRIVATE_KEY}"}},
			"plain":{"driver":{"name":"local","root":"/a"}},
			"cut":{"driver":{"name":"sftp","password":"{env.MEDIA_STORAGES_CUT_PASSWORD}"}},
			"x":{"driver":{"name":"foreign","place":"{env.MEDIA_STORAGES_X_PLACE}","port":"{env.MEDIA_STORAGES_X_PORT}"}}}}`)
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
			c := config{parsed(t, `{"tokens":`+test.tokens+`}`)}
			c.veil()
			mustEqual(t, c.app, `{"tokens":`+test.want+`}`)
		})
	}
}
