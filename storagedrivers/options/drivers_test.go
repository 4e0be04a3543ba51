package options_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"

	_ "github.com/caddymedia/media/storagedrivers/azblob" // the drivers describe themselves
	_ "github.com/caddymedia/media/storagedrivers/ftp"
	_ "github.com/caddymedia/media/storagedrivers/gcs"
	_ "github.com/caddymedia/media/storagedrivers/local"
	"github.com/caddymedia/media/storagedrivers/options"
	_ "github.com/caddymedia/media/storagedrivers/s3"
	_ "github.com/caddymedia/media/storagedrivers/sftp"
)

var (
	soundsSecret = regexp.MustCompile("password|secret|key|passphrase|token|connection_string")

	// notSecret are options that only sound so.
	notSecret = []string{"access_key_id", "host_key", "insecure_skip_host_key"}
)

// TestDrivers: every driver describes all of its options so that a form can be made of it.
func TestDrivers(t *testing.T) {
	t.Parallel()
	modules := caddy.GetModules("media.storages")
	if len(modules) != 6 {
		t.Errorf("%d drivers, want 6", len(modules))
	}
	for _, module := range modules {
		t.Run(module.ID.Name(), func(t *testing.T) {
			t.Parallel()
			driver, ok := module.New().(options.Described)
			if !ok {
				t.Fatal("it does not describe its options")
			}
			s := driver.Schema()
			if err := s.Err(); err != nil {
				t.Error(err)
			}
			if !strings.HasPrefix(s.Help, "Keeps objects ") {
				t.Errorf("help %q", s.Help)
			}
			if !s.Options[0].Required || s.Options[0].Type != options.Text {
				t.Errorf("behind its name stands %q, which may be left out", s.Options[0].Name)
			}
			for _, o := range s.Options {
				checkOption(t, o)
			}
		})
	}
}

func checkOption(t *testing.T, o options.Option) {
	t.Helper()
	if want := soundsSecret.MatchString(o.Name) && !slices.Contains(notSecret, o.Name); o.Secret != want {
		t.Errorf("%s: secret %t, want %t", o.Name, o.Secret, want)
	}
	if o.Secret && !strings.Contains(o.Help+o.Example, "{env.") {
		t.Errorf("%s: nothing says how to keep it out of the configuration", o.Name)
	}
	if o.Type == options.Switch && o.Default == "" || o.Name == "timeout" && o.Default != "`30s`" {
		t.Errorf("%s: default %q", o.Name, o.Default)
	}
}
