package adminapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"strings"

	"go.uber.org/zap"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddymedia/media/caddymedia/internal/caddy/plugin"
	"github.com/caddymedia/media/storagedrivers/options"
)

// editor reads and changes the configuration of the media app. Other editors may change it at the
// same time. An editor is safe for concurrent use.
type editor struct {
	client *client // nil if the admin endpoint is off
	log    *zap.Logger
	sync   func(path string) error
}

// Running returns the configuration of the app as it is written, secrets included. The error is for
// an administrator.
func (h *Handler) Running(ctx context.Context) (map[string]any, error) {
	if h.editor.client == nil {
		return nil, errOff
	}
	app, _, err := h.editor.client.read(ctx)
	return app, err
}

// read loads the running configuration.
func (e *editor) read(ctx context.Context, defaults bool) (config, error) {
	app, _, err := e.client.read(ctx)
	if err != nil {
		return config{}, err
	}
	return loadConfig(app, defaults)
}

// section returns the section and the name of the entry in the address.
func (c *call) section() (section, string) { return section(c.args[0]), c.args[1] }

// entry answers with an entry.
func (c *call) entry() error {
	s, name := c.section()
	if sections[s] == "" {
		return s.check(name)
	}
	config, err := c.handler.editor.read(c.r.Context(), true)
	if err != nil {
		return err
	}
	view := config.view(s, name)
	if view == nil {
		return missing(s, name)
	}
	c.w.Header().Set("ETag", view.Tag)
	return c.answer(view)
}

// expected returns the condition in the headers of a change.
func (c *call) expected() condition {
	h := c.r.Header
	return condition{isNew: h.Get("If-None-Match") == "*", tags: strings.Join(h.Values("If-Match"), ",")}
}

// change is a change of an entry.
type change struct {
	section section
	name    string
	condition
	// Value holds the options that are set, without secrets.
	Value object `json:"value"`
	// Secrets are new values of secrets by path. An empty value removes the secret. A secret that
	// is not listed keeps its value, unless a storage gets another driver.
	Secrets map[string]string `json:"secrets"`
	// NewPassword generates a password for an account.
	NewPassword bool `json:"new_password"`
}

// saved is the answer to a change. Password is set if one was generated for an account. It cannot
// be read later.
type saved struct {
	Section  section `json:"section"`
	Name     string  `json:"name"`
	APIKey   string  `json:"api_key,omitempty"`
	Password string  `json:"password,omitempty"`

	created bool
	tag     string
	options []string // the names of those that differ
}

// putEntry adds or changes an entry.
func (c *call) putEntry() error {
	var body change
	if err := c.readJSON(&body, `{"value": {"prefix": "reports"}}`); err != nil {
		return err
	}
	if body.Value == nil { // all options would be removed, such as the list that limits an account
		return failf(http.StatusBadRequest, "the value is missing")
	}
	for _, secret := range body.Secrets {
		c.secrets = append(c.secrets, plugin.WithExpanded(secret)...)
	}
	body.section, body.name = c.section()
	body.condition = c.expected()
	result, err := c.handler.editor.put(c.r.Context(), body)
	if err != nil {
		return c.changeFailed(err)
	}
	status := http.StatusOK
	switch {
	case result.created:
		status = http.StatusCreated
		c.configured("add", body.section, body.name)
	case len(result.options) > 0:
		c.configured("change", body.section, body.name, result.options...)
	}
	c.w.Header().Set("ETag", result.tag)
	return c.write(status, result)
}

// deleteEntry removes an entry.
func (c *call) deleteEntry() error {
	s, name := c.section()
	if err := c.handler.editor.remove(c.r.Context(), s, name, c.expected()); err != nil {
		return c.changeFailed(err)
	}
	c.configured("remove", s, name)
	return c.noContent()
}

// configured records a change that was made, by the app that runs since. It has no values of
// options.
func (c *call) configured(action string, s section, name string, options ...string) {
	if app, err := plugin.Active(); err == nil { // else it was removed meanwhile
		app.Configured(c.actor(), action, sections[s], name, options)
	}
}

