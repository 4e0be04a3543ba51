package edit

import "testing"

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

func TestVeilForeignTokens(t *testing.T) {
	t.Parallel()
	c := config{parsed(t, `{"tokens":{"store":"foreign","dsn":"s","n":1}}`)}
	c.veil()
	mustEqual(t, c.app, `{"tokens":{"store":"foreign","dsn":"{env.MEDIA_TOKENS_DSN}","n":"{env.MEDIA_TOKENS_N}"}}`)
}
