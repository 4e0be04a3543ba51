// Package storagedrivers is the contract between the media service and the backends that hold its
// objects, and the [Storage] through which callers use them. The package is stable: it is for
// authors of drivers, and for programs that use a Storage.
//
// A program makes a driver by a [Config], such as that of package local, and a Storage on it by
// [New]. Callers never use a Driver directly. The Storage validates keys, wraps errors, bounds and
// retries operations, compares sizes after a write, and keeps the driver open until its last
// reference is released.
//
// An author of a driver implements [Config] and [Driver]. The driver stores, opens, lists and
// deletes objects under keys. Begin with the package memory, which is the shortest driver, and with
// the suite in drivertest, which every driver passes. The suite tests the rules in the comments
// here, and no others. [Stager], [Linker], [Renamer], [Appender], [Presigner], [Sweeper] and
// [SpaceReporter] are optional for a Driver, [Limited] and [HostKeyer] for a Config. [Features] say
// which options a driver heeds.
package storagedrivers

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"math"
	"math/bits"
	"time"
)

// A Driver stores objects in one configured backend.
//
// All methods are safe for concurrent use and honour ctx. Keys have passed [ValidKey]. An object is
// visible whole or not at all: no reader gets a part of one, or bytes of two generations. Errors
// match (errors.Is) the sentinels of this package and of io/fs where one fits. Any other error is
// an unexpected answer of the backend.
type Driver interface {
	// Put stores all of r under key, or nothing. After any error, including cancellation, an
	// earlier object is intact, no part of the new one is visible and no leftover stays in the
	// backend. r is at its start. The driver may rewind r to send it again, and must not close it.
	// An error of r is returned (errors.Is), including io.ErrUnexpectedEOF.
	//
	// With [CreateOnly] an existing key is fs.ErrExist; the backend itself decides this if Features
	// has [Atomic]. On success the object is as durable as the backend can make it. Put may be
	// called again after ErrUnavailable, with the same options. A driver whose replies may get lost
	// should therefore recognise its own object.
	//
	// A backend with folders may hold no object beside a folder of its name. If the folder has
	// objects, or if an object has the name of a folder of key, the error is [ErrInvalidKey].
	// Folders without objects, such as those that deletions leave, make room for key.
	Put(ctx context.Context, key string, r io.ReadSeeker, opts PutOptions) (Info, error)

	// Open returns the bytes of rng and the Info of the whole object. ctx governs the reader until
	// it is closed. A reader stays on the object that it was opened on, even if that is replaced or
	// deleted; without an [Atomic] Replace it may then fail with [ErrChanged]. A missing key is
	// fs.ErrNotExist.
	//
	// A range that starts at or past the end is ErrInvalidRange, but the zero Range of an empty
	// object is empty. A range that ends past the end is cut to it. If rng is zero, the reader may
	// also implement io.Seeker and io.ReaderAt, with offsets from the start of the object.
	Open(ctx context.Context, key string, rng Range) (io.ReadCloser, Info, error)

	// Stat returns the Info of an object. A missing key is fs.ErrNotExist.
	Stat(ctx context.Context, key string) (Info, error)

	// Delete removes an object. A missing key is fs.ErrNotExist if the backend reports it,
	// otherwise no error.
	Delete(ctx context.Context, key string, opts DeleteOptions) error

	// List returns the objects whose keys begin with opts.Prefix, or one level of them, in the byte
	// order of their keys. It omits leftovers and foreign names that are no valid keys.
	List(ctx context.Context, opts ListOptions) (Page, error)

	// Check connects, authenticates and finds the root, which it creates if possible. The first
	// Check may test by experiment what the backend guarantees. It leaves no object behind. A
	// read-only backend passes.
	Check(ctx context.Context) error

	// Features returns the guarantees of the driver without I/O. Guarantees that need an experiment
	// have their least value until the first Check or Put.
	Features() Features

	// Close releases connections and handles. No other method is running or follows.
	Close() error
}

