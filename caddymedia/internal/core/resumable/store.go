// Package resumable keeps the state of resumable uploads as objects of a storage, so that any
// process that shares the storage can continue any upload. It knows no protocol, which is that of
// package tus, and no credentials. Begin with [Store] and the file finish.go. The storage decides
// all races: every object is created once and never replaced, and bytes are only ever added at
// their end.
//
// All keys are below [Folder]:
//
//	open/<owner>.<id>            the record of an unfinished upload
//	data/<c>/<id>.bytes          its bytes, a [storagedrivers.Growing]; c is a character of the ID
//	data/<c>/<id>.length         its length, if that was not known at its creation; of a part with
//	                             its checksums
//	data/<c>/<id>.held           what is known of an upload that is held
//	data/<c>/<id>.kept           the ID of the upload that keeps, or has ended, a held one
//	done/<day>/<id>              the outcome of a finished upload; the ID begins with the day. That
//	                             of a held one has its end behind the ID
//
// An upload exists as long as its record. Bytes without a record, and a record whose upload has
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

	"github.com/caddymedia/media/caddymedia/internal/core/upload"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/internal/leaf/naming"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/queue"
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
	// ErrTooMany means that the owner, the ticket or its client has too many unfinished uploads, or
	// too many bytes in them.
	ErrTooMany = errors.New("too many unfinished uploads")
	// ErrParts means that a part of a final upload is missing, incomplete or no partial upload.
	ErrParts = errors.New("a part cannot be used")
	// ErrSmall means that a part of a final upload is smaller than it may be.
	ErrSmall = errors.New("a part is too small")
	// ErrRepeated means that parts of a final upload are repeated too often.
	ErrRepeated = errors.New("parts are repeated too often")
	// ErrScope means an upload, or a part of one, outside of the scope of the caller.
	ErrScope = errors.New("another scope")
	// ErrPieces means that the upload came in too many small pieces.
	ErrPieces = errors.New("too many pieces")
)

// Store holds the resumable uploads of a service. It is safe for concurrent use.
type Store struct {
	// Uploader checks and stores the items of finished uploads, and Issuer counts them on tickets.
	Uploader *upload.Uploader
	Issuer   *access.Issuer
	// Storages that may hold uploads.
	Storages []*storagedrivers.Storage
	// Expires is how long an upload is kept after its last byte.
	Expires time.Duration
	// MaxOpen is the largest number of unfinished uploads of an owner, and MaxBytes the largest sum
	// of their lengths. Callers with tickets share nine tenths of them.
	MaxOpen  int
	MaxBytes int64
	// Now is the clock.
	Now func() time.Time
	// Observe, if set, is called for each event of an upload of a kind.
	Observe func(kind item.Kind, event Event)
	// Opened, if set, is called after an upload was created on a storage.
	Opened func(storage *storagedrivers.Storage)
	// Received, if set, is called after a request that added bytes to an upload of a kind. resumed
	// means that the upload had some before.
	Received func(kind item.Kind, bytes int64, resumed bool)
	// Active are the requests at work on uploads.
	Active *Active
	// Log receives the errors of removals, which are repeated by [Store.Sweep].
	Log *slog.Logger

	slow sync.Map // *storagedrivers.Storage to the time until which it is not counted
}

// Creation describes a new upload.
type Creation struct {
	Record
	// Admit, if set, is called with the length before anything is stored; its error refuses the
	// upload.
	Admit func(length int64) error
	// Verify, if set, is called with the parts of a new final upload; its error refuses the upload.
	Verify func(parts []*Upload) error
	// Files is how many more items the ticket may store, if there is one.
	Files int
	// Limit is the largest length of an upload of [Unknown] length, which counts as that long.
	Limit int64
	// Least is the least length of each part but the last.
	Least int64
	// Same, if set, identifies the upload with Began, when the first attempt at its request began: one
	// that exists is returned.
	Same  string
	Began time.Time
}

// Create creates an upload on storage, one of [Store.Storages]. If it has parts, Create returns an
// upload that exists with the same owner, parts and metadata; it may be finished. The error is
// ErrParts or ErrRepeated if a part cannot be used, and ErrScope if the scope of c does not cover
// that of a part or of the upload that exists.
func (s *Store) Create(ctx context.Context, storage *storagedrivers.Storage, c Creation) (*Upload, error) {
	u := &Upload{Record: c.Record, store: s, storage: storage}
	u.Version = version
	size := c.Length
	if size == Unknown {
		size = c.Limit
	}
	u.Created = s.Now().UTC().Truncate(time.Second)
	if c.Form.hasParts() {
		found, err := s.findFinal(ctx, u, c.Least)
		if found != nil || err != nil {
			return found, err
		}
		size = 0 // that of its parts
	} else if u.ID = newID(u.Created, &u.Record, size, storage.Name()); c.Form == Part {
		u.ID = partID(c.Multipart, c.Number, u.ID)
	} else if c.Same != "" {
		u.ID = sameID(u.ID, c.Began, c.Same)
	}
	if c.Admit != nil {
		if err := c.Admit(u.Length); err != nil {
			return nil, err
		}
	}
	if c.Verify != nil {
		if err := c.Verify(u.parts); err != nil {
			return nil, err
		}
	}
	if c.Form != Completion { // which ends the uploads that are counted
		open, err := s.countOpen(ctx, storage, u)
		if err != nil {
			return nil, err
		}
		if !s.hasRoom(&open, &c, size) {
			return nil, ErrTooMany
		}
	}
	u.bytes, u.late, u.changed = newBytes(u), u.Length == Unknown, u.Created
	err := put(ctx, storage, recordKey(u.Owner, u.ID), &u.Record)
	if errors.Is(err, fs.ErrExist) { // the same upload, created meanwhile or by an earlier attempt
		return s.findCovered(ctx, u)
	}
	if err != nil {
		return nil, fmt.Errorf("creating a resumable upload: %w", err)
	}
	s.observe(&u.Record, Created)
	if s.Opened != nil {
		s.Opened(storage)
	}
	return u, nil
}

