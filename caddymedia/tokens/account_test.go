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

func TestMay(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rights []tokens.Right
		right  tokens.Right
		want   bool
	}{
		{nil, tokens.Upload, true},
		{nil, tokens.List, false},
		{[]tokens.Right{tokens.List}, tokens.List, true},
		{[]tokens.Right{tokens.List}, tokens.Upload, false},
		{[]tokens.Right{tokens.Upload, tokens.Delete}, tokens.Delete, true},
		{[]tokens.Right{tokens.Upload}, "", false},
	} {
		if got := (tokens.Account{Rights: test.rights}).May(test.right); got != test.want {
			t.Errorf("%q may %q: %v", test.rights, test.right, got)
		}
	}
}

// TestFingerprintOfRights: a change of rights ends the tokens of an account.
func TestFingerprintOfRights(t *testing.T) {
	t.Parallel()
	with := func(rights ...tokens.Right) string {
		return tokens.Account{APIKey: "key", PasswordHash: "hash", Aliases: []string{"a"}, Rights: rights}.Fingerprint()
	}
	before := with()
	if with(tokens.Upload) != before || with(tokens.Upload, tokens.Upload) != before {
		t.Errorf("the fingerprint of an account that may upload is %s, %s", with(), with(tokens.Upload))
	}
	if with(tokens.List, tokens.Upload) != with(tokens.Upload, tokens.List, tokens.List) {
		t.Error("the order of rights counts")
	}
	seen := map[string]bool{before: true, tokens.Account{APIKey: "key", PasswordHash: "hash", Aliases: []string{"a", "list"}}.Fingerprint(): true}
	for _, rights := range [][]tokens.Right{{tokens.List}, {tokens.Delete}, {tokens.Upload, tokens.List}, tokens.Rights()} {
		if seen[with(rights...)] {
			t.Errorf("%q have the fingerprint of others", rights)
		}
		seen[with(rights...)] = true
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
		{APIKey: "key", PasswordHash: "hash\x00a", Aliases: []string{"b"}},
	} {
		if seen[other.Fingerprint()] {
			t.Errorf("%+v has the fingerprint of another account", other)
		}
		seen[other.Fingerprint()] = true
	}
}
