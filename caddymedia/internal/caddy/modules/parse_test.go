package modules

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddymedia/media/storagedrivers/options"
)

var boxes = options.Of[box]()

func parseTest(input string) (*config, error) {
	c := new(config)
	custom := Readers{
		"group": func(d *caddyfile.Dispenser) error {
			c.Group = new(inner)
			return ReadText(&c.Group.Key)(d)
		},
		"box": func(d *caddyfile.Dispenser) error {
			var name string
			if !d.AllArgs(&name) {
				return d.ArgErr()
			}
			if c.Boxes == nil {
				c.Boxes = map[string]*box{}
			}
			c.Boxes[name] = new(box)
			return Parse(d, "a box", boxes, c.Boxes[name], nil)
		},
	}
	return c, parseModule(caddyfile.NewTestDispenser(input), "a test", described, c, custom)
}

func TestParseModule(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]string{
		"test x":                                       `{"name":"x","where":""}`,
		"test {\n name x\n}":                           `{"name":"x","where":""}`,
		"test x {\n where https://y\n}":                `{"name":"x","where":"https://y"}`,
		"test x {\n folder a\n mode two\n}":            `{"name":"x","where":"","folder":"a","mode":"two"}`,
		"test x {\n mode {env.ANY}\n}":                 `{"name":"x","where":"","mode":"{env.ANY}"}`,
		"test x {\n mode t{env.ANY}\n}":                `{"name":"x","where":"","mode":"t{env.ANY}"}`,
		"test x {\n mode \"\"\n}":                      `{"name":"x","where":""}`,
		"test x {\n secrets a b\n secrets c\n}":        `{"name":"x","where":"","secrets":["a","b","c"]}`,
		"test x {\n list a b\n}":                       `{"name":"x","where":"","list":["a","b"]}`,
		"test x {\n off on\n}":                         `{"name":"x","where":"","off":true}`,
		"test x {\n on off\n}":                         `{"name":"x","where":"","on":false}`,
		"test x {\n few 1\n many 2\n}":                 `{"name":"x","where":"","few":1,"many":2}`,
		"test x {\n size 1KiB\n every 1m\n}":           `{"name":"x","where":"","size":1024,"every":60000000000}`,
		"test x {\n group k\n}":                        `{"name":"x","where":"","group":{"key":"k"}}`,
		"test x {\n box b {\n  width 2\n }\n box a\n}": `{"name":"x","where":"","boxes":{"a":{},"b":{"width":2}}}`,
	} {
		c, err := parseTest(input)
		if err != nil {
			t.Errorf("%s: %v", input, err)
			continue
		}
		if got, err := json.Marshal(c); err != nil || string(got) != want {
			t.Errorf("%s: got %s, error %v, want %s", input, got, err, want)
		}
	}
}

func TestParseModuleErrors(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]string{
		"test":                        "a test: name is missing",
		"test {\n name \"\"\n}":       "a test: name is missing, at Testfile:3",
		"test a b":                    "wrong argument count",
		"test a {\n name b\n}":        `unknown option "name" of a test; there are box, every, few, folder, group, list,`,
		"test {\n Name b\n}":          `unknown option "Name" of a test; there are box, every, few,`,
		"test {\n other {}\n}":        `unknown option "other" of a test`,
		"test {\n Not x\n}":           `unknown option "Not" of a test`,
		"test {\n name a\n name b\n}": `option "name" of a test is given twice`,
		"test {\n list a\n list b\n}": `option "list" of a test is given twice`,
		"test {\n mode three\n}":      `mode is one of one, two, not "three"`,
		"test {\n mode\n}":            "mode takes one value, not 0",
		"test {\n size 1 KiB\n}":      "size takes one value such as 10MB, not 2",
		"test {\n where here\n}":      `where is an address such as https://example.com, not "here"`,
		"test {\n folder a/../b\n}":   "folder: invalid key",
		"test {\n on maybe\n}":        "on is one of on, off",
		"test {\n few 0\n}":           "few is a number above zero",
		"test {\n size x\n}":          "size is a size such as",
		"test {\n every x\n}":         "every is a duration such as",
	} {
		_, err := parseTest(input)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "Testfile:") {
			t.Errorf("%s: error %v, want %q and the line", input, err, want)
		}
	}
}

type mode string

// common is embedded.
type common struct {
	Where string `json:"where" option:"address" example:"https://example.com"`
}

