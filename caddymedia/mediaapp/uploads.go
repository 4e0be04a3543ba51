package mediaapp

import (
	"github.com/caddymedia/media/caddymedia/ingest"
	"github.com/caddymedia/media/caddymedia/internal/queue"
)

// uploads counts the uploads under way of each account, in all configurations: those of an earlier
// one go on. Each may hold a connection, which is a file descriptor.
var uploads = queue.NewPool(int64(MaxOpenFiles()) / 4)

// staging bounds what uploads of all configurations hold until they have arrived. With the quarter of
// the file descriptors that downloads have, and the quarter of the connections of uploads, an eighth is
// left for all else.
var staging = ingest.NewStaging(stagingMemory, int64(MaxOpenFiles())*3/8)

// unlimitedFiles stands for no limit of open files.
const unlimitedFiles = 1 << 20

// stagingMemory is how much of small items waits in memory.
const stagingMemory = 64 << 20

// BeginUpload counts an upload as under way until ended is called. It returns false if the account has
// as many as it may have.
func (a *App) BeginUpload(actor ingest.Actor) (ended func(), ok bool) {
	owner := actor.Owner()
	if !uploads.AcquireWithin(owner, 1, int64(a.Limits.maxUploads())) {
		return nil, false
	}
	return func() { uploads.Release(owner, 1) }, true
}
