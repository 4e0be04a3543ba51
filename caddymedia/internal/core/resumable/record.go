package resumable

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
)

// Unknown is the length of an upload whose client will send it later.
const Unknown = -1

// Form is what an upload is, and what becomes of it.
type Form string

// The forms.
const (
	// Single becomes an item.
	Single Form = ""
	// Partial is a piece of final uploads.
	Partial Form = "partial"
	// Final becomes an item of the bytes of partial uploads.
	Final Form = "final"
	// Multipart has no bytes, but parts.
	Multipart Form = "multipart"
	// Part is a part of a multipart upload.
	Part Form = "part"
	// Completion becomes an item of the bytes of parts. It has the filename of SubFolder and Filename,
	// and no other.
	Completion Form = "completion"
	// Keep becomes the items of held uploads, its parts: all of them, or none.
	Keep Form = "keep"
)

// HasItem reports whether an upload of the form becomes an item, or items.
func (f Form) HasItem() bool { return f == Single || f.hasParts() }

// hasParts reports whether an upload of the form consists of others.
func (f Form) hasParts() bool { return f == Keep || f.piece() != Single }

// piece returns the form of the uploads whose bytes one of this form joins; Single if it joins
// none.
func (f Form) piece() Form {
	switch f {
	case Final:
		return Partial
	case Completion:
		return Part
	default:
		return Single
	}
}

// version is that of the records that this package writes, and the only one that it reads: an
// upload of another one has ended.
const version = 1

// Record has the facts of an upload that are known at its creation.
type Record struct {
	// Version of the record.
	Version int `json:"version"`
	// Form of the upload.
	Form Form `json:"form,omitempty"`
	// Owner may continue the upload. It is an account with its origin.
	Owner string `json:"owner"`
	// Origin, Account, User and Client are those of the creation.
	Origin  string `json:"origin,omitempty"`
	Account string `json:"account,omitempty"`
	User    string `json:"user,omitempty"`
	Client  string `json:"client,omitempty"`
	// Scope has the rights of the caller who created it.
	Scope access.Scope `json:"scope,omitzero"`
	// Ticket is the hexadecimal ID of the ticket that created it; empty for a token.
	Ticket string `json:"ticket,omitempty"`
	// TicketExpires is when that ticket expires.
	TicketExpires time.Time `json:"ticket_expires,omitzero"`
	// Address is the hexadecimal ID of the presigned address that created it; empty for none. The
	// upload shares what is bounded as one of a ticket does, but no item of it is counted.
	Address string `json:"address,omitempty"`

	// Kind, Alias, SubFolder and Filename are the destination of the item, as submitted.
	Kind      string `json:"kind"`
	Alias     string `json:"alias,omitempty"`
	SubFolder string `json:"sub_folder,omitempty"`
	Filename  string `json:"filename,omitempty"`
	// Metadata is the header Upload-Metadata as received, or the algorithm of the checksums of a
	// multipart upload.
	Metadata string `json:"metadata,omitempty"`

	// Length in bytes, or [Unknown].
	Length int64 `json:"length"`
	// Parts are the IDs of the uploads whose bytes one of the form Final or Completion joins.
	Parts []string `json:"parts,omitempty"`
	// Concat is the header Upload-Concat of a final upload as received.
	Concat string `json:"concat,omitempty"`

	// Multipart is the ID of the multipart upload that the upload is a part of, or completes. Number
	// is that of the part.
	Multipart string `json:"multipart,omitempty"`
	Number    int    `json:"number,omitempty"`

	// Hold is how long the upload is held once it is complete and has passed the checks. Only its
	// [Store.Keep] stores the item. 0 is for one that is stored at once.
	Hold time.Duration `json:"hold,omitempty"`

	// Created is when the upload was created.
	Created time.Time `json:"created"`
}

// ItemKind returns the kind of the item.
func (r *Record) ItemKind() item.Kind {
	kind, _ := item.KindOf(r.Kind) // only known ones are recorded
	return kind
}

// actor returns the creator of the upload.
func (r *Record) actor() item.Actor {
	return item.Actor{Origin: item.Origin(r.Origin), Account: r.Account, User: r.User, Client: r.Client, Ticket: r.credential()}
}

// TicketID returns the ID of the ticket that created the upload; zero for a token.
func (r *Record) TicketID() (id access.ID) {
	raw, _ := hex.DecodeString(r.Ticket)
	copy(id[:], raw)
	return id
}

