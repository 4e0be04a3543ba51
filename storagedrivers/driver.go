// Package storagedrivers is the contract between the media service and the backends that hold its
// objects, and the [Storage] through which callers use them.
//
// A driver implements [Driver] and nothing else: it stores, opens, lists and deletes objects under
// keys. Callers never hold a Driver. They hold a [Storage], which checks keys, wraps errors, bounds
// and repeats operations, compares sizes after a write, and keeps the driver open until its last
// user is done.
//
// Every driver passes the suite in drivertest. The suite tests the rules in the comments here, and
// no others.
package storagedrivers

import (
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"time"
)

// A Driver stores objects in one configured backend.
//
// All methods are safe for concurrent use and honour ctx. Keys have passed [ValidKey]. An object is
// visible whole or not at all: no reader gets a part of one, and no reader gets bytes of two
// generations. Errors match (errors.Is) the sentinels of this package and of io/fs wherever one
// fits. Any other error is an unexpected answer of the backend.
type Driver interface {
	// Put stores all of r under key, or nothing: after any error, cancellation included, an earlier
	// object is intact, no part of the new one is visible and no leftover stays in the backend. r
	// stands at its start. The driver may rewind r to send it again, and must not close it. An
	// error of r is returned (errors.Is), io.ErrUnexpectedEOF included. With [CreateOnly] a key
	// that is taken is fs.ErrExist, decided by the backend itself where Features has [Atomic]. On
	// success the object is as durable as the backend can make it. Put may be called again after
	// ErrUnavailable, with the same options: a driver whose replies get lost should know its own
	// object from others.
	Put(ctx context.Context, key string, r io.ReadSeeker, opts PutOptions) (Info, error)

	// Open returns the bytes of rng and the Info of the whole object. A reader stays on the object
	// that it was opened on, also when that is replaced or deleted meanwhile; without an [Atomic]
	// Replace it may fail with [ErrChanged] then. A missing key is fs.ErrNotExist. A range that
	// starts at or past the end is ErrInvalidRange, but the zero Range of an empty object is empty.
	// A range that ends past the end is cut to it. When rng is zero, the reader may have io.Seeker
	// and io.ReaderAt too, with offsets from the start of the object. ctx governs the reader until
	// it is closed.
	Open(ctx context.Context, key string, rng Range) (io.ReadCloser, Info, error)

	// Stat returns the Info of an object. A missing key is fs.ErrNotExist.
	Stat(ctx context.Context, key string) (Info, error)

	// Delete removes an object. A missing key is fs.ErrNotExist where the backend reports it, and
	// no error elsewhere.
	Delete(ctx context.Context, key string) error

	// List returns the objects whose keys begin with opts.Prefix, or one level of them, in the byte
	// order of their keys. It leaves out leftovers and foreign names that are no valid keys.
	List(ctx context.Context, opts ListOptions) (Page, error)

	// Check connects, authenticates and finds the root, making it where that is possible. The first
	// Check may test by experiment what the backend guarantees. It leaves no object behind, and a
	// backend that may only be read passes.
	Check(ctx context.Context) error

	// Features returns the guarantees of the driver without I/O. Guarantees that need an experiment
	// are the least until the first Check or Put.
	Features() Features

	// Close releases connections and handles. No other method is running or follows.
	Close() error
}

// A Stager is a [Driver] that can stage bytes in the backend, so that committing them moves no
// data.
type Stager interface {
	// Stage begins an object that has no name yet.
	Stage(ctx context.Context) (Staged, error)
}

// Staged is an object on its way: first a writer, then a reader that may seek, then committed under
// the first name that is free, then closed. It is for one goroutine.
type Staged interface {
	// Write appends. It must not follow the first Read, Seek or Commit.
	io.Writer
	// Read and Seek return the staged bytes.
	io.ReadSeeker

	// Commit stores the bytes under key, with the guarantees of [Driver.Put]. After fs.ErrExist it
	// may be called with another key; after success it may not.
	Commit(ctx context.Context, key string, opts PutOptions) (Info, error)

	// Rollback undoes the Commit that succeeded: a created object is removed, a replaced one is
	// restored. Where the old object is gone it is [errors.ErrUnsupported] and nothing changes. An
	// object that another writer has stored meanwhile stays.
	Rollback(ctx context.Context) error

	// Close drops what was not committed and forgets what a Commit replaced. It is called once,
	// always.
	Close() error
}

// A Presigner is a [Driver] whose backend serves objects by itself at signed addresses.
type Presigner interface {
	// Presign returns an address under which GET answers with the object under key, with the
	// headers of opts, until opts.Lifetime is over. It need not check that the object exists.
	// [errors.ErrUnsupported] is a backend whose credentials cannot sign.
	Presign(ctx context.Context, key string, opts PresignOptions) (string, error)
}

// PresignOptions go with an address that is signed.
type PresignOptions struct {
	// Lifetime of the address, at most seven days.
	Lifetime time.Duration
	// ContentType and CacheControl are the headers of the answer. Empty: as stored.
	ContentType  string
	CacheControl string
	// Disposition is the Content-Disposition header of the answer. Empty: none.
	Disposition string
}

// Mode is the behaviour of [Driver.Put] where the key is taken.
type Mode int

const (
	// CreateOnly leaves an existing object alone: fs.ErrExist.
	CreateOnly Mode = iota
	// Overwrite replaces an existing object as a whole.
	Overwrite
)

