package media

import (
	"github.com/caddymedia/media/caddymedia/ingest"
	"github.com/caddymedia/media/caddymedia/internal/queue"
)

// Bounds limit what the uploads of several services hold together. Services that replace each other
// share one, because the uploads of the earlier one go on.
type Bounds struct {
	// uploads are those under way of each account. Each may hold a connection, which is a file
	// descriptor.
	uploads *queue.Pool
	staging *ingest.Staging
}

// NewBounds returns Bounds for one process. Downloads have a quarter of its file descriptors, the
// connections of uploads have another, staged data has three eighths, and an eighth is left for all
// else.
func NewBounds() *Bounds {
	files := int64(MaxOpenFiles())
	return &Bounds{uploads: queue.NewPool(files / 4), staging: ingest.NewStaging(stagingMemory, files*3/8)}
}

// stagingMemory is how many bytes of small items wait in memory.
const stagingMemory = 64 << 20

// unlimitedFiles stands for no limit of open files.
const unlimitedFiles = 1 << 20

// BeginUpload counts an upload as under way until ended is called. It returns false if the account has
// as many as it may have.
func (s *Service) BeginUpload(actor ingest.Actor) (ended func(), ok bool) {
	owner := actor.Owner()
	if !s.bounds.uploads.AcquireWithin(owner, 1, int64(s.limits.MaxUploads)) {
		return nil, false
	}
	return func() { s.bounds.uploads.Release(owner, 1) }, true
}
