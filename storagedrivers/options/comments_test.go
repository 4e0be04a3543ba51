package options_test

import (
	"strings"
	"testing"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers/options"
)

type embedded struct {
	First string `json:"first" option:"required"`
}

type group struct {
	Deep string `json:"deep"`
}

type commented struct {
	embedded
	Second string `json:"second"`
	Third  *group `json:"third"`

	Fourth map[string]*group `json:"fourth" option:"line=one"`
}

const (
	ofCommented = `package x

// commented is what the test
// describes. It has more to say.
//
// Here.
type commented struct {
	embedded
	// Some text over
	// two lines. Default: the ` + "`one`" + ` of 1.5 that
	// there is.
	Second string
	// A group. Default: none.
	Third *group
	// Named groups. Default: none.
	Fourth map[string]*group
}
`
	ofEmbedded = `package x

type (
	embedded struct {
		// Comes first. Required.
		First string
	}
	// group is a group.
	group struct {
		// Lies deep.
		Deep string
	}
)
`
)

func TestDocumented(t *testing.T) {
	t.Parallel()
	described := options.Of[commented](ofCommented, ofEmbedded)
	if described.Help != "" || described.Options[0].Help != "" {
		t.Errorf("documentation before anybody asked: %+v", described)
	}
	s := described.Documented()
	test.Is(t, described.Err(), nil)
	test.Equal(t, s.Help, "What the test describes. It has more to say.", "help")
	if s.Documented() != s || described.Documented() != s {
		t.Error("the comments were read again")
	}
	for _, c := range []struct {
		got            options.Option
		help, standard string
	}{
		{s.Options[0], "Comes first.", ""},
		{s.Options[1], "Some text over two lines.", "the `one` of 1.5 that there is"},
		{s.Options[2], "A group.", "none"},
		{s.Options[2].Options[0], "Lies deep.", ""},
		{s.Options[3], "Named groups.", "none"},
		{s.Options[3].Options[0], "Lies deep.", ""},
	} {
		if c.got.Help != c.help || c.got.Default != c.standard {
			t.Errorf("%s: help %q, default %q, want %q and %q", c.got.Name, c.got.Help, c.got.Default, c.help, c.standard)
		}
	}
	if !s.Options[0].Required || s.Values(commented{Second: "x"})["second"] != "x" {
		t.Errorf("with the documentation it does not work: %+v", s)
	}
}

func TestWrongComments(t *testing.T) {
	t.Parallel()
	for want, sources := range map[string][]string{
		"commented: ":                             {"no Go"},
		"embedded.First: it has no help":          {ofCommented},
		"group.Deep: it has no help":              {ofCommented},
		"commented.Second: it has no help":        {ofEmbedded},
		"First: its help does not end in a full":  {strings.Replace(ofEmbedded, "first. Required.", "first", 1), ofCommented},
		"First: comment and tag disagree":         {strings.Replace(ofEmbedded, " Required.", "", 1), ofCommented},
		"Deep: comment and tag disagree":          {strings.Replace(ofEmbedded, "deep.", "deep. Required.", 1), ofCommented},
		"Second: the default does not end":        {ofEmbedded, strings.Replace(ofCommented, "there is.", "there is. And more.", 1)},
		"Third: its help does not end in a full ": {ofEmbedded, strings.Replace(ofCommented, "none.", "none", 1)},
	} {
		test.Says(t, options.Of[commented](sources...).Err(), want)
	}
}