// PutOptions go with an object that is stored.
type PutOptions struct {
	// Mode is the behaviour where the key is taken.
	Mode Mode
	// ID identifies this upload, in letters and digits. [Storage] sets it, to the same value for
	// all repetitions. A driver whose backend keeps metadata keeps it there, and so recognises its
	// own object when it finds the key taken after an answer was lost.
	ID string
	// ContentType is the media type of the object ("image/png"). [Storage] fills it in by the
	// extension of the key where it is empty; a backend without media types ignores it.
	ContentType string
	// CacheControl is the Cache-Control header with which a backend that serves objects by itself
	// should answer. Empty: none. A backend without headers ignores it.
	CacheControl string
}

// fill sets the options that the caller has left out for an object under key.
func (o *PutOptions) fill(key string) {
	if o.ContentType == "" {
		o.ContentType = ContentType(key)
	}
	if o.ID == "" {
		o.ID = rand.Text()
	}
}

// Info describes an object. All methods of a driver return the same ETag for one generation, and
// all but List the same ModTime.
type Info struct {
	// Key is the object's name in its storage.
	Key string
	// Size in bytes.
	Size int64
	// ModTime is when the object was stored, to the precision of the backend.
	ModTime time.Time
	// ETag is a strong entity tag with its quotes (RFC 9110 section 8.8.3): generations of one key
	// that differ in a byte never share it. Empty where the backend has none.
	ETag string
	// ContentType is the media type by the extension of the key.
	ContentType string
}

// Same reports whether two Infos of one key are of one generation, as far as the backend identifies
// generations.
func (i Info) Same(other Info) bool {
	return i.Size == other.Size && i.ETag == other.ETag && i.ModTime.Equal(other.ModTime)
}

// Range is a part of an object. The zero value is all of it.
type Range struct {
	// Offset of the first byte, from 0.
	Offset int64
	// Length in bytes; 0 is up to the end.
	Length int64
}

// Within cuts the range to an object of size bytes. It returns the number of bytes from Offset on
// that the range covers, or ErrInvalidRange where it begins at or past the end.
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
	// Prefix is how the keys begin, byte by byte; it need not end at a slash. A driver gets only
	// prefixes that valid keys may have.
	Prefix string
	// Cursor is the Next of the page before; empty for the first page.
	Cursor string
	// Limit is the most objects of a page, folders included; 0 is 1,000.
	Limit int
	// Shallow lists one level: objects whose keys have a slash behind the prefix appear as
	// [Page.Folders]. A driver need not look into these folders.
	Shallow bool
}

// PageSize is how many objects a page holds at most when [ListOptions] do not say.
const PageSize = 1000

// PageLimit returns the most objects of a page.
func (o ListOptions) PageLimit() int {
	if o.Limit <= 0 || o.Limit > PageSize {
		return PageSize
	}
	return o.Limit
}

// Page is a part of a listing. It may hold fewer objects than asked for, and none, also when it is
// not the last.
type Page struct {
	// Objects in the byte order of their keys.
	Objects []Info
	// Folders of a [ListOptions.Shallow] listing in byte order: the beginnings of keys up to the
	// first slash behind the prefix. Each is there once on all pages together. Objects and folders
	// of a page come, together, before those of the next. A folder without objects may be there or
	// not, depending on the backend. A name that no valid key begins with is left out.
	Folders []string
	// Next is the cursor of the next page; empty on the last. It stays good when objects are stored
	// and deleted meanwhile.
	Next string
}

// Guarantee is how far a driver can keep a promise.
type Guarantee int

const (
	// BestEffort holds within one process, as long as no other writes to the backend.
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
	// Create: of many that put one new key with [CreateOnly] exactly one succeeds.
	Create Guarantee
	// Replace: a reader during an [Overwrite] finds the old object or the new one, never neither,
	// and keeps it to the end.
	Replace Guarantee
	// Restore: [Staged.Rollback] can restore an object that was replaced.
	Restore bool
	// Repeat: a Put with the ID of the very object under the key has stored it, also with
	// [CreateOnly].
	Repeat bool
	// Seek: readers of the zero [Range] have io.Seeker and io.ReaderAt, and opening one transfers
	// nothing.
	Seek bool
}

// Description describes a driver to people, in English.
type Description struct {
	// Title is the name of the kind of backend: "Google Cloud Storage".
	Title string
	// Noun is what contains the objects: "bucket", "container", "folder".
	Noun string
	// Local backends are used with the rights of this process. The others have a login.
	Local bool
	// Icon stands for the backend: "cloud", "server" or "disk".
	Icon string
	// Rank orders drivers in lists, the greatest first.
	Rank int
	// Where is the backend in short, as configured: "my-bucket/media (eu-central-1)". It has no
	// secret, and placeholders stay what they are. It is for a module that need not be provisioned.
	Where string
}

// Module is the configuration of a driver: it describes the backend and makes the driver for it. No
// method touches another host: one that is down is a failing check, not a failed start.
type Module interface {
	// Describe returns what people need to know.
	Describe() Description
	// PoolKey identifies the backend and all settings. Two modules with equal keys share one
	// Driver, so that connections outlive a reload. It may hold secrets and is never logged.
	PoolKey() string
	// Location returns where the objects are. It is equal for modules that differ only in
	// credentials, time-outs and the like, holds no secret, and stays the same across reloads.
	Location() Location
	// Parallel is how many objects the driver can send or receive at the same time. 0 is any
	// number.
	Parallel() int
	// NewDriver makes the driver.
	NewDriver(log *slog.Logger) (Driver, error)
	// Timeout is how long the backend may keep silent. 0 is 30 s.
	Timeout() time.Duration
}
