package upload

import (
	"cmp"
	"context"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
)

// Request is what all requests to store items share: an [Upload], a [Replacement] or a [Transfer].
type Request struct {
	Kind item.Kind
	// Alias of the request's address. A field of the form takes precedence.
	Alias string
	// Allows reports whether the account may use an alias; nil allows all.
	Allows func(alias string) bool
	// Forced is what the caller's credential forces.
	Forced Forced
	// Confirm, if set, is called right before the commit. An upload may last for hours, and the
	// account may lose its rights meanwhile. A failure refuses the request. Otherwise settle, if set,
	// is called with the outcome of the commit.
	Confirm Confirm
	// Purge keeps no item that the request replaces or moves away.
	Purge bool
	// Repetition makes the request repeatable; nil if it is not.
	Repetition *Repetition
	// BaseURL is the start of public addresses if the alias has none.
	BaseURL string
	// Actor is the caller.
	Actor item.Actor
}

// Repetition makes a request repeatable: however often it is carried out, by one attempt at a time,
// its items are stored once. All attempts make the same names in the same order. An object under
// such a name that has the same bytes, and was stored since the first attempt began, is an item of
// the request.
type Repetition struct {
	// ID begins the IDs of the items on backends that know their objects by an ID, in letters and
	// digits. Another request, or the same key used for a new first attempt, has another one.
	ID string
	// Began is when the first attempt began, by the clock of its node. Folders with dates and names
	// with the time are made of it.
	Began time.Time
	// Again reports that an earlier attempt may have stored items.
	Again bool
	// Since, if set, is the time from which on such an object is one of the request, by the clock of
	// the storage. Default: Began, less the difference that clocks may have.
	Since time.Time
}

// Outcome is the outcome of a commit.
type Outcome int

// The outcomes.
const (
	// MaybeStored means that items of a failed commit may be stored, or may appear later.
	MaybeStored Outcome = iota
	// NothingStored means that they never will be.
	NothingStored
	AllStored
)

// Confirm decides right before a commit, see [Request].
type Confirm func(ctx context.Context, c Commitment) (settle func(Outcome), failure *item.Failure)

// Commitment is what is about to be committed.
type Commitment struct {
	Alias string
	Items int
	// Digest returns a hash of the names and bytes of all items. It reads them.
	Digest func() (string, error)
}

// Upload is a request to store files under names of their own.
type Upload struct {
	Request
	// SubFolder of the request's address. A field of the form takes precedence.
	SubFolder string
	// Matches, if set, is the condition of the request. It reports whether the item that has the name
	// of the only file lets the request be carried out; the zero Info means that there is none.
	Matches func(storagedrivers.Info) bool
	// Permits, if set, returns the failure if the caller may not store a file under the name of an
	// item; the zero Info means that there is none.
	Permits func(storagedrivers.Info) *item.Failure
	// Exact, if set, is the only filename that the item may have. Under Append Time an item of that
	// name with the same bytes is that of the request, and another one is a conflict.
	Exact string
	// Import, if set, opens the addresses in fields called url. They are files of the request.
	Import Importer
	// ImportTime bounds all imports of the request together, and MaxImported the sum of their
	// bytes; 0 means no limit.
	ImportTime  time.Duration
	MaxImported int64
	// NoFiles and NoImports, if set, refuse requests with files and with addresses.
	NoFiles, NoImports *item.Failure
	// Hold, if set, returns what takes the files in place of their commit, given the field hold of
	// the form; nil if they are stored. The field is empty before it is received, or without one.
	Hold func(field string) (Holder, *item.Failure)
}

// Replacement is a request to replace an item by one file, whatever the name of the file is.
type Replacement struct {
	Request
	// Filename of the item.
	Filename string
	// Matches, if set, reports whether a stored item is the one to replace.
	Matches func(storagedrivers.Info) bool
	// Stored is the item before the request. A large file is sent to the storage early on the
	// assumption that it still is that one.
	Stored storagedrivers.Info
}

// Operation describes a request to an observer.
type Operation struct {
	Kind item.Kind
	// Alias of the request. That of a form takes precedence once it is known.
	Alias string
	// Filename is that of the item to replace; empty for other requests.
	Filename string
	// Transfer is the move or copy that the request is; nil for other requests.
	Transfer *Transfer
	Actor    item.Actor
}

// Operation describes the request.
func (r Request) Operation() Operation {
	return Operation{Kind: r.Kind, Alias: r.Alias, Actor: r.Actor}
}

// Operation describes the replacement.
func (r Replacement) Operation() Operation {
	op := r.Request.Operation()
	op.Filename = r.Filename
	return op
}

func (r Request) allows(alias string) bool { return r.Allows == nil || r.Allows(alias) }

