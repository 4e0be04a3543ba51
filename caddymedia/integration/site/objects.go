package site

import (
	"sync"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"

	"github.com/caddymedia/media/caddymedia/internal/caddy/plugin"
)

// provisioning is held while a test provisions an app: Caddy has one log and one storage for a
// process.
var provisioning sync.Mutex

// Objects returns the sizes of all objects of a storage, also those that are no items, by their
// keys. The storage is one of a Caddyfile.
func Objects(t *testing.T, caddyfile, storage string) map[string]int64 {
	t.Helper()
	raw, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(caddyfile), nil)
	var config caddy.Config
	if err == nil {
		err = caddy.StrictUnmarshalJSON(raw, &config)
	}
	if err != nil {
		t.Fatal(err)
	}
	provisioning.Lock()
	defer provisioning.Unlock()
	ctx, err := caddy.ProvisionContext(&caddy.Config{
		Admin: &caddy.AdminConfig{Disabled: true}, AppsRaw: caddy.ModuleMap{"media": config.AppsRaw["media"]},
	})
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := ctx.App("media")
	if err != nil {
		t.Fatal(err)
	}
	app := loaded.(*plugin.App) // the app of this name
	defer func() {
		if err := app.Cleanup(); err != nil {
			t.Error(err)
		}
	}()
	opened, ok := app.Service().Storage(storage)
	if !ok {
		t.Fatalf("there is no storage %q", storage)
	}
	objects := map[string]int64{}
	for info, err := range opened.All(t.Context(), "") {
		if err != nil {
			t.Fatalf("listing the storage: %v", err)
		}
		objects[info.Key] = info.Size
	}
	return objects
}
