package options_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers/options"
)

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
		if err := json.Unmarshal([]byte(text), &got); err == nil {
			t.Errorf("%s is %v", text, time.Duration(got))
		}
	}
}