// kind is what sets one kind of request apart from the others.
type kind struct {
	operation Operation
	// filename is that of the only item, whatever the name of its file is; empty if it is made of
	// that.
	filename string
	// exact is the only filename that may be made of the name of the only file; empty for any.
	exact string
	// assumed is the item that has the name, for a file that is sent early; zero if it is not known.
	assumed storagedrivers.Info
	// condition, if set, returns the failure if the request may not be carried out because of the
	// item that has the name of the only file. The zero Info means that there is none.
	condition func(storagedrivers.Info) *item.Failure
	// overwrites means that an item of the name is replaced, under Append Time too.
	overwrites bool
	// asItWas means that the item is stored as it is, whatever the rules of its alias, under the
	// exact filename.
	asItWas bool
	// same means that an item of the name is that of the request if it has the same bytes, whatever
	// the condition.
	same bool
	// lock, if set, locks the filenames during their commit; see [batch.lockNames] otherwise.
	lock func(ctx context.Context, filenames []string) (unlock func(), err error)
	// confirm, if set, is called before the commit of the locked names, and committed after it.
	confirm   func(ctx context.Context) error
	committed func(ctx context.Context)
}

func (u Upload) kind() kind {
	k := kind{operation: u.Operation(), exact: u.Exact}
	if u.Matches != nil || u.Permits != nil {
		k.condition = func(stored storagedrivers.Info) *item.Failure {
			if u.Permits != nil {
				if failure := u.Permits(stored); failure != nil {
					return failure
				}
			}
			if u.Matches == nil || u.Matches(stored) {
				return nil
			}
			return item.Failf(item.Changed, "a condition in the header of the request does not hold for the item of this name")
		}
	}
	return k
}

func (r Replacement) kind() kind {
	k := kind{operation: r.Operation(), filename: r.Filename, assumed: r.Stored}
	k.condition = func(stored storagedrivers.Info) *item.Failure { return mismatch(r.Filename, stored, r.Matches) }
	return k
}

// mismatch returns the failure if a stored item is not the one to change; nil if it is. The zero
// Info means that there is none.
func mismatch(filename string, stored storagedrivers.Info, matches func(storagedrivers.Info) bool) *item.Failure {
	switch {
	case stored.Key == "":
		return &item.Failure{Reason: item.Missing, Message: "there is no such item", Filename: filename}
	case matches != nil && !matches(stored):
		return &item.Failure{Reason: item.Changed, Message: item.ErrOther.Error(), Filename: filename}
	}
	return nil
}

// Forced is what a credential forces on a request, whatever the request says. The zero value forces
// nothing.
type Forced struct {
	// Alias is the default alias, and the only one; empty for any.
	Alias string
	// SubFolder is the default sub folder, and the only one; empty for any.
	SubFolder string
	// Below is the default sub folder; any other is below it. Empty for any.
	Below string
	// Filename replaces the names of the files; empty keeps them.
	Filename string
	// MaxSize of an item in bytes, if the alias allows more; 0 for the limit of the alias.
	MaxSize int64
	// MaxFiles is the most items; 0 for no limit.
	MaxFiles int
}

// Check returns a failure if no item can be stored in an alias under the forced names.
func (f Forced) Check(a *item.Alias, now time.Time) *item.Failure {
	var err error
	switch {
	case f.Filename != "":
		_, err = a.StoredName(f.Filename, f.SubFolder, now, item.OriginHTTP)
	case len(f.SubFolder) > item.MaxName:
		err = item.Failf(item.BadRequest, "the sub folder is longer than %d bytes", item.MaxName)
	default:
		_, err = a.Folder(f.SubFolder, now)
	}
	if err != nil {
		return asFailure(err)
	}
	return nil
}

// Covers reports whether a request may name a path in the alias: a folder, or the filename of an
// item.
func (f Forced) Covers(path string) bool {
	return access.Account{Folder: f.Below}.Covers(path)
}

// NoFolder is the message for a folder that a user may not use.
const NoFolder = "there is no such folder: users have folders of their own"

// checkPath returns an error if a request may not name a path in the alias.
func (f Forced) checkPath(path string) error {
	if f.Covers(path) {
		return nil
	}
	return item.Failf(item.Missing, NoFolder)
}

// checkSubFolder returns an error if a request may not name a sub folder.
func (f Forced) checkSubFolder(name string) error {
	if f.SubFolder != "" && name != f.SubFolder {
		return item.Failf(item.Forbidden, "the ticket is for another sub folder: leave out sub_folder")
	}
	return f.checkPath(name)
}

// filename returns the name that the stored name of a submitted file is derived from.
func (f Forced) filename(submitted string) string { return cmp.Or(f.Filename, submitted) }

// Limit returns the largest item, in bytes, where the alias allows limit.
func (f Forced) Limit(limit int64) int64 {
	if f.MaxSize > 0 {
		return min(limit, f.MaxSize)
	}
	return limit
}
