package edit

import "testing"

// TestFold: what Caddy takes for an option is one here too, whatever the case of its key.
func TestFold(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		`{}`: `{}`,
		`{"Storages":{"a":{"DRIVER":{"name":"sftp","Password":"p"},"Sanitize":false}}}`:              `{"storages":{"a":{"driver":{"name":"sftp","password":"p"},"sanitize":false}}}`,
		`{"Image_Aliases":{"a":{"WebP":{"Quality":3},"@id":"x"}},"File_aliases":{"a":null}}`:         `{"image_aliases":{"a":{"webp":{"quality":3},"@id":"x"}},"file_aliases":{"a":null}}`,
		`{"image_aliases":{"a":{"Renditions":{"Thumb":{"WIDTH":3}}}}}`:                               `{"image_aliases":{"a":{"renditions":{"Thumb":{"width":3}}}}}`,
		`{"Accounts":{"Key":{"paſſword_haſh":"h"}}}`:                                                 `{"accounts":{"Key":{"password_hash":"h"}}}`,
		`{"Tokens":{"store":"redis","PassWord":"p","x":1}}`:                                          `{"tokens":{"store":"redis","password":"p","x":1}}`,
		`{"STORAGES":{"a":{},"b":{"sanitize":true}},"storages":{"a":{"sanitize":false}}}`:            `{"storages":{"a":{"sanitize":false},"b":{"sanitize":true}}}`,
		`{"file_aliases":{"a":{"PREFIX":"one","prefix":"two"},"b":{"PREFIX":"one","Prefix":"two"}}}`: `{"file_aliases":{"a":{"prefix":"two"},"b":{"prefix":"two"}}}`,
	} {
		c := config{parsed(t, given)}
		c.fold()
		mustEqual(t, c.app, want)
	}
}
