package access

import "testing"

func TestAllows(t *testing.T) {
	t.Parallel()
	ticket := &Ticket{Kind: "image", Alias: "one"}
	for _, c := range []struct {
		name        string
		aliases     []string
		ticket      *Ticket
		kind, alias string
		want, kinds bool
	}{
		{"token", nil, nil, "file", "two", true, true},
		{"limited token", []string{"one"}, nil, "file", "one", true, true},
		{"limited token, another alias", []string{"one"}, nil, "file", "two", false, true},
		{"ticket", nil, ticket, "image", "one", true, true},
		{"ticket, another alias", nil, ticket, "image", "two", false, true},
		{"ticket, another kind", nil, ticket, "file", "one", false, false},
		{"ticket, no kind", nil, ticket, "", "one", false, false},
		{"ticket of a limited account", []string{"one"}, ticket, "image", "one", true, true},
		{"ticket for an alias of others", []string{"two"}, ticket, "image", "one", false, true},
	} {
		caller := Caller{Account: Account{APIKey: "a", Aliases: c.aliases}, Ticket: c.ticket}
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
		ticket *Ticket
		want   bool
	}{
		{nil, false},
		{&Ticket{MaxFiles: 1}, false},
		{&Ticket{MaxFiles: 3, Uses: map[string]int{"a": 2}}, false},
		{&Ticket{MaxFiles: 3, Uses: map[string]int{"a": 3}}, true},
		{&Ticket{MaxFiles: 3, Uses: map[string]int{"a": 4}}, true},
	} {
		if got := (Caller{Ticket: c.ticket}).UsedUp(); got != c.want {
			t.Errorf("%+v: used up: %t", c.ticket, got)
		}
	}
}

func TestCovers(t *testing.T) {
	t.Parallel()
	var whole Scope
	ticket := Ticket{ID: ID{1}, Kind: "image", Alias: "one", SubFolder: "a", Filename: "b.jpg", MaxFiles: 1}
	first := Caller{Ticket: &ticket}.Scope()
	same := Caller{Ticket: &Ticket{ID: ID{2}, Kind: "image", Alias: "one", SubFolder: "a", Filename: "b.jpg", MaxFiles: 9, MaxSize: 5}}.Scope()
	if !whole.Covers(first) || !whole.Covers(whole) {
		t.Error("a token does not cover its account")
	}
	if !first.Covers(same) || !same.Covers(first) {
		t.Error("tickets of one scope do not cover each other")
	}
	if first.Covers(whole) {
		t.Error("a ticket covers what a token began")
	}
	for _, change := range []func(*Ticket){
		func(t *Ticket) { t.Kind = "file" },
		func(t *Ticket) { t.Alias = "two" },
		func(t *Ticket) { t.SubFolder = "" },
		func(t *Ticket) { t.Filename = "" },
	} {
		changed := ticket
		change(&changed)
		other := Caller{Ticket: &changed}.Scope()
		if other.Covers(first) || first.Covers(other) {
			t.Errorf("%+v covers another scope", other)
		}
	}
}
