package api

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/caddymedia/media/caddymedia/imaging/webp"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers"
)

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

// health returns the state of the storages, the token store and the encoder.
func (c *call) health() error {
	states := c.service.Health()
	all := make([]storageHealth, 0, len(states))
	for _, name := range slices.Sorted(maps.Keys(states)) {
		driver := c.app.Driver(name)
		all = append(all, storageHealth{
			Name: name, driverAnswer: describeDriver(driver),
			Health: c.describeHealth(driver.Describe(), states[name]), Guarantees: healthGuarantees(states[name]),
		})
	}
	encoder := ""
	if e, err := webp.New(); err == nil {
		encoder = e.Name()
	}
	return c.answer(struct {
		Storages []storageHealth `json:"storages"`
		Tokens   tokensHealth    `json:"tokens"`
		Encoder  string          `json:"webp_encoder"`
	}{all, c.tokensHealth(), encoder})
}

const noTokenStore = "The token store cannot be used: logins and uploads fail until it is back."

func (c *call) tokensHealth() tokensHealth {
	ctx, cancel := context.WithTimeout(c.r.Context(), maxTokenCheck)
	defer cancel()
	health := tokensHealth{Store: c.app.TokenStore(), OK: true}
	if err := c.service.CheckTokens(ctx); err != nil {
		health.OK, health.Message, health.Detail = false, noTokenStore, c.redacted(err.Error())
	}
	return health
}

func (c *call) describeHealth(driver storagedrivers.Description, h media.Health) healthAnswer {
	if h.Checked.IsZero() {
		return healthAnswer{State: "unknown", Message: "The first check has not ended yet."}
	}
	described := healthAnswer{
		State: "up", Since: h.Since.UTC().Format(time.RFC3339), Checked: h.Checked.UTC().Format(time.RFC3339),
		TookMS: h.Took.Milliseconds(),
	}
	if h.Err != nil {
		described.State = "down"
		described.Message, described.Detail = explain(driver, h.Err), c.redacted(h.Err.Error())
	}
	return described
}

// healthGuarantees returns the guarantees of a storage that is up. Some are known only after a
// successful check.
func healthGuarantees(h media.Health) []guaranteeAnswer {
	if h.Checked.IsZero() || h.Err != nil {
		return []guaranteeAnswer{}
	}
	return guarantees(h.Features)
}