// A Stager is a [Driver] that can stage bytes in the backend, so that committing them moves no
// data, and that can commit several objects as one.
type Stager interface {
	// Stage returns a new object without a name.
	Stage(ctx context.Context) (Staged, error)

	// StageCopy returns a staged object with the bytes of source, the Info of an object of this
	// driver. Writing to it is not allowed. If source is missing or is another generation by now, the
	// error is [ErrChanged]. A driver without Copies in its Features returns [errors.ErrUnsupported].
	StageCopy(ctx context.Context, source Info) (Staged, error)

	// Commit makes all changes or none, as [Storage.Commit]. No key appears twice, and a staged object
	// is one of this driver. Stored objects have the guarantees of [Driver.Put]. Before a Commit
	// returns nil its changes are durable. It leaves an object that another writer stores under one of
	// the keys while it undoes a failed Commit.
	//
	// If the process dies meanwhile, the driver undoes or completes the changes when it is next used,
	// or at the latest in [Sweeper.Sweep], but leaves the objects that other processes have stored
	// since. If some changes can neither be undone nor completed, the error is a *[CommitError] that
	// names them.
	Commit(ctx context.Context, changes []Change) ([]Info, error)
}

// A Linker is a [Stager] that can give an object a second key without copying its bytes.
type Linker interface {
	// StageLink returns a staged object that is source itself, the Info of an object of this driver.
	// Its commit with [CreateOnly] adds a key, and leaves the other one. Both objects have one ModTime
	// and one ETag, and what replaces or removes one of them leaves the other as it is. Writing to it
	// is not allowed. If source is missing or is another generation by now, the error is [ErrChanged].
	// If the backend cannot link it, the error is [errors.ErrUnsupported].
	StageLink(ctx context.Context, source Info) (Staged, error)
}

// A Renamer is a [Driver] without Copies that can give an object another key without moving its
// bytes.
type Renamer interface {
	// Rename gives source, the Info of an object of this driver, the key to, and takes it away from
	// its own. The object keeps its ModTime, and its readers go on. A key to that exists is
	// fs.ErrExist, as far as the driver finds out. If source is missing or is another generation by
	// now, the error is [ErrChanged]. If the backend refuses to rename it, the error is
	// [errors.ErrUnsupported]; after either of these errors nothing has changed. Rename may be called
	// again after ErrUnavailable.
	Rename(ctx context.Context, source Info, to string) error
}

// Staged is an object before its commit. It is written first, then read and sought, then committed
// by [Storage.Commit], then closed. It is for one goroutine.
type Staged interface {
	// Write appends. It must not follow the first Read, Seek or Commit.
	io.Writer
	// Read and Seek return the staged bytes.
	io.ReadSeeker

	// Close discards uncommitted bytes. It must be called once, in any case.
	Close() error
}

// A Presigner is a [Driver] whose backend can serve objects itself at signed addresses.
type Presigner interface {
	// Presign returns an address at which GET returns the object under key, with the headers of
	// opts, until opts.Lifetime is over. It need not check that the object exists. The error is
	// [errors.ErrUnsupported] if the credentials of the backend cannot sign.
	Presign(ctx context.Context, key string, opts PresignOptions) (string, error)
}

// PresignOptions are the options of a signed address.
type PresignOptions struct {
	// Lifetime of the address, at most seven days.
	Lifetime time.Duration
	// ContentType and CacheControl are headers of the response. Empty: as stored.
	ContentType  string
	CacheControl string
	// Disposition is the Content-Disposition header of the response. Empty: none.
	Disposition string
}

// Mode is the behaviour of [Driver.Put] if the key exists.
type Mode int

const (
	// CreateOnly keeps an existing object and returns fs.ErrExist.
	CreateOnly Mode = iota
	// Overwrite replaces an existing object as a whole.
	Overwrite
)

