package mediacmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"

	"github.com/spf13/cobra"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	"github.com/caddymedia/media/caddymedia/mediaapp"
	"github.com/caddymedia/media/caddymedia/redact"
	"github.com/caddymedia/media/storagedrivers"
)

// appName is the app's name in a configuration.
const appName = "media"

// session is a command that works with a configuration.
type session struct {
	// App is provisioned and not started: it checks nothing in the background and has not
	// opened its token store.
	App *mediaapp.App
	// output hides the secrets of the configuration.
	*output
}

// addConfigFlags adds the flags by which [open] finds the configuration.
func addConfigFlags(cmd *cobra.Command) {
	cmd.Flags().StringP("config", "c", "", "Configuration file (default: the configuration of the running Caddy)")
	cmd.Flags().StringP("adapter", "a", "", "Name of the adapter for the configuration file")
	cmd.Flags().String("address", "", "Address of the admin API of the running Caddy")
	cmd.MarkFlagsMutuallyExclusive("config", "address")
}

// open gives the app of the configuration that the flags of cmd name. The caller must
// Close it.
func open(cmd *cobra.Command) (*session, error) {
	// What Caddy has to say about reading its configuration is of no interest here: it goes
	// into a buffer, and the next buffer takes its place.
	caddy.BufferedLog()
	raw, err := configuration(cmd)
	caddy.BufferedLog()
	if err != nil {
		return nil, err
	}
	ctx, err := caddy.ProvisionContext(&caddy.Config{
		Admin: &caddy.AdminConfig{Disabled: true},
		Logging: &caddy.Logging{Logs: map[string]*caddy.CustomLog{
			caddy.DefaultLoggerName: {BaseLog: caddy.BaseLog{Level: "WARN"}},
		}},
		AppsRaw: caddy.ModuleMap{appName: raw},
	})
	if err != nil {
		return nil, fmt.Errorf("setting up the media app: %w", err)
	}
	app, err := ctx.App(appName)
	if err != nil {
		return nil, fmt.Errorf("setting up the media app: %w", err)
	}
	s := &session{App: app.(*mediaapp.App), output: newOutput(cmd)} // this is what "media" is
	s.redactor = redact.New(s.App.Secrets()...)
	return s, nil
}

// Close lets go of the storages.
func (s *session) Close() error { return s.App.Cleanup() }

// storage gives a storage of the configuration.
func (s *session) storage(name string) (*storagedrivers.Storage, error) {
	storage, ok := s.App.Service().Storage(name)
	if !ok {
		return nil, fmt.Errorf("there is no storage %q in the configuration", name)
	}
	return storage, nil
}

// storages gives those of names, or all in the order of their names if there is none.
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

// configuration gives the JSON of the media app.
func configuration(cmd *cobra.Command) (json.RawMessage, error) {
	file, err := cmd.Flags().GetString("config")
	if err != nil {
		return nil, err
	}
	if file == "" {
		return ofRunning(cmd)
	}
	adapter, err := cmd.Flags().GetString("adapter")
	if err != nil {
		return nil, err
	}
	raw, _, _, err := caddycmd.LoadConfig(file, adapter)
	if err != nil {
		return nil, err
	}
	var config caddy.Config
	if err := caddy.StrictUnmarshalJSON(caddy.RemoveMetaFields(raw), &config); err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	return orDefaults(config.AppsRaw[appName]), nil
}

// ofRunning asks the running Caddy.
func ofRunning(cmd *cobra.Command) (json.RawMessage, error) {
	address, err := cmd.Flags().GetString("address")
	if err != nil {
		return nil, err
	}
	if address, err = caddycmd.DetermineAdminAPIAddress(address, nil, "", ""); err != nil {
		return nil, err
	}
	resp, err := caddycmd.AdminAPIRequest(address, http.MethodGet, "/config/apps", nil, nil)
	if err != nil {
		return nil, fmt.Errorf("asking the running Caddy at %s (--config names a file instead): %w", address, err)
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

// orDefaults gives the configuration of an app that has none but its defaults: a site may
// use it all the same.
func orDefaults(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return json.RawMessage("{}")
	}
	return raw
}
