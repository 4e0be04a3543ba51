package modules

import (
	"reflect"
	"strings"
	"testing"

	"github.com/caddymedia/media/storagedrivers/options"
)

func TestExpand(t *testing.T) {
	t.Setenv("SCHEMA_TEST", "val{env.HOME}ue")
	t.Setenv("SCHEMA_TEST_WORD", "two")
	given := config{
		Name: "a {env.SCHEMA_TEST} b", common: common{Where: "HTTPS://example.com/a b//"}, Folder: "/x/y/",
		Mode: "{env.SCHEMA_TEST_WORD}", Secret: "{env.SCHEMA_TEST}", Secrets: []string{"{env.SCHEMA_TEST}", "x"},
		List: nil, Few: 1, Group: &inner{Key: "{env.SCHEMA_TEST}", Mode: "{env.SCHEMA_TEST_WORD}"},
		Boxes: map[string]*box{"a": {Key: "{env.SCHEMA_TEST}", Width: 3}, "b": nil},
	}
	want := config{
		Name: "a val{env.HOME}ue b", common: common{Where: "https://example.com/a%20b"}, Folder: "x/y",
		Mode: "two", Secret: "val{env.HOME}ue", Secrets: []string{"val{env.HOME}ue", "x"},
		List: nil, Few: 1, Group: &inner{Key: "val{env.HOME}ue", Mode: "two"},
		Boxes: map[string]*box{"a": {Key: "val{env.HOME}ue", Width: 3}, "b": {}},
	}
	expanded := given
	if err := described.Expand(&expanded, Expander()); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(expanded, want) {
		t.Errorf("got %+v, want %+v", expanded, want)
	}
	if given.Secrets[0] != "{env.SCHEMA_TEST}" || given.Group.Key != "{env.SCHEMA_TEST}" ||
		given.Boxes["a"].Key != "{env.SCHEMA_TEST}" || given.Boxes["b"] != nil {
		t.Errorf("what the copy was made of became %+v, %+v, %+v", given, given.Group, given.Boxes["a"])
	}
}

// TestExpandEmptyList: [] or {} in JSON is the same as an option that is missing in a Caddyfile,
// also in comparisons of expanded options.
func TestExpandEmptyList(t *testing.T) {
	t.Parallel()
	without, empty := config{Name: "n"}, config{Name: "n", List: []string{}, Secrets: []string{}, Boxes: map[string]*box{}}
	for _, c := range []*config{&without, &empty} {
		if err := described.Expand(c, Expander()); err != nil {
			t.Fatal(err)
		}
	}
	if !reflect.DeepEqual(without, empty) {
		t.Errorf("none is %#v, an empty list %#v", without.List, empty.List)
	}
}

// TestExpandSecretErrors: the error about a secret contains nothing of it, except where a reference
// says where the secret is.
func TestExpandSecretErrors(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{
		"{hunter22}", "a{hunter22}b", "{env.hunter22}b", "{a}{hunter22", "{env.a}{hunter22}", "{http.hunter22}", strings.Repeat("{", 200) + "hunter22",
	} {
		for _, c := range []*config{{Name: "n", Secret: secret}, {Name: "n", Secrets: []string{secret}}} {
			err := described.Expand(c, Expander())
			if err == nil || !strings.HasPrefix(err.Error(), "secret") || strings.Contains(err.Error(), "hunter") {
				t.Errorf("%s: error %v", secret, err)
			}
		}
	}
	for _, text := range []string{"{env.SCHEMA_TEST_NONE}", "{file./schema/test/none}"} {
		if err := described.Expand(&config{Name: "n", Secret: text}, Expander()); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: error %v", text, err)
		}
	}
}

func TestExpandErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		change func(*config)
		want   string // the beginning of the error
	}{
		{func(c *config) { c.Name = "" }, "name is missing"},
		{func(c *config) { c.Name = "{env.SCHEMA_TEST_NONE}" }, "name: evaluated placeholder"},
		{func(c *config) { c.Name = "{env.SCHEMA_TEST_NONE}"; c.Mode = "x" }, "name: "},
		{func(c *config) { c.List = []string{"a", "{env.SCHEMA_TEST_NONE}"} }, "list: evaluated placeholder"},
		{func(c *config) { c.Mode = "three" }, `mode is one of one, two, not "three"`},
		{func(c *config) { c.Folder = "a//b" }, "folder: invalid key"},
		{func(c *config) { c.Folder = "../a" }, "folder: invalid key"},
		{func(c *config) { c.Few = -1 }, "few is a number above zero, not -1"},
		{func(c *config) { c.Many = -2 }, "many is a number above zero, not -2"},
		{func(c *config) { c.Size = -3 }, "size is a size above zero, not -3"},
		{func(c *config) { c.Every = options.Duration(-4e9) }, "every is a duration above zero, not -4s"},
		{func(c *config) { c.Group = new(inner) }, "group.key is missing"},
		{func(c *config) { c.Group = &inner{Key: "{env.SCHEMA_TEST_NONE}"} }, "group.key: evaluated placeholder"},
		{func(c *config) { c.Group = &inner{Key: "k", Mode: "x"} }, "group.mode is one of one, two"},
		{func(c *config) { c.Group = &inner{Key: "k", Where: "x"} }, "group.where is an address such as https://example.com"},
		{func(c *config) { c.Group = &inner{Key: "k", Every: -1} }, "group.every is a duration above zero"},
		{func(c *config) { c.Boxes = map[string]*box{"b": {Width: -2}, "a": {Width: -1}} }, "boxes.a.width is a number above zero, not -1"},
		{func(c *config) { c.Boxes = map[string]*box{"b": {Key: "{a}"}, "a": {Width: -1}} }, "boxes.b.key: there is a placeholder"},
	} {
		given := config{Name: "n"}
		c.change(&given)
		if err := described.Expand(&given, Expander()); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}

// TestAddresses: addresses are checked and normalised, and errors contain no secrets.
func TestAddresses(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"":                            "",
		"http://localhost:9000":       "http://localhost:9000",
		"https://[::1]:9000/":         "https://[::1]:9000",
		"https://example.com/a/b/":    "https://example.com/a/b",
		"example.com":                 `not "example.com"`,
		"ftp://example.com":           `not "ftp://example.com"`,
		"https://":                    `not "https://"`,
		"https:///x":                  `not "https:///x"`,
		"http://[::1":                 `not "http://[::1"`,
		" ":                           `not " "`,
		"https://example.com#x":       `not "https://example.com#x"`,
		"https://example.com?":        `not "https://example.com?..."`,
		"https://example.com?sig=hid": `not "https://example.com?..."`,
		"https://me@example.com":      `not "https://me@example.com"`,
		"https://me:hid@example.com":  `not "https://me:xxxxx@example.com"`,
		"https://me:hid@exa mple.com": `not "...@..."`,
		"me:hid@example.com":          `not "...@..."`,
	} {
		given := config{Name: "n", common: common{Where: address}}
		err := described.Expand(&given, Expander())
		if !strings.HasPrefix(want, "not ") {
			if err != nil || given.Where != want {
				t.Errorf("%s became %s, error %v, want %s", address, given.Where, err, want)
			}
			continue
		}
		if err == nil || err.Error() != "where is an address such as https://example.com, "+want {
			t.Errorf("%s: error %v, want %s", address, err, want)
		}
	}
}
