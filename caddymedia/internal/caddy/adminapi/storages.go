package adminapi

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/caddy/modules"
	"github.com/caddymedia/media/caddymedia/internal/caddy/plugin"
	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/webp"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
)

type storageAnswer struct {
	Name     string `json:"name"`
	Implicit bool   `json:"implicit"`
	driverAnswer
	Settings          map[string]any    `json:"settings"`
	SubFolderFormat   string            `json:"sub_folder_format"`
	OverwriteStrategy string            `json:"overwrite_strategy"`
	Sanitize          bool              `json:"sanitize"`
	UsedBy            []use             `json:"used_by"`
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

func (c *call) describeStorage(name string, health service.Health) storageAnswer {
	config, driver := c.app.Storages[name], c.app.Driver(name)
	s := storageAnswer{
		Name: name, Implicit: c.app.Implied().Storage,
		driverAnswer: describeDriver(driver), Settings: driver.Values(),
		SubFolderFormat:   config.SubFolderFormat,
		OverwriteStrategy: cmp.Or(config.OverwriteStrategy, "append_time"),
		Sanitize:          config.Sanitize == nil || *config.Sanitize,
		UsedBy:            []use{},
		Health:            c.describeHealth(driver, health),
		Guarantees:        healthGuarantees(health),
	}
	for _, alias := range c.service.Aliases() {
		if alias.Storage.Name() == name {
			s.UsedBy = append(s.UsedBy, use{Kind: string(alias.Kind), Alias: alias.Name})
		}
	}
	return s
}

type healthAnswer struct {
	State   string `json:"state"`
	Since   string `json:"since"`
	Checked string `json:"checked"`
	TookMS  int64  `json:"took_ms"`
	Message string `json:"message"`
	Detail  string `json:"detail"`
}

type storageHealth struct {
	Name string `json:"name"`
	driverAnswer
	Health     healthAnswer      `json:"health"`
	Guarantees []guaranteeAnswer `json:"guarantees"`
}

type tokensHealth struct {
	Store   string `json:"store"`
	OK      bool   `json:"ok"`
	Message string `json:"message"`
	Detail  string `json:"detail"`
}

// maxTokenCheck bounds the check of the token store, which is made for each request.
const maxTokenCheck = 5 * time.Second

const noTokenStore = "The token store cannot be used: logins and uploads fail until it is back."

// health returns the state of the storages, the token store and the encoder.
func (c *call) health() error {
	states := c.service.Health()
	all := make([]storageHealth, 0, len(states))
	for _, name := range slices.Sorted(maps.Keys(states)) {
		driver := c.app.Driver(name)
		all = append(all, storageHealth{
			Name: name, driverAnswer: describeDriver(driver),
			Health: c.describeHealth(driver, states[name]), Guarantees: healthGuarantees(states[name]),
		})
	}
	ctx, cancel := context.WithTimeout(c.r.Context(), maxTokenCheck)
	defer cancel()
	tokens := tokensHealth{Store: c.app.TokenStore(), OK: true}
	if err := c.service.CheckTokens(ctx); err != nil {
		tokens.OK, tokens.Message, tokens.Detail = false, noTokenStore, c.redacted(err.Error())
	}
	return c.answer(struct {
		Storages []storageHealth `json:"storages"`
		Checks   []checkHealth   `json:"checks,omitempty"`
		Tokens   tokensHealth    `json:"tokens"`
		Encoder  string          `json:"webp_encoder"`
		Version  string          `json:"version"`
	}{all, c.checksHealth(), tokens, encoderName(), plugin.Version()})
}

// checkHealth is the state of a check of an alias by another program.
type checkHealth struct {
	Kind   item.Kind    `json:"kind"`
	Alias  string       `json:"alias"`
	Name   string       `json:"name"`
	Health healthAnswer `json:"health"`
}

// checksHealth returns the states of all checks.
func (c *call) checksHealth() (all []checkHealth) {
	for _, alias := range c.service.Aliases() {
		for _, each := range alias.Checks {
			described := healthAnswer{State: "unknown", Message: "It has not been asked yet."}
			if state := each.State(); !state.Asked.IsZero() {
				described = healthAnswer{State: "up", Checked: stamp(state.Asked)}
				if state.Err != nil {
					described.State, described.Detail = "down", c.redacted(state.Err.Error())
					described.Message = explain(storagedrivers.Description{}, state.Err)
				}
			}
			all = append(all, checkHealth{alias.Kind, alias.Name, each.Name, described})
		}
	}
	return all
}

func (c *call) describeHealth(driver *modules.Driver, h service.Health) healthAnswer {
	if h.Checked.IsZero() {
		return healthAnswer{State: "unknown", Message: "The first check has not ended yet."}
	}
	described := healthAnswer{State: "up", Since: stamp(h.Since), Checked: stamp(h.Checked), TookMS: h.Took.Milliseconds()}
	if h.Err != nil {
		described.State = "down"
		described.Message, described.Detail = explain(driver.Describe(), h.Err), c.redacted(h.Err.Error())
	}
	return described
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

type guaranteeAnswer struct {
	Name  string `json:"name"`
	Holds bool   `json:"holds"`
	Text  string `json:"text"`
}

// healthGuarantees returns the guarantees of a storage that is up. Some are known only after a
// successful check.
func healthGuarantees(h service.Health) []guaranteeAnswer {
	if h.Checked.IsZero() || h.Err != nil {
		return []guaranteeAnswer{}
	}
	return guarantees(h.Features)
}

// guarantees describes what a storage guarantees.
func guarantees(f storagedrivers.Features) []guaranteeAnswer {
	g := func(name string, holds bool, yes, no string) guaranteeAnswer {
		if holds {
			return guaranteeAnswer{name, true, yes}
		}
		return guaranteeAnswer{name, false, no}
	}
	return []guaranteeAnswer{
		g("create", f.Create == storagedrivers.Atomic,
			"Two uploads of one name never overwrite each other, even if other programs write to the storage.",
			"Two uploads of one name never overwrite each other while only this service writes to the storage. "+
				"An upload by another program at the same moment could be overwritten."),
		g("replace", f.Replace == storagedrivers.Atomic,
			"While an item is replaced, clients receive the old one or the new one.",
			"While an item is replaced, it may be missing for a moment, or a download of it may fail."),
		g("restore", f.Together == storagedrivers.Atomic,
			"When an upload of several items fails, the items that it has replaced are restored.",
			"When an upload of several items fails, the items that it has replaced stay replaced. The answer names them."),
	}
}

// encoderName returns the name of the WebP encoder, or "" if there is none.
func encoderName() string {
	encoder, err := webp.New()
	if err != nil {
		return ""
	}
	return encoder.Name()
}
