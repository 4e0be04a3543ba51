package api

import (
	"slices"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddymedia/media/caddymedia/mediaapp"
	"github.com/caddymedia/media/storagedrivers/options"
)

type kindsAnswer struct {
	Drivers    map[string]*options.Schema `json:"drivers"`
	Storage    *options.Schema            `json:"storage"`
	ImageAlias *options.Schema            `json:"image_alias"`
	FileAlias  *options.Schema            `json:"file_alias"`
	Account    *options.Schema            `json:"account"`
}

// kinds answers with the options of everything that can be configured. A driver that does
// not describe itself is not there.
func (c *call) kinds() error {
	drivers := map[string]*options.Schema{}
	for _, info := range caddy.GetModules("media.storages") {
		if described, ok := info.New().(options.Described); ok {
			drivers[info.ID.Name()] = described.Schema().Documented()
		}
	}
	all := mediaapp.Schemas()
	return c.answer(kindsAnswer{
		Drivers: drivers, Storage: all.Storage.Documented(),
		ImageAlias: all.ImageAlias.Documented(), FileAlias: all.FileAlias.Documented(),
		Account: withoutSecrets(all.Account.Documented()),
	})
}

// withoutSecrets leaves out what the server makes by itself: the hash of a password.
func withoutSecrets(s *options.Schema) *options.Schema {
	return &options.Schema{
		Help:    s.Help,
		Options: slices.DeleteFunc(slices.Clone(s.Options), func(o options.Option) bool { return o.Secret }),
	}
}
