package items

import (
	"cmp"
	"context"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strconv"

	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/core/upload"
	"github.com/caddymedia/media/caddymedia/internal/front/caller"
	"github.com/caddymedia/media/caddymedia/internal/front/httpx"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/bytesize"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/internal/leaf/naming"
	"github.com/caddymedia/media/storagedrivers"
)

// replace replaces the item of the address by the body, if it is the one of the condition.
func (q *itemsRequest) replace(ctx context.Context) error {
	if len(q.r.Header.Values("If-Match")) == 0 {
		return q.refuse(ctx, caller.Refuse(
			http.StatusPreconditionRequired, item.BadRequest,
			"the header If-Match is missing: send the entity tag of the item, or * for any",
		))
	}
	if refused := caller.BodyRefusal(q.kind, q.r.Header, q.r.URL.Query()); refused != nil {
		return q.refuse(ctx, refused)
	}
	matches, refused := q.condition()
	if refused != nil {
		return q.refuse(ctx, refused)
	}
	if !q.alias.MayBeItem(q.address.Filename) {
		return q.failed(ctx, "", fs.ErrNotExist)
	}
	limits := q.permit.Service.Limits()
	if q.r.ContentLength > limits.MaxBody {
		return q.refuse(ctx, caller.Refuse(
			http.StatusRequestEntityTooLarge, item.TooLarge, "the request is larger than "+bytesize.Format(limits.MaxBody),
		))
	}
	stored, err := q.stored(ctx)
	if err != nil {
		return q.failed(ctx, "read the item", err)
	}
	req := upload.Replacement{
		Request: q.writeRequest(access.Replace, q.address.Alias), Filename: q.address.Filename, Matches: matches, Stored: stored,
	}
	uploader := q.permit.Service.Uploader()
	if failures := uploader.PrecheckReplacement(ctx, req, max(q.r.ContentLength, 0)); failures != nil { // the body need not be read
		return q.uploadFailed(ctx, failures)
	}
	ended, refused := q.permit.BeginUpload(q.w)
	if refused != nil {
		return q.refuse(ctx, refused)
	}
	defer ended()
	body, stop, refused := q.body()
	defer stop()
	if refused != nil {
		return q.refuse(ctx, refused)
	}
	items, failures := uploader.Replace(ctx, req, upload.Body(q.address.Filename, body))
	if failures != nil {
		return q.uploadFailed(ctx, failures)
	}
	return httpx.AnswerReplaced(q.w, items, q.alias.CachedFor())
}

// body returns the body of a replacement, within its limits, or the refusal of a repetition with
// another one. The caller must call stop.
func (q *itemsRequest) body() (body io.Reader, stop func(), refused *caller.Refusal) {
	httpx.Watch(q.r)
	limits := q.permit.Service.Limits()
	timed, stop := httpx.NewTimedBody(q.w, q.r.Body, limits.MaxUploadTime)
	body, refused = q.permit.Repetition.Match(http.MaxBytesReader(q.w, timed, limits.MaxBody), "")
	return body, stop, refused
}

// stored returns the item of the address; the zero Info if there is none.
func (q *itemsRequest) stored(ctx context.Context) (storagedrivers.Info, error) {
	ctx, cancel := context.WithTimeout(ctx, maxListTime)
	defer cancel()
	return item.Stat(ctx, q.alias.Storage, q.alias.Key(q.address.Filename))
}

// condition returns the condition of the request. Without one it matches any item.
func (q *itemsRequest) condition() (matches func(storagedrivers.Info) bool, refused *caller.Refusal) {
	return caller.Condition(q.r.Header, q.alias)
}

// writeRequest returns a request to store an item in an alias. The account must have the right for
// that alias and for the one of the address, also right before the commit.
func (q *itemsRequest) writeRequest(right access.Right, alias string) upload.Request {
	return upload.Request{
		Kind: q.kind, Alias: alias, Allows: q.permit.Account.Allows, Actor: q.permit.Actor,
		Forced:     service.ForcedBy(q.permit.Caller),
		BaseURL:    q.baseURL,
		Repetition: q.permit.Repetition.Repeats(),
		Confirm:    q.permit.Confirm(q.kind, []access.Right{right}, q.address.Alias),
	}
}

// uploadFailed responds with failures that the uploader has reported.
func (q *itemsRequest) uploadFailed(ctx context.Context, failures item.Failures) error {
	status := httpx.StatusOf(failures)
	q.permit.Service.Observer().Failed(ctx, itemsEndpoint, strconv.Itoa(status))
	return httpx.Refuse(q.w, q.r, q.Log, status, failures)
}

