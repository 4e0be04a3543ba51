package resumable

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/aliases"
	"github.com/caddymedia/media/caddymedia/internal/upload"
	"github.com/caddymedia/media/storagedrivers"
)

// Upload is the state of an upload when it was found. It is for one goroutine.
type Upload struct {
	// ID of the upload, in lower-case letters and digits.
	ID string
	Record

	// Outcome of a finished upload; nil before.
	Outcome *Outcome

	store    *Store
	storage  *storagedrivers.Storage
	parts    []*Upload // of a final upload
	segments []storagedrivers.Info
	grown    bool      // the only segment is an object that grows
	offset   int64     // the end of the bytes
	changed  time.Time // of the last byte
}

// Storage returns the storage that holds the upload.
func (u *Upload) Storage() *storagedrivers.Storage { return u.storage }

// Offset returns the number of bytes that are stored. They survive a crash of this process. After
// [Upload.Append] they are as durable as the storage can make them.
func (u *Upload) Offset() int64 { return u.offset }

// Complete reports whether all bytes are stored. A final upload is complete if its parts are.
func (u *Upload) Complete() bool { return u.Length >= 0 && u.offset == u.Length }

// Expires returns when the upload, or its outcome, will be removed.
func (u *Upload) Expires() time.Time {
	if u.Outcome != nil {
		return u.Outcome.Finished.Add(u.store.Expires)
	}
	if u.Ticket == "" {
		return u.changed.Add(u.store.Expires)
	}
	expires := later(u.changed, u.TicketExpires).Add(ticketTime)
	if u.offset == 0 {
		expires = u.changed.Add(emptyTime)
	}
	if latest := u.changed.Add(u.store.Expires); latest.Before(expires) {
		return latest
	}
	return expires
}

const (
	// ticketTime is how long an upload that a ticket began is kept after the ticket and the last
	// byte.
	ticketTime = time.Hour
	// emptyTime is how long it is kept without any byte.
	emptyTime = 15 * time.Minute
)

// least returns the shortest time for which an upload is kept without a change.
func (s *Store) least(id string, offset int64) time.Duration {
	switch {
	case ticketTag(id) == tag(""):
		return s.Expires
	case offset == 0:
		return min(s.Expires, emptyTime)
	default:
		return min(s.Expires, ticketTime)
	}
}

// Changed returns the time of the last byte.
func (u *Upload) Changed() time.Time { return u.changed }

// Reload finds the present state of the upload. The error is ErrUnknown if it does not exist any
// more.
func (u *Upload) Reload(ctx context.Context) error {
	fresh, err := u.store.load(ctx, u.storage, recordKey(u.Owner, u.ID))
	switch {
	case errors.Is(err, ErrUnknown):
		return u.reloadOutcome(ctx)
	case err != nil:
		return err
	case fresh.Owner != u.Owner:
		return ErrUnknown
	}
	*u = *fresh
	return nil
}

// load returns the upload of a record. The error is ErrUnknown if it has ended or expired. An upload
// that a request of this process adds bytes to does not expire.
func (s *Store) load(ctx context.Context, storage *storagedrivers.Storage, key string) (*Upload, error) {
	id, ok := idOfRecord(key)
	if !ok {
		return nil, ErrUnknown
	}
	u := &Upload{ID: id, store: s, storage: storage}
	// Data is removed after its record. What was listed before the record was read is whole.
	data, err := u.listData(ctx)
	if err != nil {
		return nil, err
	}
	rec, err := get(ctx, storage, key, &u.Record)
	if err != nil {
		return nil, err
	}
	if rec.Key == "" {
		return nil, ErrUnknown
	}
	u.changed = u.Created
	if err := u.resolveParts(ctx); errors.Is(err, ErrParts) {
		return nil, ErrUnknown // it is being removed, after its parts
	} else if err != nil {
		return nil, err
	}
	if err := u.loadData(ctx, rec, data); err != nil {
		return nil, err
	}
	if s.Now().After(u.Expires()) && !writing.has(u.location()) {
		return nil, errExpired
	}
	return u, nil
}

