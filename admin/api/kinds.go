package api

import (
	"slices"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/caddymedia/modules"
	"github.com/caddymedia/media/storagedrivers/options"
)

type kindsAnswer struct {
	Drivers    map[string]driverSchema `json:"drivers"`
	Storage    *options.Schema         `json:"storage"`
	ImageAlias *options.Schema         `json:"image_alias"`
	FileAlias  *options.Schema         `json:"file_alias"`
	Account    *options.Schema         `json:"account"`
}

// driverSchema describes a driver and its options.
type driverSchema struct {
	Title string `json:"title"`
	Icon  string `json:"icon"`
	Rank  int    `json:"rank"`
	// HostKeys reports whether a host of the driver can be asked for its key.
	HostKeys bool `json:"host_keys"`
	*options.Schema
}

// kinds returns the options of everything that can be configured.
func (c *call) kinds() error {
	drivers := map[string]driverSchema{}
	for _, info := range caddy.GetModules("media.storages") {
		if driver, ok := info.New().(*modules.Driver); ok {
			d := driver.Describe()
			_, hostKeys := driver.HostKeyer()
			drivers[info.ID.Name()] = driverSchema{d.Title, d.Icon, d.Rank, hostKeys, driver.Schema()}
		}
	}
	all := media.Schemas
	return c.answer(kindsAnswer{
		Drivers: drivers, Storage: all.Storage.Documented(),
		ImageAlias: all.ImageAlias.Documented(), FileAlias: all.FileAlias.Documented(),
		Account: withoutSecrets(all.Account.Documented()),
	})
}

// withoutSecrets removes the hash of the password, which the server generates.
func withoutSecrets(s *options.Schema) *options.Schema {
	return &options.Schema{
		Help:    s.Help,
		Options: slices.DeleteFunc(slices.Clone(s.Options), func(o options.Option) bool { return o.Secret }),
	}
}
