// Package resumable keeps the state of resumable uploads as objects of a storage, so that any
// process that shares the storage can continue any upload. The storage decides all races: every
// object is created once and never replaced. One that grows has one writer.
//
// All keys are below [Folder]:
//
//	open/<owner>.<id>            the record of an unfinished upload
//	data/<c>/<id>.<offset>       a segment of its bytes; c is a character of the ID
//	data/<c>/<id>.bytes          all of its bytes, where objects can grow in place
//	data/<c>/<id>.length         its length, if that was not known at its creation
//	data/<c>/<id>.claim.<n>      the n-th filename under which its item may be stored
//	done/<day>/<id>              the outcome of a finished upload; the ID begins with the day
//
// An upload exists as long as its record. A segment without a record, and a record whose upload has
// expired, are removed by [Store.Sweep]. The outcome is stored before the record is removed.
package resumable

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/caddymedia/media/caddymedia/naming"
	"github.com/caddymedia/media/storagedrivers"
)

// Folder is the folder of a storage that is reserved for resumable uploads.
const Folder = naming.UploadsFolder

// The errors of this package. Other errors are those of the storage.
var (
	// ErrUnknown means that the owner has no such upload, or that it has expired or was terminated.
	ErrUnknown = errors.New("unknown upload")
	// ErrOffset means that the upload has another offset: another request has added bytes.
	ErrOffset = errors.New("the upload has another offset")
	// ErrTooLarge means more bytes than the length of the upload.
	ErrTooLarge = errors.New("more bytes than the upload has")
	// ErrChecksum means that the bytes do not have the checksum.
	ErrChecksum = errors.New("another checksum")
	// ErrLength means that the length of the upload is already another one.
	ErrLength = errors.New("the length of the upload is another one")
	// ErrTooMany means that the owner, or the ticket, has too many unfinished uploads.
	ErrTooMany = errors.New("too many unfinished uploads")
	// ErrParts means that a part of a final upload is missing, incomplete or no partial upload.
	ErrParts = errors.New("a part cannot be used")
	// ErrScope means an upload, or a part of one, outside of the scope of the caller.
	ErrScope = errors.New("another scope")
	// ErrSegments means that the upload has too many small segments.
	ErrSegments = errors.New("too many segments")
)

// Store holds the resumable uploads of a service. It is safe for concurrent use.
type Store struct {
	// Storages that may hold uploads.
	Storages []*storagedrivers.Storage
	// Expires is how long an upload is kept after its last byte.
	Expires time.Duration
	// MaxOpen is the largest number of unfinished uploads of an owner. A ticket may have a share of
	// them.
	MaxOpen int
	// Now is the clock.
	Now func() time.Time
	// Observe, if set, is called for each event of an upload of a kind.
	Observe func(kind string, event Event)
	// Received, if set, is called after a request that added bytes to an upload of a kind. resumed
	// means that the upload had some before.
	Received func(kind string, bytes int64, resumed bool)
	// Log receives the errors of removals, which are repeated by [Store.Sweep].
	Log *slog.Logger

	uncounted sync.Map // *storagedrivers.Storage to the time until which it is not counted
}

// Create creates an upload on storage, one of [Store.Storages]. admit is called with its length
// before anything is stored; its error refuses the upload. If rec has parts, Create returns an
// upload that exists with the same owner, parts and metadata; it may be finished. The error is
// ErrParts if a part cannot be used, and ErrScope if the scope of rec does not cover that of a part
// or of the upload that exists.
func (s *Store) Create(
	ctx context.Context, storage *storagedrivers.Storage, rec Record, admit func(length int64) error,
) (*Upload, error) {
	u := &Upload{Record: rec, store: s, storage: storage, ID: newID(s.Now(), rec.Ticket, storage.Name())}
	if len(rec.Parts) > 0 {
		found, err := s.findFinal(ctx, u)
		if found != nil || err != nil {
			return found, err
		}
	}
	if err := admit(u.Length); err != nil {
		return nil, err
	}
	open, err := s.countOpen(ctx, storage, u)
	if err != nil {
		return nil, err
	}
	if open.all >= s.MaxOpen || rec.Ticket != "" && open.ofTicket >= s.maxOpenOfTicket() {
		return nil, ErrTooMany
	}
	u.Created = s.Now().UTC().Truncate(time.Second)
	u.changed = u.Created
	err = put(ctx, storage, recordKey(rec.Owner, u.ID), &u.Record)
	if errors.Is(err, fs.ErrExist) { // the same final upload, created meanwhile
		return s.findCovered(ctx, u)
	}
	if err != nil {
		return nil, fmt.Errorf("creating a resumable upload: %w", err)
	}
	s.observe(u.Kind, Created)
	return u, nil
}

