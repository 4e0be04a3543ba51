package items

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"sync/atomic"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/core/upload"
	"github.com/caddymedia/media/caddymedia/internal/front/caller"
	"github.com/caddymedia/media/caddymedia/internal/front/httpx"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/internal/leaf/naming"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/guard"
)

const (
	// maxSet is the largest number of items that a request deletes.
	maxSet = 1000
	// maxSetTime is how long a request goes on deleting the items of a folder.
	maxSetTime = 30 * time.Second
)

// SetForm are the limits of the form with the names of up to 1,000 items. All its names may be
// percent-encoded.
var SetForm = caller.FormLimits{Bytes: 4 << 20, Fields: maxSet + 100, Time: time.Minute}

// deletedAnswer is the response to a request that has deleted an item.
type deletedAnswer struct {
	Success bool `json:"success"`
}

// setAnswer is the response to a request that has deleted a set of items.
type setAnswer struct {
	Success bool        `json:"success"`
	Result  []setResult `json:"result"`
	// Deleted is the number of items of a folder, and More whether some are left. They are nil if the
	// request names its items.
	Deleted *int  `json:"deleted,omitempty"`
	More    *bool `json:"more,omitempty"`
}

// setResult is the outcome of an item of a set.
type setResult struct {
	Filename string `json:"filename"`
	Deleted  bool   `json:"deleted"`
	Message  string `json:"message,omitempty"`
}

// report reports a deletion to the observer.
func (q *itemsRequest) report(ctx context.Context, d service.Deletion) {
	q.reported = true
	d.Kind, d.Alias, d.Actor = q.kind, q.address.Alias, q.permit.Actor
	q.permit.Service.Observer().DeletionEnded(ctx, d)
}

// deleteOne deletes an item, if it is the one of the condition.
func (q *itemsRequest) deleteOne(ctx context.Context) error {
	matches, refused := q.condition()
	if refused != nil {
		return q.refuse(ctx, refused)
	}
	if !q.alias.MayBeItem(q.address.Filename) {
		return q.failed(ctx, "", fs.ErrNotExist)
	}
	if refused := q.permit.Repetition.Keep(ctx, q.alias.Name); refused != nil {
		return q.refuse(ctx, refused)
	}
	q.reported = true // by the uploader
	err := q.delete(ctx, q.address.Filename, matches, false)
	if err != nil {
		return q.failed(ctx, "delete the item", err)
	}
	return httpx.AnswerUnread(q.w, q.r, http.StatusOK, deletedAnswer{Success: true})
}

// delete deletes an item if it matches. To a repetition, one that was stored after the first
// attempt does not exist.
func (q *itemsRequest) delete(ctx context.Context, filename string, matches func(storagedrivers.Info) bool, inSet bool) error {
	isNewer := false
	err := q.permit.Service.Uploader().DeleteItem(ctx, upload.Deletion{
		Alias: q.alias, Filename: filename, Actor: q.permit.Actor, InSet: inSet,
		Matches: func(info storagedrivers.Info) bool {
			isNewer = !q.permit.Repetition.IsOlder(info)
			return matches(info) && !isNewer
		},
	})
	if isNewer && errors.Is(err, item.ErrOther) {
		return fs.ErrNotExist
	}
	return err
}

// deleteSet deletes the items that a form names, or those below a folder.
func (q *itemsRequest) deleteSet(ctx context.Context) error {
	leave, refused := q.permit.EnterQueue(ctx, q.w, service.DeletedSet, SetForm.Memory(q.r))
	if refused != nil {
		return q.refuse(ctx, refused)
	}
	defer leave()
	form, status, message := SetForm.Read(q.w, q.r, q.Now, "action")
	if message != "" {
		return q.refuse(ctx, caller.Refuse(status, item.BadRequest, message))
	}
	began, watch := q.Now(), q.alias.Watch()
	if problem := setProblem(q.alias, form); problem != "" {
		return q.refuse(ctx, caller.Refuse(http.StatusBadRequest, item.BadRequest, problem))
	}
	_, refused = q.permit.CheckAgain(ctx, q.kind, []access.Right{access.Delete}, q.alias.Name)
	if refused != nil { // the token may have been revoked meanwhile
		return q.refuse(ctx, refused)
	}
	if names := form["filename"]; len(names) > 0 {
		return q.deleteNames(ctx, names)
	}
	folder := cmp.Or(form.Get("folder"), q.permit.Account.Folder)
	if !q.permit.Account.Covers(folder) {
		return q.refuse(ctx, noFolder)
	}
	latest := began.Add(time.Second) // of the times of items that this process has stored before
	if refused := q.permit.Repetition.Keep(ctx, q.alias.Name); refused != nil {
		return q.refuse(ctx, refused)
	}
	if q.permit.Repetition.IsRepeated() {
		began, latest = q.permit.Repetition.Began(), q.permit.Repetition.Began()
	}
	return q.deleteFolder(ctx, folder, func(info storagedrivers.Info) bool {
		before, since := watch.Stored(q.alias.Filename(info.Key), info)
		return !since && (storedBefore(info.ModTime, began) || before && storedBefore(info.ModTime, latest))
	})
}

