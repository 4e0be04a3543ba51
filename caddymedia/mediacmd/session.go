package mediacmd

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	"github.com/caddymedia/media/caddymedia/internal/caddy/plugin"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/internal/leaf/redact"
	"github.com/caddymedia/media/storagedrivers"
)

// appName is the name of the app in a configuration.
const appName = "media"

// session is a command that uses a configuration.
type session struct {
	// App is provisioned but not started. It runs no checks in the background and has not opened
	// its token store.
	App *plugin.App
	// output redacts the secrets of the configuration.
	*output
}

// inSession completes a command that works with a configuration: it adds the flags for that and for
// the output, and calls f with an open session.
func inSession(cmd *cobra.Command, f func(ctx context.Context, s *session, args []string) error) *cobra.Command {
	var source configSource
	cmd.Flags().StringVarP(&source.file, "config", "c", "", "Configuration file (default: the configuration of the running Caddy)")
	cmd.Flags().StringVarP(&source.adapter, "adapter", "a", "", "Name of the adapter for the configuration file")
	cmd.Flags().StringVar(&source.address, "address", "", "Address of the admin API of the running Caddy")
	cmd.MarkFlagsMutuallyExclusive("config", "address")
	return withOutput(cmd, func(ctx context.Context, o *output, args []string) error {
		s, err := source.open(o)
		if err != nil {
			return err
		}
		return errors.Join(f(ctx, s, args), s.App.Cleanup())
	})
}

// configSource is the origin of a configuration: a file, or the running Caddy.
type configSource struct {
	file, adapter, address string
}

// open returns a session with the configuration. Its app must be cleaned up.
func (c *configSource) open(o *output) (*session, error) {
	// Caddy's messages about its configuration go to a buffer, which the next buffer replaces.
	caddy.BufferedLog()
	raw, err := c.read()
	caddy.BufferedLog()
	if err == nil {
		raw, err = forCommands(raw)
	}
	if err != nil {
		return nil, err
	}
	app, err := provision(raw)
	if err != nil {
		return nil, fmt.Errorf("setting up the media app: %w", err)
	}
	s := &session{App: app, output: o}
	s.redactor = redact.New(s.App.Secrets()...)
	return s, nil
}

// provision returns the app of this JSON, not started.
func provision(raw json.RawMessage) (*plugin.App, error) {
	ctx, err := caddy.ProvisionContext(&caddy.Config{
		Admin: &caddy.AdminConfig{Disabled: true},
		Logging: &caddy.Logging{Logs: map[string]*caddy.CustomLog{
			caddy.DefaultLoggerName: {BaseLog: caddy.BaseLog{Level: "WARN"}},
		}},
		AppsRaw: caddy.ModuleMap{appName: raw},
	})
	if err != nil {
		return nil, err
	}
	app, err := ctx.App(appName)
	if err != nil {
		return nil, err
	}
	return app.(*plugin.App), nil // the app of this name
}

// forCommands returns the JSON of the app without what no command uses: the read caches of the
// storages, because their folders belong to the running Caddy, and a command must see what the
// storages have; and the accounts, whose hashes are often in an environment that only the running
// Caddy has.
func forCommands(raw json.RawMessage) (json.RawMessage, error) {
	var app map[string]json.RawMessage
	if err := json.Unmarshal(raw, &app); err != nil {
		return nil, fmt.Errorf("reading the media app: %w", err)
	}
	delete(app, "accounts")
	var storages map[string]map[string]json.RawMessage
	if json.Unmarshal(app["storages"], &storages) == nil { // otherwise Caddy says what is wrong
		for _, storage := range storages {
			delete(storage, "cache")
		}
		app["storages"] = caddyconfig.JSON(storages, nil)
	}
	return caddyconfig.JSON(app, nil), nil
}

// storage returns a storage of the configuration.
func (s *session) storage(name string) (*storagedrivers.Storage, error) {
	storage, ok := s.App.Service().Storage(name)
	if !ok {
		return nil, fmt.Errorf("there is no storage %q in the configuration", name)
	}
	return storage, nil
}

// storages returns the storages of these names, or all storages sorted by name if there are no
// names.
func (s *session) storages(names []string) ([]*storagedrivers.Storage, error) {
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(s.App.Storages))
	}
	storages := make([]*storagedrivers.Storage, len(names))
	for i, name := range names {
		var err error
		if storages[i], err = s.storage(name); err != nil {
			return nil, err
		}
	}
	return storages, nil
}

