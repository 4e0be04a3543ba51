package mediaapp

import (
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

func TestMemoryTokens(t *testing.T) {
	t.Parallel()
	for input, wantErr := range map[string]bool{
		"memory":             false,
		"memory x":           true,
		"memory {\n\tx y\n}": true,
	} {
		err := new(memoryTokens).UnmarshalCaddyfile(caddyfile.NewTestDispenser(input))
		if (err != nil) != wantErr {
			t.Errorf("%q: got error %v, want one: %v", input, err, wantErr)
		}
	}
	store, err := new(memoryTokens).NewStore(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Check(t.Context()); err != nil {
		t.Error(err)
	}
}
