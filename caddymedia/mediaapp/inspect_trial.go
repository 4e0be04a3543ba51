package mediaapp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddymedia/media/caddymedia/redact"
	"github.com/caddymedia/media/storagedrivers"
)

// Trial is what was found out about a storage that no configuration has.
type Trial struct {
	// Driver is the description of its driver.
	Driver storagedrivers.Description
	// Report of the probe, and the Features that are known after it.
	Report   storagedrivers.Report
	Features storagedrivers.Features
	// Secrets of the driver, see [SecretsOf].
	Secrets []string
}

// ConfigError is a driver whose options cannot be right.
type ConfigError struct {
	Err error
	// Secrets of the driver as far as they could be read, which Err may show.
	Secrets []string
}

// Error gives what is wrong.
func (e *ConfigError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *ConfigError) Unwrap() error { return e.Err }

// TryStorage probes a storage that is not saved, of a driver as it stands in a
// configuration: {"name": "sftp", ...}. The driver is a new one, which is closed at the
// end. The error is a *[ConfigError]; a place that cannot be used is a failed step of the
// report.
func (a *App) TryStorage(ctx context.Context, driver json.RawMessage) (Trial, error) {
	const name = "trial"
	caddyCtx, cancel := caddy.NewContext(caddy.ActiveContext())
	defer cancel()
	refused := func(err error) (Trial, error) {
		return Trial{}, &ConfigError{Err: err, Secrets: secretsIn(driver)}
	}
	// Caddy clears what it has loaded, and the caller's is not to change.
	loaded, err := caddyCtx.LoadModule(&Storage{DriverRaw: append(json.RawMessage(nil), driver...)}, "DriverRaw")
	if err != nil {
		return refused(err)
	}
	module, ok := loaded.(storagedrivers.Module)
	if !ok {
		return refused(fmt.Errorf("%T is no storage driver", loaded))
	}
	secrets := SecretsOf(module)
	redactor := redact.New(secrets...)
	own, err := module.NewDriver(redact.Logger(a.log, func() redact.Redactor { return redactor }))
	if err != nil {
		return refused(err)
	}
	storage := storagedrivers.New(name, own, storagedrivers.Options{Timeout: module.Timeout()})
	trial := Trial{Driver: module.Describe(), Secrets: secrets, Report: storage.Probe(ctx)}
	trial.Features = storage.Features()
	if err := storage.Close(); err != nil && !errors.Is(err, storagedrivers.ErrClosed) {
		a.log.Warn("closing a storage that was tried", "error", err)
	}
	return trial, nil
}

// secretsIn gives the secrets of a driver that may be impossible to load.
func secretsIn(driver json.RawMessage) []string {
	var named struct {
		Name string `json:"name"`
	}
	_ = json.Unmarshal(driver, &named) // without a name there is no such module
	info, err := caddy.GetModule("media.storages." + named.Name)
	if err != nil {
		return nil
	}
	module, ok := info.New().(storagedrivers.Module)
	if !ok {
		return nil
	}
	_ = json.Unmarshal(driver, module) // all that fits is in it, whatever does not
	return SecretsOf(module)
}
