package plugin

import (
	"testing"

	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/caddymedia/tokens/memory"
)

// TestUseOutlivesReloads: Use returns the running app, even after several reloads during the call.
func TestUseOutlivesReloads(t *testing.T) {
	t.Parallel()
	apps := make([]*App, 3)
	for i := range apps {
		service, err := media.New(media.Config{Tokens: memory.New(nil)})
		if err != nil {
			t.Fatal(err)
		}
		apps[i] = &App{service: service}
	}
	first, second, third := apps[0], apps[1], apps[2]
	running := []*App{second, third}
	active := func() (*App, error) {
		app := running[0]
		if len(running) > 1 {
			running = running[1:]
		}
		return app, nil
	}
	for _, gone := range []*App{first, second} {
		if err := gone.service.Close(); err != nil {
			t.Fatal(err)
		}
	}
	app, release, err := first.use(active)
	if err != nil || app != third {
		t.Fatalf("got %p, error %v, want %p", app, err, third)
	}
	release()
	if err := third.service.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := first.use(active); err == nil {
		t.Error("a closed app can be used")
	}
}
