package modules

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddymedia/media/storagedrivers/options"
)

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

// TestParseRules: a broken rule is an error of the Caddyfile, on the line of its option, or at the end
// of the block. Texts with placeholders are not checked.
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