// errExpired is the ErrUnknown of an upload that has expired.
var errExpired = fmt.Errorf("%w: expired", ErrUnknown)

func (u *Upload) reloadOutcome(ctx context.Context) error {
	var o Outcome
	info, err := get(ctx, u.storage, outcomeKey(u.ID), &o)
	if err != nil {
		return err
	}
	if info.Key == "" || o.Owner != u.Owner {
		return ErrUnknown
	}
	ended := &Upload{ID: u.ID, Record: o.Record, Outcome: &o, store: u.store, storage: u.storage, changed: o.Finished}
	if u.store.Now().After(ended.Expires()) {
		return ErrUnknown
	}
	if ended.Length >= 0 {
		ended.offset = ended.Length
	}
	*u = *ended
	return nil
}

// resolveParts finds the parts of a final upload.
func (u *Upload) resolveParts(ctx context.Context) error {
	if len(u.Record.Parts) == 0 {
		return nil
	}
	u.Length, u.offset = 0, 0
	found := map[string]*Upload{} // a part may occur more than once
	for _, id := range u.Record.Parts {
		part := found[id]
		if part == nil {
			var err error
			part, err = u.store.Find(ctx, u.Owner, id)
			if errors.Is(err, ErrUnknown) || err == nil && part.Outcome != nil {
				return ErrParts
			}
			if err != nil {
				return err
			}
			found[id] = part
		}
		u.parts = append(u.parts, part)
		u.Length += part.Length
		u.offset += part.offset
	}
	return nil
}

// listData returns the objects below the upload, in the order of their keys.
func (u *Upload) listData(ctx context.Context) ([]storagedrivers.Info, error) {
	var data []storagedrivers.Info
	for info, err := range u.storage.All(ctx, dataKey(u.ID, "")) {
		if err != nil {
			return nil, fmt.Errorf("finding the bytes of a resumable upload: %w", err)
		}
		data = append(data, info)
	}
	return data, nil
}

