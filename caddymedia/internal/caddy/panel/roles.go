package panel

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
)

// Uploaders are users of the panel who see and change items, and nothing of the configuration.
type Uploaders struct {
	// The users. Nobody is an editor too. Required.
	Users []string `json:"users"`

	// The aliases whose items they see and may change. A name means both the image alias and the
	// file alias. Default: all, also later ones.
	Aliases []string `json:"aliases,omitempty"`

	// What they may do in these aliases, beside looking at items: `upload`, `replace`, `move`,
	// `delete`, `restore` what is in the trash, and `sign` the addresses of private items that they
	// copy. Default: all of it.
	May []string `json:"may,omitempty"`
}

// uploaderRights are those of an uploader, beside access.List.
var uploaderRights = []access.Right{access.Upload, access.Replace, access.Move, access.Delete, access.Restore, access.Sign}

// check checks the options of a line.
func (u Uploaders) check() error {
	for _, word := range u.May {
		if !slices.Contains(uploaderRights, access.Right(word)) {
			return fmt.Errorf("uploaders: may: %q is none of %s", word, strings.Trim(fmt.Sprint(uploaderRights), "[]"))
		}
	}
	return nil
}

// rights returns what the users may do with items.
func (u Uploaders) rights() []access.Right {
	rights := []access.Right{access.List}
	for _, right := range uploaderRights {
		if len(u.May) == 0 || slices.Contains(u.May, string(right)) {
			rights = append(rights, right)
		}
	}
	return rights
}

// checkUploaders checks the lines of all uploaders: each user has one role.
func (p *Panel) checkUploaders() error {
	seen := map[string]bool{}
	for _, u := range p.Uploaders {
		if err := u.check(); err != nil {
			return err
		}
		if len(u.Users) == 0 || slices.Contains(u.Users, "") {
			return errors.New("uploaders: a name is empty or missing")
		}
		for _, user := range u.Users {
			switch {
			case seen[user]:
				return fmt.Errorf("uploaders: the user %q is given twice", user)
			case slices.Contains(p.Editors, user):
				return fmt.Errorf("uploaders: the user %q is an editor too", user)
			}
			seen[user] = true
		}
	}
	return nil
}

// checkAliases returns an error if uploaders have an alias that a service does not have.
func (p *Panel) checkAliases(running *service.Service) error {
	for _, u := range p.Uploaders {
		for _, name := range u.Aliases {
			_, image := running.Alias(item.Image, name)
			if _, file := running.Alias(item.File, name); !image && !file {
				return fmt.Errorf("uploaders: there is no alias %q", name)
			}
		}
	}
	return nil
}

// visitor is the user of a request: an editor, an uploader or a reader.
type visitor struct {
	name      string // empty if not logged in
	editor    bool
	itemsOnly bool           // an uploader
	account   access.Account // what the visitor may do with items
}

// visitorOf returns a user with the rights of the role.
func (p *Panel) visitorOf(user string) visitor {
	v := visitor{name: user, account: access.Account{APIKey: user, Rights: []access.Right{access.List, access.Sign}}}
	for _, u := range p.Uploaders {
		if slices.Contains(u.Users, user) {
			v.itemsOnly, v.account.Aliases, v.account.Rights = true, u.Aliases, u.rights()
			return v
		}
	}
	if v.editor = len(p.Editors) == 0 || slices.Contains(p.Editors, user); v.editor {
		v.account.Rights = access.Rights()
	}
	return v
}

// mayStill reports whether the user of v is an editor, or has the rights of v.
func (p *Panel) mayStill(v visitor) bool {
	now := p.visitorOf(v.name)
	return now.editor || now.account.Fingerprint() == v.account.Fingerprint()
}
