package azblob

import (
	"slices"
	"testing"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// TestLevelOfForeignNames: a folder that cannot begin a valid key is not listed.
func TestLevelOfForeignNames(t *testing.T) {
	t.Parallel()
	for name, a := range map[string]*account{
		"fake": {endpoint: startFake(t)}, "azurite": {endpoint: servers.Azurite(t).Endpoint},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outside := a.first(t).(*driver)
			defer outside.Close()
			for _, name := range []string{"in/.hidden/x", "in//x", "in/end./x", "in/a/b", "in/a/c", "in/z", "ink/x"} {
				_, err := outside.blob(name).UploadBuffer(t.Context(), []byte("x"), nil)
				test.Must(t, err)
			}
			c := a.config(outside.name)
			c.Prefix = "in"
			d, err := newDriver(c)
			test.Must(t, err)
			defer d.Close()
			page, err := d.List(t.Context(), storagedrivers.ListOptions{Shallow: true})
			if err != nil || !slices.Equal(page.Folders, []string{"a/"}) || len(page.Objects) != 1 || page.Next != "" {
				t.Errorf("listed %+v, error %v", page, err)
			}
		})
	}
}
