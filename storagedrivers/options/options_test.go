package options_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers/internal/test"
	"github.com/caddymedia/media/storagedrivers/options"
)

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

	hidden string
}

var described = options.Of[config]("this is no Go, and nobody has to read it")

func TestOf(t *testing.T) {
	t.Parallel()
	want := []options.Option{
		{Name: "name", Type: options.Text, Required: true, Example: "x"},
		{Name: "where", Type: options.Text, Example: "https://example.com"},
		{Name: "folder", Type: options.Text},
		{Name: "mode", Type: "word", Words: []string{"one", "two"}},
		{Name: "secret", Type: options.Text, Secret: true},
		{Name: "secrets", Type: "texts", Secret: true},
		{Name: "list", Type: "texts"},
		{Name: "off", Type: "switch"},
		{Name: "on", Type: "switch"},
		{Name: "few", Type: "count"},
		{Name: "many", Type: "count"},
		{Name: "size", Type: options.Size},
		{Name: "every", Type: "duration"},
		{Name: "group", Type: options.Group, Options: []options.Option{
			{Name: "key", Type: options.Text, Required: true, Secret: true},
			{Name: "mode", Type: "word", Words: []string{"one", "two"}},
			{Name: "where", Type: options.Text, Example: "https://example.com"},
			{Name: "every", Type: "duration"},
		}},
		{Name: "boxes", Type: options.Groups, Line: "box", Options: []options.Option{
			{Name: "key", Type: options.Text, Secret: true},
			{Name: "width", Type: "count"},
			{Name: "on", Type: "switch"},
		}},
	}
	if !reflect.DeepEqual(described.Options, want) {
		t.Errorf("got  %+v\nwant %+v", described.Options, want)
	}
}

// TestImpossible: Of panics for a struct that cannot be described.
func TestImpossible(t *testing.T) {
	t.Parallel()
	for want, of := range map[string]func(){
		"no option is a float64": func() {
			options.Of[struct {
				X float64 `json:"x"`
			}]()
		},
		`"requird" is no mark of a text`: func() {
			options.Of[struct {
				X string `json:"x" option:"secret,requird"`
			}]()
		},
		`"words=a|b" is no mark of a count`: func() {
			options.Of[struct {
				X int `json:"x" option:"words=a|b"`
			}]()
		},
		`"size" is no mark`: func() {
			options.Of[struct {
				X int `json:"x" option:"size"`
			}]()
		},
		`"repeat" is no mark of a text`: func() {
			options.Of[struct {
				X string `json:"x" option:"repeat"`
			}]()
		},
		`"line=x" is no mark of a group`: func() {
			options.Of[struct {
				X *inner `json:"x" option:"line=x"`
			}]()
		},
		"no option is a map[string]string": func() {
			options.Of[struct {
				X map[string]string `json:"x"`
			}]()
		},
		`"required" is no mark of a switch`: func() {
			options.Of[struct {
				X bool `json:"x" option:"required"`
			}]()
		},
		"given a *options_test.inner": func() { described.Values(new(inner)) },
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if said, _ := recover().(string); !strings.Contains(said, want) {
					t.Errorf("panic %q, want %q", said, want)
				}
			}()
			of()
		})
	}
}

func TestValues(t *testing.T) {
	t.Parallel()
	on, off := true, false
	none := map[string]any{"secret": "not set", "secrets": "not set"}
	for _, c := range []struct {
		name   string
		config config
		want   map[string]any
	}{
		{"nothing", config{}, none},
		{"empty lists", config{Secrets: []string{}, List: []string{}, Boxes: map[string]*box{}}, none},
		{"what is no option", config{Other: []byte("{}"), Not: "x", hidden: "x"}, none},
		{
			"everything",
			config{
				Name: "n", common: common{Where: "w"}, Folder: "f", Mode: "one", Secret: "s", Secrets: []string{"s"},
				List: []string{"a", "b"}, Off: true, On: &on, Few: 1, Many: 2, Size: 3, Every: options.Duration(90 * time.Second),
				Group: &inner{Key: "k", Mode: "two", Every: options.Duration(time.Hour)},
				Boxes: map[string]*box{"a": {Key: "k", Width: 3}, "b": {On: &off}, "none": nil},
			},
			map[string]any{
				"name": "n", "where": "w", "folder": "f", "mode": "one", "secret": "set", "secrets": "set",
				"list": []string{"a", "b"}, "off": true, "on": true, "few": 1, "many": int64(2), "size": int64(3), "every": "1m30s",
				"group": map[string]any{"key": "set", "mode": "two", "every": "1h"},
				"boxes": map[string]any{"a": map[string]any{"key": "set", "width": 3}, "b": map[string]any{"key": "not set", "on": false}},
			},
		},
		{
			"switched off, and an empty group",
			config{On: &off, Group: new(inner)},
			map[string]any{
				"secret": "not set", "secrets": "not set", "on": false,
				"group": map[string]any{"key": "not set"},
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, given := range []any{c.config, &c.config} {
				if got := described.Values(given); !reflect.DeepEqual(got, c.want) {
					t.Errorf("of a %T: got %v, want %v", given, got, c.want)
				}
			}
		})
	}
}

