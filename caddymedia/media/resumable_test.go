package media

import (
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/service"
	"github.com/caddymedia/media/storagedrivers/options"
)

// TestResumableOptions: the options and their defaults reach the service.
func TestResumableOptions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		given    Resumable
		want     service.Resumable
		maxBytes int64
	}{
		{Resumable{}, service.Resumable{Expires: 24 * time.Hour, MaxOpen: 100}, 1 << 30},
		{Resumable{Off: true}, service.Resumable{Off: true, Expires: 24 * time.Hour, MaxOpen: 100}, 0},
		{
			Resumable{Storage: "default", Expires: options.Duration(time.Second), MaxOpen: 1, MaxBytes: 64 << 20},
			service.Resumable{Storage: "default", Expires: time.Second, MaxOpen: 1, MaxBytes: 64 << 20},
			64 << 20,
		},
	} {
		if got := c.given.parts(); got != c.want {
			t.Errorf("%+v: got %+v, want %+v", c.given, got, c.want)
		}
		config := configOf(t)
		config.Resumable = c.given
		uploads := start(t, config).core.Uploads()
		switch {
		case (uploads == nil) != c.given.Off:
			t.Errorf("%+v: resumable uploads are off: %t", c.given, uploads == nil)
		case uploads != nil && (uploads.Expires != c.want.Expires || uploads.MaxOpen != c.want.MaxOpen || uploads.MaxBytes != c.maxBytes):
			t.Errorf("%+v: got %+v, want %+v", c.given, uploads, c.want)
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