// PutOptions are the options of storing an object.
type PutOptions struct {
	// Mode is the behaviour if the key exists.
	Mode Mode
	// ID identifies this upload, in letters and digits. [Storage] sets it, to the same value for
	// all retries. A driver stores it if its backend supports metadata. If a reply was lost and the
	// key then exists, the driver recognises its own object by the ID.
	ID string
	// ContentType is the media type of the object ("image/png"). If it is empty, [Storage] sets it
	// by the extension of the key. A backend without media types ignores it.
	ContentType string
	// CacheControl is the Cache-Control header for a backend that serves objects itself. Empty:
	// none. A backend without headers ignores it.
	CacheControl string
	// IfMatch, if set, is the ETag of the object that [Overwrite] replaces. If the key has another
	// object, or none, the error is [ErrChanged], and nothing is stored. Only a driver with Compare in
	// its Features heeds it; [Storage] compares for the others.
	IfMatch string
	// Source, if set, is the object of this driver whose bytes the reader of the Put returns. It may
	// be the object under the key. [Storage] sets it to commit a [Storage.StageCopy] by a driver that
	// is no [Stager] and has Copies in its Features. The driver then copies the object within the
	// backend.
	//
	// If the object is missing or is another generation by now, the error is [ErrChanged]. If the
	// backend cannot copy it, or not with these options, the error is [errors.ErrUnsupported]. After
	// either error nothing has changed.
	Source *Info
	// NotBefore is the least ModTime of an object that is stored with [Overwrite]. A driver that
	// dates objects itself, and thus may date one ahead of the clock, honours it. Others ignore it.
	NotBefore time.Time
}

// DeleteOptions are the options of removing an object.
type DeleteOptions struct {
	// IfMatch, if set, is the ETag of the object to remove. Another object is [ErrChanged]. A missing
	// one is fs.ErrNotExist or ErrChanged if the backend reports it, otherwise no error. If the
	// backend does not compare by itself, the error is [errors.ErrUnsupported], and nothing has
	// changed; [Storage] then compares.
	IfMatch string
}

// fill sets the options that the caller has omitted, for an object under key.
func (o *PutOptions) fill(key string) {
	if o.ContentType == "" {
		o.ContentType = ContentType(key)
	}
	if o.ID == "" {
		o.ID = rand.Text()
	}
}

// Info describes an object. All methods of a driver return the same ETag for one generation, and
// all but List the same ModTime; see [Features.ListTimes].
type Info struct {
	// Key is the object's name in its storage.
	Key string
	// Size in bytes.
	Size int64
	// ModTime is when the object was stored, in the precision of the backend.
	ModTime time.Time
	// ETag is a strong entity tag with its quotes (RFC 9110 section 8.8.3): generations of one key
	// that differ in a byte never share it. Empty if the backend has none.
	ETag string
	// ContentType is the media type by the extension of the key.
	ContentType string
}

// Same reports whether two Infos of one key are of the same generation, as far as the backend
// identifies generations.
func (i Info) Same(other Info) bool {
	return i.Size == other.Size && i.ETag == other.ETag && i.ModTime.Equal(other.ModTime)
}

// Range is a part of an object. The zero value is the whole object.
type Range struct {
	// Offset of the first byte, from 0.
	Offset int64
	// Length in bytes; 0 means up to the end.
	Length int64
}

// Within cuts the range to an object of size bytes. It returns the number of bytes from Offset on
// that the range covers, or ErrInvalidRange if it begins at or past the end.
func (r Range) Within(size int64) (int64, error) {
	if r == (Range{}) {
		return size, nil
	}
	if r.Offset < 0 || r.Length < 0 || r.Offset >= size {
		return 0, ErrInvalidRange
	}
	left := size - r.Offset
	if r.Length == 0 || r.Length > left {
		return left, nil
	}
	return r.Length, nil
}

// ListOptions select one page of a listing.
type ListOptions struct {
	// Prefix is the beginning of the keys, byte by byte; it need not end with a slash. A driver
	// gets only prefixes that valid keys may have.
	Prefix string
	// Cursor is the Next of the previous page; empty for the first page.
	Cursor string
	// Limit is the largest number of objects and folders of a page; 0 is 1,000.
	Limit int
	// Shallow lists one level: objects whose keys have a slash after the prefix appear as
	// [Page.Folders]. A driver need not look into these folders.
	Shallow bool
}

// pageSize is the largest size of a page if [ListOptions] do not set one.
const pageSize = 1000

// PageLimit returns the largest number of objects of a page.
func (o ListOptions) PageLimit() int {
	if o.Limit <= 0 || o.Limit > pageSize {
		return pageSize
	}
	return o.Limit
}

