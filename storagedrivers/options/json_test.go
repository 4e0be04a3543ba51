package options_test

import (
	"encoding/json"
	"strings"
	"testing"

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
			if err := option.CheckJSON("group.inner", value); err != nil {
				t.Errorf("%s %v: %v", kind, value, err)
			}
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
	if err := d.Decode(&values); err != nil {
		t.Fatal(err)
	}
	return values
}
