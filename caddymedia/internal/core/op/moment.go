package op

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/core/upload"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/check"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/internal/leaf/moment"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/guard"
)

// Past is a request to bring a folder of an alias back to what it was at a moment.
type Past struct {
	Alias *item.Alias
	// Folder and all below; empty for the whole alias.
	Folder string
	At     time.Time
	// Cursor is that of the page before; empty for the first page.
	Cursor string
	// Limit is the most names of a page; 0 is [MaxSet].
	Limit int
	// DryRun changes no item.
	DryRun bool
	// AsItWas brings items back as they were, whatever the present rules of the alias.
	AsItWas bool
	BaseURL string
}

// PastStep is what became of a name, or would in a dry run.
type PastStep struct {
	service.MomentStep
	// Failure is why it is left as it is; nil if it is not, or if its Action is Doubt.
	Failure *item.Failure

	isLeft bool
}

// PastPage is what became of some names.
type PastPage struct {
	// Began is when bringing back began: bringing the folder back to it undoes all.
	Began time.Time
	Steps []PastStep
	// Cursor is for the next page; empty on the last.
	Cursor string
}

// RestorePast brings the items of some names back, for half a minute: those that were removed
// since the moment are restored, with all checks of an upload, those that came later go to the
// trash, and those that were replaced are exchanged. Items that are uploaded after the first
// request stay. The request may be repeated, and then does the rest.
func (p *Permit) RestorePast(ctx context.Context, r Past) (page PastPage, failure *item.Failure) {
	rights := []access.Right{access.Restore, access.Delete}
	if r.Alias.Overwrite {
		rights = append(rights, access.Replace)
	}
	query := service.MomentQuery{Alias: r.Alias, Folder: r.Folder, At: r.At, Began: p.Began().Truncate(time.Microsecond), Limit: cmp.Or(r.Limit, MaxSet)}
	failure = p.needTrash(r.Alias, access.Restore)
	switch {
	case failure != nil:
	case r.DryRun:
		failure = p.needAll(rights)
	default:
		failure = p.begin(ctx, r.Alias, rights)
	}
	if failure == nil && !p.Account.Covers(r.Folder) {
		failure = ErrNoFolder
	}
	if failure == nil {
		failure = inReach(r, query.Began)
	}
	if failure == nil && r.Cursor != "" {
		failure = resume(&query, r.Cursor)
	}
	if failure == nil {
		page, failure = p.restorePast(ctx, r, query)
	}
	if failure != nil && !r.DryRun {
		p.reportUnrestored(ctx, r.Alias, r.Folder, failure)
	}
	return page, failure
}

// inReach returns the failure of a moment that the trash does not reach.
func inReach(r Past, now time.Time) *item.Failure {
	switch earliest := now.Add(-r.Alias.Trash); {
	case r.At.After(now):
		return item.Failf(item.BadRequest, "the time is in the future")
	case r.At.Before(earliest):
		earliest = earliest.Truncate(time.Second).Add(time.Second)
		return item.Failf(item.BadRequest, "the trash reaches back to %s", earliest.UTC().Format(time.RFC3339))
	}
	return nil
}

// cursor returns the cursor after a name.
func cursor(began time.Time, last string) string {
	return strconv.FormatInt(began.UnixMicro(), 10) + "/" + last
}

// resume continues a query at a cursor.
func resume(query *service.MomentQuery, cursor string) *item.Failure {
	at, last, _ := strings.Cut(cursor, "/")
	micros, err := strconv.ParseInt(at, 10, 64)
	began := time.UnixMicro(micros)
	if err != nil || last != "" && storagedrivers.ValidKey(last) != nil || began.After(query.Began) || began.Before(query.At) {
		return service.ErrCursor
	}
	query.Began, query.After = began, last
	return nil
}

// restorePast carries out a page of a request that is checked.
func (p *Permit) restorePast(ctx context.Context, r Past, query service.MomentQuery) (page PastPage, failure *item.Failure) {
	found, err := p.Service.Moment(ctx, query)
	if err != nil {
		return page, item.OperationFailure("list the items", err)
	}
	page.Began, page.Steps = query.Began, make([]PastStep, len(found.Steps))
	for i, step := range found.Steps {
		page.Steps[i].MomentStep = step
	}
	if found.Last != "" {
		page.Cursor = cursor(query.Began, found.Last)
	}
	if r.DryRun || len(page.Steps) == 0 {
		return page, nil
	}
	if failure = p.awaitLater(ctx, page); failure != nil {
		return page, failure
	}
	return p.carryOut(ctx, r, page, query.After)
}

