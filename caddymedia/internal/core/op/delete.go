package op

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"sync/atomic"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/core/upload"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/internal/leaf/naming"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/guard"
)

const (
	// MaxSet is the largest number of items that a request deletes.
	MaxSet = 1000
	// maxSetTime is how long a request goes on deleting the items of a folder.
	maxSetTime = 30 * time.Second
	// atOnce is how many items of a request are examined or deleted side by side.
	atOnce = 8
)

// Matches reports whether an object is one that an operation is for.
type Matches = func(storagedrivers.Info) bool

// ErrNoFolder is the failure of a user who names the folder of another one.
var ErrNoFolder = item.Failf(item.Missing, upload.NoFolder)

// Deletion is an item that a request deletes.
type Deletion struct {
	Alias    *item.Alias
	Filename string
	Matches  Matches // nil for any
	// Purge keeps it in no trash.
	Purge bool
}

// Delete deletes an item, if it matches. It returns the ID of its entry in the trash; empty if
// there is none. The error is that of [upload.Uploader.DeleteItem], or an *[item.Failure] if the
// caller may not.
func (p *Permit) Delete(ctx context.Context, d Deletion) (trash string, err error) {
	failure := p.needAll(deletionRights(d.Purge))
	if failure == nil && p.MayBeItem(d.Alias, d.Filename) {
		if failure = p.Keep(ctx, d.Alias.Name); failure == nil {
			return p.delete(ctx, d, false)
		}
	}
	if err = fs.ErrNotExist; failure != nil {
		err = failure
	}
	p.report(ctx, d.Alias, service.Deletion{Filename: d.Filename, Failure: item.OperationFailure("", err)})
	return "", err
}

// deletionRights are what deleting takes.
func deletionRights(purge bool) []access.Right {
	if purge {
		return []access.Right{access.Delete, access.Purge}
	}
	return []access.Right{access.Delete}
}

// MayBeItem reports whether a filename may be that of an item that the caller may know.
func (p *Permit) MayBeItem(alias *item.Alias, filename string) bool {
	return alias.MayBeItem(filename) && p.Account.Covers(filename)
}

// delete deletes an item, if it matches.
func (p *Permit) delete(ctx context.Context, d Deletion, inSet bool) (trash string, err error) {
	isNewer := false
	trash, err = p.Service.Uploader().DeleteItem(ctx, upload.Deletion{
		Alias: d.Alias, Filename: d.Filename, Actor: p.Actor, InSet: inSet, Purge: d.Purge,
		Matches: func(info storagedrivers.Info) bool {
			isNewer = !p.Attempt.isOlder(info)
			return (d.Matches == nil || d.Matches(info)) && !isNewer
		},
	})
	if isNewer && errors.Is(err, item.ErrOther) {
		return "", fs.ErrNotExist
	}
	return trash, err
}

// DeleteMarker deletes the marker of a folder, if it matches. The items of the folder stay. The
// error is fs.ErrNotExist, [item.ErrOther], that of the storage, or an *[item.Failure] if the
// caller may not.
func (p *Permit) DeleteMarker(ctx context.Context, alias *item.Alias, folder string, matches Matches) error {
	if failure := p.NeedOne(access.Delete); failure != nil {
		return failure
	}
	key := alias.MarkerKey(folder)
	if key == "" || !p.Account.Covers(folder) {
		return fs.ErrNotExist
	}
	info, err := item.Stat(ctx, alias.Storage, key)
	switch {
	case err != nil:
		return err
	case info.Key == "":
		return fs.ErrNotExist
	case matches != nil && !matches(info):
		return item.ErrOther
	}
	return item.Remove(ctx, alias.Storage, key)
}

// Distinct returns the first of equal items of a request, in their order, and the index there of
// each.
func Distinct[T comparable](all []T) (distinct []T, at map[T]int) {
	at = make(map[T]int, len(all))
	for _, one := range all {
		if _, isKnown := at[one]; !isKnown {
			at[one] = len(distinct)
			distinct = append(distinct, one)
		}
	}
	return distinct, at
}

// Set are items of an alias that are deleted by one request.
type Set struct {
	Alias *item.Alias
	Items []InSet
	// MayMiss means that it is no failure if an item does not exist.
	MayMiss bool
	// Purge keeps them in no trash.
	Purge bool
}

