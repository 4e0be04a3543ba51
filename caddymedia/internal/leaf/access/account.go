// Package access knows who may do what: it issues tokens to accounts for their passwords and
// tickets for tokens, verifies those of requests, and leases requests to one attempt at a time. It
// knows no Caddy, no HTTP and no items, and keeps its state in a tokens.Store. Begin with [Issuer]:
// it checks passwords and tokens with a [Throttle] and a [HashLimiter], which all issuers of a
// process should share, so that a new configuration forgets no failed login.
package access

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"strings"
	"time"
)

// Right is a kind of request that an account may make.
type Right string

// The rights.
const (
	Upload  Right = "upload"
	List    Right = "list"
	Delete  Right = "delete"
	Move    Right = "move"
	Copy    Right = "copy"
	Replace Right = "replace"
	Import  Right = "import"
	Sign    Right = "sign"
	Restore Right = "restore" // lists, reads and brings back what is in the trash
	Purge   Right = "purge"   // removes for good
)

// Rights returns all rights.
func Rights() []Right {
	return []Right{Upload, List, Delete, Move, Copy, Replace, Import, Sign, Restore, Purge}
}

// Account is an API key with its rights.
type Account struct {
	// APIKey is the name of the account.
	APIKey string
	// PasswordHash is the hash of the password, in a format of the configured Comparer.
	PasswordHash string
	// S3Secret is the secret with which clients of the S3 front sign; empty for an account without.
	S3Secret string
	// Aliases are the only aliases that the account may use. Empty means all.
	Aliases []string
	// Rights of the account, for its aliases only. Empty means Upload.
	Rights []Right

	// Trusted means that another login of the site authenticates the users of the account. It has no
	// password and no tokens.
	Trusted bool
	// User is the ID of the user who makes the request. Folder is the only folder that this user may
	// use; empty for any. Both are empty for a caller with a token.
	User, Folder string
	// Hold is how long the uploads of a user are held; 0 if their items are stored at once.
	Hold time.Duration
}

// Allows reports whether the account may use alias.
func (a Account) Allows(alias string) bool {
	return len(a.Aliases) == 0 || slices.Contains(a.Aliases, alias)
}

// May reports whether the account has a right.
func (a Account) May(right Right) bool {
	return slices.Contains(a.Rights, right) || len(a.Rights) == 0 && right == Upload
}

// AllRights returns the rights, sorted; Upload if none are set.
func (a Account) AllRights() []Right {
	if len(a.Rights) == 0 {
		return []Right{Upload}
	}
	return slices.Compact(slices.Sorted(slices.Values(a.Rights)))
}

// Fingerprint returns a hash of the account, which changes with any part of it but the S3 secret. A
// token carries the fingerprint of its account, so changing the account revokes its tokens. The
// order of aliases and rights, and repeated ones, make no difference.
func (a Account) Fingerprint() string {
	fields := append([]string{a.APIKey, a.PasswordHash}, slices.Compact(slices.Sorted(slices.Values(a.Aliases)))...)
	for _, right := range a.AllRights() {
		fields = append(fields, "may "+string(right)) // no alias has a space in its name
	}
	var b []byte
	for _, field := range fields {
		// The length prefix keeps one field from being read as two.
		b = binary.AppendUvarint(b, uint64(len(field)))
		b = append(b, field...)
	}
	sum := sha256.Sum256(b)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

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

// TicketID returns the ID of the caller's ticket in hexadecimal digits; empty for none.
func (c Caller) TicketID() string {
	if c.Ticket == nil {
		return ""
	}
	return c.Ticket.HexID()
}

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

// Covers reports whether the account may use a path in its aliases: a folder, or the filename of an
// item.
func (a Account) Covers(path string) bool {
	return a.Folder == "" || path == a.Folder || strings.HasPrefix(path, a.Folder+"/")
}
