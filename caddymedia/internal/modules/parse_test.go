package modules

import (
	"encoding/json"
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