// Outcome is what became of an item of a set.
type Outcome struct {
	Trash string // the ID of its entry in the trash; empty for none
	Err   error  // why it is left; nil if it is not
}

// InSet is an item of a set, or the marker of a folder.
type InSet struct {
	// Filename of the item, or the name of the folder.
	Filename string
	IsMarker bool
	Matches  Matches // nil for any
}

// DeleteSet deletes items, several side by side, and reports how many. It returns their outcomes in
// the order of the set, with the errors of [Permit.Delete] and [Permit.DeleteMarker], or the
// failure of the whole set.
func (p *Permit) DeleteSet(ctx context.Context, set Set) ([]Outcome, *item.Failure) {
	if failure := p.begin(ctx, set.Alias, deletionRights(set.Purge)); failure != nil {
		p.report(ctx, set.Alias, service.Deletion{IsSet: true, Failure: failure})
		return nil, failure
	}
	outcomes := make([]Outcome, len(set.Items))
	var number atomic.Int64
	group := guard.NewGroup(atOnce)
	for i, one := range set.Items {
		group.Go(func() error {
			outcome := &outcomes[i]
			outcome.Err = guard.Call(func() (err error) {
				outcome.Trash, err = p.deleteOf(ctx, set, one)
				return err
			})
			if outcome.Err == nil {
				number.Add(1)
			} else if set.MayMiss && errors.Is(outcome.Err, fs.ErrNotExist) {
				outcome.Err = nil
			}
			return nil
		})
	}
	_ = group.Wait() // the outcomes have the errors
	report := service.Deletion{IsSet: true, Number: int(number.Load())}
	for _, outcome := range outcomes {
		if outcome.Err != nil {
			report.Failure = item.OperationFailure("delete the item", outcome.Err)
			p.leaveOpen(ctx, report.Failure)
		}
	}
	p.report(ctx, set.Alias, report)
	return outcomes, nil
}

// deleteOf deletes an item of a set.
func (p *Permit) deleteOf(ctx context.Context, set Set, one InSet) (trash string, err error) {
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case one.IsMarker:
		return "", p.DeleteMarker(ctx, set.Alias, one.Filename, one.Matches)
	case !p.MayBeItem(set.Alias, one.Filename):
		return "", fs.ErrNotExist
	}
	return p.delete(ctx, Deletion{set.Alias, one.Filename, one.Matches, set.Purge}, true)
}

// begin checks all rights of a request again, since it may have waited for its body for long, and
// keeps the request.
func (p *Permit) begin(ctx context.Context, alias *item.Alias, rights []access.Right) *item.Failure {
	failure := p.needAll(rights)
	if failure == nil {
		_, failure = p.CheckAgain(ctx, alias.Kind, rights, alias.Name)
	}
	if failure != nil {
		return failure
	}
	return p.Keep(ctx, alias.Name)
}

// leaveOpen has the request carried out again when it is repeated, if a part of it has failed by a
// fault of the service, or because the request was aborted. It logs that fault, and why a check has
// refused an item.
func (p *Permit) leaveOpen(ctx context.Context, failure *item.Failure) {
	isFault := failure.Err != nil && failure.Reason != item.BadContent
	switch {
	case isFault:
		p.Log.Error(failure.Message, "error", failure.Err)
	case failure.Err != nil:
		p.Log.Warn(failure.Message, "error", failure.Err)
	}
	if isFault || ctx.Err() != nil {
		p.Attempt.LeaveOpen()
	}
}

// report reports a deletion.
func (p *Permit) report(ctx context.Context, alias *item.Alias, d service.Deletion) {
	d.Kind, d.Alias, d.Actor = alias.Kind, alias.Name, p.Actor
	p.Service.Observer().DeletionEnded(ctx, d)
}

// Folder is what a request deletes below a folder of an alias: the items that are older than it.
type Folder struct {
	Alias *item.Alias
	// Name of the folder; empty for the whole alias.
	Name string
	// Began is when the request began. Watch has watched the alias since then.
	Began time.Time
	Watch item.Watch
	// Purge keeps them in no trash.
	Purge bool
}

