// Package storagedrivers is the contract between the media service and the places
// that keep its objects, and the [Storage] that everybody uses.
//
// A driver implements [Driver] and nothing else: it stores, opens, lists and deletes
// objects under keys. Callers never hold a Driver. They hold a [Storage], which checks
// keys, wraps errors, bounds and repeats what may be repeated, compares sizes after a
// write and keeps the driver open until its last user is done.
//
// Every driver passes the suite in drivertest; a rule that is not in a comment here is
// not in the suite, and the other way round.
package storagedrivers

import (
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"time"
)

// A Driver stores objects in one configured place.
//
// All methods are safe for concurrent use and honour ctx. Keys have passed [ValidKey].
// An object is visible whole or not at all: no method shows a reader a part of one, and
// no reader that has begun sees two generations mixed. Errors match (errors.Is) the
// sentinels of this package and of io/fs wherever one fits; anything else is an answer
// of the place that nobody foresaw.
type Driver interface {
	// Put stores all of r under key, or nothing: after any error, cancellation
	// included, an earlier object is intact, no part of the new one is visible and
	// nothing else is left in the place. r stands at its start and may be rewound by
	// the driver to send it again; the driver must not close it. An error of r is
	// returned (errors.Is), io.ErrUnexpectedEOF included. With [CreateOnly] a key that
	// is taken is fs.ErrExist, decided by the place itself where Features says
	// [Atomic]. On success the object is as durable as the place can make it. Put may be
	// called again after ErrUnavailable, with the same options: a driver whose replies get
	// lost should know its own object from somebody else's.
	Put(ctx context.Context, key string, r io.ReadSeeker, opts PutOptions) (Info, error)

	// Open gives the bytes of rng and the Info of the whole object. A reader stays on
	// the object it was opened on, also when that is replaced or deleted meanwhile; without an
	// [Atomic] Replace it may fail with [ErrChanged] then. A missing key is fs.ErrNotExist; a range that starts at or past the end is
	// ErrInvalidRange (but the zero Range of an empty object is its no bytes); one that
	// ends past the end is cut to it. A reader that has io.Seeker and io.ReaderAt too is
	// used for them, with offsets from the start of the object, when rng is zero. ctx
	// governs the reader until it is closed.
	Open(ctx context.Context, key string, rng Range) (io.ReadCloser, Info, error)

	// Stat gives the Info of an object. A missing key is fs.ErrNotExist.
	Stat(ctx context.Context, key string) (Info, error)

	// Delete removes an object. A missing key is fs.ErrNotExist where the place tells,
	// and no error elsewhere.
	Delete(ctx context.Context, key string) error

	// List gives the objects whose keys begin with opts.Prefix, or one level of them, in
	// the byte order of their keys, without leftovers and foreign names that are no valid
	// keys.
	List(ctx context.Context, opts ListOptions) (Page, error)

	// Check connects, authenticates and finds the root, making it where that is
	// possible. The first time it may find out by experiment what the place guarantees;
	// it leaves no object behind, and a place that may only be read passes.
	Check(ctx context.Context) error

	// Features tells what the driver can guarantee. It does no I/O: where only an
	// experiment tells, it is the least until the first Check or Put.
	Features() Features

	// Close releases connections and handles. No other method is running or follows.
	Close() error
}

// A Stager is a [Driver] that can take the bytes where they will stay, so that
// committing them moves no data.
type Stager interface {
	// Stage begins an object that has no name yet.
	Stage(ctx context.Context) (Staged, error)
}

// Staged is an object on its way: first a writer, then a reader that may seek, then
// committed under the first name that is free, then closed. It is for one goroutine.
type Staged interface {
	// Write appends. It must not follow the first Read, Seek or Commit.
	io.Writer
	// Read and Seek give back what was written.
	io.ReadSeeker

	// Commit stores the bytes under key, with the guarantees of [Driver.Put]. After
	// fs.ErrExist it may be called with another key; after success it may not.
	Commit(ctx context.Context, key string, opts PutOptions) (Info, error)

	// Rollback undoes the Commit that succeeded: an object that was created is removed,
	// one that was replaced is put back. Where the old one is gone it is
	// [errors.ErrUnsupported] and nothing changes. An object that somebody else has put
	// in place meanwhile stays.
	Rollback(ctx context.Context) error

	// Close drops what was not committed and forgets what a Commit replaced. It is
	// called once, always.
	Close() error
}

