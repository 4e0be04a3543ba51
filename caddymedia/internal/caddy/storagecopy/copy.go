// Package storagecopy copies items from one storage to another and verifies the copies. It is not
// for requests, whose copies are those of package upload, and keeps no record: an item that is in
// the destination with its size and a later time is done, so a copy that was interrupted continues
// when it is run again. Begin with [Run].
//
// It lists both storages page by page in the order of the keys. Its memory does not grow with the
// number of items.
package storagecopy

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/guard"
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
	// Checksum compares the bytes of every item that is in the destination, whatever its time.
	Checksum bool
	// ReadBack verifies a new copy by reading it and comparing SHA-256 sums. Otherwise only the sizes
	// are compared.
	ReadBack bool
	// DryRun compares the sizes in the two lists and changes nothing.
	DryRun bool
	// CacheControl returns the Cache-Control header of a key. Nil means no header.
	CacheControl func(key string) string
	// ImageOf returns the key of the image of a variant, or "" if the item is no variant. A variant
	// that is older than its image belongs to an earlier image and is not copied. Other variants are
	// stored after their images. Nil means that there are no variants.
	ImageOf func(key string) string
	// Keep keeps an item of the destination that is about to be replaced. Nil keeps none.
	Keep func(ctx context.Context, there storagedrivers.Info) error
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
	// Present were in the destination; after a dry run, with the same size.
	Present Tally `json:"already_there"`
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
	return r.Copied.Items + r.Present.Items + r.Differing.Items + r.Failed.Items + r.Gone
}

// copier is one run.
type copier struct {
	Options

	stop context.CancelCauseFunc

	mu     sync.Mutex
	report Report
}

// Run copies the items. It returns the error that ended it early: a storage that cannot be reached
// or is full, or the cause of ctx. Failures of single items are in the report.
func Run(ctx context.Context, opts Options) (Report, error) {
	if opts.Progress == nil {
		opts.Progress = func(int64, int64) {}
	}
	if opts.CacheControl == nil {
		opts.CacheControl = func(string) string { return "" }
	}
	if opts.ImageOf == nil {
		opts.ImageOf = func(string) string { return "" }
	}
	if opts.Omits == nil {
		opts.Omits = func(string) bool { return false }
	}
	start := opts.Now()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c := &copier{Options: opts, stop: cancel}
	workers := guard.NewGroup(opts.Parallel)
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
	_ = workers.Wait() // they report failures by stop
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	c.report.Took = opts.Now().Sub(start)
	return c.report, err
}

// walk lists the items and sends those to copy to the workers.
func (c *copier) walk(ctx context.Context, jobs chan<- *job) error {
	for _, prefix := range c.Prefixes {
		destination := newList(c.To.All(ctx, prefix))
		err := c.walkPrefix(ctx, prefix, destination, jobs)
		destination.stop()
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *copier) walkPrefix(ctx context.Context, prefix string, destination *list, jobs chan<- *job) error {
	var images openImages
	for item, err := range c.From.All(ctx, prefix) {
		if err != nil {
			return err
		}
		if c.Omits(item.Key) {
			continue
		}
		there, present, err := destination.find(item.Key)
		if err != nil {
			return err
		}
		j := &job{item: item, there: there, present: present, ended: make(chan struct{})}
		j.image = images.add(j, c.ImageOf(item.Key))
		switch {
		case c.DryRun:
			c.compareInfos(j)
		case !c.Checksum && j.isListedAsDone():
			j.done = true
			c.count(&c.report.Present, item.Size)
		default:
			select {
			case jobs <- j:
				continue
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		close(j.ended)
		c.Progress(1, item.Size)
	}
	return nil
}

// compareInfos counts an item of a dry run.
func (c *copier) compareInfos(j *job) {
	switch {
	case !j.present:
		c.count(&c.report.Copied, j.item.Size)
	case j.there.Size == j.item.Size:
		c.count(&c.report.Present, j.item.Size)
	default:
		c.count(&c.report.Differing, j.item.Size)
		c.Failed(j.item.Key, errDiffers)
	}
}

func (c *copier) count(tally *Tally, bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	tally.add(bytes)
}

// do copies one item and counts the result.
func (c *copier) do(ctx context.Context, j *job) {
	defer close(j.ended)
	if !j.awaitImage(ctx) {
		return
	}
	t := &transfer{copier: c, job: j}
	var copied storagedrivers.Info
	err := guard.Call(func() (err error) {
		copied, err = t.run(ctx)
		return err
	})
	if ctx.Err() != nil && err != nil {
		return // aborted: the next run copies it
	}
	j.failed = err != nil && !errors.Is(err, errGone)
	c.Progress(1, j.item.Size-t.counted)
	switch {
	case errors.Is(err, errGone):
		c.mu.Lock()
		defer c.mu.Unlock()
		c.report.Gone++
	case err != nil:
		c.count(&c.report.Failed, j.item.Size)
		c.Failed(j.item.Key, err)
	case t.hasStored():
		c.count(&c.report.Copied, copied.Size)
	default:
		c.count(&c.report.Present, copied.Size)
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

// list is a sorted list of objects that is read in step with another one.
type list struct {
	next func() (storagedrivers.Info, error, bool)
	stop func()

	begun, more bool
	head        storagedrivers.Info
}

func newList(objects iter.Seq2[storagedrivers.Info, error]) *list {
	next, stop := iter.Pull2(objects)
	return &list{next: next, stop: stop}
}

// find returns the object with a key, and whether the list has it. The keys of successive calls
// must ascend.
func (l *list) find(key string) (storagedrivers.Info, bool, error) {
	for !l.begun || l.more && l.head.Key < key {
		l.begun = true
		var err error
		if l.head, err, l.more = l.next(); err != nil {
			return storagedrivers.Info{}, false, err
		}
	}
	return l.head, l.more && l.head.Key == key, nil
}

// openImages holds the preceding jobs whose keys are prefixes of the current key. All keys that
// sort between an image and its variant begin with the key of the image.
type openImages []*job

// add adds a job and returns the job of its image, or nil.
func (o *openImages) add(j *job, image string) *job {
	for len(*o) > 0 && !strings.HasPrefix(j.item.Key, (*o)[len(*o)-1].item.Key) {
		*o = (*o)[:len(*o)-1]
	}
	var found *job
	for _, before := range *o {
		if before.item.Key == image {
			found = before
		}
	}
	*o = append(*o, j)
	return found
}
