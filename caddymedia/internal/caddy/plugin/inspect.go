package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddymedia/media/caddymedia/internal/caddy/modules"
	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/leaf/redact"
	"github.com/caddymedia/media/storagedrivers"
)

// Service returns the service of this configuration, which may be closed.
func (a *App) Service() *service.Service { return service.Of(a.service) }

// Driver returns the module of a storage's driver, or nil if there is no such storage.
func (a *App) Driver(name string) *modules.Driver { return a.drivers[name] }

// Implied returns the default parts that were added to the configuration.
func (a *App) Implied() Implied { return a.implied }

// NamedBy returns the sorted API keys of the accounts that list an alias. Accounts that may use all
// aliases are not included.
func (a *App) NamedBy(alias string) []string {
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(a.Accounts)) {
		if slices.Contains(a.Accounts[key].Aliases, alias) {
			keys = append(keys, key)
		}
	}
	return keys
}

// TokenStore returns the name of the token store in the configuration, for example "bolt".
func (a *App) TokenStore() string { return a.tokens.Name() }

// Trial is the result of probing a storage that is not configured.
type Trial struct {
	// Driver is the description of its driver.
	Driver storagedrivers.Description
	// Report is the report of the probe, and Features are the features known after it.
	Report   storagedrivers.Report
	Features storagedrivers.Features
	// Secrets are the secrets of the driver, see [secretsOf].
	Secrets []string
}

// ConfigError is an error in the options of a driver.
type ConfigError struct {
	Err error
	// Secrets are the driver's secrets that could be read. Err may contain them.
	Secrets []string
}

// Error returns the text of Err.
func (e *ConfigError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *ConfigError) Unwrap() error { return e.Err }

// TryStorage probes a storage that is not saved. driver is written as in a configuration: {"name":
// "sftp", ...}. It opens a new driver and closes it at the end. The error is a *[ConfigError]; a
// backend that cannot be used is a failed step of the report.
func (a *App) TryStorage(ctx context.Context, driver json.RawMessage) (Trial, error) {
	const name = "trial"
	caddyCtx, cancel := caddy.NewContext(caddy.ActiveContext())
	defer cancel()
	refused := func(err error) (Trial, error) {
		return Trial{}, &ConfigError{Err: err, Secrets: secretsIn(driver)}
	}
	// Caddy clears the JSON that it has loaded, and the caller's must not change.
	config := &Storage{DriverRaw: append(json.RawMessage(nil), driver...)}
	if err := config.checkDriver(); err != nil {
		return refused(err)
	}
	loaded, err := caddyCtx.LoadModule(config, "DriverRaw")
	if err != nil {
		return refused(err)
	}
	module, ok := loaded.(*modules.Driver)
	if !ok {
		return refused(fmt.Errorf("%T is no storage driver", loaded))
	}
	secrets := secretsOf(module)
	redactor := redact.New(secrets...)
	own, err := module.NewDriver(redact.Logger(a.log, func() redact.Redactor { return redactor }))
	if err != nil {
		return refused(err)
	}
	storage := storagedrivers.New(name, own, storagedrivers.Options{Timeout: module.Limits().Timeout, Description: module.Describe()})
	trial := Trial{Driver: module.Describe(), Secrets: secrets, Report: storage.Probe(ctx)}
	trial.Features = storage.Features()
	if err := storage.Close(); err != nil && !errors.Is(err, storagedrivers.ErrClosed) {
		a.log.Warn("closing a storage that was tried", "error", err)
	}
	return trial, nil
}

// ErrNoHostKey is returned by [HostKey] for a driver whose host has no key.
var ErrNoHostKey = errors.New("this driver knows no host keys")

// HostKey connects to the host of a storage that is not configured, without logging in, and returns
// the key that it presents, and the description of the driver. driver is written as in a
// configuration and may be incomplete.
func HostKey(ctx context.Context, driver json.RawMessage) (storagedrivers.HostKey, storagedrivers.Description, error) {
	module := unprovisioned(driver)
	if module == nil {
		return storagedrivers.HostKey{}, storagedrivers.Description{}, ErrNoHostKey
	}
	asked, ok := module.HostKeyer()
	if !ok {
		return storagedrivers.HostKey{}, storagedrivers.Description{}, ErrNoHostKey
	}
	key, err := asked.HostKey(ctx)
	return key, module.Describe(), err
}

// secretsIn returns the secrets of a driver that possibly cannot be loaded.
func secretsIn(driver json.RawMessage) []string {
	module := unprovisioned(driver)
	if module == nil {
		return nil
	}
	return secretsOf(module)
}

// unprovisioned returns a driver with its options as they are written, or nil if there is none of
// its name.
func unprovisioned(driver json.RawMessage) *modules.Driver {
	var named struct {
		Name string `json:"name"`
	}
	_ = json.Unmarshal(driver, &named) // without a name there is no such module
	info, err := caddy.GetModule(modules.DriverNamespace + "." + named.Name)
	if err != nil {
		return nil
	}
	module, ok := info.New().(*modules.Driver)
	if !ok {
		return nil
	}
	_ = json.Unmarshal(driver, module) // all that fits is in it, whatever does not
	return module
}

// Secrets returns all secrets of the storages, the accounts and the token store, and the signing
// keys, both as configured and with their placeholders expanded.
func (a *App) Secrets() []string {
	secrets := make([]string, 0, len(a.drivers)+len(a.Accounts))
	for _, module := range a.drivers {
		secrets = append(secrets, secretsOf(module)...)
	}
	secrets = append(secrets, secretsOf(a.tokens)...)
	for _, account := range a.Accounts {
		secrets = append(append(secrets, WithExpanded(account.PasswordHash)...), WithExpanded(account.S3Secret)...)
	}
	for _, key := range a.SigningKey {
		secrets = append(secrets, WithExpanded(key)...)
	}
	return secrets
}

// secretsOf returns the secrets of a driver or a token store.
func secretsOf(module interface{ Secrets() []string }) []string {
	raw := module.Secrets()
	secrets := make([]string, 0, 2*len(raw))
	for _, secret := range raw {
		secrets = append(secrets, WithExpanded(secret)...)
	}
	return secrets
}

// WithExpanded returns the text of a secret, and its expanded text if that differs.
func WithExpanded(raw string) []string {
	expand := modules.Expander()
	expanded := expand.Text("", raw)
	if expand.Err() != nil || expanded == raw {
		return []string{raw}
	}
	return []string{raw, expanded}
}

// hidden holds the secrets that are redacted in the log. They are known after all modules are
// loaded.
type hidden struct {
	redactor atomic.Pointer[redact.Redactor]
}

func (h *hidden) set(secrets []string) { h.redactor.Store(new(redact.New(secrets...))) }

func (h *hidden) get() redact.Redactor {
	if redactor := h.redactor.Load(); redactor != nil {
		return *redactor
	}
	return redact.Redactor{}
}

// Redacted returns log without the secrets of the configuration.
func (a *App) Redacted(log *slog.Logger) *slog.Logger { return redact.Logger(log, a.hidden.get) }