// transfer moves or copies the item of the address to the filename in the form, if it is the one of
// the condition.
func (q *itemsRequest) transfer(ctx context.Context) error {
	form, status, message := caller.SmallForm.Read(q.w, q.r, q.Now)
	if message != "" {
		return q.refuse(ctx, caller.Refuse(status, item.BadRequest, message))
	}
	q.move.Copy, q.move.To = form.Get("copy_to") != "", cmp.Or(form.Get("copy_to"), form.Get("to"))
	q.move.New = form.Get("overwrite") == "no"
	q.toAlias = cmp.Or(form.Get("to_alias"), q.address.Alias)
	if problem := transferProblem(form); problem != "" {
		return q.refuse(ctx, caller.Refuse(http.StatusBadRequest, item.BadRequest, problem))
	}
	right := access.Move
	if q.move.Copy {
		right = access.Copy
	}
	to, refused := q.findAlias(q.toAlias)
	if refused == nil {
		_, refused = q.permit.CheckAgain(ctx, q.kind, []access.Right{right}, q.alias.Name, to.Name)
	}
	if refused != nil {
		return q.refuse(ctx, refused)
	}
	matches, refused := q.condition()
	if refused != nil {
		return q.refuse(ctx, refused)
	}
	if !q.alias.MayBeItem(q.address.Filename) {
		return q.failed(ctx, "", fs.ErrNotExist)
	}
	ended, refused := q.permit.BeginUpload(q.w)
	if refused != nil {
		return q.refuse(ctx, refused)
	}
	defer ended()
	items, failures := q.permit.Service.Uploader().Transfer(ctx, upload.Transfer{
		Request: q.writeRequest(right, to.Name), From: q.alias, Filename: q.address.Filename,
		To: q.move.To, New: q.move.New, Copy: q.move.Copy, Matches: matches,
	})
	if failures != nil {
		return q.uploadFailed(ctx, failures)
	}
	q.alias = to
	return httpx.AnswerUnread(q.w, q.r, http.StatusOK, listAnswer{Success: true, Result: []itemAnswer{q.answerStored(ctx, items[0])}})
}

// transferProblem returns the problem of a form with a move or copy, for the caller; empty if there
// is none.
func transferProblem(form url.Values) string {
	if name := caller.SentTwice(form, "to", "copy_to", "to_alias", "overwrite"); name != "" {
		return "the field " + name + " is sent twice"
	}
	if form.Has("overwrite") && form.Get("overwrite") != "no" {
		return "the field overwrite is no, or is left out"
	}
	switch to, copyTo := form.Get("to"), form.Get("copy_to"); {
	case to == "" && copyTo == "":
		return "the field to, or the field copy_to, is missing: send the whole new filename"
	case to != "" && copyTo != "":
		return "send either the field to or the field copy_to"
	case max(len(to), len(copyTo)) > item.MaxName:
		return "the new filename is too long"
	}
	return ""
}

// answerStored returns an item that is stored now, as in a list. If it cannot be read, the answer
// has what is known about it.
func (q *itemsRequest) answerStored(ctx context.Context, item upload.Item) itemAnswer {
	ctx, cancel := context.WithTimeout(ctx, maxListTime)
	defer cancel()
	info, err := q.alias.Storage.Stat(ctx, q.alias.Key(item.Filename))
	if err == nil {
		var described []itemAnswer
		if described, err = q.describe(ctx, []storagedrivers.Info{info}, nil); err == nil && len(described) == 1 {
			return described[0]
		}
	}
	q.Log.Warn("reading an item after it was stored", "alias", q.alias.Name, "filename", item.Filename, "error", err)
	return itemAnswer{
		FullPath: item.FullPath, Filename: item.Filename, Size: item.Size, ContentType: q.alias.ContentType(naming.Extension(item.Filename)),
		WebP: item.WebP, Renditions: item.Renditions,
	}
}

// reportRefused reports a refused request that would change items to the observer.
func (q *itemsRequest) reportRefused(ctx context.Context, failure *item.Failure) {
	if q.r.Method == http.MethodDelete || q.address.Filename == "" {
		q.report(ctx, service.Deletion{IsSet: q.address.Filename == "", Filename: q.address.Filename, Failure: failure})
		return
	}
	op := upload.Operation{Kind: q.kind, Alias: q.address.Alias, Filename: q.address.Filename, Actor: q.permit.Actor}
	if q.r.Method == http.MethodPost {
		op.Transfer = &upload.Transfer{Filename: q.address.Filename, To: q.move.To, Copy: q.move.Copy}
		if q.alias != nil && q.move.To != "" {
			op.Transfer.From, op.Alias = q.alias, q.toAlias
		}
	}
	q.permit.Service.Observer().Refused(ctx, op, item.Failures{failure})
}