// A Presigner is a [Driver] whose place serves objects by itself to whoever has a signed
// address.
type Presigner interface {
	// Presign gives an address under which GET answers with the object under key, with
	// the headers of opts, until opts.Lifetime is over. It need not look whether there is
	// one. [errors.ErrUnsupported] is a place whose credentials cannot sign.
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

// Mode says what [Driver.Put] does where the key is taken.
type Mode int

const (
	// CreateOnly leaves an existing object alone: fs.ErrExist.
	CreateOnly Mode = iota
	// Overwrite replaces an existing object as a whole.
	Overwrite
)

// PutOptions go with an object that is stored.
type PutOptions struct {
	// Mode is what to do where the key is taken.
	Mode Mode
	// ID tells this upload from all others, by letters and digits. [Storage] fills it in,
	// for all repetitions the same. A driver whose place keeps metadata keeps it there, and
	// so knows its own object when it finds the key taken after an answer was lost.
	ID string
	// ContentType is the media type of the object ("image/png"). [Storage] fills it in
	// by the extension of the key where it is empty; a place that does not keep media
	// types ignores it.
	ContentType string
	// CacheControl is the Cache-Control header with which a place that serves objects
	// by itself should answer. Empty: none. A place that does not keep headers ignores
	// it.
	CacheControl string
}

// fill sets what the caller has left out for an object under key.
func (o *PutOptions) fill(key string) {
	if o.ContentType == "" {
		o.ContentType = ContentType(key)
	}
	if o.ID == "" {
		o.ID = rand.Text()
	}
}

// Info describes an object. Of one generation every method of a driver gives the same
// ETag, and all but List the same ModTime.
type Info struct {
	// Key is the object's name in its storage.
	Key string
	// Size in bytes.
	Size int64
	// ModTime is when the object was stored, to the precision of the place.
	ModTime time.Time
	// ETag is a strong entity tag with its quotes (RFC 9110 section 8.8.3): generations of
	// one key that differ in a byte never share it. Empty where the place has none.
	ETag string
	// ContentType is the media type by the extension of the key.
	ContentType string
}

// Same tells whether two Infos of one key are of one generation, as far as the place
// lets it be known.
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

// Within cuts the range to an object of size bytes: the number of bytes from Offset on
// that it covers, or ErrInvalidRange where it begins at or past the end.
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

// ListOptions say which page of which objects is wanted.
type ListOptions struct {
	// Prefix is what the keys begin with, byte by byte; it need not end at a slash. A
	// driver gets only what valid keys may begin with.
	Prefix string
	// Cursor is the Next of the page before; empty for the first page.
	Cursor string
	// Limit is the most objects of a page, folders included; 0 is 1,000.
	Limit int
	// Shallow lists one level: instead of the objects whose keys have a slash behind the
	// prefix it gives [Page.Folders]. A driver need not look at what is in them.
	Shallow bool
}

// PageSize is how many objects a page holds at most when [ListOptions] do not say.
const PageSize = 1000

// PageLimit gives the most objects of a page.
func (o ListOptions) PageLimit() int {
	if o.Limit <= 0 || o.Limit > PageSize {
		return PageSize
	}
	return o.Limit
}

// Page is a part of a listing. It may hold fewer objects than asked for, and none, also
// when it is not the last.
type Page struct {
	// Objects in the byte order of their keys.
	Objects []Info
	// Folders of a [ListOptions.Shallow] listing in byte order: what keys begin with up to
	// the first slash behind the prefix. Each is there once on all pages together. What is
	// on a page comes, objects and folders together, before what is on the next. One that
	// holds no objects may be there or not, as the place has it; a name that no valid key
	// begins with is not.
	Folders []string
	// Next is the cursor of the next page; empty on the last. It stays good when objects
	// are stored and deleted meanwhile.
	Next string
}

// Guarantee says how far a driver can keep a promise.
type Guarantee int

const (
	// BestEffort holds within one process and as long as nobody else writes to the
	// place.
	BestEffort Guarantee = iota
	// Atomic holds whoever else writes, from this or any other machine.
	Atomic
)

// String gives the guarantee in words.
func (g Guarantee) String() string {
	if g == Atomic {
		return "atomic"
	}
	return "best effort"
}

// Features tell what a driver can guarantee.
type Features struct {
	// Create: of many that put one new key with [CreateOnly] exactly one succeeds.
	Create Guarantee
	// Replace: a reader during an [Overwrite] finds the old object or the new one, never
	// neither, and keeps it to the end.
	Replace Guarantee
	// Restore: [Staged.Rollback] can put back an object that was replaced.
	Restore bool
	// Repeat: a Put with the ID of the very object that stands under the key has stored it,
	// also with [CreateOnly].
	Repeat bool
	// Seek: readers of the zero [Range] have io.Seeker and io.ReaderAt, and opening one
	// transfers nothing.
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
	// Parallel is how many objects the driver can send or receive at the same time. 0 is any number.
	Parallel() int
	// NewDriver makes the driver.
	NewDriver(log *slog.Logger) (Driver, error)
	// Timeout is how long the backend may keep silent. 0 is 30 s.
	Timeout() time.Duration
}
