package mediaapp

import (
	"sync"

	"github.com/caddymedia/media/caddymedia/ingest"
	"github.com/caddymedia/media/caddymedia/internal/queue"
)

// uploads counts the uploads under way of each account, in all configurations: those of an earlier
// one go on. Each may hold a connection, which is a file descriptor.
var uploads = newUploadCounts(int64(MaxOpenFiles()) / 4)

// staging bounds what uploads of all configurations hold until they have arrived. With the quarter of
// the file descriptors that downloads have, and the quarter of the connections of uploads, an eighth is
// left for all else.
var staging = ingest.NewStaging(stagingMemory, int64(MaxOpenFiles())*3/8)

// unlimitedFiles stands for no limit of open files.
const unlimitedFiles = 1 << 20

// stagingMemory is how much of small items waits in memory.
const stagingMemory = 64 << 20

// uploadCounts are the uploads under way by account. An account without any takes no memory.
type uploadCounts struct {
	shares *queue.Pool // of all accounts together

	mu sync.Mutex
	by map[string]int
}

func newUploadCounts(most int64) *uploadCounts {
	return &uploadCounts{shares: queue.NewPool(most), by: make(map[string]int)}
}

// begin reports whether owner had less than limit and a share of what is left for all, and counts one
// more then.
func (u *uploadCounts) begin(owner string, limit int) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.by[owner] >= limit || !u.shares.Take(owner, 1) {
		return false
	}
	u.by[owner]++
	return true
}

func (u *uploadCounts) end(owner string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.shares.Give(owner, 1)
	if u.by[owner]--; u.by[owner] == 0 {
		delete(u.by, owner)
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
