package items

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/op"
	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/front/caller"
	"github.com/caddymedia/media/caddymedia/internal/front/httpx"
	"github.com/caddymedia/media/caddymedia/internal/front/serve"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/internal/leaf/naming"
	"github.com/caddymedia/media/storagedrivers"
)

// trashAnswer is a page of the trash.
type trashAnswer struct {
	Success bool         `json:"success"`
	Result  []keptAnswer `json:"result"`
	Next    string       `json:"next,omitempty"`
	// Complete is false if the bounds of a request ended the page. Otherwise it is nil.
	Complete *bool `json:"complete,omitempty"`
}

// keptAnswer is an entry of the trash.
type keptAnswer struct {
	ID          string `json:"id"`
	Filename    string `json:"filename"`
	Size        int64  `json:"size"`
	ContentType string `json:"content_type"`
	// Stored, Removed and ExpiresAt are times of RFC 3339.
	Stored    time.Time `json:"stored"`
	Removed   time.Time `json:"removed"`
	ExpiresAt time.Time `json:"expires_at"`
}

// restoredAnswer is the response to a request that brings items back.
type restoredAnswer struct {
	Success bool             `json:"success"`
	Result  []restoredResult `json:"result"`
}

type restoredResult struct {
	ID       string `json:"id"`
	Filename string `json:"filename,omitempty"`
	Restored bool   `json:"restored"`
	FullPath string `json:"full_path,omitempty"`
	Trash    string `json:"trash,omitempty"` // of the item that was replaced
	Message  string `json:"message,omitempty"`
}

// purgedAnswer is the response to a request that removes what is in the trash.
type purgedAnswer struct {
	Success bool           `json:"success"`
	Result  []purgedResult `json:"result"`
	// Purged is the number of entries, and More whether some are left. They are nil if the request
	// names its entries.
	Purged *int  `json:"purged,omitempty"`
	More   *bool `json:"more,omitempty"`
}

type purgedResult struct {
	ID      string `json:"id"`
	Purged  bool   `json:"purged"`
	Message string `json:"message,omitempty"`
}

// trash answers a GET of the trash: a page of it, or the bytes of an entry.
func (q *itemsRequest) trash(ctx context.Context, values url.Values) error {
	if name := caller.SentTwice(values, "trash", "folder", "filename", "search", "order", "limit", "cursor"); name != "" {
		return q.bad(ctx, "the parameter "+name+" is sent twice")
	}
	if id := values.Get("trash"); id != "1" {
		return q.keptBytes(ctx, id)
	}
	query, problem := q.trashQuery(values)
	if problem != "" {
		return q.bad(ctx, problem)
	}
	leave, refused := q.permit.EnterQueue(ctx, q.w, service.OtherCall, maxListed)
	if refused != nil {
		return q.refuse(ctx, refused)
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, maxListTime)
	defer cancel()
	page, err := q.permit.ListTrash(ctx, query)
	if err != nil {
		return q.errored(ctx, "list the trash", err)
	}
	answer := trashAnswer{Success: true, Result: make([]keptAnswer, len(page.Entries)), Next: page.Next}
	if page.Incomplete {
		answer.Complete = new(bool)
	}
	for i, entry := range page.Entries {
		answer.Result[i] = keptAnswer{
			ID: entry.ID(), Filename: entry.Filename, Size: entry.Size, ContentType: q.alias.ContentType(naming.Extension(entry.Filename)),
			Stored: entry.Stored.UTC(), Removed: entry.Removed.UTC(), ExpiresAt: q.alias.EndOf(entry.Kept).UTC(),
		}
	}
	return httpx.AnswerUnread(q.w, q.r, http.StatusOK, answer)
}

// trashQuery returns the query in the parameters of a list of the trash, or their problem.
func (q *itemsRequest) trashQuery(values url.Values) (query service.TrashQuery, problem string) {
	query = service.TrashQuery{
		Alias: q.alias, Folder: values.Get("folder"), Filename: values.Get("filename"), Search: values.Get("search"),
		Limit: defaultPage, Cursor: values.Get("cursor"), MaxExamined: maxExamined, MaxTime: maxSearchTime,
	}
	switch values.Get("order") {
	case "", "-removed":
	case "removed":
		query.OldestFirst = true
	default:
		return query, "the parameter order is removed or -removed"
	}
	switch {
	case query.Filename != "" && (values.Has("folder") || values.Has("search")):
		return query, "send either the parameter filename, or folder and search"
	case query.Filename != "" && storagedrivers.ValidKey(query.Filename) != nil:
		return query, "the filename is invalid"
	case len(query.Search) > item.MaxName:
		return query, "the parameter search is too long"
	}
	if query.Filename == "" && query.Folder == "" {
		query.Folder = q.permit.Account.Folder
	}
	if limit := values.Get("limit"); limit != "" {
		n, err := strconv.ParseUint(limit, 10, 16)
		if err != nil || n < 1 || n > maxPage {
			return query, "the parameter limit is a number from 1 to " + strconv.Itoa(maxPage)
		}
		query.Limit = int(n)
	}
	return query, folderProblem(q.alias, query.Folder)
}