// awaitLater waits until what is stored then is, for the storage, later than the beginning.
func (p *Permit) awaitLater(ctx context.Context, page PastPage) *item.Failure {
	later := page.Began
	for _, step := range page.Steps {
		resolution := moment.ResolutionOf(cmp.Or(step.Now.ModTime, step.Then.Stored))
		if after := page.Began.Add(2 * resolution); after.After(later) { // a second may lack its rest
			later = after
		}
	}
	select {
	case <-ctx.Done():
		return item.OperationFailure("", ctx.Err())
	case <-time.After(later.Sub(p.Service.Uploader().Now())):
		return nil
	}
}

// manyAtOnce is how many steps are done side by side: most of a step is waiting for the storage.
const manyAtOnce = 32

// carryOut does the steps of a page: first it takes away, because an item may have the name of a
// folder. After half a minute, or after a failure of the storage, it begins no other step. after is
// the last name of the page before.
func (p *Permit) carryOut(ctx context.Context, r Past, page PastPage, after string) (PastPage, *item.Failure) {
	limited, cancel := context.WithTimeout(ctx, maxSetTime)
	defer cancel()
	bounded, stop := context.WithCancelCause(limited)
	defer stop(nil)
	for _, takesAway := range []bool{true, false} {
		for i, err := range guard.Each(len(page.Steps), manyAtOnce, func(i int) error {
			step := &page.Steps[i]
			if step.Action == moment.Doubt || takesAway != (step.Action == moment.TakeAway) {
				return nil
			}
			if step.isLeft = bounded.Err() != nil; !step.isLeft {
				step.Failure = p.carryOutStep(ctx, r, step.MomentStep)
			}
			switch failed := step.Failure; {
			case failed == nil:
			case failed.Reason == item.Busy: // others have the memory
				step.isLeft, step.Failure = true, nil
			case errors.Is(failed.Err, check.ErrUnanswered): // it may be about this item only
			case failed.Reason == item.Unavailable, failed.Reason == item.NoSpace:
				stop(failed) // so would the others
			}
			return nil
		}) {
			if err != nil { // a panic
				page.Steps[i].Failure = item.OperationFailure("restore the item", err)
			}
		}
	}
	page, removed := page.begun(after)
	for _, step := range page.Steps {
		if step.Failure != nil {
			p.leaveOpen(ctx, step.Failure)
		}
	}
	p.report(ctx, r.Alias, service.Deletion{IsSet: true, Folder: r.Folder, Number: removed})
	if failed, ok := errors.AsType[*item.Failure](context.Cause(bounded)); ok {
		return page, &item.Failure{Reason: failed.Reason, Message: fmt.Sprintf("%s: %d items are done, send the request again", failed.Message, len(page.Steps))}
	}
	return page, nil
}

// begun returns the page without the steps that are left, for which it has a cursor, and the number
// of items that were taken away.
func (page PastPage) begun(after string) (begun PastPage, removed int) {
	begun = PastPage{Began: page.Began, Cursor: page.Cursor}
	anyLeft := false
	for _, step := range page.Steps {
		if step.isLeft && !anyLeft {
			anyLeft, begun.Cursor = true, cursor(page.Began, after)
		}
		after = step.Filename
		if !step.isLeft {
			begun.Steps = append(begun.Steps, step)
		}
		if !step.isLeft && step.Failure == nil && step.Action == moment.TakeAway {
			removed++
		}
	}
	return begun, removed
}

// carryOutStep does a step.
func (p *Permit) carryOutStep(ctx context.Context, r Past, step service.MomentStep) *item.Failure {
	if step.Action == moment.TakeAway {
		_, err := p.Service.Uploader().DeleteItem(ctx, upload.Deletion{
			Alias: r.Alias, Filename: step.Filename, Actor: p.Actor, InSet: true, Matches: step.Now.Same,
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // otherwise others took it away
			return item.OperationFailure("delete the item", err)
		}
		return nil
	}
	transfer := upload.Transfer{Request: p.Request(r.Alias.Kind, r.Alias.Name, r.BaseURL, nil), Exact: true, Over: step.Now, AsItWas: r.AsItWas}
	if step.Action == moment.BringBack {
		transfer.Same, transfer.New = true, r.Alias.Overwrite
	}
	_, failure := p.bringBack(ctx, transfer, r.Alias, step.Then.Kept)
	return failure
}
