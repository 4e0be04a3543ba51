package features_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// TestCopyToCoarseTimes: a second run copies nothing, on servers that list times in seconds (MLSD) or
// minutes (LIST).
func TestCopyToCoarseTimes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		start  func(testing.TB, servers.FTPSettings) *servers.FTP
		folder string
	}{
		"seconds": {servers.PureFTPD, "copied"},
		"minutes": {servers.VSFTPD, "store/copied"}, // its root is the folder above
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := test.start(t, servers.FTPSettings{})
			c := site.NewChild(t)
			config := c.WriteConfig(strings.Replace(fromTo, "driver local $ROOT-to", fmt.Sprintf(
				"driver ftp %s {\nuser %s\npassword %s\ntls none\nroot %s\n}", server.Address, server.User, server.Password, test.folder), 1))
			keys := putItems(t, c.Root, 30, func(i int) int { return 10 * i })
			for i, key := range keys {
				stored := time.Now().Add(-[]time.Duration{0, time.Minute, 72 * time.Hour}[i%3])
				if err := os.Chtimes(filepath.Join(c.Root, key), stored, stored); err != nil {
					t.Fatal(err)
				}
			}
			args := []string{"copy", "from", "to", "--json", "--config", config}
			overwrite := []string{"copy", "from", "to", "--json", "--config", config, "--overwrite"}
			if got := report(t, c.Media(args...).Must(t)); got.Copied.Items != 30 {
				t.Errorf("%+v", got)
			}
			if got := report(t, c.Media(args...).Must(t)); got.Present.Items != 30 || got.Copied.Items != 0 {
				t.Errorf("again: %+v", got)
			}
			path := filepath.Join(c.Root, keys[7])
			content := site.ReadFile(t, path)
			content[0]++
			site.PutFile(t, path, string(content))
			r := c.Media(args...)
			if got := report(t, r); r.Code != 1 || got.failures[keys[7]] == "" || got.Present.Items != 29 {
				t.Errorf("with an item of the same size: %+v", got)
			}
			if got := report(t, c.Media(overwrite...).Must(t)); got.Copied.Items != 1 {
				t.Errorf("--overwrite: %+v", got)
			}
			mustBeSameFiles(t, c.Root, filepath.Join(server.Root, "copied"))
		})
	}
}
