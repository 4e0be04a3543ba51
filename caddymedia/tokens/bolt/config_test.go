package bolt

import (
	"testing"
)

func TestComplete(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{"": "/srv/data/tokens.db", "/srv/x/../t.db": "/srv/t.db"} {
		c := &Config{Path: given}
		if err := c.Complete("/srv/data"); err != nil || c.Path != want {
			t.Errorf("%q: path %q, error %v, want %q", given, c.Path, err, want)
		}
	}
}

func TestSchema(t *testing.T) {
	t.Parallel()
	s := new(Config).Schema()
	if err := s.Err(); err != nil {
		t.Error(err)
	}
	if len(s.Options) != 1 || s.Options[0].Name != "path" || s.Options[0].Secret {
		t.Errorf("options: %+v", s.Options)
	}
}
