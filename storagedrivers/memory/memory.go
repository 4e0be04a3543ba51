// Package memory is a storage driver that stores its objects in memory. It is for tests and no
// service should use it: nothing survives the driver, and faults can be injected. Begin with [New];
// as the shortest driver it is also the one to read first.
package memory

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddymedia/media/storagedrivers"
)

// Driver stores objects in memory. It is not a [storagedrivers.Stager] and its readers do not seek,
// so that it exercises the fallbacks of Storage.
type Driver struct {
	// Fail, if set, is called before each operation with its name ("put", "copy" for a Put with a
	// Source, "open", "stat", "delete", "list", "check") and the key, if any. An error ends the
	// operation. Fail must be set before the driver is used.
	Fail func(op, key string) error
	// Repeats sets the feature Repeat, which drivers of object storages have. It must be set
	// before the driver is used.
	Repeats bool

	bucket *bucket
	closed atomic.Bool
	// Now is the clock of the objects. It must be set before the driver is used.
	Now func() time.Time
}

// bucket contains the objects, which several drivers may share.
type bucket struct {
	mu         sync.RWMutex
	objects    map[string]object
	generation uint64
}

type object struct {
	info storagedrivers.Info
	data []byte // never changed
	id   string // of its Put
}

// New returns a driver with an empty backend.
func New() *Driver { return on(&bucket{objects: map[string]object{}}) }

func on(b *bucket) *Driver {
	return &Driver{bucket: b, Now: time.Now} //nolint:forbidigo // the default clock
}

// Put stores all of r under key.
func (d *Driver) Put(
	ctx context.Context, key string, r io.ReadSeeker, opts storagedrivers.PutOptions,
) (storagedrivers.Info, error) {
	if opts.Source != nil {
		return d.putCopy(ctx, key, opts)
	}
	if err := d.begin(ctx, "put", key); err != nil {
		return storagedrivers.Info{}, err
	}
	var data bytes.Buffer
	if size, err := r.Seek(0, io.SeekEnd); err == nil {
		data.Grow(int(size) + bytes.MinRead)
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return storagedrivers.Info{}, err
	}
	if _, err := data.ReadFrom(&ctxReader{ctx, r}); err != nil {
		return storagedrivers.Info{}, err
	}
	d.bucket.mu.Lock()
	defer d.bucket.mu.Unlock()
	return d.store(ctx, key, data.Bytes(), opts)
}

// putCopy stores the bytes of an object under another key.
func (d *Driver) putCopy(ctx context.Context, key string, opts storagedrivers.PutOptions) (storagedrivers.Info, error) {
	if err := d.begin(ctx, "copy", key); err != nil {
		return storagedrivers.Info{}, err
	}
	d.bucket.mu.Lock()
	defer d.bucket.mu.Unlock()
	o, ok := d.bucket.objects[opts.Source.Key]
	if !ok || !o.info.Same(*opts.Source) {
		return storagedrivers.Info{}, storagedrivers.ErrChanged
	}
	return d.store(ctx, key, o.data, opts)
}

// store stores an object. The caller holds mu.
func (d *Driver) store(
	ctx context.Context, key string, data []byte, opts storagedrivers.PutOptions,
) (storagedrivers.Info, error) {
	b := d.bucket
	if err := ctx.Err(); err != nil {
		return storagedrivers.Info{}, err
	}
	there, taken := b.objects[key]
	switch {
	case taken && opts.Mode == storagedrivers.CreateOnly && d.Repeats && there.id == opts.ID:
		return there.info, nil
	case taken && opts.Mode == storagedrivers.CreateOnly:
		return storagedrivers.Info{}, fs.ErrExist
	case opts.IfMatch != "" && there.info.ETag != opts.IfMatch:
		return storagedrivers.Info{}, storagedrivers.ErrChanged
	}
	b.generation++
	info := storagedrivers.Info{
		Key:         key,
		Size:        int64(len(data)),
		ModTime:     d.Now(),
		ETag:        fmt.Sprintf(`"%x"`, b.generation),
		ContentType: storagedrivers.ContentType(key),
	}
	b.objects[key] = object{info, data, opts.ID}
	return info, nil
}