// findFinal returns the final upload of the record of u if it exists. Otherwise it finds the parts
// of u.
func (s *Store) findFinal(ctx context.Context, u *Upload, least int64) (*Upload, error) {
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
	pieces, distinct := 0, int64(0)
	for i, part := range u.parts {
		if slices.Index(u.parts, part) == i {
			distinct += part.Length
		}
		switch {
		case !u.Scope.Covers(part.Scope):
			return nil, ErrScope
		case part.Form != u.Form.piece(), part.Kind != u.Kind, !part.Complete():
			return nil, ErrParts
		case part.Length < least && i < len(u.parts)-1:
			return nil, ErrSmall
		}
		pieces += part.bytes.Pieces()
	}
	if u.Length > maxRepeat*distinct {
		return nil, ErrRepeated
	}
	if tooMany(pieces, u.Length) {
		return nil, ErrPieces
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

const (
	// maxRepeat is how many times as long as its distinct parts a final upload may be.
	maxRepeat = 2
	// TicketParts is how many unfinished uploads, and requests that add bytes to them, a ticket may
	// have beside one for each item: parts.
	TicketParts = 8
)

// openCount counts the unfinished uploads of an owner and the sum of their lengths. A multipart
// upload is one with its parts, and parts of one number are one.
type openCount struct {
	uploads, bytes queue.Held
	last           string // the group of the last ID
	group          string // that of the multipart upload of a part; empty for others
	numbers        int    // of the group, but for that of a new part
	number         string // the last one of them
}

// hasRoom reports whether an upload of size bytes may be created, by the rule of [queue.HasRoom]. A
// final upload takes the room of its parts.
func (s *Store) hasRoom(open *openCount, c *Creation, size int64) bool {
	if c.Form.hasParts() {
		open.uploads, open.bytes = queue.Held{Owner: open.uploads.Owner}, queue.Held{}
	}
	party := c.party()
	if !queue.HasRoom(party, s.MaxBytes, open.bytes, size) {
		return false
	}
	if party.Ticket != "" {
		party.Most = int64(c.Files + TicketParts)
	}
	if open.group != "" { // it is counted already
		return open.numbers < maxGroup && open.uploads.Owner <= int64(s.MaxOpen)
	}
	return queue.HasRoom(party, int64(s.MaxOpen), open.uploads, 1)
}

// countOpen counts the unfinished uploads of the owner of u, and those of its ticket and its
// client, without u, which an earlier attempt may have created, and its parts: they end with it. It
// may end at MaxOpen. It leaves out storages that fail or are slow, except the given one. Storages
// with one location have the same uploads.
func (s *Store) countOpen(ctx context.Context, storage *storagedrivers.Storage, u *Upload) (count openCount, err error) {
	if u.Multipart != "" {
		count.group = group(u.Multipart)
	}
	err = s.countOn(ctx, storage, u, &count)
	counted := map[storagedrivers.Location]bool{storage.Location(): true}
	for _, other := range s.Storages {
		if err != nil || count.uploads.Owner >= int64(s.MaxOpen) || counted[other.Location()] {
			continue
		}
		counted[other.Location()] = true
		s.countOther(ctx, other, u, &count)
	}
	return count, err
}

// countOther is countOn for a storage that a new upload does not need.
func (s *Store) countOther(ctx context.Context, storage *storagedrivers.Storage, u *Upload, count *openCount) {
	if until, ok := s.slow.Load(storage); ok && s.Now().Before(until.(time.Time)) { //nolint:forcetypeassert // the map holds nothing else
		return
	}
	ctx, cancel := context.WithTimeout(ctx, countTime)
	defer cancel()
	if err := s.countOn(ctx, storage, u, count); err != nil {
		s.slow.Store(storage, s.Now().Add(uncountedTime))
	}
}

// countOn adds the uploads of one storage to count.
func (s *Store) countOn(ctx context.Context, storage *storagedrivers.Storage, u *Upload, count *openCount) error {
	opts := storagedrivers.ListOptions{Prefix: recordKey(u.Owner, ""), Limit: s.MaxOpen}
	if count.group != "" { // which may have more parts
		opts.Limit = 0
	}
	for {
		page, err := storage.List(ctx, opts)
		if err != nil {
			return fmt.Errorf("counting resumable uploads: %w", err)
		}
		for _, record := range page.Objects {
			if id, ok := idOfRecord(record.Key); ok && id != u.ID && !slices.Contains(u.Record.Parts, id) {
				count.add(id, u.ID)
			}
		}
		if opts.Cursor = page.Next; opts.Cursor == "" || count.uploads.Owner >= int64(s.MaxOpen) && count.group == "" {
			return nil
		}
	}
}

// add counts the upload of id for a new one.
func (c *openCount) add(id, created string) {
	count := func(held *queue.Held, n int64) {
		held.Owner += n
		if clientTag(id) == clientTag(created) {
			held.Client += n
		}
		if networkTag(id) == networkTag(created) {
			held.Network += n
		}
		if ticketTag(id) == ticketTag(created) {
			held.Ticket += n
		}
	}
	count(&c.bytes, sizeOf(id))
	switch group(id) {
	case c.group:
		if number := numberText(id); number != c.number && number != numberText(created) {
			c.numbers, c.number = c.numbers+1, number
		}
	case c.last:
	default:
		c.last = group(id)
		count(&c.uploads, 1)
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
