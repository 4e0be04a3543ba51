package bolt

import (
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

func TestModule(t *testing.T) {
	t.Setenv("TOKENS_TEST_DIR", "/srv")
	t.Setenv("XDG_DATA_HOME", "/srv/data")
	for _, test := range []struct{ input, wantKey, wantErr string }{
		{input: "bolt", wantKey: "bolt:/srv/data/caddy/media/tokens.db"},
		{input: "bolt /srv/x/../t.db", wantKey: "bolt:/srv/t.db"},
		{input: "bolt {env.TOKENS_TEST_DIR}/t.db", wantKey: "bolt:/srv/t.db"},
		{input: "bolt {env.TOKENS_TEST_NONE}/t.db", wantErr: "TOKENS_TEST_NONE"},
		{input: "bolt a b", wantErr: "argument"},
		{input: "bolt {\n\tpath a\n}", wantErr: `unknown option "path"`},
	} {
		m := new(Module)
		err := m.UnmarshalCaddyfile(caddyfile.NewTestDispenser(test.input))
		if err == nil {
			err = m.Provision(caddy.Context{})
		}
		switch {
		case test.wantErr == "" && err != nil:
			t.Errorf("%q: %v", test.input, err)
		case test.wantErr != "" && (err == nil || !strings.Contains(err.Error(), test.wantErr)):
			t.Errorf("%q: got %v, want an error with %q", test.input, err, test.wantErr)
		case err == nil && m.PoolKey() != test.wantKey:
			t.Errorf("%q: pool key %q, want %q", test.input, m.PoolKey(), test.wantKey)
		}
	}
}

func TestSchema(t *testing.T) {
	t.Parallel()
	s := new(Module).Schema()
	if err := s.Err(); err != nil {
		t.Error(err)
	}
	if len(s.Options) != 1 || s.Options[0].Name != "path" || s.Options[0].Secret {
		t.Errorf("options: %+v", s.Options)
	}
}
