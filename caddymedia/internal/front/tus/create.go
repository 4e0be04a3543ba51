package tus

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/caddymedia/media/caddymedia/internal/core/resumable"
	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/core/upload"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/internal/leaf/naming"
)

// create creates an upload, with its first bytes if the request has a body.
func (q *request) create(ctx context.Context) error {
	rec, err := q.record()
	if err != nil {
		return err
	}
	hasBody := hasBodyType(q.r.Header) && q.r.ContentLength != 0
	if !hasBody && !q.isEmpty() {
		return &requestError{http.StatusUnsupportedMediaType, "the Content-Type of the first bytes must be " + bodyType}
	}
	if hasBody && rec.Form == resumable.Final {
		return badRequest("a final upload has no bytes of its own")
	}
	creation := resumable.Creation{
		Record: *rec, Limit: q.limit(rec), Admit: func(length int64) error { return q.admit(ctx, rec, length) },
	}
	if ticket := q.Ticket; ticket != nil {
		creation.SubFolder = cmp.Or(ticket.SubFolder, rec.SubFolder)
		creation.Filename = cmp.Or(ticket.Filename, rec.Filename)
		creation.Files = ticket.MaxUnfinished()
	}
	storage := q.running.UploadStorage(q.Kind, rec.Alias)
	if storage == nil {
		return badRequest("there is no alias to upload to")
	}
	u, err := q.running.Uploads().Create(ctx, storage, creation)
	if err != nil {
		return err
	}
	if err := refused(u); err != nil { // a final upload may have existed
		return err
	}
	if hasBody {
		if err := q.receive(ctx, u, 0, resumable.Unknown); err != nil && (u.Offset() == 0 || errors.Is(err, resumable.ErrTooLarge)) {
			u.Drop(ctx, nil)
			return err
		}
	}
	header := q.w.Header()
	header.Set("Location", q.Path+"/"+u.ID)
	refusals := resumable.RecordKept
	if u.Form == resumable.Final {
		refusals = resumable.RecordRefusals // a repeated request finds it
	}
	if err := q.finish(ctx, u, refusals); err != nil {
		failures, _ := errors.AsType[item.Failures](err)
		if u.Drop(ctx, failures) {
			header.Del("Location")
		}
		return err
	}
	header.Set(headerOffset, strconv.FormatInt(u.Offset(), 10))
	q.describeEnd(u)
	q.w.WriteHeader(http.StatusCreated)
	return nil
}

// record returns the record of the upload that the request creates.
func (q *request) record() (*resumable.Record, error) {
	created := q.NewRecord(q.Kind)
	rec := &created
	if err := readConcat(q.r.Header, rec); err != nil {
		return nil, err
	}
	if err := readLength(q.r.Header, rec); err != nil {
		return nil, err
	}
	metadata, err := readMetadata(q.r.Header, rec)
	if err != nil {
		return nil, err
	}
	rec.Filename = naming.FileNameOf(cmp.Or(metadata["filename"], metadata["name"])) // records are JSON, which is UTF-8
	rec.SubFolder = cmp.Or(metadata["sub_folder"], q.Account.Folder)
	hold, failure := q.HoldOf(metadata["hold"])
	if failure != nil {
		return nil, failure
	}
	rec.Hold = hold
	if rec.Form != resumable.Partial {
		rec.Alias = metadata["alias"]
	}
	rec.Alias = cmp.Or(rec.Alias, service.ForcedBy(q.Caller).Alias, item.DefaultAlias)
	if rec.Filename == "" && rec.Form != resumable.Partial {
		return nil, badRequest("Upload-Metadata has no filename")
	}
	return rec, nil
}

// admit returns the failures with which an upload of a length is sure to be refused.
func (q *request) admit(ctx context.Context, rec *resumable.Record, length int64) error {
	if length > q.maxSize() || rec.Form == resumable.Partial && length > q.limit(rec) {
		return item.Failures{{Reason: item.TooLarge, Message: "larger than any item may be", Filename: rec.Filename}}
	}
	if q.UsedUp() {
		return resumable.Uncounted(access.ErrUsedUp)
	}
	if rec.Form == resumable.Partial {
		return nil
	}
	req := upload.Upload{SubFolder: rec.SubFolder, Request: q.Request(q.Kind, rec.Alias, q.BaseURL, nil)}
	if failures := q.running.Uploader().Precheck(ctx, req, rec.Filename, length); failures != nil {
		return failures
	}
	return nil
}

// maxSize returns the largest item of the kind in bytes.
func (q *request) maxSize() int64 {
	var largest int64
	for _, alias := range q.running.Aliases() {
		if alias.Kind == q.Kind {
			largest = max(largest, alias.MaxSize)
		}
	}
	return largest
}

// limit returns the largest length of an upload of the caller.
func (q *request) limit(rec *resumable.Record) int64 {
	forced := service.ForcedBy(q.Caller)
	alias, ok := q.running.Alias(q.Kind, rec.Alias)
	if !ok || rec.Form == resumable.Partial && forced.Alias == "" { // the alias of the final upload is not known
		return forced.Limit(q.maxSize())
	}
	return forced.Limit(alias.MaxSize)
}
