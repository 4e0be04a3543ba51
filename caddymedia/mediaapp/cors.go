package mediaapp

import (
	"slices"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers/options"
)

// parseCORS reads origins. Several can be checked together only if none has a placeholder.
func (a *App) parseCORS(d *caddyfile.Dispenser) error {
	if err := parseChecked(d, "cors", &a.CORS, media.CheckOrigin); err != nil {
		return err
	}
	if slices.ContainsFunc(a.CORS, options.HasPlaceholder) {
		return nil
	}
	if _, err := media.ParseOrigins(a.CORS); err != nil {
		return d.Errf("cors: %w", err)
	}
	return nil
}

// origins returns the expanded origins.
func (c *Config) origins() ([]string, error) {
	var expand options.Expander
	origins := make([]string, len(c.CORS))
	for i, raw := range c.CORS {
		origins[i] = expand.Text("cors", raw)
	}
	if err := expand.Err(); err != nil {
		return nil, err
	}
	return origins, nil
}
