package schema_test

import (
	"testing"

	"github.com/caddymedia/media/storagedrivers/schema"
)

func TestBlamed(t *testing.T) {
	t.Parallel()
	options := []schema.Option{
		{Name: "driver", Type: schema.Group, Options: []schema.Option{{Name: "address", Type: schema.Text}}},
		{Name: "prefix", Type: schema.Text},
		{Name: "webp", Type: schema.Group, Options: []schema.Option{{Name: "quality", Type: schema.Count}, {Name: "effort", Type: schema.Word}}},
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
		"webp: prefix is not one of it": "webp",
	} {
		if got := schema.Blamed(message, options); got != want {
			t.Errorf("%q blames %q, want %q", message, got, want)
		}
	}
}
