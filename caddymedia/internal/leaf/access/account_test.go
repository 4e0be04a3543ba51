package access_test

import (
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
)

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

func TestAllows(t *testing.T) {
	t.Parallel()
	ticket := &access.Ticket{Kind: "image", Alias: "one"}
	for _, c := range []struct {
		name        string
		aliases     []string
		ticket      *access.Ticket
		kind, alias string
		want, kinds bool
	}{
		{"token", nil, nil, "file", "two", true, true},
		{"limited token", []string{"one"}, nil, "file", "one", true, true},
		{"limited token, another alias", []string{"one"}, nil, "file", "two", false, true},
		{"limited token, no alias", []string{"one"}, nil, "file", "", false, true},
		{"ticket", nil, ticket, "image", "one", true, true},
		{"ticket, another alias", nil, ticket, "image", "two", false, true},
		{"ticket, another kind", nil, ticket, "file", "one", false, false},
		{"ticket, no kind", nil, ticket, "", "one", false, false},
		{"ticket of a limited account", []string{"one"}, ticket, "image", "one", true, true},
		{"ticket for an alias of others", []string{"two"}, ticket, "image", "one", false, true},
	} {
		caller := access.Caller{Account: access.Account{APIKey: "a", Aliases: c.aliases}, Ticket: c.ticket}
		if got := caller.Allows(c.kind, c.alias); got != c.want {
			t.Errorf("%s: allowed: %t", c.name, got)
		}
		if got := caller.AllowsKind(c.kind); got != c.kinds {
			t.Errorf("%s: kind allowed: %t", c.name, got)
		}
	}
}

func TestUsedUp(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ticket *access.Ticket
		want   bool
	}{
		{nil, false},
		{&access.Ticket{MaxFiles: 1}, false},
		{&access.Ticket{MaxFiles: 3, Uses: map[string]int{"a": 2}}, false},
		{&access.Ticket{MaxFiles: 3, Uses: map[string]int{"a": 3}}, true},
		{&access.Ticket{MaxFiles: 3, Uses: map[string]int{"a": 4}}, true},
	} {
		if got := (access.Caller{Ticket: c.ticket}).UsedUp(); got != c.want {
			t.Errorf("%+v: used up: %t", c.ticket, got)
		}
	}
}

// TestScope: a caller may continue what the same scope began.
func TestScope(t *testing.T) {
	t.Parallel()
	var whole access.Scope
	ticket := access.Ticket{ID: access.ID{1}, Kind: "image", Alias: "one", SubFolder: "a", Filename: "b.jpg", MaxFiles: 1}
	first := access.Caller{Ticket: &ticket}.Scope()
	same := access.Caller{Ticket: &access.Ticket{ID: access.ID{2}, Kind: "image", Alias: "one", SubFolder: "a", Filename: "b.jpg", MaxFiles: 9, MaxSize: 5}}.Scope()
	if !whole.Covers(first) || !whole.Covers(whole) {
		t.Error("a token does not cover its account")
	}
	if !first.Covers(same) || !same.Covers(first) {
		t.Error("tickets of one scope do not cover each other")
	}
	if first.Covers(whole) {
		t.Error("a ticket covers what a token began")
	}
	for _, change := range []func(*access.Ticket){
		func(t *access.Ticket) { t.Kind = "file" },
		func(t *access.Ticket) { t.Alias = "two" },
		func(t *access.Ticket) { t.SubFolder = "" },
		func(t *access.Ticket) { t.Filename = "" },
	} {
		changed := ticket
		change(&changed)
		other := access.Caller{Ticket: &changed}.Scope()
		if other.Covers(first) || first.Covers(other) {
			t.Errorf("%+v covers another scope", other)
		}
	}
}
