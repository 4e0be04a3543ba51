package adminapi

import (
	"maps"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/caddy/plugin"
)

const (
	archive = `"archive":{"driver":{"name":"local","root":"/a"}}`
	backup  = `"backup":{"driver":{"name":"local","root":"/b"}}`
)

// TestWhatTheAppAddsStays: a change writes the default storage and aliases, and changes the storage
// of no alias. $DEFAULT is the default storage.
func TestWhatTheAppAddsStays(t *testing.T) {
	t.Parallel()
	driver := parsed(t, string(plugin.DefaultDriver()))
	for name, c := range map[string]struct {
		app, want string
		do        func(config)
	}{
		"the first storage": {
			`{}`, `{"storages":{$DEFAULT,` + archive + `},"image_aliases":{"content":{"storage":"default"}},"file_aliases":{"content":{"storage":"default"}}}`,
			func(c config) { c.set(storages, "archive", parsed(t, `{"driver":{"name":"local","root":"/a"}}`)) },
		},
		"the default storage itself": {
			`{"file_aliases":{"a":{}}}`, `{"storages":{"default":{"sanitize":false,"driver":{"name":"local","root":"/a"}}},"file_aliases":{"a":{}}}`,
			func(c config) {
				c.set(storages, "default", parsed(t, `{"driver":{"name":"local","root":"/a"},"sanitize":false}`))
			},
		},
		"the first image alias": {
			`{}`, `{"storages":{$DEFAULT},"image_aliases":{"content":{},"photos":{}},"file_aliases":{"content":{}}}`,
			func(c config) { c.set(imageAliases, "photos", object{}) },
		},
		"the first file alias": {
			`{}`, `{"storages":{$DEFAULT},"image_aliases":{"content":{}},"file_aliases":{"content":{},"reports":{}}}`,
			func(c config) { c.set(fileAliases, "reports", object{}) },
		},
		"an image alias beside one": {
			`{"storages":{` + archive + `},"image_aliases":{"photos":{}}}`, `{"storages":{` + archive + `},"image_aliases":{"photos":{},"more":{}}}`,
			func(c config) { c.set(imageAliases, "more", object{}) },
		},
		"one of the app's aliases is removed": {
			`{}`, `{"storages":{$DEFAULT},"file_aliases":{"content":{}}}`,
			func(c config) { delete(c.section(imageAliases), "content") },
		},
		"a second storage, and the app's aliases used the only one": {
			`{"storages":{` + archive + `}}`,
			`{"storages":{` + archive + `,` + backup + `},"image_aliases":{"content":{"storage":"archive"}},"file_aliases":{"content":{"storage":"archive"}}}`,
			func(c config) { c.set(storages, "backup", parsed(t, `{"driver":{"name":"local","root":"/b"}}`)) },
		},
		"a storage called default, and an alias used the only one": {
			`{"storages":{` + archive + `},"image_aliases":{"photos":{"webp":{}}}}`,
			`{"storages":{` + archive + `,"default":{}},"image_aliases":{"photos":{"webp":{},"storage":"archive"}}}`,
			func(c config) { c.set(storages, "default", object{}) },
		},
		"a second storage beside default": {
			`{"storages":{"default":{}},"image_aliases":{"photos":{},"docs":{"storage":"{env.S}"}}}`,
			`{"storages":{"default":{},` + archive + `},"image_aliases":{"photos":{"storage":"default"},"docs":{"storage":"{env.S}"}}}`,
			func(c config) { c.set(storages, "archive", parsed(t, `{"driver":{"name":"local","root":"/a"}}`)) },
		},
		"a storage that is changed": {
			`{"storages":{` + archive + `},"image_aliases":{"photos":{}}}`,
			`{"storages":{"archive":{"driver":{"name":"local","root":"/b"}}},"image_aliases":{"photos":{}}}`,
			func(c config) { c.set(storages, "archive", parsed(t, `{"driver":{"name":"local","root":"/b"}}`)) },
		},
		"a storage of two goes": {
			`{"storages":{` + archive + `,"default":{}},"image_aliases":{"photos":{}}}`,
			`{"storages":{"default":{}},"image_aliases":{"photos":{}}}`,
			func(c config) { delete(c.section(storages), "archive") },
		},
		"the first account": {
			`{}`, `{"accounts":{"key":{}},"storages":{$DEFAULT},"image_aliases":{"content":{}},"file_aliases":{"content":{}}}`,
			func(c config) { c.set(accounts, "key", object{}) },
		},
		"the last account": {
			`{"accounts":{"key":{}},"storages":{` + archive + `},"image_aliases":{"photos":{}}}`, `{"storages":{` + archive + `},"image_aliases":{"photos":{}}}`,
			func(c config) { delete(c.section(accounts), "key") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := loaded(t, c.app)
			before := storagesOfAliases(config)
			c.do(config)
			changed, err := loadConfig(config.app, false)
			if err != nil {
				t.Fatal(err)
			}
			mustEqual(t, changed.app, strings.ReplaceAll(c.want, "$DEFAULT", `"default":{"driver":`+string(canonical(driver))+`}`))
			after := storagesOfAliases(changed)
			maps.DeleteFunc(before, func(alias use, storage string) bool {
				now, there := after[alias]
				return !there || now == storage
			})
			if len(before) > 0 {
				t.Errorf("aliases that have other storages now: %v", before)
			}
		})
	}
}

// storagesOfAliases returns the name of the storage of each alias.
func storagesOfAliases(c config) map[use]string {
	all := map[use]string{}
	for use, alias := range c.aliases() {
		all[use] = c.storageOf(alias)
	}
	return all
}