// Page is a part of a listing. It may have fewer objects than requested, even none, also if it is
// not the last page. A later page may lack changes since the first one, but never shows an object
// that this driver has deleted before.
type Page struct {
	// Objects in the byte order of their keys.
	Objects []Info
	// Folders of a [ListOptions.Shallow] listing in byte order: the beginnings of keys up to the
	// first slash after the prefix. Each appears on one page only. All objects and folders of a
	// page sort before those of the next. Folders without objects may be listed too, see
	// [Features.EmptyFolders]. A name that cannot begin a valid key is omitted.
	Folders []string
	// Next is the cursor of the next page; empty on the last. It stays valid if objects are stored
	// or deleted meanwhile. Later pages may lack objects that are stored after the first page.
	Next string
}

// Guarantee is the strength of a guarantee of a driver.
type Guarantee int

const (
	// BestEffort holds within one process, as long as no other process writes to the backend.
	BestEffort Guarantee = iota
	// Atomic holds for all writers, on this and any other machine.
	Atomic
)

// String returns the guarantee in words.
func (g Guarantee) String() string {
	if g == Atomic {
		return "atomic"
	}
	return "best effort"
}

// Features are the guarantees of a driver.
type Features struct {
	// Create: if several callers put one new key with [CreateOnly], exactly one succeeds.
	Create Guarantee
	// Replace: a reader during an [Overwrite] finds the old object or the new one, never neither,
	// and keeps it to the end.
	Replace Guarantee
	// Compare: a change on condition of an ETag is exact, see [PutOptions.IfMatch] and
	// [DeleteOptions.IfMatch]: between the comparison and the change no other writer changes the
	// object.
	Compare Guarantee
	// Together: a [Storage.Commit] that fails or is cut short by a crash leaves all of its changes or
	// none. Without it, replaced and removed objects are restored only if they are kept, see
	// [Change.Keeps].
	Together Guarantee
	// Repeat: a Put succeeds if the object under the key has the Put's own ID, even with
	// [CreateOnly].
	Repeat bool
	// Seek: readers of the zero [Range] implement io.Seeker and io.ReaderAt, and opening one
	// transfers nothing.
	Seek bool
	// Streams: Put also takes a source whose size is not known yet. Until it is, a Seek relative to
	// the end fails with [ErrSizeUnknown], and a Read at the end waits for more bytes or the end.
	// The source has between 8 MiB and 32 GiB. If too many of them are being sent, Put may return
	// [ErrBusy].
	Streams bool
	// Copies: the driver copies objects faster than by reading and writing their bytes, see
	// [PutOptions.Source] and [Stager].
	Copies bool
	// ListTimes: List returns the same ModTime as the other methods.
	ListTimes bool
	// EmptyFolders: a [ListOptions.Shallow] listing may have folders without objects, such as those
	// that deleted objects leave. It has none without it.
	EmptyFolders bool
	// Dated: an object that this driver stores has another Size or ModTime than each one that it
	// has replaced or deleted under the key. A driver with ETags need not have it.
	Dated bool
	// Local: opening an object waits for no other machine as far as the driver knows, and ignores
	// its context once it has begun. [Storage] then sets no time-out for it.
	Local bool
	// Cached: opening and Stat may succeed while the backend is unavailable. The driver itself ensures
	// that they do not wait for it again and again.
	Cached bool
}

// SourceSize returns the size of a source of [Driver.Put] in bytes, and seeks to its start. The
// size is -1 if it is not known yet, see [Features.Streams].
func SourceSize(r io.Seeker) (int64, error) {
	size, err := r.Seek(0, io.SeekEnd)
	if errors.Is(err, ErrSizeUnknown) {
		size, err = -1, nil
	}
	if err == nil {
		_, err = r.Seek(0, io.SeekStart)
	}
	return size, err
}

// WithOwner returns a context whose operations count for owner, such as an account or the address
// of a client. A driver with a bounded number of connections must share them among the owners, so
// that none keeps another waiting for long.
func WithOwner(ctx context.Context, owner string) context.Context {
	return context.WithValue(ctx, ownerKey{}, owner)
}

