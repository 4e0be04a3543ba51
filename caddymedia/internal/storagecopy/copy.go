// Package storagecopy copies items from one storage to another and verifies the copies. A copy may
// be interrupted at any time and started again, because a journal records the copied items.
//
// It lists both storages page by page in the order of the keys. Its memory does not grow with the
// number of items.
package storagecopy

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/caddymedia/media/storagedrivers"
)

// Verify is a method to verify a copy.
type Verify string

// Checksum reads the copy back and compares SHA-256 sums; Size compares sizes. An item that was in
// the destination before is always compared by its sum.
const (
	Checksum Verify = "checksum"
	Size     Verify = "size"
)

// Options select the items and control the copy.
type Options struct {
	// From and To are different backends, and neither lies within the other.
	From, To *storagedrivers.Storage
	// Prefixes are prefixes of keys, in byte order and none within another. An empty prefix stands
	// for all keys.
	Prefixes []string
	// Omits reports whether an object is not copied, because it can be made again. Nil copies all.
	Omits func(key string) bool
	// Parallel is the number of items copied concurrently, at least 1.
	Parallel int
	// Overwrite replaces items in the destination that differ. Otherwise such an item fails.
	Overwrite bool
	// Verify is Checksum or Size.
	Verify Verify
	// DryRun compares the two lists and changes nothing.
	DryRun bool
	// Journal records copied items and is used to skip those of earlier runs. It may be nil.
	Journal *Journal
	// CacheControl returns the Cache-Control header of a key. Nil means no header.
	CacheControl func(key string) string
	// PictureOf returns the key of the picture of a variant, or "" if the item is no variant. A
	// variant that is older than its picture belongs to an earlier picture and is not copied. Other
	// variants are stored after their pictures. Nil means that there are no variants.
	PictureOf func(key string) string
	// Progress is called with the numbers of finished items and read bytes. The bytes are negative
	// if an item is started again. It may be nil.
	Progress func(items, bytes int64)
	// Failed is called for an item that could not be copied or, in a dry run, differs. It may be
	// called from several goroutines.
	Failed func(key string, err error)
	// Now returns the current time.
	Now func() time.Time
}

// Tally counts items and their bytes.
type Tally struct {
	Items int64 `json:"items"`
	Bytes int64 `json:"bytes"`
}

func (t *Tally) add(bytes int64) {
	t.Items++
	t.Bytes += bytes
}

// Report counts the items by their results. A dry run counts what the lists show.
type Report struct {
	// Copied were not in the destination, or differed and were replaced.
	Copied Tally `json:"copied"`
	// Present were in the destination and are the same; after a dry run, of the same size.
	Present Tally `json:"already_there"`
	// Skipped were copied before, as the journal says, and have not changed.
	Skipped Tally `json:"skipped_by_journal"`
	// Differing are in the destination with another size. Only a dry run counts them.
	Differing Tally `json:"differing"`
	// Failed could not be copied.
	Failed Tally `json:"failed"`
	// Gone were deleted from the source before they could be read.
	Gone int64 `json:"gone"`
	// Took is how long it took.
	Took time.Duration `json:"-"`
}

// Seen returns the number of processed items.
func (r Report) Seen() int64 {
	return r.Copied.Items + r.Present.Items + r.Skipped.Items + r.Differing.Items + r.Failed.Items + r.Gone
}

// errGone means that the item was deleted before it was read.
var errGone = errors.New("the item is gone")

// copier is one run.
type copier struct {
	Options

	stop context.CancelCauseFunc

	mu     sync.Mutex
	report Report
}