// TestSpelling: an option that Caddy accepts under another spelling is recognized, whatever the
// case of its key.
func TestSpelling(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		`{"@id":"m"}`: `{}`,
		`{"Storages":{"a":{"DRIVER":{"name":"sftp","Password":"p"},"Sanitize":false}}}`:              `{"storages":{"a":{"driver":{"name":"sftp","password":"p"},"sanitize":false}}}`,
		`{"Image_Aliases":{"a":{"WebP":{"Quality":3},"@id":"x"}},"File_aliases":{"a":{}}}`:           `{"image_aliases":{"a":{"webp":{"quality":3}}},"file_aliases":{"a":{}}}`,
		`{"image_aliases":{"a":{"renditions":{"Thumb":{"WIDTH":3}}}}}`:                               `{"image_aliases":{"a":{"renditions":{"Thumb":{"width":3}}}}}`,
		`{"Accounts":{"Key":{"paſſword_haſh":"h"}}}`:                                                 `{"accounts":{"Key":{"password_hash":"h"}}}`,
		`{"Tokens":{"store":"redis","PassWord":"p"}}`:                                                `{"tokens":{"store":"redis","password":"p"}}`,
		`{"token_lifetime":"1h","storages":{"x":{"driver":{"name":"foreign","Place":"p"}}}}`:         `{"token_lifetime":3600000000000,"storages":{"x":{"driver":{"name":"foreign","Place":"p"}}}}`,
		`{"STORAGES":{"a":{},"b":{"sanitize":true}},"storages":{"a":{"sanitize":false}}}`:            `{"storages":{"a":{"sanitize":false},"b":{"sanitize":true}}}`,
		`{"file_aliases":{"a":{"PREFIX":"one","prefix":"two"},"b":{"PREFIX":"one","Prefix":"two"}}}`: `{"file_aliases":{"a":{"prefix":"two"},"b":{"prefix":"two"}}}`,
	} {
		c, err := loadConfig(parsed(t, given), false)
		if err != nil {
			t.Fatalf("%v in %s", err, given)
		}
		mustEqual(t, c.app, want)
	}
}

// TestKeepsIDs: a change keeps the "@id" fields of all objects that stay.
func TestKeepsIDs(t *testing.T) {
	t.Parallel()
	a := &admin{body: `{"@id":"m","storages":{` + archive + `},"image_aliases":{"a":{"@id":"a","webp":{"@id":"w","quality":7}},"b":{"@id":"b"}}}`}
	change := change{section: imageAliases, name: "a", condition: condition{tags: "*"}, Value: parsed(t, `{"webp":{"quality":8}}`)}
	editor := editorOf(t, a)
	if _, err := editor.put(t.Context(), change); err != nil {
		t.Fatal(err)
	}
	if err := editor.remove(t.Context(), imageAliases, "b", condition{tags: "*"}); err != nil {
		t.Fatal(err)
	}
	mustEqual(t, parsed(t, a.body), `{"@id":"m","storages":{`+archive+`},"image_aliases":{"a":{"@id":"a","webp":{"@id":"w","quality":8}}}}`)
}

func TestUses(t *testing.T) {
	t.Parallel()
	const both = `{"image_aliases":{"a":{"storage":"archive"},"c":{}},"file_aliases":{"b":{"storage":"archive"},"c":{"storage":"default"}},
		"accounts":{"k2":{"aliases":["a","c"]},"k1":{"aliases":["a"]},"k3":{}},"storages":{` + archive + `,` + backup + `,"default":{}}}`
	for name, c := range map[string]struct {
		app     string
		section section
		entry   string
		want    string // of the error; empty if it may go
	}{
		"storage of aliases":            {both, storages, "archive", `storage "archive" is used by the image alias a and the file alias b`},
		"storage called default":        {both, storages, "default", `storage "default" is used by the image alias c and the file alias c`},
		"storage of nobody":             {both, storages, "backup", ""},
		"storage of resumable uploads":  {`{"resumable":{"storage":"backup"},` + both[1:], storages, "backup", `storage "backup" is used by resumable uploads`},
		"storage of both":               {`{"resumable":{"storage":"archive"},` + both[1:], storages, "archive", `the image alias a, the file alias b and resumable uploads`},
		"the only storage":              {`{"storages":{` + archive + `}}`, storages, "archive", `storage "archive" is used by the image alias content and the file alias content`},
		"the app's own storage":         {`{}`, storages, "default", `storage "default" is used by the image alias content and the file alias content`},
		"alias of accounts":             {both, imageAliases, "a", `image alias "a" is used by the account k1 and the account k2`},
		"alias whose name stays":        {both, imageAliases, "c", ""},
		"alias of nobody":               {both, fileAliases, "b", ""},
		"one of the app's own aliases":  {`{}`, imageAliases, "content", ""},
		"the last alias":                {`{"image_aliases":{"a":{}}}`, imageAliases, "a", `image alias "a" is the last alias`},
		"the last alias of one kind":    {`{"image_aliases":{"a":{}},"file_aliases":{"b":{}}}`, imageAliases, "a", ""},
		"an account":                    {both, accounts, "k1", ""},
		"storage of three in many ways": {`{"image_aliases":{"a":{},"b":{},"c":{}},"storages":{` + archive + `}}`, storages, "archive", "the image alias a, the image alias b and the image alias c"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := loaded(t, c.app).removable(c.section, c.entry)
			if (err == nil) != (c.want == "") {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			if status, _ := statusOf(err); err != nil && (status != 409 || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %d %v, want %q", status, err, c.want)
			}
			if used := `"used_by":[{"kind":"img","alias":"a"},{"kind":"file","alias":"b"}]`; name == "storage of aliases" &&
				!strings.Contains(string(canonical(err)), used) {
				t.Errorf("got %s, want %s", canonical(err), used)
			}
		})
	}
}