type inner struct {
	Key   string           `json:"key,omitempty" option:"required,secret"`
	Mode  mode             `json:"mode,omitempty" option:"words=one|two"`
	Where string           `json:"where,omitempty" option:"address" example:"https://example.com"`
	Every options.Duration `json:"every,omitempty"`
}

// box is one of named groups.
type box struct {
	Key   string `json:"key,omitempty" option:"secret"`
	Width int    `json:"width,omitempty"`
	On    *bool  `json:"on,omitempty"`
}

// config has an option of every type.
type config struct {
	Name string `json:"name,omitempty" option:"required" example:"x"`
	common
	Folder  string   `json:"folder,omitempty" option:"folder"`
	Mode    mode     `json:"mode,omitempty" option:"words=one|two"`
	Secret  string   `json:"secret,omitempty" option:"secret"`
	Secrets []string `json:"secrets,omitempty" option:"secret,repeat"`
	List    []string `json:"list,omitempty"`
	Off     bool     `json:"off,omitempty"`
	On      *bool    `json:"on,omitempty"`
	Few     int      `json:"few,omitempty"`
	Many    int64    `json:"many,omitempty"`
	Size    int64    `json:"size,omitempty" option:"size"`

	Every options.Duration `json:"every,omitempty"`
	Group *inner           `json:"group,omitempty"`
	Boxes map[string]*box  `json:"boxes,omitempty" option:"line=box"`
	Other json.RawMessage  `json:"other,omitempty"` // no option
	Not   string           `json:"-"`
}

var described = options.Of[config]()

// ruled has rules: no text is "bad", and a high number needs a low one.
type ruled struct {
	Text  string           `json:"text,omitempty"`
	Texts []string         `json:"texts,omitempty"`
	Low   int              `json:"low,omitempty"`
	High  int              `json:"high,omitempty"`
	Parts map[string]*part `json:"parts,omitempty" option:"line=part"`
}

func (r *ruled) Check() error {
	switch {
	case r.Text == "bad":
		return errors.New("text: it is bad")
	case slices.Contains(r.Texts, "bad"):
		return errors.New("texts: one is bad")
	case slices.Contains(r.Texts, ""):
		return errors.New("texts: one is empty")
	case r.High > 0 && r.Low == 0:
		return errors.New("high needs low")
	}
	return nil
}

type part struct {
	Size int `json:"size,omitempty"`
}

func (p *part) Check() error {
	if p.Size > 9 {
		return fmt.Errorf("size is at most 9, not %d", p.Size)
	}
	return nil
}

var rules = options.Of[ruled]()

// TestRules: a rule is checked after the tags, groups first. The given groups stay as they are.
func TestRules(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		given ruled
		want  string
	}{
		{ruled{Text: "a", Texts: []string{"b"}, Low: 1, High: 2, Parts: map[string]*part{"a": {Size: 9}, "b": nil}}, ""},
		{ruled{Text: "bad", High: -1}, "high is a number above zero, not -1"},
		{ruled{Text: "bad", Parts: map[string]*part{"a": {Size: 10}}}, "parts.a: size is at most 9, not 10"},
		{ruled{Text: "bad", High: 1}, "text: it is bad"},
		{ruled{Texts: []string{""}}, "texts: one is empty"},
		{ruled{High: 1}, "high needs low"},
	} {
		for name, check := range map[string]func(any) error{"check": rules.Check, "expand": func(c any) error { return rules.Expand(c, Expander()) }} {
			given := c.given
			if err := check(&given); (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
				t.Errorf("%s %+v: error %v, want %q", name, given, err, c.want)
			}
		}
		if c.given.Parts["b"] != nil {
			t.Error("a group was replaced")
		}
	}
}

// TestParseRules: a broken rule is an error of the Caddyfile, on the line of its option, or at the
// end of the block. Texts with placeholders are not checked.
func TestParseRules(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]string{
		"test {\n text a\n texts b\n high 1\n low 1\n}": "",
		"test {\n text bad{env.X}\n}":                   "",
		"test {\n text {env.X}\n texts {env.X} a\n}":    "",
		"test {\n texts {env.X} bad\n low 1\n}":         "texts: one is bad, at Testfile:2",
		"test {\n low 1\n text bad\n high 1\n}":         "text: it is bad, at Testfile:3",
		"test {\n high 1\n}":                            "high needs low, at Testfile:3",
		"test {\n high 0\n text bad\n}":                 "high is a number above zero",
	} {
		d := caddyfile.NewTestDispenser(input)
		d.Next()
		if err := Parse(d, "a test", rules, new(ruled), nil); (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", input, err, want)
		}
	}
}
