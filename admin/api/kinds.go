package api

import (
	"slices"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddymedia/media/caddymedia/mediaapp"
	"github.com/caddymedia/media/storagedrivers/schema"
)

type kindsAnswer struct {
	Drivers    map[string]*schema.Schema `json:"drivers"`
	Storage    *schema.Schema            `json:"storage"`
	ImageAlias *schema.Schema            `json:"image_alias"`
	FileAlias  *schema.Schema            `json:"file_alias"`
	Account    *schema.Schema            `json:"account"`
}

// kinds answers with the options of everything that can be configured. A driver that does
// not describe itself is not there.
func (c *call) kinds() error {
	drivers := map[string]*schema.Schema{}
	for _, info := range caddy.GetModules("media.storages") {
		if described, ok := info.New().(schema.Described); ok {
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
func withoutSecrets(s *schema.Schema) *schema.Schema {
	return &schema.Schema{
		Help:    s.Help,
		Options: slices.DeleteFunc(slices.Clone(s.Options), func(o schema.Option) bool { return o.Secret }),
	}
}