// changeFailed returns the failure of a change. Texts of Caddy may have secrets.
func (c *call) changeFailed(err error) error {
	failed, ok := errors.AsType[*failure](err)
	if !ok {
		return err
	}
	failed.Message = c.redacted(failed.Message)
	return failed
}

// download answers with the configuration as a file for use outside the host. Each secret in it is
// replaced by a placeholder such as {env.MEDIA_STORAGES_ARCHIVE_PASSWORD}.
func (c *call) download() error {
	config, err := c.handler.editor.read(c.r.Context(), false)
	if err != nil {
		return err
	}
	config.veil()
	body, err := json.MarshalIndent(object{"apps": object{"media": config.app}}, "", "\t")
	if err != nil {
		return err
	}
	c.w.Header().Set("Cache-Control", "no-store")
	c.w.Header().Set("Content-Type", "application/json")
	c.w.Header().Set("Content-Disposition", `attachment; filename="media.json"`)
	_, _ = c.w.Write(append(body, '\n')) // the client may be gone
	return nil
}

// downloadCaddyfile answers with the same configuration as a global option of a Caddyfile.
func (c *call) downloadCaddyfile() error {
	config, err := c.handler.editor.read(c.r.Context(), false)
	if err != nil {
		return err
	}
	made, err := config.caddyfile(c.handler.editor.client.curl)
	if err != nil {
		return err
	}
	return c.answer(made)
}

// maxAttempts is how often a change is tried while other changes conflict with it.
const maxAttempts = 5

// put adds or changes an entry. When it returns, the new configuration is running; after an error
// the old one is. The error is a *failure if the administrator can correct the cause.
func (e *editor) put(ctx context.Context, wanted change) (*saved, error) {
	if err := wanted.section.check(wanted.name); err != nil {
		return nil, err
	}
	result := &saved{Section: wanted.section, Name: wanted.name}
	if wanted.NewPassword {
		if wanted.section != accounts {
			return nil, refused("", "only accounts have passwords")
		}
		password, hash, err := plugin.NewPassword()
		if err != nil {
			return nil, err
		}
		secrets := map[string]string{}
		maps.Copy(secrets, wanted.Secrets)
		secrets[hashOption] = hash
		wanted.Secrets = secrets
		result.APIKey, result.Password = wanted.name, password
	}
	var before object
	changed, err := e.change(ctx, wanted.section, wanted.name, func(c config) error {
		before = group(c.section(wanted.section), wanted.name)
		current := c.view(wanted.section, wanted.name)
		if err := wanted.check(wanted.section, wanted.name, current); err != nil {
			return err
		}
		entry, err := c.applied(wanted)
		if err != nil {
			return err
		}
		c.set(wanted.section, wanted.name, entry)
		result.created = current == nil
		return nil
	})
	if err != nil {
		return nil, wanted.blame(err)
	}
	result.tag = changed.view(wanted.section, wanted.name).Tag
	if !result.created {
		for _, path := range plugin.Differences("", before, group(changed.section(wanted.section), wanted.name)) {
			result.options = append(result.options, strings.ReplaceAll(path, "/", "."))
		}
	}
	if _, renewed := wanted.Secrets[hashOption]; renewed && wanted.section == accounts {
		e.endTokens(ctx, wanted.name)
	}
	return result, nil
}

// remove removes an entry. The error is as with put, with StatusConflict and the uses if other
// entries need this one.
func (e *editor) remove(ctx context.Context, s section, name string, expected condition) error {
	if sections[s] == "" {
		return s.check(name)
	}
	_, err := e.change(ctx, s, name, func(c config) error {
		if err := expected.check(s, name, c.view(s, name)); err != nil {
			return err
		}
		if err := c.removable(s, name); err != nil {
			return err
		}
		delete(c.section(s), name)
		return nil
	})
	if err != nil {
		return err
	}
	if s == accounts {
		e.endTokens(ctx, name)
	}
	return nil
}

// blame adds the option at fault to an error of Caddy.
func (c change) blame(err error) error {
	failed, ok := errors.AsType[*failure](err)
	if !ok || failed.status != http.StatusBadRequest || failed.Option != "" {
		return err
	}
	// An error of another entry is not the fault of an option of this one.
	reason, own := strings.CutPrefix(failed.Message, c.section.title(c.name)+": ")
	if opts, err := c.section.options(driverOf(c.Value)); own && err == nil {
		failed.Option = options.Blamed(reason, opts)
	}
	return failed
}

