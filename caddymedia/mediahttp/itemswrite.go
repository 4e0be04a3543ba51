package mediahttp

import (
	"context"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/bytesize"
	"github.com/caddymedia/media/caddymedia/internal/httpx"
	"github.com/caddymedia/media/caddymedia/internal/item"
	"github.com/caddymedia/media/caddymedia/internal/service"
	"github.com/caddymedia/media/caddymedia/internal/upload"
	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/storagedrivers"
)

// replace replaces the item of the address by the body, if it is the one of the condition.
func (q *itemsRequest) replace(ctx context.Context) error {
	if len(q.r.Header.Values("If-Match")) == 0 {
		return q.refuse(ctx, &refusal{
			http.StatusPreconditionRequired, item.BadRequest,
			"the header If-Match is missing: send the entity tag of the item, or * for any",
		})
	}
	if refused := bodyRefusal(q.kind, q.r.Header, q.r.URL.Query()); refused != nil {
		return q.refuse(ctx, refused)
	}
	matches, refused := q.condition()
	if refused != nil {
		return q.refuse(ctx, refused)
	}
	if !q.alias.MayBeItem(q.address.filename) {
		return q.storageFailed(ctx, "", fs.ErrNotExist)
	}
	limits := q.running.Limits()
	if q.r.ContentLength > limits.MaxBody {
		return q.refuse(ctx, &refusal{
			http.StatusRequestEntityTooLarge, item.TooLarge, "the request is larger than " + bytesize.Format(limits.MaxBody),
		})
	}
	stored, err := q.stored(ctx)
	if err != nil {
		return q.storageFailed(ctx, "read the item", err)
	}
	req := upload.Replacement{
		Request: q.writeRequest(tokens.Replace, q.address.alias), Filename: q.address.filename, Matches: matches, Stored: stored,
	}
	uploader := q.running.Uploader()
	if failures := uploader.PrecheckReplacement(ctx, req, max(q.r.ContentLength, 0)); failures != nil { // the body need not be read
		return q.uploadFailed(ctx, failures)
	}
	ended, refused := q.begin()
	if refused != nil {
		return q.refuse(ctx, refused)
	}
	defer ended()
	body, stop, refused := q.body()
	defer stop()
	if refused != nil {
		return q.refuse(ctx, refused)
	}
	items, failures := uploader.Replace(ctx, req, upload.Body(q.address.filename, body))
	if failures != nil {
		return q.uploadFailed(ctx, failures)
	}
	return httpx.AnswerReplaced(q.w, items, q.alias.CachedFor())
}

// body returns the body of a replacement, within its limits, or the refusal of a repetition with
// another one. The caller must call stop.
func (q *itemsRequest) body() (body io.Reader, stop func(), refused *refusal) {
	httpx.Watch(q.r)
	limits := q.running.Limits()
	timed, stop := httpx.NewTimedBody(q.w, q.r.Body, time.Duration(limits.MaxUploadTime))
	body, refused = q.rep.match(http.MaxBytesReader(q.w, timed, limits.MaxBody), "")
	return body, stop, refused
}

// stored returns the item of the address; the zero Info if there is none.
func (q *itemsRequest) stored(ctx context.Context) (storagedrivers.Info, error) {
	ctx, cancel := context.WithTimeout(ctx, maxListTime)
	defer cancel()
	return item.Stat(ctx, q.alias.Storage, q.alias.Key(q.address.filename))
}

// condition returns the condition of the request. Without one it matches any item.
func (q *itemsRequest) condition() (matches func(storagedrivers.Info) bool, refused *refusal) {
	return conditionOf(q.r.Header, q.alias)
}

// begin counts the request as an upload of the account until ended is called.
func (q *itemsRequest) begin() (ended func(), refused *refusal) {
	ended, ok := q.running.BeginUpload(q.actor(), nil, 0)
	if !ok {
		httpx.RetryAfter(q.w, time.Second)
		return nil, tooManyUploads
	}
	return q.rep.untilSent(ended), nil
}

// writeRequest returns a request to store an item in an alias. The account must have the right for
// that alias and for the one of the address, also right before the commit.
func (q *itemsRequest) writeRequest(right tokens.Right, alias string) upload.Request {
	return upload.Request{
		Kind: q.kind, Alias: alias, Allows: q.account.Allows, Actor: q.actor(),
		Forced:     service.ForcedBy(tokens.Caller{Account: q.account}),
		BaseURL:    q.baseURL,
		Repetition: q.rep.repeats(),
		Confirm: func(ctx context.Context, c upload.Commitment) (settle func(upload.Outcome), failure *item.Failure) {
			running, release := q.next()
			defer release()
			caller, refused := q.authenticate(ctx, running)
			account := caller.Account
			if refused == nil {
				refused = rightRefusal(account, right)
			}
			if refused == nil && (!account.Allows(c.Alias) || !account.Allows(q.address.alias)) {
				refused = otherAlias
			}
			if refused == nil && account.Folder != q.account.Folder {
				refused = otherFolder
			}
			if refused == nil {
				refused = q.rep.keep(ctx, q.Handler, c.Alias)
			}
			if refused != nil {
				return nil, &item.Failure{Reason: refused.reason, Message: refused.message}
			}
			return q.rep.settle, nil
		},
	}
}

// uploadFailed responds with failures that the uploader has reported.
func (q *itemsRequest) uploadFailed(ctx context.Context, failures item.Failures) error {
	status := httpx.StatusOf(failures)
	q.running.Observer().Failed(ctx, itemsEndpoint, strconv.Itoa(status))
	return httpx.Refuse(q.w, q.r, q.options.Log, status, failures)
}
