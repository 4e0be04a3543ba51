package media

import (
	"github.com/caddymedia/media/caddymedia/internal/aliases"
	"github.com/caddymedia/media/caddymedia/internal/upload"
	"github.com/caddymedia/media/storagedrivers/queue"
)

// Bounds limit the resources that uploads of several services hold together, and keep what they have
// counted. Services that replace each other share one, because uploads continue in the replaced
// service.
type Bounds struct {
	// uploads counts the current uploads of each account. Each may hold a connection, which is a
	// file descriptor.
	uploads *queue.Pool
	staging *upload.Staging
	imports *queue.Queue
	usages  *usages
}

// NewBounds returns Bounds for one process. Of its file descriptors, downloads have a quarter,
// connections of uploads another quarter, and staged data three eighths. An eighth is left for
// everything else, half of it for imports.
func NewBounds() *Bounds {
	files := int64(MaxOpenFiles())
	return &Bounds{
		uploads: queue.NewPool(files / 4), staging: upload.NewStaging(stagingMemory, files*3/8),
		imports: queue.New(queue.Options{Slots: int(max(files/16, maxImports))}),
		usages:  newUsages(),
	}
}

// stagingMemory is the most bytes of small items that wait in memory.
const stagingMemory = 64 << 20

// unlimitedFiles is the number of files where open files are not limited.
const unlimitedFiles = 1 << 20

// BeginUpload counts an upload of the account as running until ended is called. It returns false if
// the account already has as many as are allowed.
func (s *Service) BeginUpload(actor aliases.Actor) (ended func(), ok bool) {
	owner := actor.Owner()
	if !s.bounds.uploads.AcquireWithin(owner, 1, int64(s.limits.MaxUploads)) {
		return nil, false
	}
	return func() { s.bounds.uploads.Release(owner, 1) }, true
}
