package adminapi

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers/options"
)

// section is a part of the app's configuration that holds entries by their names.
type section string

// The sections that can be edited.
const (
	storages     section = "storages"
	imageAliases section = "image_aliases"
	fileAliases  section = "file_aliases"
	accounts     section = "accounts"
)

// sections maps each section to the name of its entries.
var sections = map[section]string{
	storages: "storage", imageAliases: "image alias", fileAliases: "file alias", accounts: "account",
}

// aliasSections are the sections of aliases.
var aliasSections = map[section]bool{imageAliases: true, fileAliases: true}

// object is a JSON object; its numbers are json.Number.
type object = map[string]any

// check returns an error if the section cannot have an entry of that name.
func (s section) check(name string) error {
	noun, ok := sections[s]
	switch {
	case !ok:
		return failf(http.StatusNotFound, "there is nothing called %q to configure", string(s))
	case s == accounts && !media.APIKeys.Allows(name):
		return refused("", "an API key is %s", media.APIKeys.Words)
	case s != accounts && !media.Names.Allows(name):
		return refused("", "the name of a %s is %s", noun, media.Names.Words)
	}
	return nil
}

// title returns the name of an entry for messages: storage "archive".
func (s section) title(name string) string { return fmt.Sprintf("%s %q", sections[s], name) }

// Driver options are in a group of this name. One of them is the name of the driver.
const (
	driverGroup = "driver"
	driverName  = "name"
)

// options returns the options of a section's entries. Those of a storage depend on its driver; a
// driver that is unknown or does not describe itself is an error.
func (s section) options(driver string) ([]options.Option, error) {
	all := media.Schemas
	switch s {
	case storages:
		opts, err := driverOptions(driver)
		if err != nil {
			return nil, err
		}
		opts = append([]options.Option{{Name: driverName, Type: options.Text, Required: true}}, opts...)
		group := options.Option{Name: driverGroup, Type: options.Group, Required: true, Options: opts}
		return append([]options.Option{group}, all.Storage.Options...), nil
	case imageAliases:
		return all.ImageAlias.Options, nil
	case fileAliases:
		return all.FileAlias.Options, nil
	default:
		return all.Account.Options, nil
	}
}

func driverOptions(name string) ([]options.Option, error) {
	const where = driverGroup + "." + driverName
	if name == "" {
		return nil, refused(where, "the storage needs a driver")
	}
	opts, known := moduleOptions("media.storages." + name)
	switch {
	case !known:
		return nil, refused(where, "there is no driver %q", name)
	case opts == nil:
		return nil, refused(where, "the driver %q does not describe its options: change it in the configuration file", name)
	}
	return opts, nil
}

// moduleOptions returns the options of a driver or a token store, nil if the module does not
// describe them, and false if there is no such module.
func moduleOptions(id string) (opts []options.Option, known bool) {
	info, err := caddy.GetModule(id)
	if err != nil {
		return nil, false
	}
	if described, ok := info.New().(options.Described); ok {
		opts = append([]options.Option{}, described.Schema().Options...)
	}
	return opts, true
}

// driverOf returns the name of a storage's driver.
func driverOf(entry object) string {
	name, _ := group(entry, driverGroup)[driverName].(string)
	return name
}

// group returns an object inside another, or nil if there is none.
func group(of object, name string) object {
	inner, _ := of[name].(object)
	return inner
}

// shownEntry is an entry of a section without its secrets.
type shownEntry struct {
	Section section `json:"section"`
	Name    string  `json:"name"`
	// Implicit is an entry that is not configured: the app adds it.
	Implicit bool `json:"implicit"`
	// Value has the options that are given, without secrets.
	Value object `json:"value"`
	// Secrets are the paths of the secrets that are set: "driver.password".
	Secrets []string `json:"secrets"`
	// Tag changes with the entry, its secrets included, but does not reveal them.
	Tag string `json:"-"`
}

// tagKey is a random key of this process.
var tagKey = sync.OnceValue(func() []byte {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // it never fails
	return key
})

func tagOf(s section, name string, entry object) string {
	mac := hmac.New(sha256.New, tagKey())
	mac.Write(canonical([]any{s, name, entry}))
	return `"` + hex.EncodeToString(mac.Sum(nil)) + `"`
}

// condition is the expected state of an entry before a change.
type condition struct {
	// isNew expects that there is no such entry.
	isNew bool
	// tags is an If-Match header: the tag of the entry, a list of tags, or "*".
	tags string
}

// check returns an error if an entry is not in the expected state. current is nil if there is no
// entry.
func (c condition) check(s section, name string, current *shownEntry) error {
	switch {
	case c.isNew && current == nil:
		return nil
	case c.isNew:
		return stale(current, "there is already a %s", s.title(name))
	case c.tags == "":
		return failf(http.StatusPreconditionRequired, "If-Match or If-None-Match is missing")
	case current == nil:
		return missing(s, name)
	}
	for tag := range strings.SplitSeq(c.tags, ",") {
		// Caddy's `encode` adds a suffix to the tag of a compressed answer: "123-gzip".
		bare, _, compressed := strings.Cut(strings.TrimSpace(tag), "-")
		if compressed {
			bare += `"`
		}
		if bare == "*" || bare == current.Tag {
			return nil
		}
	}
	return stale(current, "%s has been changed by another user", s.title(name))
}

// stale returns the failure of a change of an entry that is in another state.
func stale(current *shownEntry, format string, args ...any) error {
	f := failf(http.StatusPreconditionFailed, format, args...)
	f.Current = current
	return f
}

func missing(s section, name string) error {
	return failf(http.StatusNotFound, "there is no %s", s.title(name))
}

// refused returns the failure of an option.
func refused(option, format string, args ...any) *failure {
	f := failf(http.StatusBadRequest, format, args...)
	f.Option = option
	return f
}
