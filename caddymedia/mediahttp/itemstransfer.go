package mediahttp

import (
	"cmp"
	"context"
	"io/fs"
	"net/http"
	"net/url"

	"github.com/caddymedia/media/caddymedia/internal/httpx"
	"github.com/caddymedia/media/caddymedia/internal/item"
	"github.com/caddymedia/media/caddymedia/internal/naming"
	"github.com/caddymedia/media/caddymedia/internal/service"
	"github.com/caddymedia/media/caddymedia/internal/upload"
	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/storagedrivers"
)

// transfer moves or copies the item of the address to the filename in the form, if it is the one of
// the condition.
func (q *itemsRequest) transfer(ctx context.Context) error {
	form, status, message := smallForm.read(q.w, q.r, q.options.Now)
	if message != "" {
		return q.refuse(ctx, &refusal{status, item.BadRequest, message})
	}
	q.move.Copy, q.move.To = form.Get("copy_to") != "", cmp.Or(form.Get("copy_to"), form.Get("to"))
	q.toAlias = cmp.Or(form.Get("to_alias"), q.address.alias)
	if problem := transferProblem(form); problem != "" {
		return q.refuse(ctx, &refusal{http.StatusBadRequest, item.BadRequest, problem})
	}
	right := tokens.Move
	if q.move.Copy {
		right = tokens.Copy
	}
	if refused := q.admitAgain(ctx, right); refused != nil {
		return q.refuse(ctx, refused)
	}
	matches, refused := q.condition()
	if refused != nil {
		return q.refuse(ctx, refused)
	}
	to, refused := q.findAlias(q.toAlias)
	if refused != nil {
		return q.refuse(ctx, refused)
	}
	if !q.alias.MayBeItem(q.address.filename) {
		return q.storageFailed(ctx, "", fs.ErrNotExist)
	}
	ended, refused := q.begin()
	if refused != nil {
		return q.refuse(ctx, refused)
	}
	defer ended()
	items, failures := q.running.Uploader().Transfer(ctx, upload.Transfer{
		Request: q.writeRequest(right, to.Name), From: q.alias, Filename: q.address.filename, To: q.move.To, Copy: q.move.Copy, Matches: matches,
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
	if name := repeated(form, "to", "copy_to", "to_alias"); name != "" {
		return "the field " + name + " is sent twice"
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
	q.options.Log.Warn("reading an item after it was stored", "alias", q.alias.Name, "filename", item.Filename, "error", err)
	return itemAnswer{
		FullPath: item.FullPath, Filename: item.Filename, Size: item.Size, ContentType: q.alias.ContentType(naming.Extension(item.Filename)),
		WebP: item.WebP, Renditions: item.Renditions,
	}
}

// reportRefused reports a refused request that would change items to the observer.
func (q *itemsRequest) reportRefused(ctx context.Context, failure *item.Failure) {
	if q.r.Method == http.MethodDelete || q.address.filename == "" {
		q.report(ctx, service.Deletion{IsSet: q.address.filename == "", Filename: q.address.filename, Failure: failure})
		return
	}
	op := upload.Operation{Kind: q.kind, Alias: q.address.alias, Filename: q.address.filename, Actor: q.actor()}
	if q.r.Method == http.MethodPost {
		op.Transfer = &upload.Transfer{Filename: q.address.filename, To: q.move.To, Copy: q.move.Copy}
		if q.alias != nil && q.move.To != "" {
			op.Transfer.From, op.Alias = q.alias, q.toAlias
		}
	}
	q.running.Observer().Refused(ctx, op, item.Failures{failure})
}
