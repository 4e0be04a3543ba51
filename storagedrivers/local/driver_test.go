package local

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

func TestCaddyfile(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"local":                              "root is missing, at Testfile:1",
		"local /srv/media":                   `{"root":"/srv/media"}`,
		"local {\n root /srv/media\n}":       `{"root":"/srv/media"}`,
		"local {env.ROOT} {\n sync off\n}":   `{"root":"{env.ROOT}","sync":false}`,
		"local /srv {\n sync on\n}":          `{"root":"/srv","sync":true}`,
		"local /srv {\n root /srv\n}":        `unknown option "root" of a local storage`,
		"local /srv /media":                  "wrong argument count",
		"local /srv {\n sync on\n sync on\n": `option "sync" of a local storage is given twice`,
	} {
		l := new(Local)
		got := ""
		if err := l.UnmarshalCaddyfile(caddyfile.NewTestDispenser(text)); err != nil {
			got = err.Error()
		} else if written, err := json.Marshal(l); err == nil {
			got = string(written)
		}
		if !strings.Contains(strings.ToLower(got), strings.ToLower(want)) {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

func TestProvision(t *testing.T) {
	root := t.TempDir()
	t.Setenv("MEDIA_TEST_ROOT", root)
	l := &Local{Config: Config{Root: "{env.MEDIA_TEST_ROOT}/media"}}
	if err := l.Provision(caddy.Context{}); err != nil {
		t.Fatal(err)
	}
	if l.config.Root != filepath.Join(root, "media") || l.Root != "{env.MEDIA_TEST_ROOT}/media" {
		t.Errorf("the root is %q, as written %q", l.config.Root, l.Root)
	}
	same, unsynced := &Local{Config: Config{Root: root + "/x/../media/"}}, &Local{Config: Config{Root: root + "/media", Sync: new(bool)}}
	for _, other := range []*Local{same, unsynced} {
		if err := other.Provision(caddy.Context{}); err != nil {
			t.Fatal(err)
		}
	}
	if l.PoolKey() != same.PoolKey() || l.PoolKey() == unsynced.PoolKey() {
		t.Errorf("pool keys %q, %q, %q", l.PoolKey(), same.PoolKey(), unsynced.PoolKey())
	}
	for want, wrong := range map[string]*Local{
		"root is missing": {}, "root: ": {Config: Config{Root: "{env.MEDIA_TEST_NOT_SET}"}},
	} {
		if err := wrong.Provision(caddy.Context{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