// Owner returns the owner of the operations of ctx. It is empty for operations of the service
// itself.
func Owner(ctx context.Context) string {
	owner, _ := ctx.Value(ownerKey{}).(string)
	return owner
}

type ownerKey struct{}

// WithLease returns a context for changes under a lease. After isLost reports true, another process
// may have taken the changes over: a failed commit then undoes nothing.
func WithLease(ctx context.Context, isLost func() bool) context.Context {
	return context.WithValue(ctx, leaseKey{}, isLost)
}

// LeaseLost reports whether ctx has a lease that is lost.
func LeaseLost(ctx context.Context) bool {
	isLost, ok := ctx.Value(leaseKey{}).(func() bool)
	return ok && isLost()
}

type leaseKey struct{}

// WithoutCache returns a context for a decision: a Stat or an Open with it asks the backend, and
// not a cache in front of it.
func WithoutCache(ctx context.Context) context.Context {
	return context.WithValue(ctx, uncachedKey{}, true)
}

// IsUncached reports whether ctx is of [WithoutCache].
func IsUncached(ctx context.Context) bool { return ctx.Value(uncachedKey{}) != nil }

type uncachedKey struct{}

// A Sweeper is a [Driver] whose backend keeps leftovers of aborted uploads.
type Sweeper interface {
	// Sweep looks for leftovers of the age in opts, and removes them unless opts select a dry run.
	// It returns the leftovers found (or removed) even with an error; one failure does not stop the
	// others. Data of a running upload, in this process or another, is not a leftover, whatever the
	// age in opts. The error is [errors.ErrUnsupported] if the backend does not show leftovers.
	//
	// After the first call the driver starts no sweep by itself, for instance at its first use or
	// during a listing: the caller decides what is removed.
	Sweep(ctx context.Context, opts SweepOptions) ([]Leftover, error)
}

// leftoverAge is the default age of a leftover.
const leftoverAge = 24 * time.Hour

// SweepOptions select leftovers, and whether they are removed.
type SweepOptions struct {
	// OlderThan is the time since the last write to a leftover. 0 is 24 hours, which is also the
	// least if only the age distinguishes a leftover from a running upload.
	OlderThan time.Duration
	// DryRun finds leftovers without removing them.
	DryRun bool
}

// Before returns the time before which leftovers were last written, for a backend where only the
// age distinguishes a leftover from a running upload. The age is at least 24 hours, because the
// clocks of hosts differ.
func (o SweepOptions) Before(now time.Time) time.Time {
	return now.Add(-max(o.OlderThan, leftoverAge))
}

// Leftover is data of an aborted upload.
type Leftover struct {
	// Name identifies the leftover, relative to the root: a path, or the key of the upload.
	Name string
	// Size in bytes; -1 if the backend does not report it.
	Size int64
	// ModTime is the time of the last write, by the backend's clock.
	ModTime time.Time
}

// A SpaceReporter is a [Driver] whose backend may report how much space it has.
type SpaceReporter interface {
	// Space returns the space of the backend. The error is [errors.ErrUnsupported] if the backend does
	// not report it.
	Space(ctx context.Context) (Space, error)
}

// Space is the space of a backend, which others may use too.
type Space struct {
	// Free is the number of bytes that the user of the driver may still write, from 0 to Total. A
	// quota may allow less.
	Free int64
	// Total is the number of bytes that the backend has for all data; at least 1.
	Total int64
}

// SpaceOf returns the space of a file system with blocks of size bytes: the available and all
// blocks. It corrects impossible values, and returns [errors.ErrUnsupported] if the backend reports
// no blocks.
func SpaceOf(size, available, all uint64) (Space, error) {
	if size == 0 || all == 0 {
		return Space{}, errors.ErrUnsupported
	}
	bytesOf := func(blocks uint64) int64 {
		high, low := bits.Mul64(blocks, size)
		if high > 0 || low > math.MaxInt64 {
			return math.MaxInt64
		}
		return int64(low)
	}
	return Space{Free: bytesOf(min(available, all)), Total: bytesOf(all)}, nil
}
