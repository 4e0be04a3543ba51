package mediaapp

import (
	"sync"

	"github.com/caddymedia/media/caddymedia/ingest"
)

// uploads counts the uploads under way of each account, in all configurations: those of an earlier
// one go on.
var uploads = counts{by: make(map[string]int)}

// staging bounds what uploads of all configurations hold until they have arrived. With
// the quarter of the file descriptors that downloads have, three eighths are left for connections and
// for all else.
var staging = ingest.NewStaging(stagingMemory, int64(MaxOpenFiles())*3/8)

// unlimitedFiles stands for no limit of open files.
const unlimitedFiles = 1 << 20

// stagingMemory is how much of small items waits in memory.
const stagingMemory = 64 << 20

// counts are numbers by owner. An owner without any takes no memory.
type counts struct {
	mu sync.Mutex
	by map[string]int
}

// begin reports whether owner had less than limit, and counts one more then.
func (c *counts) begin(owner string, limit int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by[owner] >= limit {
		return false
	}
	c.by[owner]++
	return true
}

func (c *counts) end(owner string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by[owner]--; c.by[owner] == 0 {
		delete(c.by, owner)
	}
}

// BeginUpload counts an upload as under way until ended is called. It returns false if the account has
// as many as it may have.
func (a *App) BeginUpload(by ingest.By) (ended func(), ok bool) {
	owner := by.Owner()
	if !uploads.begin(owner, a.Limits.maxUploads()) {
		return nil, false
	}
	return func() { uploads.end(owner) }, true
}