// alias returns the alias of a name such as "img/content".
func (s *session) alias(full string) (*item.Alias, error) {
	kind, name, _ := strings.Cut(full, "/")
	alias, ok := s.App.Service().Alias(item.Kind(kind), name)
	if !ok {
		return nil, fmt.Errorf("there is no alias %q in the configuration; write img/<name> or file/<name>", full)
	}
	return alias, nil
}

// fullName is the name that [session.alias] finds.
func fullName(alias *item.Alias) string { return string(alias.Kind) + "/" + alias.Name }

// encoders returns the number of images that the encoders accept at a time without a queue.
func (s *session) encoders() int {
	return cmp.Or(max(s.App.Service().Limits().Images.Workers, 0), runtime.GOMAXPROCS(0))
}

// aliasOf returns a function that finds the alias of a key, or nil. Aliases that use the storage to
// come first.
func (s *session) aliasOf(from, to string) func(key string) *item.Alias {
	var chosen []*item.Alias
	for _, kept := range []string{to, from} {
		for _, alias := range s.App.Service().Aliases() {
			if alias.Storage.Name() == kept {
				chosen = append(chosen, alias)
			}
		}
	}
	return func(key string) *item.Alias {
		for _, alias := range chosen {
			if strings.HasPrefix(key, alias.Key("")) {
				return alias
			}
		}
		return nil
	}
}

// parallel returns the number of items that may be processed at a time, at most wanted.
func (s *session) parallel(wanted int, storages ...*storagedrivers.Storage) int {
	for _, storage := range storages {
		if limit := s.App.Driver(storage.Name()).Limits().Parallel; limit > 0 {
			wanted = min(wanted, limit)
		}
	}
	return wanted
}

// read returns the JSON of the media app.
func (c *configSource) read() (json.RawMessage, error) {
	if c.file == "" {
		return c.readRunning()
	}
	raw, _, _, err := caddycmd.LoadConfig(c.file, c.adapter)
	if err != nil {
		return nil, err
	}
	var config caddy.Config
	if err := caddy.StrictUnmarshalJSON(caddy.RemoveMetaFields(raw), &config); err != nil {
		return nil, fmt.Errorf("reading %s: %w", c.file, err)
	}
	return orDefaults(config.AppsRaw[appName]), nil
}

// readRunning reads from the running Caddy.
func (c *configSource) readRunning() (json.RawMessage, error) {
	address, err := caddycmd.DetermineAdminAPIAddress(c.address, nil, "", "")
	if err != nil {
		return nil, err
	}
	resp, err := caddycmd.AdminAPIRequest(address, http.MethodGet, "/config/apps", nil, nil)
	if err != nil {
		return nil, fmt.Errorf("reading the configuration of the running Caddy at %s (use --config for a file): %w", address, err)
	}
	raw, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return nil, fmt.Errorf("reading the configuration of the running Caddy: %w", err)
	}
	var apps caddy.ModuleMap
	if err := json.Unmarshal(caddy.RemoveMetaFields(raw), &apps); err != nil {
		return nil, fmt.Errorf("reading the configuration of the running Caddy: %w", err)
	}
	return orDefaults(apps[appName]), nil
}

// orDefaults returns "{}" if the app has no configuration, because a site may use the app with its
// defaults.
func orDefaults(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return json.RawMessage("{}")
	}
	return raw
}

// explain adds the reason to an error of a storage, in the same words as the panel. It returns err
// itself if its reason is not known.
func (s *session) explain(err error) error {
	if reason := s.reasonOf(err); reason != "" {
		return fmt.Errorf("%s\n  %w", reason, err)
	}
	return err
}

// reasonOf returns the reason of an error of a storage; empty if it is not known.
func (s *session) reasonOf(err error) string {
	op, ok := errors.AsType[*storagedrivers.OpError](err)
	if !ok {
		return ""
	}
	storage, ok := s.App.Service().Storage(op.Storage)
	if !ok {
		return ""
	}
	return storage.Explain(err)
}

// failure is a part of a JSON line: an error, and what to do about it if that is known.
type failure struct {
	Message string `json:"message,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// fail prints the error of an object, and returns it for the JSON.
func (s *session) fail(name string, err error) failure {
	s.failf("%s: %v", name, s.explain(err))
	return failure{s.text(err), s.reasonOf(err)}
}
