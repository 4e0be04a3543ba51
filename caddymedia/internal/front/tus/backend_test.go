package tus_test

import (
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/core/derived/derivedtest"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers"
)

// backend returns a new backend. fail, if set, is called before each operation; its error ends the
// operation.
type backend func(t testing.TB, fail func(op, key string) error) storagedrivers.Driver

// site returns a site on a new backend.
func (b backend) site(t *testing.T, fail func(op, key string) error) *site {
	t.Helper()
	d := b(t, fail)
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return newSiteOn(t, d, media.Limits{}, nil)
}

// onEach runs a test on each of the backends, in parallel: they store unfinished uploads as pieces,
// and as objects that grow.
func onEach(t *testing.T, name string, test func(t *testing.T, b backend)) {
	t.Helper()
	for on, b := range derivedtest.Drivers {
		t.Run(on+": "+name, func(t *testing.T) {
			t.Parallel()
			test(t, b)
		})
	}
}
