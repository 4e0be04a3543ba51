package sftp

import (
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing"

	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// meeting is an object that is sent when all of begin have been asked for.
type meeting struct {
	*strings.Reader
	begin *sync.WaitGroup
	once  sync.Once
}

func (m *meeting) Read(p []byte) (int, error) {
	m.once.Do(func() {
		m.begin.Done()
		m.begin.Wait()
	})
	return m.Reader.Read(p)
}

// TestNamedOnce: of two uploads of one name, the first one stays, also where the host has no links:
// of two processes, or else of one.
func TestNamedOnce(t *testing.T) {
	t.Parallel()
	for how, separate := range map[creation]bool{claimed: true, locked: false} {
		h := newRequestHost(t, servers.RequestFiles{})
		h.force = &abilities{how, true, exact, true}
		drivers := []*driver{h.driver(t, "."), h.driver(t, ".")}
		if !separate {
			drivers[1] = drivers[0]
		}
		for round := range 20 {
			key, errs := fmt.Sprint("key-", round), make([]error, len(drivers))
			var begin, uploads sync.WaitGroup
			begin.Add(len(drivers))
			for i, d := range drivers {
				uploads.Go(func() {
					_, errs[i] = d.Put(t.Context(), key, &meeting{Reader: strings.NewReader(fmt.Sprint(i)), begin: &begin}, create)
				})
			}
			uploads.Wait()
			stored := 0
			if errs[0] != nil {
				stored = 1
			}
			is(t, errs[stored], nil)
			is(t, errs[1-stored], fs.ErrExist)
			has(t, drivers[0], key, []byte(fmt.Sprint(stored)))
		}
	}
}
