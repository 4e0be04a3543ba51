package tokens

// Caller is the caller of an authenticated request.
type Caller struct {
	// Account of the caller.
	Account Account
	// Ticket narrows the rights of the account; nil for a caller with a token.
	Ticket *Ticket
}

// Allows reports whether the caller may upload to an alias. Kind is "image" or "file".
func (c Caller) Allows(kind, alias string) bool {
	if c.Ticket != nil && (c.Ticket.Kind != kind || c.Ticket.Alias != alias) {
		return false
	}
	return c.Account.Allows(alias)
}

// AllowsKind reports whether the caller may upload items of a kind to any alias.
func (c Caller) AllowsKind(kind string) bool { return c.Ticket == nil || c.Ticket.Kind == kind }

// UsedUp reports whether the caller has a ticket without any item left.
func (c Caller) UsedUp() bool { return c.Ticket != nil && c.Ticket.Left() == 0 }

// Scope is the part of an account's rights that a caller has. Scopes can be compared with ==. The
// zero Scope is that of a token: all rights of the account.
type Scope struct {
	Kind      string `json:"kind,omitempty"`
	Alias     string `json:"alias,omitempty"`
	SubFolder string `json:"sub_folder,omitempty"`
	Filename  string `json:"filename,omitempty"`
}

// Scope returns the scope of the caller.
func (c Caller) Scope() Scope {
	t := c.Ticket
	if t == nil {
		return Scope{}
	}
	return Scope{Kind: t.Kind, Alias: t.Alias, SubFolder: t.SubFolder, Filename: t.Filename}
}

// Covers reports whether a caller of the scope may continue what a caller of the same account began
// with other: with any token, or with a ticket of the same scope.
func (s Scope) Covers(other Scope) bool { return s == Scope{} || s == other }
