package media

import (
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers/options"
)

func TestResumableOptions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ given, want Resumable }{
		{Resumable{}, Resumable{Expires: options.Duration(24 * time.Hour), MaxOpen: 100, MaxBytes: 1 << 30}},
		{Resumable{Off: true}, Resumable{Off: true, Expires: options.Duration(24 * time.Hour), MaxOpen: 100, MaxBytes: 1 << 30}},
		{
			Resumable{Storage: "default", Expires: options.Duration(time.Second), MaxOpen: 1, MaxBytes: 64 << 20},
			Resumable{Storage: "default", Expires: options.Duration(time.Second), MaxOpen: 1, MaxBytes: 64 << 20},
		},
	} {
		config := configOf(t)
		config.Resumable = c.given
		if got := start(t, config).ResumableOptions(); got != c.want {
			t.Errorf("%+v: got %+v, want %+v", c.given, got, c.want)
		}
	}
}

func TestResumableErrors(t *testing.T) {
	t.Parallel()
	for want, given := range map[string]Resumable{
		`resumable: storage: there is no storage "far"; there are default`: {Storage: "far"},
		"resumable: expires is a duration above zero":                      {Expires: -1},
		"resumable: max_open is a number above zero":                       {MaxOpen: -1},
		"resumable: max_bytes is less than twice the largest max_size":     {MaxBytes: 64<<20 - 1},
	} {
		config := configOf(t)
		config.Resumable = given
		if _, err := New(config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
