package storagecopy

import (
	"context"
	"strings"

	"github.com/caddymedia/media/storagedrivers"
)

// job is an item to copy.
type job struct {
	item    storagedrivers.Info // as the source's list has it
	present bool                // in the destination
	known   bool                // to the journal, and not changed since
	picture *job                // that the item is the variant of, or nil
	settled bool                // nothing is to be done, which was known at once

	done           chan struct{} // closed at the end; then the others are valid
	stored, failed bool
}

func newJob(item storagedrivers.Info, present bool) *job {
	return &job{item: item, present: present, done: make(chan struct{})}
}

func (j *job) end() { close(j.done) }

// awaitPicture waits until the job of a variant's picture is done. It returns false if the run ends
// first. A worker already has the picture, because its job was sent earlier.
func (j *job) awaitPicture(ctx context.Context) bool {
	if j.picture == nil {
		return true
	}
	select {
	case <-j.picture.done:
		return true
	case <-ctx.Done():
		return false
	}
}

// behind reports whether this run has stored the picture of the item. The item must be stored after
// it then.
func (j *job) behind() bool { return j.picture != nil && j.picture.stored }

// lineage holds the preceding jobs whose keys are prefixes of the current key. All keys that sort
// between a picture and its variant begin with the key of the picture.
type lineage []*job

// add adds a job and returns the job of its picture, or nil.
func (l *lineage) add(j *job, picture string) *job {
	for len(*l) > 0 && !strings.HasPrefix(j.item.Key, (*l)[len(*l)-1].item.Key) {
		*l = (*l)[:len(*l)-1]
	}
	var found *job
	for _, before := range *l {
		if before.item.Key == picture {
			found = before
		}
	}
	*l = append(*l, j)
	return found
}
