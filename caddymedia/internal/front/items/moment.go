package items

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/op"
	"github.com/caddymedia/media/caddymedia/internal/front/caller"
	"github.com/caddymedia/media/caddymedia/internal/front/httpx"
	"github.com/caddymedia/media/caddymedia/internal/leaf/moment"
)

// pastAnswer is the response to a request that brings a folder back to a moment.
type pastAnswer struct {
	Success bool `json:"success"`
	DryRun  bool `json:"dry_run,omitempty"`
	// Began is when the first request began: bringing the folder back to it undoes all. It has the
	// microseconds of the entries in the trash.
	Began time.Time `json:"began"`
	moment.Tally
	Failed []failed `json:"failed"`
	// Cursor is that of the next request; empty after the last.
	Cursor string `json:"cursor,omitempty"`
}

// failed is an item that is left as it is.
type failed struct {
	Filename string `json:"filename"`
	Message  string `json:"message"`
}

// pastNames is the most filenames of an action in an answer.
const pastNames = 100

// restorePast brings a folder back to the moment that a form names.
func (q *itemsRequest) restorePast(ctx context.Context, form url.Values) error {
	past, problem := q.past(form)
	if problem != "" {
		return q.bad(ctx, problem)
	}
	ended, refused := q.permit.BeginUpload(q.w)
	if refused != nil {
		return q.refuse(ctx, refused)
	}
	defer ended()
	q.reported = !past.DryRun // by the operation
	page, failure := q.permit.RestorePast(ctx, past)
	q.BoundAnswer(q.w)
	if failure != nil {
		return q.failed(ctx, failure)
	}
	return httpx.AnswerUnread(q.w, q.r, http.StatusOK, pastAnswerOf(past, page))
}

// past returns the request in a form, or its problem.
func (q *itemsRequest) past(form url.Values) (past op.Past, problem string) {
	if name := caller.SentTwice(form, "folder", "at", "dry_run", "cursor"); name != "" {
		return past, "the field " + name + " is sent twice"
	}
	for _, other := range []string{"id", "filename", "rename", "replace"} {
		if form.Has(other) {
			return past, "send the fields folder and at without the field " + other
		}
	}
	at, err := time.Parse(time.RFC3339, form.Get("at"))
	folder := form.Get("folder")
	switch {
	case err != nil:
		return past, "the field at is a time of RFC 3339, such as 2026-11-29T14:30:00Z"
	case folder == "":
		return past, "the field folder is missing: / is all of the alias"
	case form.Has("dry_run") && form.Get("dry_run") != "1":
		return past, "the field dry_run is 1, or is left out"
	}
	if folder == "/" {
		folder = q.permit.Account.Folder
	}
	past = op.Past{
		Alias: q.alias, Folder: folder, At: at, Cursor: form.Get("cursor"), DryRun: form.Has("dry_run"), BaseURL: q.base(),
	}
	return past, folderProblem(q.alias, folder)
}

// pastAnswerOf returns the answer with a page.
func pastAnswerOf(past op.Past, page op.PastPage) pastAnswer {
	answer := pastAnswer{Success: true, DryRun: past.DryRun, Began: page.Began.UTC(), Failed: []failed{}, Cursor: page.Cursor}
	for _, step := range page.Steps {
		if step.Failure != nil {
			answer.Failed = append(answer.Failed, failed{step.Filename, step.Failure.Message})
		} else {
			answer.Add(step.Action, step.Filename, step.Size(), pastNames)
		}
	}
	return answer
}