// loadData finds the segments and the length. Only differences to the time of the record
// count, because the clock of the storage, or its time zone, may be another one.
func (u *Upload) loadData(ctx context.Context, rec storagedrivers.Info, data []storagedrivers.Info) (err error) {
	for _, info := range data {
		if later := u.Created.Add(info.ModTime.Sub(rec.ModTime)); !rec.ModTime.IsZero() && later.After(u.changed) {
			u.changed = later
		}
		name := info.Key[len(dataKey(u.ID, "")):]
		switch name {
		case lengthName:
			err = u.loadLength(ctx)
		case grownName:
			u.setGrown(info)
		default:
			u.addSegment(name, info)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addSegment adds a segment that begins at the end of those before. The listing is sorted.
func (u *Upload) addSegment(name string, info storagedrivers.Info) {
	offset, err := strconv.ParseInt(name, 10, 64)
	if err != nil || offset != u.offset || info.Size == 0 {
		return
	}
	u.segments = append(u.segments, info)
	u.offset += info.Size
}

// setGrown sets the only segment to an object that grows. Beside segments, or empty, it has no bytes:
// a request that found segments, or could not append, has left it.
func (u *Upload) setGrown(info storagedrivers.Info) {
	if info.Size > 0 && (len(u.segments) == 0 || u.grown) {
		u.segments, u.offset, u.grown = []storagedrivers.Info{info}, info.Size, true
	}
}

func (u *Upload) loadLength(ctx context.Context) error {
	info, err := get(ctx, u.storage, dataKey(u.ID, lengthName), &u.Length)
	if err == nil && info.Key == "" {
		err = ErrUnknown
	}
	return err
}

// SetLength sets the length of an upload that was created without one. The error is ErrLength if it
// has another one.
func (u *Upload) SetLength(ctx context.Context, length int64) error {
	if u.Length == Unknown {
		err := put(ctx, u.storage, dataKey(u.ID, lengthName), length)
		if err == nil {
			u.Length = length
			return nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("storing the length of a resumable upload: %w", err)
		}
		if err := u.loadLength(ctx); err != nil {
			return err
		}
	}
	if u.Length != length {
		return ErrLength
	}
	return nil
}

// source returns the bytes of a complete upload for the uploader. They are not moved if the storage
// can adopt them. The caller must call done.
func (u *Upload) source(ctx context.Context) (src upload.Source, done func(), err error) {
	staged, err := u.adopt(ctx)
	switch {
	case err == nil:
		return upload.Staged(u.Filename, u.storage, staged, u.Length), func() {}, nil
	case !errors.Is(err, errors.ErrUnsupported):
		return nil, nil, err
	}
	content := &content{ctx: ctx, left: u.pieces(), missing: u.Length}
	return upload.Single(u.Filename, content), func() { _ = content.Close() }, nil
}

// adopt returns the bytes of a complete upload as staged data of its storage, which the caller must
// close. Committing it moves no bytes. The error matches [errors.ErrUnsupported] if the storage
// cannot do that, or if an earlier attempt has committed the bytes.
func (u *Upload) adopt(ctx context.Context) (storagedrivers.Staged, error) {
	if !u.grown {
		return nil, errors.ErrUnsupported
	}
	object, err := u.storage.Append(ctx, dataKey(u.ID, grownName), u.Length)
	if errors.Is(err, fs.ErrExist) {
		err = errors.Join(errors.ErrUnsupported, err)
	}
	if err != nil {
		return nil, err
	}
	staged, err := object.Adopt(ctx)
	if err != nil {
		return nil, errors.Join(err, object.Close())
	}
	return staged, nil
}

// piece is a segment with its storage; parts may be on another one.
type piece struct {
	storage *storagedrivers.Storage
	info    storagedrivers.Info
}

func (u *Upload) pieces() []piece {
	var all []piece
	for _, part := range u.parts {
		all = append(all, part.pieces()...)
	}
	for _, info := range u.segments {
		all = append(all, piece{u.storage, info})
	}
	return all
}

// content reads one piece after the other. Its errors are *[aliases.Failure]s.
type content struct {
	ctx     context.Context //nolint:containedctx // of all reads, as in storagedrivers.Object
	left    []piece
	open    *storagedrivers.Object
	missing int64 // bytes
}

func (c *content) Read(p []byte) (int, error) {
	n, err := c.read(p)
	switch {
	case errors.Is(err, fs.ErrNotExist): // the upload, or a part of it, was removed meanwhile
		err = failuresOf(ErrUnknown)[0]
	case err != nil && err != io.EOF: //nolint:errorlint // the end is io.EOF itself
		err = aliases.StorageFailure(err)
	}
	return n, err
}

func (c *content) read(p []byte) (int, error) {
	for {
		if c.open == nil {
			if err := c.next(); err != nil {
				return 0, err
			}
		}
		n, err := c.open.Read(p)
		c.missing -= int64(n)
		if errors.Is(err, io.EOF) {
			err = c.Close()
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

// next opens the next piece. The error is io.EOF after the last one.
func (c *content) next() error {
	if len(c.left) == 0 {
		if c.missing != 0 {
			return fmt.Errorf("%d bytes of a resumable upload are missing: %w", c.missing, io.ErrUnexpectedEOF)
		}
		return io.EOF
	}
	next := c.left[0]
	open, err := next.storage.OpenSeeker(c.ctx, next.info.Key)
	if err != nil {
		return err
	}
	if open.Info.Size != next.info.Size {
		return errors.Join(fmt.Errorf("segment %s has changed: %w", next.info.Key, fs.ErrNotExist), open.Close())
	}
	c.left, c.open = c.left[1:], open
	return nil
}

// Close closes the piece that is open.
func (c *content) Close() error {
	if c.open == nil {
		return nil
	}
	open := c.open
	c.open = nil
	return open.Close()
}