// Run copies the items. It returns the error that ended it early: a storage that cannot be reached
// or is full, a journal that cannot be written, or the cause of ctx. Failures of single items are
// in the report.
func Run(ctx context.Context, opts Options) (Report, error) {
	if opts.Progress == nil {
		opts.Progress = func(int64, int64) {}
	}
	if opts.CacheControl == nil {
		opts.CacheControl = func(string) string { return "" }
	}
	if opts.PictureOf == nil {
		opts.PictureOf = func(string) string { return "" }
	}
	if opts.Omits == nil {
		opts.Omits = func(string) bool { return false }
	}
	start := opts.Now()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c := &copier{Options: opts, stop: cancel}
	var workers errgroup.Group
	jobs := make(chan *job)
	for range opts.Parallel {
		workers.Go(func() error {
			for j := range jobs {
				c.do(ctx, j)
			}
			return nil
		})
	}
	err := c.walk(ctx, jobs)
	close(jobs)
	_ = workers.Wait() // they tell by stop
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	c.report.Took = opts.Now().Sub(start)
	return c.report, err
}

// walk lists the items and sends those to copy to the workers.
func (c *copier) walk(ctx context.Context, jobs chan<- *job) error {
	for _, prefix := range c.Prefixes {
		destination := follow(c.To.All(ctx, prefix))
		err := c.walkPrefix(ctx, prefix, destination, jobs)
		destination.stop()
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *copier) walkPrefix(ctx context.Context, prefix string, destination *follower, jobs chan<- *job) error {
	var before lineage
	for item, err := range c.From.All(ctx, prefix) {
		if err != nil {
			return err
		}
		if c.Omits(item.Key) {
			continue
		}
		copied, present, err := destination.find(item.Key)
		if err != nil {
			return err
		}
		j := newJob(item, present)
		if j.known, err = c.Journal.knows(item); err != nil {
			return err
		}
		j.known = j.known && present && copied.Size == item.Size
		j.picture = before.add(j, c.PictureOf(item.Key))
		switch {
		case j.known && (j.picture == nil || j.picture.settled):
			j.settled = true
			j.end()
			c.count(&c.report.Skipped, item.Size)
		case c.DryRun:
			c.compareInfos(item, copied, present)
		default:
			select {
			case jobs <- j:
				continue
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		c.Progress(1, item.Size)
	}
	return nil
}

// compareInfos counts an item of a dry run.
func (c *copier) compareInfos(item, copied storagedrivers.Info, present bool) {
	switch {
	case !present:
		c.count(&c.report.Copied, item.Size)
	case copied.Size == item.Size:
		c.count(&c.report.Present, item.Size)
	default:
		c.count(&c.report.Differing, item.Size)
		c.Failed(item.Key, errDiffers)
	}
}

func (c *copier) count(tally *Tally, bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	tally.add(bytes)
}

// do copies one item and counts the result.
func (c *copier) do(ctx context.Context, j *job) {
	defer j.end()
	if !j.awaitPicture(ctx) {
		return
	}
	if j.known && !j.behind() {
		c.count(&c.report.Skipped, j.item.Size)
		c.Progress(1, j.item.Size)
		return
	}
	t := &transfer{copier: c, job: j}
	record, err := t.run(ctx)
	if err == nil {
		if err = c.Journal.append(record); err != nil {
			c.stop(fmt.Errorf("writing the journal: %w", err))
		}
	}
	if ctx.Err() != nil && err != nil {
		return // aborted: the next run will see
	}
	j.stored, j.failed = t.stored(), err != nil && !errors.Is(err, errGone)
	c.Progress(1, j.item.Size-t.counted)
	switch {
	case errors.Is(err, errGone):
		c.mu.Lock()
		defer c.mu.Unlock()
		c.report.Gone++
	case err != nil:
		c.count(&c.report.Failed, j.item.Size)
		c.Failed(j.item.Key, err)
	case j.stored:
		c.count(&c.report.Copied, record.Size)
	default:
		c.count(&c.report.Present, record.Size)
	}
}

// Count lists the source and returns the number of items and bytes that Run copies.
func Count(ctx context.Context, opts Options) (Tally, error) {
	var total Tally
	for _, prefix := range opts.Prefixes {
		for item, err := range opts.From.All(ctx, prefix) {
			if err != nil {
				return Tally{}, err
			}
			if opts.Omits == nil || !opts.Omits(item.Key) {
				total.add(item.Size)
			}
		}
	}
	return total, nil
}