// keptBytes answers with the bytes of an entry, as an attachment.
func (q *itemsRequest) keptBytes(ctx context.Context, id string) error {
	if len(q.r.URL.Query()) > 1 {
		return q.bad(ctx, "the parameter trash has an ID: leave out the other parameters")
	}
	kept, failure := q.permit.Kept(q.alias, id)
	if failure != nil {
		return q.failed(ctx, failure)
	}
	trash, filename := q.alias.InTrash(kept)
	trash.Kind = q.kind // that of metrics
	err := serve.New(q.Gate).Object(q.permit.Service, q.w, q.r.WithContext(ctx), trash, filename, serve.ObjectOptions{
		Tag: func(tag string, _ int64) string { return tag },
		Header: func(h http.Header) {
			h.Set("Content-Disposition", serve.Attachment(path.Base(kept.Filename)))
			h.Set("Cache-Control", "no-store")
		},
	})
	failed, ok := errors.AsType[*httpx.Error](err)
	switch {
	case !ok:
		return err
	case failed.Status == http.StatusNotFound:
		return q.errored(ctx, "", fs.ErrNotExist)
	case failed.Status == http.StatusTooManyRequests, failed.Status == http.StatusServiceUnavailable:
		return q.refuse(ctx, caller.Refuse(failed.Status, item.Busy, "the item cannot be sent now, try again later"))
	}
	return q.errored(ctx, "read the item", failed)
}

// restore brings back the entries that a form names.
func (q *itemsRequest) restore(ctx context.Context, form url.Values) error {
	if form.Has("at") {
		return q.restorePast(ctx, form)
	}
	rename, replace := form.Get("rename"), form.Get("replace")
	switch name := caller.SentTwice(form, "rename", "replace"); {
	case name != "":
		return q.bad(ctx, "the field "+name+" is sent twice")
	case form.Has("rename") && rename != "1", form.Has("replace") && replace != "1":
		return q.bad(ctx, "the fields rename and replace are 1, or are left out")
	case rename != "" && replace != "":
		return q.bad(ctx, "send either the field rename or the field replace")
	case rename != "" && q.alias.Overwrite:
		return q.bad(ctx, "the items of this alias are replaced: send replace=1 in place of rename")
	case replace != "" && !q.alias.Overwrite:
		return q.bad(ctx, "the items of this alias are never replaced: send rename=1 in place of replace")
	}
	ids, problem := idsOf(form)
	if problem != "" {
		return q.bad(ctx, problem)
	}
	ended, refused := q.permit.BeginUpload(q.w)
	if refused != nil {
		return q.refuse(ctx, refused)
	}
	defer ended()
	q.reported = true // by the operation
	distinct, at := op.Distinct(ids)
	outcomes, failure := q.permit.Restore(ctx, op.Restoration{
		Alias: q.alias, IDs: distinct, Rename: rename != "", Replace: replace != "", BaseURL: q.base(),
	})
	if failure != nil {
		return q.failed(ctx, failure)
	}
	q.BoundAnswer(q.w)
	answer := restoredAnswer{Success: true, Result: make([]restoredResult, len(ids))}
	for i, id := range ids {
		result, outcome := &answer.Result[i], outcomes[at[id]]
		if result.ID = id; outcome.Failure != nil {
			result.Message = outcome.Failure.Message
			continue
		}
		result.Restored, result.Filename = true, outcome.Item.Filename
		result.FullPath, result.Trash = outcome.Item.FullPath, outcome.Item.Trash
	}
	return httpx.AnswerUnread(q.w, q.r, http.StatusOK, answer)
}

// purge removes the entries that a form names, or all, for good.
func (q *itemsRequest) purge(ctx context.Context, form url.Values) error {
	if everything := form["everything"]; everything != nil {
		if len(everything) != 1 || everything[0] != "yes" || form.Has("id") {
			return q.bad(ctx, "the field everything is yes, without fields id")
		}
		q.reported = true
		number, more, failure := q.permit.PurgeAll(ctx, q.alias)
		if failure != nil {
			return q.failed(ctx, failure)
		}
		q.BoundAnswer(q.w)
		return httpx.AnswerUnread(q.w, q.r, http.StatusOK, purgedAnswer{Success: true, Result: []purgedResult{}, Purged: &number, More: &more})
	}
	ids, problem := idsOf(form)
	if problem != "" {
		return q.bad(ctx, problem)
	}
	q.reported = true
	distinct, at := op.Distinct(ids)
	failures, failure := q.permit.Purge(ctx, q.alias, distinct)
	if failure != nil {
		return q.failed(ctx, failure)
	}
	q.BoundAnswer(q.w)
	answer := purgedAnswer{Success: true, Result: make([]purgedResult, len(ids))}
	for i, id := range ids {
		answer.Result[i] = purgedResult{ID: id, Purged: failures[at[id]] == nil}
		if failed := failures[at[id]]; failed != nil {
			answer.Result[i].Message = failed.Message
		}
	}
	return httpx.AnswerUnread(q.w, q.r, http.StatusOK, answer)
}

// idsOf returns the IDs in a form, or its problem.
func idsOf(form url.Values) (ids []string, problem string) {
	ids = form["id"]
	switch {
	case form.Has("folder"), form.Has("filename"):
		return nil, "send fields id, without folder and filename"
	case len(ids) == 0:
		return nil, "the fields id are missing"
	case len(ids) > op.MaxSet:
		return nil, fmt.Sprintf("there are more than %d fields id", op.MaxSet)
	}
	for _, id := range ids {
		if _, ok := item.KeptOf(id); !ok {
			return nil, fmt.Sprintf("%.64q is not the ID of an item in the trash", id)
		}
	}
	return ids, ""
}

// actionRights are the rights of the actions that a form on an alias may name.
var actionRights = map[string]access.Right{
	"delete": access.Delete, "restore": access.Restore, "purge": access.Purge, "keep": access.Upload,
}
