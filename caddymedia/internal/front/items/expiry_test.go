package items_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// TestExpired: an item that has expired is in no list, has no facts, and is neither moved nor
// copied. It can still be replaced and deleted, and is kept in the trash then.
func TestExpired(t *testing.T) {
	t.Parallel()
	driver := memory.New()
	s := newSiteOn(t, driver, media.Limits{}, func(c *media.Config) {
		one := c.FileAliases["one"]
		one.Expires, one.Trash, one.Storage = "1h", "1h", "replacing"
		c.Accounts[someKey].May = []string{"upload", "list", "delete", "replace", "move", "copy", "restore"}
	})
	driver.Now = s.Now
	for _, name := range []string{"deleted.txt", "replaced.txt", "moved.txt"} {
		s.Put(t, "file/one/"+name, "old")
	}
	s.Passed.Store(int64(30 * time.Minute))
	s.Put(t, "file/one/young.txt", "young")
	s.Passed.Store(int64(time.Hour))
	const alias = itemsPath + "file/one"
	httpCase{Target: alias, Header: bearer, Status: 200, Has: `"result":[{"full_path":"http://example.com/static/file/one/young.txt"`}.Check(t, s)
	httpCase{Target: alias + "?order=modified", Header: bearer, Status: 200, Has: `"total":1`}.Check(t, s)
	httpCase{Target: alias + "/moved.txt", Header: bearer, Status: 404}.Check(t, s)
	for _, field := range []string{"to", "copy_to"} {
		httpCase{Method: http.MethodPost, Target: alias + "/moved.txt", Header: urlencoded + bearer, Body: field + "=b.txt", Status: 404}.Check(t, s)
	}
	httpCase{Method: http.MethodPut, Target: alias + "/replaced.txt", Header: bearer + "\nIf-Match: *", Body: "new", Status: 200, Has: `"trash":"`}.Check(t, s)
	httpCase{Method: http.MethodDelete, Target: alias + "/deleted.txt", Header: bearer, Status: 200, Has: `"trash":"`}.Check(t, s)
	httpCase{Target: alias + "/replaced.txt", Header: bearer, Status: 200}.Check(t, s) // it begins anew
}