// DeleteFolder deletes up to [MaxSet] items, for half a minute, and then the markers of the folders
// if no item is left. It returns how many items it has deleted, and whether some are left. With a
// failure nothing is deleted.
func (p *Permit) DeleteFolder(ctx context.Context, f Folder) (number int, more bool, failure *item.Failure) {
	report := service.Deletion{IsSet: true, Folder: f.Name}
	if report.Failure = p.begin(ctx, f.Alias, deletionRights(f.Purge)); report.Failure == nil && !p.Account.Covers(f.Name) {
		report.Failure = ErrNoFolder
	}
	if report.Failure != nil {
		p.report(ctx, f.Alias, report)
		return 0, false, report.Failure
	}
	older := p.olderThan(f)
	bounded, cancel := context.WithTimeout(ctx, maxSetTime)
	defer cancel()
	listing, done := context.WithTimeout(bounded, maxSetTime/2) // so that time to delete is left
	defer done()
	filenames, more, err := filenamesBelow(ctx, listing, f, older)
	left := false
	if err == nil {
		number, left, err = p.deleteOlder(ctx, bounded, f, filenames, older)
	}
	if err == nil && !more && !left {
		err = deleteMarkers(ctx, f, older)
	}
	if report.Number = number; err != nil {
		report.Failure = item.OperationFailure("delete the items", err)
	}
	p.report(ctx, f.Alias, report)
	switch {
	case err == nil:
		return number, more || left, nil
	case number == 0:
		return 0, true, report.Failure
	}
	p.leaveOpen(ctx, report.Failure)
	return number, true, nil
}

// olderThan returns whether an object is older than the request.
func (p *Permit) olderThan(f Folder) Matches {
	began, latest := f.Began, f.Began.Add(time.Second) // of the times of items that this process has stored before
	if p.Attempt.IsRepeated() {
		began, latest = p.Attempt.Began, p.Attempt.Began
	}
	return func(info storagedrivers.Info) bool {
		before, since := f.Watch.Stored(f.Alias.Filename(info.Key), info)
		return !since && (storedBefore(info.ModTime, began) || before && storedBefore(info.ModTime, latest))
	}
}

// storedBefore reports whether an object was stored before a time. A backend may have its times in
// whole seconds, without the rest.
func storedBefore(stored, began time.Time) bool {
	if stored.Nanosecond() == 0 {
		return !stored.Add(time.Second).After(began)
	}
	return stored.Before(began)
}

// filenamesBelow returns up to [MaxSet] items below a folder that are wanted, as far as they are
// listed before bounded ends. more means that there may be others.
func filenamesBelow(ctx, bounded context.Context, f Folder, wanted Matches) (filenames []string, more bool, err error) {
	isShown := service.ItemFilter(f.Alias, "")
	for info, err := range f.Alias.Storage.All(bounded, f.Alias.Below(f.Name)) {
		switch {
		case err != nil && bounded.Err() != nil && ctx.Err() == nil:
			return filenames, true, nil
		case err != nil:
			return nil, false, err
		case !isShown(info.Key):
		case !wanted(info):
			more = true
		case len(filenames) == MaxSet:
			return filenames, true, nil
		default:
			filenames = append(filenames, f.Alias.Filename(info.Key))
		}
	}
	return filenames, more, nil
}

// deleteOlder deletes items that match, and begins none after bounded ends or the storage fails. It
// returns their number, and whether some are left.
func (p *Permit) deleteOlder(
	ctx, bounded context.Context, f Folder, filenames []string, older Matches,
) (number int, left bool, err error) {
	var done, kept atomic.Int64
	group, bounded := guard.WithContext(bounded, atOnce)
	for _, filename := range filenames {
		group.Go(func() error {
			select {
			case <-bounded.Done():
				kept.Add(1)
				return nil
			default:
			}
			switch _, err := p.delete(ctx, Deletion{f.Alias, filename, older, f.Purge}, true); {
			case err == nil:
				done.Add(1)
			case errors.Is(err, item.ErrOther):
				kept.Add(1)
			case !errors.Is(err, fs.ErrNotExist):
				return err
			}
			return nil
		})
	}
	err = group.Wait()
	return int(done.Load()), kept.Load() > 0, err
}

// deleteMarkers deletes the markers of a folder without items, and of those below it, that match.
func deleteMarkers(ctx context.Context, f Folder, older Matches) error {
	for info, err := range f.Alias.Storage.All(ctx, f.Alias.Below(f.Name)) {
		if err == nil && path.Base(info.Key) == naming.FolderMarker && older(info) {
			err = item.Remove(ctx, f.Alias.Storage, info.Key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
