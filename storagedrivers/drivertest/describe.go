package drivertest

import (
	"strings"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
)

// Description says how to test the description of a driver. Modules are named by their options in JSON.
type Description struct {
	// New makes a provisioned module.
	New func(t *testing.T, options string) storagedrivers.Module
	// Options are those of the module that is described.
	Options string
	// Where is the backend in short.
	Where string
	// Same keep their objects where Options does: credentials, time-outs and other settings are
	// different, or the backend is written otherwise.
	Same []string
	// Below keep their objects in the folder "below/it" of those of Options.
	Below []string
	// Apart keep their objects on another backend, or beside those of Options.
	Apart []string
}

// Describe tests how a driver describes itself.
func Describe(t *testing.T, d Description) {
	t.Helper()
	module := d.New(t, d.Options)
	got := module.Describe()
	if got.Title == "" || got.Noun == "" || got.Icon == "" || got.Noun != strings.ToLower(got.Noun) || got.Where != d.Where {
		t.Errorf("description %+v, want it of %q", got, d.Where)
	}
	if module.Parallel() < 0 {
		t.Errorf("%d objects in parallel", module.Parallel())
	}
	location := module.Location()
	if location.Backend == "" || location != location.Join("") {
		t.Errorf("location %+v", location)
	}
	for _, options := range d.Same {
		if got := d.New(t, options).Location(); got != location {
			t.Errorf("%s: location %+v, want %+v", options, got, location)
		}
	}
	for _, options := range d.Below {
		if got, want := d.New(t, options).Location(), location.Join("below/it"); got != want {
			t.Errorf("%s: location %+v, want %+v", options, got, want)
		}
	}
	for _, options := range d.Apart {
		if got := d.New(t, options).Location(); got.Overlaps(location) {
			t.Errorf("%s: location %+v overlaps %+v", options, got, location)
		}
	}
}