// applied returns the entry that results from a change.
func (c config) applied(wanted change) (object, error) {
	opts, err := wanted.section.options(driverOf(wanted.Value))
	if err != nil {
		return nil, err
	}
	old := maps.Clone(group(c.section(wanted.section), wanted.name))
	if wanted.section == storages && driverOf(old) != driverOf(wanted.Value) {
		// No option of the old driver means the same to the new one, and its secrets must not
		// reach the new one.
		delete(old, driverGroup)
	}
	return merged(opts, old, wanted.Value, wanted.Secrets)
}

// turn is held by the running change. Changes of this process wait for each other and do not use up
// their attempts; only other processes can interfere.
var turn = make(chan struct{}, 1)

// change makes one change of the configuration, to one entry, and returns the changed
// configuration. It continues if the caller leaves, because the outcome of an interrupted change
// would be unknown.
func (e *editor) change(ctx context.Context, s section, name string, apply func(config) error) (config, error) {
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	case <-ctx.Done():
		return config{}, failf(http.StatusServiceUnavailable, "the request ended before the change was made")
	}
	changed, err := e.attempt(context.WithoutCancel(ctx), s, name, apply)
	if err != nil {
		return changed, err
	}
	// Caddy has written the file that `caddy run --resume` reads, but does not sync it.
	if err := e.sync(caddy.ConfigAutosavePath); err != nil {
		e.log.Warn("syncing the saved configuration: the change is made, but a power failure now may lose it",
			zap.String("file", caddy.ConfigAutosavePath), zap.Error(err))
	}
	return changed, nil
}

// attempt makes a change, and repeats it while others interfere.
func (e *editor) attempt(ctx context.Context, s section, name string, apply func(config) error) (changed config, err error) {
	var unanswered bool
	for range maxAttempts {
		app, tag, err := e.client.read(ctx)
		if err != nil {
			return changed, err
		}
		c, err := loadConfig(app, true)
		if err != nil {
			return changed, err
		}
		// A change that has arrived stands, whatever was changed since.
		if unanswered && bytes.Equal(canonical(c.section(s)[name]), canonical(changed.section(s)[name])) {
			return c, nil
		}
		if err := apply(c); err != nil {
			return changed, err
		}
		if changed, err = loadConfig(c.app, false); err != nil {
			return changed, refused("", "%v", err)
		}
		err = e.client.write(ctx, withIDs(app, changed.app), tag)
		switch {
		case errors.Is(err, errUnanswered):
			unanswered = true
		case !errors.Is(err, errChanged):
			return changed, err
		}
	}
	return changed, failf(http.StatusBadGateway,
		"other changes of the configuration come first, or Caddy's admin endpoint does not answer: try again")
}

// driver returns the options of an unsaved storage: value and secrets. Missing secrets are taken
// from the storage called keep, if it has the same driver.
func (e *editor) driver(ctx context.Context, value object, secrets map[string]string, keep string) (object, error) {
	var c config
	if keep != "" {
		var err error
		if c, err = e.read(ctx, true); err != nil {
			return nil, err
		}
		if c.section(storages)[keep] == nil {
			return nil, missing(storages, keep)
		}
	}
	entry, err := c.applied(change{section: storages, name: keep, Value: object{driverGroup: value}, Secrets: secrets})
	if err != nil {
		return nil, err
	}
	return group(entry, driverGroup), nil
}

const hashOption = "password_hash"

// endTokens removes the tokens of an account that was deleted or has a new password. These tokens
// are already invalid, unless the account is restored unchanged.
func (e *editor) endTokens(ctx context.Context, apiKey string) {
	ctx = context.WithoutCancel(ctx)
	app, release, err := plugin.AcquireActive()
	if err == nil {
		defer release()
		_, err = app.Service().Issuer().Revoke(ctx, apiKey)
	}
	if err != nil {
		e.log.Error("removing the tokens of an account", zap.String("account", apiKey), zap.Error(err))
	}
}
