package access_test

import (
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/access"
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
		if got := (access.Account{Aliases: test.aliases}).Allows(test.alias); got != test.want {
			t.Errorf("%q allows %q: %v", test.aliases, test.alias, got)
		}
	}
}

func TestMay(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rights []access.Right
		right  access.Right
		want   bool
	}{
		{nil, access.Upload, true},
		{nil, access.List, false},
		{[]access.Right{access.List}, access.List, true},
		{[]access.Right{access.List}, access.Upload, false},
		{[]access.Right{access.Upload, access.Delete}, access.Delete, true},
		{[]access.Right{access.Upload}, "", false},
	} {
		if got := (access.Account{Rights: test.rights}).May(test.right); got != test.want {
			t.Errorf("%q may %q: %v", test.rights, test.right, got)
		}
	}
}

// TestFingerprintOfRights: a change of rights ends the tokens of an account.
func TestFingerprintOfRights(t *testing.T) {
	t.Parallel()
	with := func(rights ...access.Right) string {
		return access.Account{APIKey: "key", PasswordHash: "hash", Aliases: []string{"a"}, Rights: rights}.Fingerprint()
	}
	before := with()
	if with(access.Upload) != before || with(access.Upload, access.Upload) != before {
		t.Errorf("the fingerprint of an account that may upload is %s, %s", with(), with(access.Upload))
	}
	if with(access.List, access.Upload) != with(access.Upload, access.List, access.List) {
		t.Error("the order of rights counts")
	}
	seen := map[string]bool{before: true, access.Account{APIKey: "key", PasswordHash: "hash", Aliases: []string{"a", "list"}}.Fingerprint(): true}
	for _, rights := range [][]access.Right{{access.List}, {access.Delete}, {access.Upload, access.List}, access.Rights()} {
		if seen[with(rights...)] {
			t.Errorf("%q have the fingerprint of others", rights)
		}
		seen[with(rights...)] = true
	}
}

func TestFingerprint(t *testing.T) {
	t.Parallel()
	base := access.Account{APIKey: "key", PasswordHash: "hash", Aliases: []string{"a", "b"}}
	same := access.Account{APIKey: "key", PasswordHash: "hash", Aliases: []string{"b", "a", "b"}}
	if base.Fingerprint() != same.Fingerprint() {
		t.Error("the order of aliases counts")
	}
	seen := map[string]bool{base.Fingerprint(): true}
	for _, other := range []access.Account{
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

// TestCovers: a path is compared by its segments.
func TestCovers(t *testing.T) {
	t.Parallel()
	of := access.Account{Folder: "users/a"}
	for path, want := range map[string]bool{
		"users/a": true, "users/a/": true, "users/a/b.txt": true, "users/ab": false, "users": false, "": false, "/users/a": false, "users/A/b": false,
	} {
		if of.Covers(path) != want || !(access.Account{}).Covers(path) {
			t.Errorf("%q: want %t", path, want)
		}
	}
}
