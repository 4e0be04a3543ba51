package tokens_test

import (
	"testing"

	"github.com/caddymedia/media/caddymedia/tokens"
)

func TestAllows(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		aliases []string
		alias   string
		want    bool
	}{
		{nil, "content", true},
		{[]string{"content"}, "content", true},
		{[]string{"content"}, "other", false},
		{[]string{"content"}, "", false},
	} {
		if got := (tokens.Account{Aliases: test.aliases}).Allows(test.alias); got != test.want {
			t.Errorf("%q allows %q: %v", test.aliases, test.alias, got)
		}
	}
}

func TestFingerprint(t *testing.T) {
	t.Parallel()
	base := tokens.Account{APIKey: "key", PasswordHash: "hash", Aliases: []string{"a", "b"}}
	same := tokens.Account{APIKey: "key", PasswordHash: "hash", Aliases: []string{"b", "a", "b"}}
	if base.Fingerprint() != same.Fingerprint() {
		t.Error("the order of aliases counts")
	}
	seen := map[string]bool{base.Fingerprint(): true}
	for _, other := range []tokens.Account{
		{APIKey: "kez", PasswordHash: "hash", Aliases: []string{"a", "b"}},
		{APIKey: "key", PasswordHash: "hasi", Aliases: []string{"a", "b"}},
		{APIKey: "key", PasswordHash: "hash", Aliases: []string{"a"}},
		{APIKey: "key", PasswordHash: "hash"},
		{APIKey: "keyhash", PasswordHash: "", Aliases: []string{"a", "b"}},
		{APIKey: "key", PasswordHash: "hash", Aliases: []string{"ab"}},
		{APIKey: "key", PasswordHash: "hash", Aliases: []string{"", "ab"}},
	} {
		if seen[other.Fingerprint()] {
			t.Errorf("%+v has the fingerprint of another account", other)
		}
		seen[other.Fingerprint()] = true
	}
}
