package storagecopy

import (
	"context"
	"strings"

	"github.com/caddymedia/media/storagedrivers"
)

// job is an item to be copied.
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

// awaitPicture waits until the picture of a variant is through; false if the run ends
// before. It was handed out earlier, so somebody is at work on it.
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

// behind tells that the item must be stored behind its picture, which this run has stored.
func (j *job) behind() bool { return j.picture != nil && j.picture.stored }

// lineage is the jobs before the current one whose keys it begins with. All that stands in
// a list between a picture and its variant begins with the picture's key.
type lineage []*job

// add adds a job and gives that of its picture, if there is one.
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
