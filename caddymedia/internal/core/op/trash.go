package op

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"

	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/core/upload"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/guard"
)

// Failures of the trash.
var (
	errNoTrash = item.Failf(item.Conflict, "the alias has no trash")
	errNotKept = item.Failf(item.Missing, "there is no such item in the trash")
	errNoID    = item.Failf(item.BadRequest, "the ID is not one of an item in the trash")
)

// needTrash returns the failure of a caller who may not use the trash of an alias by one of the
// rights; nil if it may. Tickets are for uploads.
func (p *Permit) needTrash(alias *item.Alias, right access.Right) *item.Failure {
	failure := p.NeedOne(right)
	if failure == nil && p.Ticket != nil {
		failure = item.Failf(item.Forbidden, "a ticket is no permission for the trash")
	}
	if failure == nil && alias.Trash == 0 {
		failure = errNoTrash
	}
	return failure
}

// ListTrash returns a page of what is in the trash; see [service.Service.ListTrash].
func (p *Permit) ListTrash(ctx context.Context, query service.TrashQuery) (page service.TrashPage, err error) {
	failure := p.needTrash(query.Alias, access.Restore)
	if failure == nil && !p.Account.Covers(cmp.Or(query.Filename, query.Folder)) {
		failure = ErrNoFolder
	}
	if failure != nil {
		return page, failure
	}
	return p.Service.ListTrash(ctx, query)
}

// kept returns an entry of the trash by its ID, unless that has ended or is not the caller's. An
// invalid ID is BadRequest.
func (p *Permit) kept(alias *item.Alias, id string) (item.Kept, *item.Failure) {
	kept, ok := item.KeptOf(id)
	switch {
	case !ok || storagedrivers.ValidKey(alias.TrashKey(kept)) != nil:
		return kept, errNoID
	case alias.HasEnded(kept, p.Service.Uploader().Now()), !p.MayBeItem(alias, kept.Filename):
		return kept, errNotKept
	}
	return kept, nil
}

// Kept returns an entry of the trash by its ID, which may have no object.
func (p *Permit) Kept(alias *item.Alias, id string) (item.Kept, *item.Failure) {
	if failure := p.needTrash(alias, access.Restore); failure != nil {
		return item.Kept{}, failure
	}
	return p.kept(alias, id)
}

// Restoration is a request to bring back what is in the trash.
type Restoration struct {
	Alias *item.Alias
	IDs   []string
	// Rename gives an item whose name is taken another one under Append Time, and Replace replaces the
	// item that has the name under Overwrite. Otherwise it is a failure.
	Rename, Replace bool
	// AsItWas brings items back as they were, whatever the present rules of the alias.
	AsItWas bool
	BaseURL string
}

// Restored is what became of an entry. Item is set unless there is a Failure.
type Restored struct {
	Item    upload.Item
	Failure *item.Failure
}

// Restore brings items back, with all checks of an upload. The entries stay. Those of one item come
// back in their order, so that the last one remains. The outcomes are in the order of the IDs; or
// all of the request fails.
func (p *Permit) Restore(ctx context.Context, r Restoration) ([]Restored, *item.Failure) {
	rights := []access.Right{access.Restore}
	failure := p.needTrash(r.Alias, access.Restore)
	if failure == nil {
		failure = p.begin(ctx, r.Alias, rights)
	}
	if failure != nil {
		p.reportUnrestored(ctx, r.Alias, "", failure)
		return nil, failure
	}
	outcomes, same := make([]Restored, len(r.IDs)), map[string][]int{}
	for i, id := range r.IDs {
		kept, _ := item.KeptOf(id) // one that is none has no filename
		same[kept.Filename] = append(same[kept.Filename], i)
	}
	group := guard.NewGroup(atOnce)
	for _, indexes := range same {
		group.Go(func() error {
			for _, i := range indexes {
				err := guard.Call(func() error {
					outcomes[i].Item, outcomes[i].Failure = p.restore(ctx, r, r.IDs[i])
					return nil
				})
				if err != nil {
					outcomes[i].Failure = item.OperationFailure("restore the item", err)
				}
			}
			return nil
		})
	}
	_ = group.Wait() // the outcomes have the failures
	for _, outcome := range outcomes {
		if outcome.Failure != nil {
			p.leaveOpen(ctx, outcome.Failure)
		}
	}
	return outcomes, nil
}

func (p *Permit) restore(ctx context.Context, r Restoration, id string) (restored upload.Item, failure *item.Failure) {
	kept, failure := p.kept(r.Alias, id)
	if failure == nil && ctx.Err() != nil {
		failure = item.OperationFailure("", ctx.Err())
	}
	if failure != nil {
		p.reportUnrestored(ctx, r.Alias, id, failure)
		return restored, failure
	}
	return p.bringBack(ctx, upload.Transfer{
		Request: p.Request(r.Alias.Kind, r.Alias.Name, r.BaseURL, nil),
		Exact:   !r.Rename || r.Alias.Overwrite, Same: true, New: !r.Replace && r.Alias.Overwrite, AsItWas: r.AsItWas,
	}, r.Alias, kept)
}