func TestDurationsInValues(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]time.Duration{
		"30s": 30 * time.Second, "1m": time.Minute, "10m": 10 * time.Minute, "20h": 20 * time.Hour,
		"1h10m": 70 * time.Minute, "1h0m1s": time.Hour + time.Second, "168h": 7 * 24 * time.Hour, "100ms": 100 * time.Millisecond,
	} {
		test.Equal[any](t, described.Values(config{Every: options.Duration(d)})["every"], want, d, "became")
	}
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		config config
		want   []string
	}{
		{config{Name: "n"}, nil},
		{config{Secrets: []string{""}, Group: new(inner)}, nil},
		{config{Secret: "a", Secrets: []string{"b", "", "c"}, Group: &inner{Key: "d"}}, []string{"a", "b", "c", "d"}},
		{config{Boxes: map[string]*box{"b": {Key: "x"}, "a": {Key: "y"}, "c": {}, "d": nil}}, []string{"y", "x"}},
	} {
		if got := described.Secrets(&c.config); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.config, got, c.want)
		}
	}
}

func TestCheckJSON(t *testing.T) {
	t.Parallel()
	for kind, values := range map[options.Type]struct{ right, wrong string }{
		options.Text: {`["a", ""]`, `[7, true, ["a"], {}]`},
		"word":       {`["a", "{env.WORD}"]`, `[7]`},
		"texts":      {`[[], ["a", "b"]]`, `["a", ["a", 7], [null], {}]`},
		"switch":     {`[true, false]`, `["true", 1]`},
		"count":      {`[1, -1, 9223372036854775807]`, `["1", 1.5, 1e3, 9223372036854775808]`},
		options.Size: {`[33554432]`, `["32 MiB", 0.5]`},
		"duration":   {`["30s", "1h30m", "7d", 30000000000]`, `["10", "soon", 1.5, true]`},
	} {
		option := options.Option{Name: "inner", Type: kind}
		for _, value := range decoded(t, values.right) {
			test.Is(t, option.CheckJSON("group.inner", value), nil, kind, value)
		}
		for _, value := range decoded(t, values.wrong) {
			if err := option.CheckJSON("group.inner", value); err == nil || !strings.HasPrefix(err.Error(), "group.inner is ") {
				t.Errorf("%s %v: %v", kind, value, err)
			}
		}
	}
}

func decoded(t *testing.T, list string) (values []any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(list))
	d.UseNumber()
	test.Must(t, d.Decode(&values))
	return values
}

func TestBlamed(t *testing.T) {
	t.Parallel()
	list := []options.Option{
		{Name: "driver", Type: options.Group, Options: []options.Option{{Name: "address", Type: options.Text}}},
		{Name: "prefix", Type: options.Text},
		{Name: "webp", Type: options.Group, Options: []options.Option{{Name: "quality", Type: "count"}, {Name: "effort", Type: "word"}}},
		{Name: "boxes", Type: options.Groups, Line: "box", Options: []options.Option{{Name: "width", Type: "count"}, {Name: "a", Type: options.Text}}},
	}
	for message, want := range map[string]string{
		"":                              "",
		"something else":                "",
		"prefix is missing":             "prefix",
		"prefix: no: prefix":            "prefix",
		"the prefix is missing":         "",
		"sftp storage: address is bad":  "driver.address",
		"webp: quality is a number":     "webp.quality",
		"webp.effort is one of a, b":    "webp.effort",
		"webp: this needs an encoder":   "webp",
		"boxes need a prefix":           "boxes",
		"boxes: width is missing":       "boxes",
		"width is missing":              "",
		"x: boxes.a: width is missing":  "boxes.a.width",
		"boxes.a: it is empty":          "boxes.a",
		"boxes.a.width is a number":     "boxes.a.width",
		"boxes.a.b is a number":         "",
		"webp: prefix is not one of it": "webp",
	} {
		test.Equal(t, options.Blamed(message, list), want, message, "blames")
	}
}

func TestDuration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		`"90s"`: 90 * time.Second, `"1h30m"`: 90 * time.Minute, `"7d"`: 7 * 24 * time.Hour, `"1.5d"`: 36 * time.Hour,
		`"1d12h"`: 36 * time.Hour, `"1h1d1m"`: 25*time.Hour + time.Minute, `"-1d"`: -24 * time.Hour, `"1d1d"`: 48 * time.Hour,
		`"0"`: 0, `30000000000`: 30 * time.Second, `-1`: -1, `null`: 0,
	} {
		var got options.Duration
		if err := json.Unmarshal([]byte(text), &got); err != nil || time.Duration(got) != want {
			t.Errorf("%s is %v, error %v; want %v", text, time.Duration(got), err, want)
		}
		if written, err := json.Marshal(got); err != nil || strings.Contains(string(written), `"`) {
			t.Errorf("%s is written as %s, error %v", text, written, err)
		}
	}
	for _, text := range []string{
		`""`, `"10"`, `"d"`, `"1.2.3d"`, `"xd"`, `"1dd"`, `"1e3d"`, `"soon"`, `1.5`, `true`, `[]`, `"` + strings.Repeat("1", 1024) + `s"`,
	} {
		var got options.Duration
		test.Fails(t, json.Unmarshal([]byte(text), &got), text, time.Duration(got))
	}
}

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
