package modules

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddymedia/media/storagedrivers/options"
)

func TestCaddyfileQuotes(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{
		"plain":            "plain",
		"/srv/médium":      "/srv/médium",
		"%y-%m/%d":         "%y-%m/%d",
		"a$b,c=d;e":        "a$b,c=d;e",
		"a#b":              `"a#b"`, // `caddy fmt` takes it for a comment
		"{env.A}":          "{env.A}",
		"a{env.A}/{env.B}": "a{env.A}/{env.B}",
		"$2a$14$abc./DEF":  "$2a$14$abc./DEF",
		"":                 `""`,
		"two words":        `"two words"`,
		"two\nlines":       "\"two\nlines\"",
		"\u00a0":           "\"\u00a0\"",
		`a"b`:              `"a\"b"`,
		"`":                "\"`\"",
		"#":                `"#"`,
		"<<END":            `"<<END"`,
		"{":                `"{"`,
		"}":                `"}"`,
		"{}":               `"{}"`,
		"a{b":              `"a{b"`,
		"{{env.A}}":        `"{{env.A}}"`,
		`C:\media`:         `"C:\media"`,
		`C:\media\`:        "<<END\nC:\\media\\\nEND",
		`END\"`:            "<<END_\nEND\\\"\nEND_",
	} {
		if got := options.Caddyfile(0, options.Line{Words: []string{"name", word}}); got != "name "+want+"\n" {
			t.Errorf("%q: got %q, want %q", word, got, want)
		}
	}
}

// FuzzCaddyfile: Caddy reads each word as it was, and `caddy fmt` changes nothing.
func FuzzCaddyfile(f *testing.F) {
	for _, word := range []string{"", "a b", `"`, "{", "}", "{env.X}", "a{b", "`", "#", "a\nb", `\`, "`\\\"", "<<END", "a\tb ", "é", "\v"} {
		f.Add(word)
	}
	f.Fuzz(func(t *testing.T, word string) {
		if !utf8.ValidString(word) || strings.Contains(word, "\r") { // JSON has no such text; Caddy drops \r
			return
		}
		want := []string{"block", word, "{", "name", word, word, "next", word + "x", "}"}
		text := options.Caddyfile(0, options.Line{Words: want[:2], Block: []options.Line{{Words: want[3:6]}, {Words: want[6:8]}}})
		tokens, err := caddyfile.Tokenize([]byte(text), "Caddyfile")
		if err != nil {
			t.Fatalf("%v in %q", err, text)
		}
		var got []string
		for _, token := range tokens {
			got = append(got, token.Text)
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q, of %q", got, want, text)
		}
		if formatted := caddyfile.Format([]byte(text)); string(formatted) != text {
			t.Errorf("got %q, formatted %q", text, formatted)
		}
	})
}

// FuzzGroups: named groups are written and read again with the same values.
func FuzzGroups(f *testing.F) {
	for _, name := range []string{"thumb", "", "a b", `"`, "{", "}", "{env.X}", "#", "a\nb", `\`, "<<END"} {
		f.Add(name, "key", 1)
		f.Add("thumb", name, -1)
	}
	f.Fuzz(func(t *testing.T, name, key string, width int) {
		if !utf8.ValidString(name) || !utf8.ValidString(key) || strings.Contains(name+key, "\r") ||
			strings.Contains(name, "{$") || strings.Contains(key, "{$") { // see FuzzCaddyfile and Caddyfile
			return
		}
		want := config{Name: "x", Boxes: map[string]*box{name: {Key: key, Width: max(width, 0)}, name + "2": {}}}
		text := options.Caddyfile(0, described.Line(&want, "test"))
		got, err := parseTest(text)
		if err != nil {
			t.Fatalf("%v in %q", err, text)
		}
		if !reflect.DeepEqual(*got, want) {
			t.Errorf("got %+v, want %+v, of %q", got, want, text)
		}
		if formatted := caddyfile.Format([]byte(text)); string(formatted) != text {
			t.Errorf("got %q, formatted %q", text, formatted)
		}
	})
}

// TestLines: what is written is read again with the same values.
func TestLines(t *testing.T) {
	t.Parallel()
	on, off := true, false
	for name, test := range map[string]struct {
		config config
		want   string
	}{
		"first": {config{Name: "x"}, "test x\n"},
		"others": {
			config{Name: "x", Folder: "a b", Mode: "two", Off: true, On: &off, Few: 3, Many: 4, Every: options.Duration(3600e9)},
			"test x {\n\tfolder \"a b\"\n\tmode two\n\toff on\n" + "\ton off\n\tfew 3\n\tmany 4\n\tevery 1h\n}\n",
		},
		"lists": {
			config{Name: "x", Secrets: []string{"a", "{env.B}"}, List: []string{"a", "", "c"}, On: &on},
			"test x {\n\tsecrets a\n\tsecrets {env.B}\n\tlist a \"\" c\n\ton" + " on\n}\n",
		},
		"group": {config{Name: "x", Group: &inner{Key: "k"}}, "test x {\n\tgroup k\n}\n"},
		"named groups": {
			config{Name: "x", Boxes: map[string]*box{"b": {Width: 3, On: &off, Key: "a b"}, "a": {}}},
			"test x {\n\tbox a\n\tbox b {\n\t\tkey \"a b\"\n\t\twidth 3\n" + "\t\ton off\n\t}\n}\n",
		},
		"embedded":    {config{Name: "x", common: common{Where: "https://x"}}, "test x {\n\twhere https://x\n}\n"},
		"a size":      {config{Name: "x", Size: 3 << 20}, "test x {\n\tsize 3MiB\n}\n"},
		"an odd size": {config{Name: "x", Size: 1<<52 + 1}, "test x {\n\tsize 4503599627370497\n}\n"},
		"a huge size": {config{Name: "x", Size: 1 << 62}, "test x {\n\tsize 4096PiB\n}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := options.Caddyfile(0, described.Line(&test.config, "test"))
			if text != test.want {
				t.Errorf("got:\n%s\nwant:\n%s", text, test.want)
			}
			again, err := parseTest(text)
			if err != nil {
				t.Fatal(err)
			}
			got, _ := json.Marshal(again)
			if want, _ := json.Marshal(test.config); string(got) != string(want) {
				t.Errorf("read as %s, want %s", got, want)
			}
		})
	}
}
