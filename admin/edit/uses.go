package edit

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/caddymedia/media/caddymedia/aliases"
)

// Use is a part of the configuration that needs an entry: an alias its storage, an account an
// alias, resumable uploads their storage.
type Use struct {
	// Kind is that of an alias, "img" or "file", or "account", or "resumable".
	Kind   string `json:"kind"`
	Alias  string `json:"alias,omitempty"`
	APIKey string `json:"api_key,omitempty"`
}

const (
	accountUse   = "account"
	resumableUse = "resumable"
)

func (u Use) String() string {
	switch u.Kind {
	case accountUse:
		return "the account " + u.APIKey
	case resumableUse:
		return "resumable uploads"
	case string(aliases.Image):
		return "the image alias " + u.Alias
	default:
		return "the file alias " + u.Alias
	}
}

func sectionOf(kind string) Section {
	if kind == string(aliases.Image) {
		return ImageAliases
	}
	return FileAliases
}

// uses returns the parts of the configuration that need this entry, sorted.
func (c config) uses(s Section, name string) []Use {
	var uses []Use
	switch {
	case s == Storages:
		for alias, storage := range c.storagesOfAliases() {
			if storage == name {
				uses = append(uses, alias)
			}
		}
	case aliasSections[s] != "" && !c.otherKind(s, name):
		for key, account := range c.section(Accounts) {
			entry, _ := account.(object)
			if names, _ := entry["aliases"].([]any); slices.Contains(names, any(name)) {
				uses = append(uses, Use{Kind: accountUse, APIKey: key})
			}
		}
	}
	slices.SortFunc(uses, func(a, b Use) int {
		// Image aliases come before file aliases.
		return cmp.Or(cmp.Compare(b.Kind, a.Kind), cmp.Compare(a.Alias, b.Alias), cmp.Compare(a.APIKey, b.APIKey))
	})
	if s == Storages && group(c.app, resumableUse)[storageOption] == name {
		uses = append(uses, Use{Kind: resumableUse})
	}
	return uses
}

// otherKind reports whether there is also an alias of that name of the other kind. An account that
// names it remains valid then.
func (c config) otherKind(s Section, name string) bool {
	for other := range aliasSections {
		if _, there := c.section(other)[name]; there && other != s {
			return true
		}
	}
	return false
}

// removable returns an error if an entry must not be removed.
func (c config) removable(s Section, name string) error {
	if uses := c.uses(s, name); len(uses) > 0 {
		return &Error{
			Status: http.StatusConflict, UsedBy: uses,
			Message: fmt.Sprintf("%s is used by %s", s.title(name), listed(uses)),
		}
	}
	if aliasSections[s] != "" && len(c.section(ImageAliases))+len(c.section(FileAliases)) == 1 {
		return &Error{
			Status:  http.StatusConflict,
			Message: fmt.Sprintf("%s is the last alias: add another one first, as without any there are those called %s", s.title(name), aliases.DefaultAlias),
		}
	}
	return nil
}

// listed joins uses for a sentence: "a, b and c".
func listed(uses []Use) string {
	words := make([]string, len(uses))
	for i, use := range uses {
		words[i] = use.String()
	}
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " and " + words[last]
}