// Open returns a reader of rng.
func (d *Driver) Open(
	ctx context.Context, key string, rng storagedrivers.Range,
) (io.ReadCloser, storagedrivers.Info, error) {
	o, err := d.find(ctx, "open", key)
	if err != nil {
		return nil, storagedrivers.Info{}, err
	}
	n, err := rng.Within(o.info.Size)
	if err != nil {
		return nil, storagedrivers.Info{}, err
	}
	data := bytes.NewReader(o.data[rng.Offset : rng.Offset+n])
	return io.NopCloser(&ctxReader{ctx, data}), o.info, nil
}

// Stat returns the Info of an object.
func (d *Driver) Stat(ctx context.Context, key string) (storagedrivers.Info, error) {
	o, err := d.find(ctx, "stat", key)
	return o.info, err
}

// Delete removes an object; for a missing one it returns fs.ErrNotExist.
func (d *Driver) Delete(ctx context.Context, key string, opts storagedrivers.DeleteOptions) error {
	if err := d.begin(ctx, "delete", key); err != nil {
		return err
	}
	d.bucket.mu.Lock()
	defer d.bucket.mu.Unlock()
	there, ok := d.bucket.objects[key]
	switch {
	case !ok:
		return fs.ErrNotExist
	case opts.IfMatch != "" && there.info.ETag != opts.IfMatch:
		return storagedrivers.ErrChanged
	}
	delete(d.bucket.objects, key)
	return nil
}

// List returns one page of objects. The cursor is the last name of the previous page.
func (d *Driver) List(ctx context.Context, opts storagedrivers.ListOptions) (storagedrivers.Page, error) {
	if err := d.begin(ctx, "list", opts.Prefix); err != nil {
		return storagedrivers.Page{}, err
	}
	found := map[string]storagedrivers.Info{} // by key or folder
	d.bucket.mu.RLock()
	for key, o := range d.bucket.objects {
		if name := shown(key, opts); opts.Wants(name) {
			found[name] = o.info
		}
	}
	d.bucket.mu.RUnlock()
	walk := storagedrivers.Walk{ListOptions: opts}
	var err error
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if strings.HasSuffix(name, "/") {
			err = walk.TakeFolder(name)
		} else {
			err = walk.Take(found[name])
		}
		if err != nil {
			break
		}
	}
	return walk.Page(err)
}

// shown returns the entry of a listing for the object under key: its key, or its folder.
func shown(key string, opts storagedrivers.ListOptions) string {
	rest, ok := strings.CutPrefix(key, opts.Prefix)
	folder, _, below := strings.Cut(rest, "/")
	if ok && below && opts.Shallow {
		return opts.Prefix + folder + "/"
	}
	return key
}

// Check succeeds unless Fail or ctx prevents it.
func (d *Driver) Check(ctx context.Context) error { return d.begin(ctx, "check", "") }

// Features returns all guarantees except those of a Stager.
func (d *Driver) Features() storagedrivers.Features {
	return storagedrivers.Features{
		Create: storagedrivers.Atomic, Replace: storagedrivers.Atomic, Compare: storagedrivers.Atomic, Streams: true, Copies: true,
		Repeat: d.Repeats,
	}
}

// Close makes all later operations fail.
func (d *Driver) Close() error {
	if d.closed.Swap(true) {
		return storagedrivers.ErrClosed
	}
	return nil
}

// begin returns the error that prevents an operation, if any.
func (d *Driver) begin(ctx context.Context, op, key string) error {
	if d.closed.Load() {
		return storagedrivers.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if d.Fail != nil {
		return d.Fail(op, key)
	}
	return nil
}

func (d *Driver) find(ctx context.Context, op, key string) (object, error) {
	if err := d.begin(ctx, op, key); err != nil {
		return object{}, err
	}
	d.bucket.mu.RLock()
	defer d.bucket.mu.RUnlock()
	o, ok := d.bucket.objects[key]
	if !ok {
		return object{}, fs.ErrNotExist
	}
	return o, nil
}

// ctxReader reads until ctx ends.
type ctxReader struct {
	ctx context.Context //nolint:containedctx // by the contract, ctx governs readers
	r   io.Reader
}

func (r *ctxReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}

// Interface guard
var _ storagedrivers.Driver = (*Driver)(nil)
