package service

import (
	"strings"

	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/naming"
)

// UserID is the placeholder for the ID of a user in [Trust.Folder].
const UserID = "{http.auth.user.id}"

// Trust is the account as which users of another login act.
type Trust struct {
	// Placeholder or Header has the ID of the user of a request. The other one is empty.
	Placeholder, Header string

	// Users is the account of all users.
	Users access.Account
	// Folder of a user in each alias, with UserID; empty for none.
	Folder string
}

// Trust returns the account as which users of another login act; nil if there is none.
func (s *Service) Trust() *Trust { return s.trust }

// Account returns the account of a user, whose ID is not empty.
func (t *Trust) Account(user string) access.Account {
	account := t.Users
	account.User, account.Folder = user, strings.ReplaceAll(t.Folder, UserID, naming.UserFolder(user))
	return account
}

// accountOf returns the account of an upload: that of a user, if one has created it. It returns
// false if there is no such account any more.
func (s *Service) accountOf(apiKey, user string) (access.Account, bool) {
	account, ok := s.issuer.Account(apiKey)
	switch {
	case !ok, account.Trusted != (user != ""):
		return account, false
	case user != "":
		return s.trust.Account(user), true
	}
	return account, true
}