// findFinal returns the final upload of the record of u if it exists. Otherwise it finds the parts
// of u.
func (s *Store) findFinal(ctx context.Context, u *Upload) (*Upload, error) {
	for _, id := range u.Parts {
		if !validID(id) {
			return nil, ErrParts
		}
	}
	u.ID = finalID(&u.Record, u.storage.Name())
	found, err := s.findCovered(ctx, u)
	if !errors.Is(err, ErrUnknown) {
		return found, err
	}
	if err := u.resolveParts(ctx); err != nil {
		return nil, err
	}
	segments := 0
	for _, part := range u.parts {
		switch {
		case !u.Scope.Covers(part.Scope):
			return nil, ErrScope
		case !part.Partial, part.Kind != u.Kind, !part.Complete():
			return nil, ErrParts
		}
		segments += len(part.segments)
	}
	if tooMany(segments, u.Length) {
		return nil, ErrSegments
	}
	return nil, nil //nolint:nilnil // it does not exist yet
}

// findCovered returns the present state of u, if its scope covers that one's.
func (s *Store) findCovered(ctx context.Context, u *Upload) (*Upload, error) {
	found, err := s.Find(ctx, u.Owner, u.ID)
	if err == nil && !u.Scope.Covers(found.Scope) {
		return nil, ErrScope
	}
	return found, err
}

const (
	// countTime bounds counting the uploads on a storage other than that of a new one.
	countTime = 500 * time.Millisecond
	// uncountedTime is how long a storage is left out after that failed.
	uncountedTime = time.Minute
)

// minTicketOpen is the number of unfinished uploads that a ticket may have in any case.
const minTicketOpen = 20

// maxOpenOfTicket returns the largest number of unfinished uploads of a ticket. Its holder must not
// shut out the other callers of the account.
func (s *Store) maxOpenOfTicket() int { return max(s.MaxOpen/4, minTicketOpen) }

// openCount is a number of unfinished uploads of an owner.
type openCount struct{ all, ofTicket int }

// countOpen counts the unfinished uploads of the owner of u, and those of its ticket, without the
// parts of u: they end with it. It may end at MaxOpen. It leaves out storages that fail or are slow,
// except the given one. Storages with one location have the same uploads.
func (s *Store) countOpen(ctx context.Context, storage *storagedrivers.Storage, u *Upload) (openCount, error) {
	count, err := s.countOn(ctx, storage, u)
	counted := map[storagedrivers.Location]bool{storage.Location(): true}
	for _, other := range s.Storages {
		if err != nil || count.all >= s.MaxOpen || counted[other.Location()] {
			continue
		}
		counted[other.Location()] = true
		more := s.countOther(ctx, other, u)
		count.all += more.all
		count.ofTicket += more.ofTicket
	}
	return count, err
}

// countOther is countOn for a storage that a new upload does not need.
func (s *Store) countOther(ctx context.Context, storage *storagedrivers.Storage, u *Upload) openCount {
	if until, ok := s.uncounted.Load(storage); ok && s.Now().Before(until.(time.Time)) { //nolint:forcetypeassert // the map holds nothing else
		return openCount{}
	}
	ctx, cancel := context.WithTimeout(ctx, countTime)
	defer cancel()
	count, err := s.countOn(ctx, storage, u)
	if err != nil {
		s.uncounted.Store(storage, s.Now().Add(uncountedTime))
	}
	return count
}

// countOn is countOpen on one storage.
func (s *Store) countOn(ctx context.Context, storage *storagedrivers.Storage, u *Upload) (count openCount, err error) {
	opts := storagedrivers.ListOptions{Prefix: recordKey(u.Owner, ""), Limit: s.MaxOpen}
	for {
		page, err := storage.List(ctx, opts)
		if err != nil {
			return count, fmt.Errorf("counting resumable uploads: %w", err)
		}
		for _, record := range page.Objects {
			id, ok := idOfRecord(record.Key)
			if ok && slices.Contains(u.Record.Parts, id) {
				continue
			}
			count.all++
			if ok && ticketTag(id) == ticketTag(u.ID) {
				count.ofTicket++
			}
		}
		if opts.Cursor = page.Next; opts.Cursor == "" || count.all >= s.MaxOpen {
			return count, nil
		}
	}
}

// Find returns an upload of an owner in its present state. The error is ErrUnknown if there is
// none, or if it has expired.
func (s *Store) Find(ctx context.Context, owner, id string) (*Upload, error) {
	if !validID(id) {
		return nil, ErrUnknown
	}
	for _, storage := range s.Storages {
		if tag(storage.Name()) != storageTag(id) {
			continue
		}
		u := &Upload{ID: id, store: s, storage: storage, Record: Record{Owner: owner}}
		if err := u.Reload(ctx); !errors.Is(err, ErrUnknown) {
			return u, err
		}
	}
	return nil, ErrUnknown
}