// Outcome is the end of an upload.
type Outcome struct {
	Record
	// Finished is when the upload ended.
	Finished time.Time `json:"finished"`
	// Stored is the filename of the item; empty if it was refused.
	Stored string `json:"stored,omitempty"`
	// Variant means that the item has one.
	Variant bool `json:"variant,omitempty"`
	// Renditions are the names of those that the item has.
	Renditions []string `json:"renditions,omitempty"`
	// Trash is the ID of the item that it has replaced in the trash; empty for none.
	Trash string `json:"trash,omitempty"`
	// Refused is why an item was refused; empty if it was stored.
	Refused string `json:"refused,omitempty"`
	// Kept is the ID of the upload that has stored a held one, and Until is when the latter would have
	// ended; zero for others.
	Kept  string    `json:"kept,omitempty"`
	Until time.Time `json:"until,omitzero"`
}

// Event is the creation or an end of an upload.
type Event string

// The events of an upload. One that is a part of others ends with these, without an event.
const (
	Created    Event = "created"
	Finished   Event = "finished"   // its item is stored
	Refused    Event = "refused"    // its item is refused
	Terminated Event = "terminated" // on request
	Expired    Event = "expired"    // without its last byte
)

// Events returns all events of an upload.
func Events() []Event { return []Event{Created, Finished, Refused, Terminated, Expired} }

func (s *Store) observe(rec *Record, event Event) {
	if s.Observe != nil && rec.Kind != "" && rec.Form != Keep {
		s.Observe(rec.ItemKind(), event)
	}
}

// maxOutcome is the largest encoded Outcome in bytes.
const maxOutcome = 4 << 10

// encode returns the outcome as JSON. That of a refused item has nothing that a client has sent but
// the reason. One that is too large loses what is needed least.
func (o *Outcome) encode() ([]byte, error) {
	small := *o
	small.Client = ""
	if o.Refused != "" {
		small.Metadata, small.Concat, small.Parts, small.SubFolder, small.Filename = "", "", nil, "", ""
	}
	for _, leave := range []func(){
		func() {},
		func() { small.Metadata, small.Concat, small.Parts = "", "", nil },
		func() {
			small.Refused, small.Filename, small.SubFolder = small.Refused[:min(len(small.Refused), 200)], "", ""
		},
		func() { small.Account, small.User, small.Origin, small.Ticket, small.Renditions = "", "", "", "", nil },
	} {
		leave()
		if b, err := encode(&small); err != nil || len(b) <= maxOutcome {
			return b, err
		}
	}
	return nil, fmt.Errorf("the outcome of a resumable upload is larger than %d bytes", maxOutcome)
}

// put stores the outcome of u. The error is fs.ErrExist if there is one.
func (o *Outcome) put(ctx context.Context, u *Upload) error {
	b, err := o.encode()
	if err != nil {
		return err
	}
	return putBytes(ctx, u.storage, outcomeKey(u.ID)+endText(o.Until), b)
}

// encode returns v as short JSON.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// put creates an object with v as JSON. The error is fs.ErrExist if the key exists.
func put(ctx context.Context, storage *storagedrivers.Storage, key string, v any) error {
	b, err := encode(v)
	if err != nil {
		return err
	}
	return putBytes(ctx, storage, key, b)
}

func putBytes(ctx context.Context, storage *storagedrivers.Storage, key string, b []byte) error {
	_, err := storage.Put(ctx, key, bytes.NewReader(b), storagedrivers.PutOptions{Mode: storagedrivers.CreateOnly})
	return err
}

// maxSmall is the largest object of this package that is read into memory, in bytes.
const maxSmall = 1 << 20

// read returns the bytes of a small object. A missing one is fs.ErrNotExist.
func read(ctx context.Context, storage *storagedrivers.Storage, key string) (b []byte, info storagedrivers.Info, err error) {
	r, info, err := storage.Open(ctx, key, storagedrivers.Range{})
	if err != nil {
		return nil, info, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	b, err = io.ReadAll(io.LimitReader(r, maxSmall))
	if err == nil && int64(len(b)) != info.Size {
		err = fmt.Errorf("reading %s: %d of %d bytes", key, len(b), info.Size)
	}
	return b, info, err
}

// get decodes the small object under key. Without one, the Info is zero. The error is ErrUnknown if
// it cannot be decoded: a file system has lost its bytes.
func get(ctx context.Context, storage *storagedrivers.Storage, key string, v any) (info storagedrivers.Info, err error) {
	b, info, err := read(ctx, storage, key)
	if errors.Is(err, fs.ErrNotExist) {
		return storagedrivers.Info{}, nil
	}
	if err != nil {
		return storagedrivers.Info{}, fmt.Errorf("reading the state of a resumable upload: %w", err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		return storagedrivers.Info{}, fmt.Errorf("%w: reading its state: %w", ErrUnknown, err)
	}
	return info, nil
}
