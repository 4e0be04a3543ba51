package options_test

import (
	"testing"

	"github.com/caddymedia/media/storagedrivers/options"
)

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
		if got := options.Blamed(message, list); got != want {
			t.Errorf("%q blames %q, want %q", message, got, want)
		}
	}
}
