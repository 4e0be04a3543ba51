package api

import (
	"cmp"
	"maps"
	"net/http"
	"slices"

	"github.com/caddymedia/media/caddymedia/aliases"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/caddymedia/modules"
)

type storageAnswer struct {
	Name     string `json:"name"`
	Implicit bool   `json:"implicit"`
	driverAnswer
	Settings          map[string]any    `json:"settings"`
	SubFolderFormat   string            `json:"sub_folder_format"`
	OverwriteStrategy string            `json:"overwrite_strategy"`
	Sanitize          bool              `json:"sanitize"`
	UsedBy            []usedBy          `json:"used_by"`
	Health            healthAnswer      `json:"health"`
	Guarantees        []guaranteeAnswer `json:"guarantees"`
}

// driverAnswer describes the driver of a storage.
type driverAnswer struct {
	Driver string `json:"driver"`
	Title  string `json:"driver_title"`
	Icon   string `json:"driver_icon"`
	Where  string `json:"where"`
}

func describeDriver(driver *modules.Driver) driverAnswer {
	d := driver.Describe()
	return driverAnswer{Driver: driver.Name(), Title: d.Title, Icon: d.Icon, Where: d.Where}
}

type usedBy struct {
	Kind  aliases.Kind `json:"kind"`
	Alias string       `json:"alias"`
}

// storages returns all storages.
func (c *call) storages() error {
	health := c.service.Health()
	all := make([]storageAnswer, 0, len(health))
	for _, name := range slices.Sorted(maps.Keys(c.app.Storages)) {
		all = append(all, c.describeStorage(name, health[name]))
	}
	return c.answer(map[string]any{"storages": all})
}

// storage returns one storage.
func (c *call) storage() error {
	name := c.args[0]
	if _, ok := c.service.Storage(name); !ok {
		return noStorage(name)
	}
	return c.answer(c.describeStorage(name, c.service.Health()[name]))
}

func noStorage(name string) error {
	return failf(http.StatusNotFound, "There is no storage %.64q.", name)
}

func (c *call) describeStorage(name string, health media.Health) storageAnswer {
	config, driver := c.app.Storages[name], c.app.Driver(name)
	s := storageAnswer{
		Name: name, Implicit: c.app.Implied().Storage,
		driverAnswer: describeDriver(driver), Settings: driver.Values(),
		SubFolderFormat:   config.SubFolderFormat,
		OverwriteStrategy: cmp.Or(config.OverwriteStrategy, "append_time"),
		Sanitize:          config.Sanitize == nil || *config.Sanitize,
		UsedBy:            []usedBy{},
		Health:            c.describeHealth(driver.Describe(), health),
		Guarantees:        healthGuarantees(health),
	}
	for _, alias := range c.service.Aliases() {
		if alias.Storage.Name() == name {
			s.UsedBy = append(s.UsedBy, usedBy{alias.Kind, alias.Name})
		}
	}
	return s
}
