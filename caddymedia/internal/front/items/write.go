package items

import (
	"cmp"
	"context"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strconv"

	"github.com/caddymedia/media/caddymedia/internal/core/op"
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
	matches, failure := caller.Condition(q.r.Header, q.alias)
	rights := []access.Right{access.Replace}
	purge, problem := caller.Purges(q.r.URL.Query())
	if purge {
		rights = append(rights, access.Purge)
	}
	if failure == nil && problem != "" {
		failure = item.Failf(item.BadRequest, "%s", problem)
	}
	if failure == nil && purge {
		failure = q.permit.NeedOne(access.Purge)
	}
	if limit := q.permit.Service.Limits().MaxBody; failure == nil && q.r.ContentLength > limit {
		failure = item.Failf(item.TooLarge, "the request is larger than %s", bytesize.Format(limit))
	}
	if failure != nil {
		return q.failed(ctx, failure)
	}
	stored, err := q.stored(ctx)
	if err != nil {
		return q.errored(ctx, "read the item", err)
	}
	req := upload.Replacement{
		Request:  q.permit.Request(q.kind, q.alias.Name, q.base(), rights),
		Filename: q.address.Filename, Matches: matches, Stored: stored,
	}
	req.Purge = purge
	uploader := q.permit.Service.Uploader()
	if failures := uploader.PrecheckReplacement(ctx, req, max(q.r.ContentLength, 0)); failures != nil { // the body need not be read
		return q.uploadFailed(ctx, failures)
	}
	ended, refused := q.permit.BeginUpload(q.w)
	if refused != nil {
		return q.refuse(ctx, refused)
	}
	defer ended()
	body, stop, failure := q.body()
	defer stop()
	if failure != nil {
		return q.failed(ctx, failure)
	}
	items, failures := uploader.Replace(ctx, req, upload.Body(q.address.Filename, body))
	if failures != nil {
		return q.uploadFailed(ctx, failures)
	}
	return httpx.AnswerReplaced(q.w, items, q.alias.CachedFor())
}

// body returns the body of a replacement, within its limits, or the failure of a repetition with
// another one. The caller must call stop.
func (q *itemsRequest) body() (body io.Reader, stop func(), failure *item.Failure) {
	httpx.Watch(q.r)
	limits := q.permit.Service.Limits()
	timed, stop := httpx.NewTimedBody(q.w, q.r.Body, limits.MaxUploadTime)
	body, failure = q.permit.Repetition.Match(http.MaxBytesReader(q.w, timed, limits.MaxBody), "")
	return body, stop, failure
}

// stored returns the object of the item of the address; the zero Info if there is none.
func (q *itemsRequest) stored(ctx context.Context) (storagedrivers.Info, error) {
	if !q.permit.MayBeItem(q.alias, q.address.Filename) {
		return storagedrivers.Info{}, fs.ErrNotExist
	}
	ctx, cancel := context.WithTimeout(ctx, maxListTime)
	defer cancel()
	return item.Stat(ctx, q.alias.Storage, q.alias.Key(q.address.Filename))
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
	q.move = op.Move{
		From: q.alias, Filename: q.address.Filename, To: cmp.Or(form.Get("copy_to"), form.Get("to")),
		Copy: form.Get("copy_to") != "", New: form.Get("overwrite") == "no", BaseURL: q.base(), Purge: form.Has("purge"),
	}
	q.toAlias = cmp.Or(form.Get("to_alias"), q.address.Alias)
	if problem := transferProblem(form); problem != "" {
		return q.bad(ctx, problem)
	}
	var failure *item.Failure
	if q.move.ToAlias, failure = q.permit.Alias(q.kind, q.toAlias); failure == nil {
		q.move.Matches, failure = caller.Condition(q.r.Header, q.alias)
	}
	if failure != nil {
		return q.failed(ctx, failure)
	}
	ended, refused := q.permit.BeginUpload(q.w)
	if refused != nil {
		return q.refuse(ctx, refused)
	}
	defer ended()
	items, failures := q.permit.Transfer(ctx, q.move)
	if failures != nil {
		return q.uploadFailed(ctx, failures)
	}
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
	if _, problem := caller.Purges(form); problem != "" {
		return problem
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

// answerStored returns a moved item, as in a list. If it cannot be read, the answer has what is
// known about it.
func (q *itemsRequest) answerStored(ctx context.Context, moved upload.Item) itemAnswer {
	ctx, cancel := context.WithTimeout(ctx, maxListTime)
	defer cancel()
	alias := q.move.ToAlias
	one, err := q.permit.Stored(ctx, alias, moved.Filename, false, q.base())
	if err == nil {
		return q.answerOf(alias, one)
	}
	q.Log.Warn("reading an item after it was stored", "alias", alias.Name, "filename", moved.Filename, "error", err)
	return itemAnswer{
		FullPath: moved.FullPath, Filename: moved.Filename, Size: moved.Size, ContentType: alias.ContentType(naming.Extension(moved.Filename)),
		WebP: moved.WebP, Renditions: moved.Renditions,
	}
}

// reportRefused reports a refused request that would change items to the observer.
func (q *itemsRequest) reportRefused(ctx context.Context, failure *item.Failure) {
	switch {
	case q.action == "keep":
		q.permit.Service.Observer().Refused(ctx, upload.Operation{Kind: q.kind, Alias: q.address.Alias, Actor: q.permit.Actor}, item.Failures{failure})
		return
	case q.action == "restore":
		q.permit.Service.Observer().Refused(ctx, upload.Operation{
			Kind: q.kind, Alias: q.address.Alias, Actor: q.permit.Actor, Transfer: &upload.Transfer{Copy: true, Restores: true},
		}, item.Failures{failure})
		return
	case q.r.Method == http.MethodDelete || q.address.Filename == "":
		q.permit.Service.Observer().DeletionEnded(ctx, service.Deletion{
			Kind: q.kind, Alias: q.address.Alias, Filename: q.address.Filename, IsSet: q.address.Filename == "", Actor: q.permit.Actor, Failure: failure,
			Purge: q.action == "purge",
		})
		return
	}
	refused := upload.Operation{Kind: q.kind, Alias: q.address.Alias, Filename: q.address.Filename, Actor: q.permit.Actor}
	if q.r.Method == http.MethodPost {
		refused.Transfer = &upload.Transfer{Filename: q.address.Filename, To: q.move.To, Copy: q.move.Copy}
		if q.alias != nil && q.move.To != "" {
			refused.Transfer.From, refused.Alias = q.alias, q.toAlias
		}
	}
	q.permit.Service.Observer().Refused(ctx, refused, item.Failures{failure})
}
