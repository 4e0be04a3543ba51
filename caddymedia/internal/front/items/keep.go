package items

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/caddymedia/media/caddymedia/internal/core/op"
	"github.com/caddymedia/media/caddymedia/internal/core/resumable"
	"github.com/caddymedia/media/caddymedia/internal/front/caller"
	"github.com/caddymedia/media/caddymedia/internal/front/httpx"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
)

// keep stores the held uploads that a form names.
func (q *itemsRequest) keep(ctx context.Context, form url.Values) error {
	if problem := keepProblem(form); problem != "" {
		return q.bad(ctx, problem)
	}
	ended, refused := q.permit.BeginUpload(q.w)
	if refused != nil {
		return q.refuse(ctx, refused)
	}
	defer ended()
	items, failures := q.permit.KeepHeld(ctx, op.Keeping{
		Alias: q.alias, Held: form["held"], SubFolder: form.Get("sub_folder"), Filename: form.Get("filename"), BaseURL: q.base(),
	})
	if failures != nil {
		return q.uploadFailed(ctx, failures)
	}
	q.BoundAnswer(q.w)
	return httpx.AnswerItems(q.w, http.StatusOK, items)
}

// keepProblem returns the problem of a form with held uploads, for the caller; empty if there is
// none.
func keepProblem(form url.Values) string {
	held := form["held"]
	if name := caller.SentTwice(form, "sub_folder", "filename"); name != "" {
		return "the field " + name + " is sent twice"
	}
	switch {
	case len(held) == 0:
		return "the fields held are missing"
	case len(held) > resumable.MaxKept:
		return fmt.Sprintf("there are more than %d fields held", resumable.MaxKept)
	case form.Get("filename") != "" && len(held) > 1:
		return "the field filename is for one field held"
	case max(len(form.Get("filename")), len(form.Get("sub_folder"))) > item.MaxName:
		return "the filename or the sub folder is too long"
	}
	if _, at := op.Distinct(held); len(at) < len(held) {
		return "a held upload is named twice"
	}
	return ""
}
