package op

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/resumable"
	"github.com/caddymedia/media/caddymedia/internal/core/upload"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/guard"
)

// NewRecord returns the record of an upload of the caller, without its destination.
func (p *Permit) NewRecord(kind item.Kind) resumable.Record {
	rec := resumable.Record{
		Owner: p.Actor.Owner(), Origin: string(p.Actor.Origin), Account: p.Actor.Account, User: p.Actor.User, Client: p.Actor.Client,
		Scope: p.Scope(), Kind: kind.Name(), Length: resumable.Unknown,
	}
	if ticket := p.Ticket; ticket != nil {
		rec.Ticket, rec.TicketExpires = p.Actor.Ticket, ticket.Expires
	}
	return rec
}

// ErrNoUploads is the failure of a request about held uploads where resumable ones are off.
var ErrNoUploads = item.Failf(item.BadRequest, "nothing can be held: resumable uploads are off")

// HoldOf returns for how long the files of a request are held, given the values that it has sent; 0
// if they are stored at once. A ticket, or the account of users, may force it.
func (p *Permit) HoldOf(sent ...string) (hold time.Duration, failure *item.Failure) {
	forced := p.Account.Hold
	if p.Ticket != nil {
		forced = p.Ticket.Hold
	}
	value := ""
	for _, one := range sent {
		if value != "" && one != "" {
			return 0, item.Failf(item.BadRequest, "hold is sent twice")
		}
		value = cmp.Or(value, one)
	}
	if hold = forced; value != "" {
		if hold, failure = SecondsOfHold(value); failure != nil {
			return 0, failure
		}
	}
	switch {
	case hold != forced && (p.Ticket != nil || forced > 0):
		return 0, item.Failf(item.BadRequest, "the ticket or the account has another hold: leave out hold")
	case hold > 0 && p.Service.Uploads() == nil:
		return 0, ErrNoUploads
	}
	return hold, nil
}

// SecondsOfHold returns the time that a request sends as hold, in seconds.
func SecondsOfHold(sent string) (time.Duration, *item.Failure) {
	seconds, err := strconv.ParseUint(sent, 10, 32)
	hold := time.Duration(seconds) * time.Second
	if err != nil || hold < resumable.MinHold || hold > resumable.MaxHold {
		return 0, item.Failf(item.BadRequest, "hold is a whole number of seconds from %d to %d",
			resumable.MinHold/time.Second, resumable.MaxHold/time.Second)
	}
	return hold, nil
}

// Holding returns the [upload.Upload.Hold] of a request, given the values of hold in its address.
// The caller needs one of the rights also right before its files are held. Then held gets the
// uploads, in the order of the files.
func (p *Permit) Holding(
	kind item.Kind, rights []access.Right, sent []string, held *[]*resumable.Upload,
) func(field string) (upload.Holder, *item.Failure) {
	return func(field string) (upload.Holder, *item.Failure) {
		hold, failure := p.HoldOf(append(sent, field)...)
		if failure != nil || hold == 0 {
			return nil, failure
		}
		return func(ctx context.Context, files []upload.Checked) (err error) {
			rec := p.NewRecord(kind)
			rec.Hold = hold
			*held, err = p.hold(ctx, rec, rights, files)
			return err
		}, nil
	}
}

// heldAtOnce is how many files of a request become uploads at the same time.
const heldAtOnce = 4

// hold holds files as uploads of a record, all or none.
func (p *Permit) hold(
	ctx context.Context, rec resumable.Record, rights []access.Right, files []upload.Checked,
) ([]*resumable.Upload, error) {
	kind, alias := rec.ItemKind(), files[0].Alias
	now, running, release, failure := p.Again(ctx, kind, rights, alias)
	if failure != nil {
		return nil, failure
	}
	defer release()
	store := running.Uploads()
	if store == nil {
		return nil, ErrNoUploads
	}
	if failure := p.Keep(ctx, alias); failure != nil {
		return nil, failure
	}
	held := make([]*resumable.Upload, len(files))
	err := errors.Join(guard.Each(len(files), heldAtOnce, func(i int) (err error) {
		c := resumable.Creation{Record: rec}
		c.Alias, c.SubFolder, c.Filename = alias, files[i].SubFolder, files[i].Name
		if now.Ticket != nil {
			c.Files = now.Ticket.MaxUnfinished()
		}
		if p.Attempt != nil {
			c.Began, c.Same = p.Attempt.Began, fmt.Sprint(p.Attempt.ID, " ", i)
		}
		held[i], err = store.HoldFile(ctx, running.UploadStorage(kind, alias), c, files[i], resumable.Rights{Issuer: running.Issuer(), Ticket: now.Ticket},
			func() (func(), error) { return running.ReserveFile(p.Actor) })
		return err
	})...)
	if err == nil {
		return held, nil
	}
	for _, u := range held {
		if u != nil && u.Held != nil && !storagedrivers.LeaseLost(ctx) { // or they may be those of another attempt
			u.Drop(ctx, nil) // without a claim: a repetition of the request may hold it again
		}
	}
	if errors.Is(err, resumable.ErrTooMany) {
		return nil, &item.Failure{Reason: item.Busy, Message: "the account, ticket or client has too many unfinished uploads, try again later", Err: resumable.ErrTooMany}
	}
	return nil, err
}

// Keeping is a request to store held uploads.
type Keeping struct {
	Alias *item.Alias
	// Held are the IDs of the uploads, in their order.
	Held []string
	// SubFolder and, for one upload, Filename take the place of those of the uploads; empty for none.
	SubFolder, Filename string
	BaseURL             string
}

// KeepHeld stores held uploads, all or none; see [resumable.Store.Keep].
func (p *Permit) KeepHeld(ctx context.Context, k Keeping) ([]upload.Item, item.Failures) {
	store := p.Service.Uploads()
	failure := p.NeedOne(access.Upload)
	switch {
	case failure != nil:
	case store == nil:
		failure = ErrNoUploads
	case k.SubFolder != "" && !p.Account.Covers(k.SubFolder):
		failure = item.Failf(item.Missing, upload.NoFolder)
	default:
		failure = p.Keep(ctx, k.Alias.Name)
	}
	if failure != nil {
		return nil, item.Failures{failure}
	}
	rec := p.NewRecord(k.Alias.Kind)
	rec.Alias, rec.SubFolder, rec.Filename, rec.Parts = k.Alias.Name, k.SubFolder, k.Filename, k.Held
	kept, failures := store.Keep(ctx, rec, resumable.Finishing{
		BaseURL: k.BaseURL,
		Authorize: func(ctx context.Context, u *resumable.Upload, _ bool) (resumable.Rights, *item.Failure) {
			return p.Rights(ctx, k.Alias.Kind, []access.Right{access.Upload}, u)
		},
	})
	if failures != nil {
		return nil, failures
	}
	items := make([]upload.Item, len(kept))
	for i, u := range kept {
		items[i], _ = p.Service.ItemOf(u, k.BaseURL) // it is stored
		if items[i].Facts == nil {
			items[i].Facts = p.Service.FactsOf(ctx, u, k.BaseURL)
		}
	}
	return items, nil
}
