package sftp

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers"
)

// TestNameIsBusy: an upload that waits too long for others of its name does not count as a failure
// of the host.
func TestNameIsBusy(t *testing.T) {
	t.Parallel()
	d, s, _ := behindProxy(t, newHost(t), time.Second)
	unlock, err := d.naming.Lock(t.Context(), d.path("hot"))
	is(t, err, nil)
	_, err = d.Put(t.Context(), "hot", strings.NewReader("content"), overwrite)
	is(t, err, storagedrivers.ErrBusy)
	is(t, err, os.ErrDeadlineExceeded) // it is not repeated
	unlock()
	_, err = s.Put(t.Context(), "hot", strings.NewReader("content"), overwrite)
	is(t, err, nil)
}
