package plugin_test

import (
	"strings"
	"testing"
	"text/template"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddymedia/media/caddymedia/internal/plugin"
	_ "github.com/caddymedia/media/storagedrivers/local" // the default driver
)

// functions returns the template functions of a configuration with only the media app.
func functions(t *testing.T, app string) template.FuncMap {
	t.Helper()
	ctx, err := caddy.ProvisionContext(configOf(app))
	if err != nil {
		t.Fatal(err)
	}
	media, err := ctx.App("media")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := media.(*plugin.App).Cleanup(); err != nil {
			t.Error(err)
		}
	})
	module, err := ctx.LoadModuleByID("http.handlers.templates.functions.media", nil)
	if err != nil {
		t.Fatal(err)
	}
	return module.(*plugin.Functions).CustomTemplateFunctions()
}

func TestFunctions(t *testing.T) { // not parallel: Caddy has globals
	const photos = `"image_aliases": {"photos": {}}, "file_aliases": {"docs": {"cdn_base": "https://files.example.com"}}`
	const private = `"signing_key": ["a key of thirty-two bytes, or more"], "file_aliases": {"papers": {"private": {}}},
		"image_aliases": {"photos": {"private": {}, "renditions": {"thumb": {"width": 320}}}}`
	const sized = `"image_aliases": {"sized": {"renditions": {"thumb": {"width": 320}}}}`
	for _, c := range []struct {
		name, app, page string
		want            string
		fails           string
	}{
		{"default alias", `{}`, `{{image_path "content"}}/{{"a.jpg"}} {{file_path "content"}}`, "/static/img/content/a.jpg /static/file/content", ""},
		{"cdn_base", `{"cdn_base": "https://cdn.example.com/", ` + photos + `}`, `{{image_path "photos"}}`, "https://cdn.example.com/static/img/photos", ""},
		{"cdn_base of an alias", `{"cdn_base": "https://cdn.example.com", ` + photos + `}`, `{{file_path "docs"}}`, "https://files.example.com/static/file/docs", ""},
		{"unknown alias", `{}`, `{{image_path "nobody"}}`, "", `unknown alias "nobody"`},
		{"alias of the other kind", `{` + photos + `}`, `{{file_path "photos"}}`, "", `unknown alias "photos"`},
		{"alias of the other kind", `{` + photos + `}`, `{{image_path "docs"}}`, "", `unknown alias "docs"`},
		{"rendition", `{` + sized + `}`, `{{image_path "sized@thumb"}}/a.jpg`, "/static/img/sized@thumb/a.jpg", ""},
		{"unknown rendition", `{` + sized + `}`, `{{image_path "sized@other"}}`, "", `unknown rendition "other" of the alias "sized"`},
		{"rendition of files", `{}`, `{{file_path "content@thumb"}}`, "", `unknown rendition "thumb"`},
		{"srcset without an image", `{` + sized + `}`, `<{{image_srcset "sized" "none.jpg"}}>`, "<>", ""},
		{"srcset of an unknown alias", `{}`, `{{image_srcset "nobody" "a.jpg"}}`, "", `unknown alias "nobody"`},
		{"signed image", `{` + private + `}`, `{{image_url "photos" "a b.jpg" "1h"}}`, "/static/img/photos/a%20b.jpg?expires=", ""},
		{"signed rendition", `{` + private + `}`, `{{image_url "photos@thumb" "a.jpg"}}`, "/static/img/photos@thumb/a.jpg?expires=", ""},
		{"signed file", `{"cdn_base": "https://cdn.example.com", ` + private + `}`, `{{file_url "papers" "a.pdf" "7d"}}`, "https://cdn.example.com/static/file/papers/a.pdf?expires=", ""},
		{"signed for too long", `{` + private + `}`, `{{file_url "papers" "a.pdf" "8d"}}`, "", "valid for 1 to 604800 seconds"},
		{"signed for no time", `{` + private + `}`, `{{file_url "papers" "a.pdf" "soon"}}`, "", "the lifetime is a duration such as 1h"},
		{"signed twice as long", `{` + private + `}`, `{{file_url "papers" "a.pdf" "1h" "1h"}}`, "", "one lifetime at most"},
		{"signed in a public alias", `{` + photos + `}`, `{{image_url "photos" "a.jpg" "1h"}}`, "", `the alias "photos" is not private`},
		{"signed in an unknown alias", `{}`, `{{file_url "papers" "a.pdf" "1h"}}`, "", `unknown alias "papers"`},
		{"no alias", `{}`, `{{image_path ""}}`, "", `unknown alias ""`},
	} {
		t.Run(c.name, func(t *testing.T) {
			page, err := template.New("page").Funcs(functions(t, c.app)).Parse(c.page)
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			err = page.Execute(&got, nil)
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Errorf("error %v, want %q", err, c.fails)
				}
				return
			}
			start, _, isSigned := strings.Cut(got.String(), "expires=")
			if isSigned {
				got.Reset()
				got.WriteString(start + "expires=")
			}
			if err != nil || got.String() != c.want {
				t.Errorf("got %q (%v), want %q", got.String(), err, c.want)
			}
		})
	}
}

func TestFunctionsCaddyfile(t *testing.T) {
	t.Parallel()
	for input, fails := range map[string]bool{
		"media": false, "media {\n}": false, "media content": true, "media {\n alias content\n}": true,
	} {
		if err := new(plugin.Functions).UnmarshalCaddyfile(caddyfile.NewTestDispenser(input)); (err != nil) != fails {
			t.Errorf("%q: error %v", input, err)
		}
	}
}