// bringBack copies an entry of the trash to its alias.
func (p *Permit) bringBack(
	ctx context.Context, transfer upload.Transfer, alias *item.Alias, kept item.Kept,
) (restored upload.Item, failure *item.Failure) {
	transfer.From, transfer.Filename = alias.InTrash(kept)
	transfer.To, transfer.Copy, transfer.Restores = kept.Filename, true, true
	if again := transfer.Repetition; again != nil { // each entry is a request of its own
		transfer.Repetition = &upload.Repetition{ID: again.ID + kept.Name(), Began: again.Began, Again: again.Again}
	}
	transfer.Confirm = func(ctx context.Context, c upload.Commitment) (func(upload.Outcome), *item.Failure) {
		_, failure := p.CheckAgain(ctx, alias.Kind, []access.Right{access.Restore}, c.Alias)
		return nil, failure
	}
	items, failures := p.Service.Uploader().Transfer(ctx, transfer)
	if failures != nil {
		if failure = failures[0]; failure.Reason == item.Missing {
			failure = errNotKept
		}
		return restored, failure
	}
	return items[0], nil
}

// reportUnrestored reports an entry that is not brought back, or a whole request.
func (p *Permit) reportUnrestored(ctx context.Context, alias *item.Alias, id string, failure *item.Failure) {
	failed := *failure
	failed.Filename = id
	p.Service.Observer().Refused(ctx, upload.Operation{
		Kind: alias.Kind, Alias: alias.Name, Actor: p.Actor, Transfer: &upload.Transfer{Filename: id, Copy: true, Restores: true},
	}, item.Failures{&failed})
}

// Purge removes entries of the trash for good. It returns the failures in the order of the IDs, nil
// for an entry that was removed; or the failure of the whole request.
func (p *Permit) Purge(ctx context.Context, alias *item.Alias, ids []string) ([]*item.Failure, *item.Failure) {
	if failure := p.beginPurge(ctx, alias); failure != nil {
		return nil, failure
	}
	failures := make([]*item.Failure, len(ids))
	group := guard.NewGroup(atOnce)
	for i, id := range ids {
		group.Go(func() error {
			err := guard.Call(func() error { return p.purge(ctx, alias, id) })
			switch {
			case errors.Is(err, fs.ErrNotExist):
				failures[i] = errNotKept
			case err != nil:
				failures[i] = item.OperationFailure("remove the item", err)
			}
			return nil
		})
	}
	_ = group.Wait() // failures has the errors
	p.purgeDoubles(ctx, alias, ids, failures)
	for _, failure := range failures {
		if failure != nil {
			p.leaveOpen(ctx, failure)
		}
	}
	return failures, nil
}

// purgeDoubles removes the other entries of the generations that were purged. If it cannot, all of
// them count as left.
func (p *Permit) purgeDoubles(ctx context.Context, alias *item.Alias, ids []string, failures []*item.Failure) {
	var purged []item.Kept
	for i, id := range ids {
		if kept, ok := item.KeptOf(id); ok && failures[i] == nil {
			purged = append(purged, kept)
		}
	}
	err := p.Service.PurgeDoubles(ctx, alias, purged, p.Actor)
	if err == nil {
		return
	}
	failure := item.OperationFailure("remove the item", err)
	for i := range failures {
		failures[i] = cmp.Or(failures[i], failure)
	}
}

// beginPurge is begin for a request that removes entries.
func (p *Permit) beginPurge(ctx context.Context, alias *item.Alias) *item.Failure {
	failure := p.needTrash(alias, access.Purge)
	if failure == nil {
		failure = p.begin(ctx, alias, []access.Right{access.Purge})
	}
	if failure != nil {
		p.report(ctx, alias, service.Deletion{IsSet: true, Purge: true, Failure: failure})
	}
	return failure
}

func (p *Permit) purge(ctx context.Context, alias *item.Alias, id string) error {
	kept, failure := p.kept(alias, id)
	if failure != nil {
		p.report(ctx, alias, service.Deletion{Filename: id, Purge: true, Failure: failure})
		return failure
	}
	return p.Service.Purge(ctx, alias, kept, p.Actor)
}

// PurgeAll removes what was in the trash when the request began, below the folder of the caller. It
// removes up to [MaxSet] entries, and reports how many, and whether more are left.
func (p *Permit) PurgeAll(ctx context.Context, alias *item.Alias) (number int, more bool, failure *item.Failure) {
	began := p.Began()
	if failure = p.beginPurge(ctx, alias); failure != nil {
		return 0, false, failure
	}
	query := service.TrashQuery{
		Alias: alias, All: true, Folder: p.Account.Folder, OldestFirst: true, Limit: MaxSet, MaxTime: maxSetTime, MaxExamined: 100 * MaxSet,
	}
	page, err := p.Service.ListTrash(ctx, query)
	for err == nil && len(page.Entries) == 0 && page.Next != "" { // all are of other users
		query.Cursor = page.Next
		page, err = p.Service.ListTrash(ctx, query)
	}
	if err != nil {
		failure = item.OperationFailure("list the trash", err)
		p.report(ctx, alias, service.Deletion{IsSet: true, Purge: true, Failure: failure})
		return 0, false, failure
	}
	older := slices.DeleteFunc(page.Entries, func(entry service.InTrash) bool { return entry.Removed.After(began) })
	errs := guard.Each(len(older), atOnce, func(i int) error {
		return p.Service.Purge(ctx, alias, older[i].Kept, p.Actor)
	})
	for _, err := range errs {
		if err == nil {
			number++
		} else if !errors.Is(err, fs.ErrNotExist) {
			failure = item.OperationFailure("remove the item", err)
		}
	}
	return number, page.Next != "", failure
}
