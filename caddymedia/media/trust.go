package media

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/resumable"
	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/leaf/naming"
)

// userID is the placeholder for the user in the option sub_folder, wherever the ID comes from.
const userID = service.UserID

var (
	// userPlaceholder matches the placeholders that handlers of Caddy set after a login.
	userPlaceholder = regexp.MustCompile(`^\{http\.auth\.user\.[A-Za-z0-9_.-]+\}$`)
	// userHeader matches the name of a header that Caddy passes on.
	userHeader = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]{0,99}$`)
)

// minS3Secret is the shortest secret in bytes. Anyone who sees a signed request can guess at its
// secret as fast as his machine computes.
const minS3Secret = 16

// secretHeaders have credentials, which must not reach a log as the name of a user.
var secretHeaders = []string{"authorization", "proxy-authorization", "cookie", "service-access-token"}

// ErrNoPassword means an account that has no password and no users of another login.
var ErrNoPassword = errors.New("password_hash is missing; only an account with trust or trust_header has none")

// Trusts reports whether users of another login act as the account.
func (a *Account) Trusts() bool { return a.Trust != "" || a.TrustHeader != "" }

// checkTrust checks the options of users.
func (a *Account) checkTrust() error {
	switch {
	case a.Trust != "" && a.TrustHeader != "":
		return errors.New("trust_header: an account has either trust or trust_header")
	case a.Trusts() && a.PasswordHash != "":
		return errors.New("password_hash: an account with trust or trust_header has no password")
	case a.Trusts() && a.S3Secret != "":
		return errors.New("s3_secret: an account with trust or trust_header has no S3")
	case a.S3Secret != "" && len(a.S3Secret) < minS3Secret:
		return fmt.Errorf("s3_secret: it has at least %d bytes", minS3Secret)
	case a.Trust != "" && !userPlaceholder.MatchString(a.Trust):
		return fmt.Errorf("trust: it is a placeholder {http.auth.user.*}, such as %s, not %q; a header needs trust_header", userID, a.Trust)
	case a.TrustHeader != "" && !userHeader.MatchString(a.TrustHeader):
		return fmt.Errorf("trust_header: it is the name of a header in letters, digits and hyphens, such as Remote-User, not %q", a.TrustHeader)
	case a.Hold != 0 && !a.Trusts():
		return errors.New("hold: it is for users: set trust or trust_header too; a ticket has a hold of its own")
	case a.Hold != 0 && (time.Duration(a.Hold) < resumable.MinHold || time.Duration(a.Hold) > resumable.MaxHold):
		return errors.New("hold: it is from 1m to 168h")
	case slices.Contains(secretHeaders, strings.ToLower(a.TrustHeader)):
		return fmt.Errorf("trust_header: %s has a credential, not the ID of a user", a.TrustHeader)
	case a.SubFolder == "":
		return nil
	case !a.Trusts():
		return errors.New("sub_folder: it is for users: set trust or trust_header too")
	}
	return checkUserFolder(a.SubFolder)
}

// checkUserFolder checks the option sub_folder. All its names must be the same in all aliases,
// whether these sanitize or not.
func checkUserFolder(folder string) error {
	const example = "users/" + userID
	if strings.Count(folder, userID) != 1 || !slices.Contains(strings.Split(folder, "/"), userID) {
		return fmt.Errorf("sub_folder: %s is one of its folders, once, as in %s", userID, example)
	}
	plain := strings.ReplaceAll(folder, userID, naming.UserFolder(""))
	if sanitized, err := naming.SubFolder(plain, true); err != nil || sanitized != plain || len(plain) > maxUserFolder {
		return fmt.Errorf("sub_folder: besides %s, its folders are names in a-z, 0-9, _ and -, as in %s, not %q", userID, example, folder)
	}
	return nil
}

// maxUserFolder is the longest folder of a user in bytes. It leaves room for folders below it.
const maxUserFolder = 256

// CheckAccounts returns an error unless each account has a password or users of another login. At
// most one may have such users.
func (c *Config) CheckAccounts() error {
	var trusting string
	for _, key := range slices.Sorted(maps.Keys(c.Accounts)) {
		account := c.Accounts[key]
		switch {
		case account == nil:
		case !account.Trusts() && account.PasswordHash == "":
			return fmt.Errorf("account %q: %w", key, ErrNoPassword)
		case account.Hold != 0 && c.Resumable.Off:
			return fmt.Errorf("account %q: hold: it needs resumable uploads, which are off", key)
		case account.Trusts() && trusting != "":
			return fmt.Errorf("account %q: trust: only one account may have users of another login, and %q has them", key, trusting)
		case account.Trusts():
			trusting = key
		}
	}
	return nil
}

// trust returns the account with users; nil if there is none.
func (c *Config) trust() *service.Trust {
	for key, account := range c.Accounts {
		if account.Trusts() {
			return &service.Trust{
				Placeholder: account.Trust, Header: account.TrustHeader, Users: account.credentials(key), Folder: account.SubFolder,
			}
		}
	}
	return nil
}
