// Package edit changes the configuration of the media app through Caddy's config API, one
// storage, alias or account at a time.
package edit

import (
	"fmt"
	"net/http"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddymedia/media/caddymedia/aliases"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers/options"
)

// Section is a part of the app's configuration that holds entries by their names.
type Section string

// The sections that can be edited.
const (
	Storages     Section = "storages"
	ImageAliases Section = "image_aliases"
	FileAliases  Section = "file_aliases"
	Accounts     Section = "accounts"
)

// sections maps each section to the name of its entries.
var sections = map[Section]string{
	Storages: "storage", ImageAliases: "image alias", FileAliases: "file alias", Accounts: "account",
}

// aliasSections maps the sections of aliases to their kinds.
var aliasSections = map[Section]aliases.Kind{ImageAliases: aliases.Image, FileAliases: aliases.File}

// object is a JSON object; its numbers are json.Number.
type object = map[string]any

// check returns an error if the section cannot have an entry of that name.
func (s Section) check(name string) error {
	what, ok := sections[s]
	switch {
	case !ok:
		return &Error{Status: http.StatusNotFound, Message: fmt.Sprintf("there is nothing called %q to configure", string(s))}
	case s == Accounts && !media.APIKeys.Allows(name):
		return refused("", "an API key is %s", media.APIKeys.Words)
	case s != Accounts && !media.Names.Allows(name):
		return refused("", "the name of a %s is %s", what, media.Names.Words)
	}
	return nil
}

// title returns the name of an entry for messages: storage "archive".
func (s Section) title(name string) string { return fmt.Sprintf("%s %q", sections[s], name) }

// Driver options are in a group of this name. One of them is the name of the driver.
const (
	driverGroup = "driver"
	driverKind  = "name"
)

// options returns the options of a section's entries. Those of a storage depend on its driver; a
// driver that is unknown or does not describe itself is an error.
func (s Section) options(driver string) ([]options.Option, error) {
	all := media.Schemas
	switch s {
	case Storages:
		opts, err := driverOptions(driver)
		if err != nil {
			return nil, err
		}
		opts = append([]options.Option{{Name: driverKind, Type: options.Text, Required: true}}, opts...)
		group := options.Option{Name: driverGroup, Type: options.Group, Required: true, Options: opts}
		return append([]options.Option{group}, all.Storage.Options...), nil
	case ImageAliases:
		return all.ImageAlias.Options, nil
	case FileAliases:
		return all.FileAlias.Options, nil
	default:
		return all.Account.Options, nil
	}
}

func driverOptions(kind string) ([]options.Option, error) {
	const where = driverGroup + "." + driverKind
	if kind == "" {
		return nil, refused(where, "the storage needs a driver")
	}
	module, err := caddy.GetModule("media.storages." + kind)
	if err != nil {
		return nil, refused(where, "there is no driver %q", kind)
	}
	described, ok := module.New().(options.Described)
	if !ok {
		return nil, refused(where, "the driver %q does not describe its options: it can be changed in the configuration file only", kind)
	}
	return described.Schema().Options, nil
}

// driverOf returns the name of a storage's driver.
func driverOf(entry object) string {
	kind, _ := group(entry, driverGroup)[driverKind].(string)
	return kind
}

// group returns an object inside another, or nil if there is none.
func group(of object, name string) object {
	inner, _ := of[name].(object)
	return inner
}
