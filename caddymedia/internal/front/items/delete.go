package items

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/op"
	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/front/caller"
	"github.com/caddymedia/media/caddymedia/internal/front/httpx"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
)

// SetForm are the limits of the form with the names of up to 1,000 items. All its names may be
// percent-encoded.
var SetForm = caller.FormLimits{Bytes: 4 << 20, Fields: op.MaxSet + 100, Time: time.Minute}

// deletedAnswer is the response to a request that has deleted an item.
type deletedAnswer struct {
	Success bool   `json:"success"`
	Trash   string `json:"trash,omitempty"`
}

// setAnswer is the response to a request that has deleted a set of items.
type setAnswer struct {
	Success bool        `json:"success"`
	Result  []setResult `json:"result"`
	// Deleted is the number of items of a folder, and More whether some are left. They are nil if the
	// request names its items.
	Deleted *int  `json:"deleted,omitempty"`
	More    *bool `json:"more,omitempty"`
	// Began is when the deletion of a folder began: its entries in the trash are not older. It has the
	// microseconds of these.
	Began time.Time `json:"began,omitzero"`
}

// setResult is the outcome of an item of a set.
type setResult struct {
	Filename string `json:"filename"`
	Deleted  bool   `json:"deleted"`
	Trash    string `json:"trash,omitempty"`
	Message  string `json:"message,omitempty"`
}

// deleteOne deletes an item, if it is the one of the condition.
func (q *itemsRequest) deleteOne(ctx context.Context) error {
	matches, failure := caller.Condition(q.r.Header, q.alias)
	purge, problem := caller.Purges(q.r.URL.Query())
	switch {
	case failure != nil:
		return q.failed(ctx, failure)
	case problem != "":
		return q.bad(ctx, problem)
	}
	q.reported = true // below
	trash, err := q.permit.Delete(ctx, op.Deletion{Alias: q.alias, Filename: q.address.Filename, Matches: matches, Purge: purge})
	if err != nil {
		return q.errored(ctx, "delete the item", err)
	}
	return httpx.AnswerUnread(q.w, q.r, http.StatusOK, deletedAnswer{Success: true, Trash: trash})
}

// change carries out the action that a form on an alias names: it deletes items, brings back or
// removes what is in the trash, or stores held uploads.
func (q *itemsRequest) change(ctx context.Context) error {
	leave, refused := q.permit.EnterQueue(ctx, q.w, service.DeletedSet, SetForm.Memory(q.r))
	if refused != nil {
		return q.refuse(ctx, refused)
	}
	defer leave()
	form, status, message := SetForm.Read(q.w, q.r, q.Now, "action")
	if message != "" {
		return q.refuse(ctx, caller.Refuse(status, item.BadRequest, message))
	}
	q.action = form.Get("action")
	right, known := actionRights[q.action]
	if !known {
		return q.bad(ctx, "the field action must be delete, restore, purge or keep")
	}
	if failure := q.permit.NeedOne(right); failure != nil {
		return q.failed(ctx, failure)
	}
	switch q.action {
	case "restore":
		return q.restore(ctx, form)
	case "purge":
		return q.purge(ctx, form)
	case "keep":
		return q.keep(ctx, form)
	}
	return q.deleteSet(ctx, form)
}

// deleteSet deletes the items that a form names, or those below a folder.
func (q *itemsRequest) deleteSet(ctx context.Context, form url.Values) error {
	if problem := setProblem(q.alias, form); problem != "" {
		return q.bad(ctx, problem)
	}
	q.reported = true // below
	purge := form.Has("purge")
	if names := form["filename"]; len(names) > 0 {
		return q.deleteNames(ctx, names, purge)
	}
	began := q.permit.Began()
	number, more, failure := q.permit.DeleteFolder(ctx, op.Folder{
		Alias: q.alias, Name: cmp.Or(form.Get("folder"), q.permit.Account.Folder), Began: q.Now(), Watch: q.alias.Watch(), Purge: purge,
	})
	q.BoundAnswer(q.w)
	if failure != nil {
		return q.failed(ctx, failure)
	}
	return httpx.AnswerUnread(q.w, q.r, http.StatusOK, setAnswer{
		Success: true, Result: []setResult{}, Deleted: &number, More: &more, Began: began.UTC().Truncate(time.Microsecond),
	})
}

// setProblem returns the problem of a form with a set of items, for the caller; empty if there is
// none.
func setProblem(alias *item.Alias, form url.Values) string {
	if name := caller.SentTwice(form, "folder", "everything"); name != "" {
		return "the field " + name + " is sent twice"
	}
	if _, problem := caller.Purges(form); problem != "" {
		return problem
	}
	everything := form.Get("everything")
	switch {
	case everything != "" && everything != "yes":
		return "the field everything must be yes"
	case len(form["filename"]) > op.MaxSet:
		return fmt.Sprintf("there are more than %d fields filename", op.MaxSet)
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

// deleteNames deletes items and responds with the outcome of each. One that is named twice is
// deleted by the first name.
func (q *itemsRequest) deleteNames(ctx context.Context, names []string, purge bool) error {
	distinct, at := op.Distinct(names)
	set := op.Set{Alias: q.alias, Items: make([]op.InSet, len(distinct)), Purge: purge}
	for i, filename := range distinct {
		set.Items[i].Filename = filename
	}
	outcomes, failure := q.permit.DeleteSet(ctx, set)
	if failure != nil {
		return q.failed(ctx, failure)
	}
	q.BoundAnswer(q.w)
	answer := setAnswer{Success: true, Result: make([]setResult, len(names))}
	for i, filename := range names {
		result := &answer.Result[i]
		result.Filename = filename
		first, isFirst := at[filename]
		delete(at, filename)
		switch {
		case !isFirst:
			result.Message = "the item is named twice"
		case outcomes[first].Err == nil:
			result.Deleted, result.Trash = true, outcomes[first].Trash
		default:
			result.Message = item.OperationFailure("delete the item", outcomes[first].Err).Message
		}
	}
	return httpx.AnswerUnread(q.w, q.r, http.StatusOK, answer)
}
