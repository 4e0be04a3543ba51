package options_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers/options"
)

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