// setProblem returns the problem of a form with a set of items, for the caller; empty if there is
// none.
func setProblem(alias *item.Alias, form url.Values) string {
	if name := caller.SentTwice(form, "folder", "everything"); name != "" {
		return "the field " + name + " is sent twice"
	}
	everything := form.Get("everything")
	switch {
	case form.Get("action") != "delete":
		return "the field action must be delete"
	case everything != "" && everything != "yes":
		return "the field everything must be yes"
	case len(form["filename"]) > maxSet:
		return fmt.Sprintf("there are more than %d fields filename", maxSet)
	case len(form["filename"]) > 0 && (form.Has("folder") || everything != ""):
		return "send either fields filename or one field folder"
	case len(form["filename"]) > 0:
		return ""
	case !form.Has("folder"):
		return "the fields filename, or the field folder, are missing"
	case form.Get("folder") == "" && everything == "":
		return "the field folder is empty: to delete everything in the alias, send everything=yes too"
	case form.Get("folder") != "" && everything != "":
		return "the field everything is for an empty folder only"
	}
	return folderProblem(alias, form.Get("folder"))
}

// deleteNames deletes items and responds with the outcome of each.
func (q *itemsRequest) deleteNames(ctx context.Context, names []string) error {
	if refused := q.permit.Repetition.Keep(ctx, q.alias.Name); refused != nil {
		return q.refuse(ctx, refused)
	}
	answer := setAnswer{Success: true, Result: make([]setResult, len(names))}
	first := service.FirstOf(names)
	whichever := func(storagedrivers.Info) bool { return true }
	q.reported = true
	outcomes := q.permit.Service.DeleteSet(ctx, q.alias, q.permit.Actor, len(names), func(i int) (removed bool, err error) {
		filename := names[i]
		switch {
		case first[filename] != i:
			return false, service.ErrNamedTwice
		case !q.alias.MayBeItem(filename) || !q.permit.Account.Covers(filename):
			return false, fs.ErrNotExist
		}
		err = q.delete(ctx, filename, whichever, true)
		return err == nil, err
	})
	q.BoundAnswer(q.w)
	for i, filename := range names {
		answer.Result[i] = setResult{Filename: filename, Deleted: outcomes[i] == nil}
		if outcomes[i] == nil {
			continue
		}
		failure := item.OperationFailure("delete the item", outcomes[i])
		answer.Result[i].Message = failure.Message
		if q.logFailed(failure); ctx.Err() != nil {
			q.permit.Repetition.Undone()
		}
	}
	return httpx.AnswerUnread(q.w, q.r, http.StatusOK, answer)
}

// logFailed logs the failure of an item of a set, and has the request carried out again when it is
// repeated, if it is not the caller's fault.
func (q *itemsRequest) logFailed(failure *item.Failure) {
	if status := httpx.StatusOf(item.Failures{failure}); status >= http.StatusInternalServerError {
		q.Log.Error(failure.Message, "status", status, "error", failure.Err)
		q.permit.Repetition.Undone()
	}
}

// deleteFolder deletes items below a folder that are older than the request.
func (q *itemsRequest) deleteFolder(ctx context.Context, folder string, older func(storagedrivers.Info) bool) error {
	bounded, cancel := context.WithTimeout(ctx, maxSetTime)
	defer cancel()
	listing, done := context.WithTimeout(bounded, maxSetTime/2) // so that time to delete is left
	defer done()
	filenames, more, err := q.filenames(ctx, listing, folder, older)
	number, left := 0, false
	if err == nil {
		number, left, err = q.deleteOlder(ctx, bounded, filenames, older)
	}
	if err == nil && !more && !left {
		err = q.deleteMarkers(ctx, folder, older)
	}
	q.BoundAnswer(q.w)
	report := service.Deletion{IsSet: true, Folder: folder, Number: number}
	more = more || left || err != nil
	if err == nil {
		q.report(ctx, report)
	} else {
		report.Failure = item.OperationFailure("delete the items", err)
		q.report(ctx, report)
		if number == 0 {
			return q.failed(ctx, "delete the items", err)
		}
		q.logFailed(report.Failure)
	}
	return httpx.AnswerUnread(q.w, q.r, http.StatusOK, setAnswer{Success: true, Result: []setResult{}, Deleted: &number, More: &more})
}

// deleteOlder deletes items that match, and begins none after bounded ends or the storage fails. It
// returns their number, and whether some are left.
func (q *itemsRequest) deleteOlder(ctx, bounded context.Context, filenames []string, older func(storagedrivers.Info) bool) (number int, left bool, err error) {
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
			switch err := q.delete(ctx, filename, older, true); {
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
func (q *itemsRequest) deleteMarkers(ctx context.Context, folder string, older func(storagedrivers.Info) bool) error {
	for info, err := range q.alias.Storage.All(ctx, q.alias.Below(folder)) {
		if err == nil && path.Base(info.Key) == naming.FolderMarker && older(info) {
			err = item.Remove(ctx, q.alias.Storage, info.Key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// storedBefore reports whether an object was stored before a time. A backend may have its times in
// whole seconds, without the rest.
func storedBefore(stored, began time.Time) bool {
	if stored.Nanosecond() == 0 {
		return !stored.Add(time.Second).After(began)
	}
	return stored.Before(began)
}

// filenames returns up to [maxSet] items below a folder that wanted accepts, as far as they are
// listed before bounded ends. more means that there may be others.
func (q *itemsRequest) filenames(ctx, bounded context.Context, folder string, wanted func(storagedrivers.Info) bool) (filenames []string, more bool, err error) {
	isShown := service.ItemFilter(q.alias, "")
	for info, err := range q.alias.Storage.All(bounded, q.alias.Below(folder)) {
		switch {
		case err != nil && bounded.Err() != nil && ctx.Err() == nil:
			return filenames, true, nil
		case err != nil:
			return nil, false, err
		case !isShown(info.Key):
		case !wanted(info):
			more = true
		case len(filenames) == maxSet:
			return filenames, true, nil
		default:
			filenames = append(filenames, q.alias.Filename(info.Key))
		}
	}
	return filenames, more, nil
}
