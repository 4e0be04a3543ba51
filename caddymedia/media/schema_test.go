package media

import (
	"reflect"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers/options"
)

// TestSchemas: all options are documented, and the right ones are secret.
func TestSchemas(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]*options.Schema{
		"settings": Schemas.Settings, "account": Schemas.Account, "storage": Schemas.Storage, "image alias": Schemas.ImageAlias,
		"file alias": Schemas.FileAlias, "rendition": Schemas.Rendition, "limits": Schemas.Limits, "downloads": Schemas.Downloads,
		"resumable": Schemas.Resumable,
	} {
		s = s.Documented()
		if err := s.Err(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if s.Help == "" {
			t.Errorf("%s has no help", name)
		}
		for _, o := range s.Options {
			if want := o.Name == "password_hash" || o.Name == "signing_key"; o.Secret != want {
				t.Errorf("%s of %s: secret %t, want %t", o.Name, name, o.Secret, want)
			}
			if o.Default == "" && !o.Required {
				t.Errorf("%s of %s says nothing of its default", o.Name, name)
			}
		}
	}
}

func TestSchemaValues(t *testing.T) {
	t.Parallel()
	off := false
	for _, c := range []struct {
		name   string
		schema *options.Schema
		config any
		want   map[string]any
	}{
		{"storage", Schemas.Storage, &Storage{Name: "a", Sanitize: &off}, map[string]any{"sanitize": false}},
		{"account", Schemas.Account, &Account{PasswordHash: "x"}, map[string]any{"password_hash": "set"}},
		{
			"image alias", Schemas.ImageAlias,
			&ImageAlias{
				AliasOptions: AliasOptions{MaxSize: 5, Redirect: &Redirect{To: "presigned", Lifetime: options.Duration(2 * time.Hour)}},
				WebP:         &WebP{Quality: 70}, Negotiate: true,
			},
			map[string]any{
				"max_size": int64(5), "redirect": map[string]any{"to": "presigned", "lifetime": "2h"},
				"webp": map[string]any{"quality": 70}, "negotiate": true,
			},
		},
		{
			"file alias", Schemas.FileAlias, &FileAlias{Extensions: []string{"pdf"}},
			map[string]any{"extensions": []string{"pdf"}},
		},
	} {
		if got := c.schema.Values(c.config); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}
