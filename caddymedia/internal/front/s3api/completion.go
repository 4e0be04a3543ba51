package s3api

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/resumable"
	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/front/httpx"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
)

// keepAlive is how often a client that waits for the end of a multipart upload gets a blank.
const keepAlive = 10 * time.Second

type completeRequest struct {
	XMLName xml.Name        `xml:"CompleteMultipartUpload"`
	Parts   []completedPart `xml:"Part"`
}

type completedPart struct {
	PartNumber        int
	ETag              string
	ChecksumCRC32     string
	ChecksumCRC32C    string
	ChecksumCRC64NVME string
	ChecksumSHA1      string
	ChecksumSHA256    string
}

// sums returns the checksums of the part by their algorithms; empty ones were not sent.
func (p *completedPart) sums() map[string]string {
	return map[string]string{
		"crc32": p.ChecksumCRC32, "crc32c": p.ChecksumCRC32C, "crc64nvme": p.ChecksumCRC64NVME, "sha1": p.ChecksumSHA1,
		"sha256": p.ChecksumSHA256,
	}
}

// completeMultipart makes the object of its parts, with all checks of an upload.
func (q *request) completeMultipart() *Error {
	store, failed := q.uploads()
	if failed != nil {
		return failed
	}
	httpx.Watch(q.r)
	body, failed := signedBody(q.r, q.signature, q.secret)
	if failed != nil {
		return failed
	}
	leave, refused := q.permit.EnterQueue(q.ctx, q.w, service.OtherCall, q.xmlBytes())
	if refused != nil {
		return failureError(refused.Failure)
	}
	var sent completeRequest
	failed = q.readXML(body, &sent)
	if leave(); failed != nil {
		return failed
	}
	ended, refused := q.permit.BeginUpload(q.w)
	if refused != nil {
		return failureError(refused.Failure)
	}
	defer ended()
	rec := q.record()
	rec.Form, rec.Multipart = resumable.Completion, q.query.Get("uploadId")
	if rec.Parts, failed = partsOf(rec.Multipart, sent); failed != nil {
		if _, err := store.Find(q.ctx, rec.Owner, rec.Multipart); errors.Is(err, resumable.ErrUnknown) {
			failed = errNoSuchUpload
		}
		return failed
	}
	stop := q.keepAlive()
	defer stop() // it may panic
	info, failed := q.finish(store, rec, func(parts []*resumable.Upload) error {
		if failed := checkCompletion(q.r.Header, sent.Parts, parts); failed != nil {
			return failed
		}
		return nil
	})
	stop()
	if failed != nil {
		return failed
	}
	q.answer(http.StatusOK, "CompleteMultipartUploadResult", struct {
		Location string
		Bucket   string
		Key      string
		ETag     string
	}{Location: q.BaseURL(q.r) + q.MountPrefix(q.r) + "/" + q.bucket + "/" + encodePath(q.key), Bucket: q.bucket, Key: q.key, ETag: tagOf(q.alias, info)})
	return nil
}

// partsOf returns the IDs of parts, which are their entity tags.
func partsOf(multipart string, sent completeRequest) ([]string, *Error) {
	if len(sent.Parts) == 0 || len(sent.Parts) > maxParts {
		return nil, errorOf(malformedXML, "there are no parts, or more than 10,000")
	}
	ids := make([]string, len(sent.Parts))
	last := 0
	for i, part := range sent.Parts {
		id, isTag := strings.CutSuffix(strings.Trim(part.ETag, `"`), tagEnd)
		number, ok := resumable.NumberOf(multipart, id)
		switch {
		case part.PartNumber <= last:
			return nil, &Error{http.StatusBadRequest, "InvalidPartOrder", "the parts are in the order of their numbers"}
		case !isTag || !ok || number != part.PartNumber:
			return nil, errorOf(invalidPart, "a part is missing, or its entity tag is another one")
		}
		ids[i], last = id, number
	}
	return ids, nil
}

// finish stores the item of a final upload, and removes the multipart upload. A repeated request
// finds the same item.
func (q *request) finish(
	store *resumable.Store, rec resumable.Record, verify func([]*resumable.Upload) error,
) (storagedrivers.Info, *Error) {
	req, _, failed := q.upload()
	if failed != nil {
		return storagedrivers.Info{}, failed
	}
	_, multipart, failed := q.multipart()
	if failed != nil && q.completed(store, rec) == nil {
		return storagedrivers.Info{}, failed
	}
	u, err := store.Create(q.ctx, q.running.UploadStorage(q.alias.Kind, q.alias.Name), resumable.Creation{
		Record: rec, Files: 1, Least: minPart, Verify: verify,
		Admit: func(length int64) error {
			if length > q.alias.MaxSize {
				return errorOf(entityTooLarge, "the object is larger than an item may be")
			}
			return nil
		},
	})
	if err != nil { // another request may have completed it meanwhile, and removed the parts
		if completed := q.completed(store, rec); completed != nil {
			u, err = completed, nil
		}
	}
	if failed, ok := errors.AsType[*Error](err); ok {
		return storagedrivers.Info{}, failed
	}
	if err != nil {
		return storagedrivers.Info{}, q.multipartError(err)
	}
	failures := u.Finish(q.ctx, resumable.Finishing{
		BaseURL: q.BaseURL(q.r), Refusals: resumable.RecordRefusals, Matches: req.Matches, Permits: req.Permits,
		Authorize: func(ctx context.Context, u *resumable.Upload, _ bool) (resumable.Rights, *item.Failure) {
			return q.permit.Rights(ctx, q.alias.Kind, mayWrite, u)
		},
	})
	switch {
	case failures != nil:
		u.Drop(q.ctx, failures) // a repeated completion makes it again
		return storagedrivers.Info{}, q.failure(failures)
	case u.Outcome == nil:
		return storagedrivers.Info{}, errorOf(slowDown, "the upload is being completed, try again later")
	case u.Outcome.Refused != "":
		return storagedrivers.Info{}, errorOf(invalidRequest, u.Outcome.Refused)
	}
	if u.Alias != q.alias.Name || u.Kind != q.alias.Kind.Name() || u.Outcome.Stored != q.key {
		return storagedrivers.Info{}, errNoSuchUpload
	}
	if multipart != nil {
		if err := multipart.EndMultipart(context.WithoutCancel(q.ctx)); err != nil {
			q.Log.Warn("removing the parts of a completed multipart upload", "error", err)
		}
	}
	if u.Item != nil {
		return u.Item.Info, nil
	}
	return q.stat(q.alias, u.Outcome.Stored)
}

// completed returns the upload that another request has completed; nil if none has.
func (q *request) completed(store *resumable.Store, rec resumable.Record) *resumable.Upload {
	u, err := store.FindFinal(q.ctx, q.running.UploadStorage(q.alias.Kind, q.alias.Name), rec)
	if err != nil || u.Outcome == nil {
		return nil
	}
	return u
}

// keepAlive sends blanks until stop is called, since some clients close a connection that says
// nothing for long. The first one makes the status 200: S3 does so too, and an error is in the body
// then.
func (q *request) keepAlive() (stop func()) {
	stopped, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(keepAlive)
		defer tick.Stop()
		for {
			select {
			case <-stopped:
				return
			case <-tick.C:
				q.begin()
				_, _ = io.WriteString(q.w, " ") // the client may be gone
				_ = http.NewResponseController(q.w).Flush()
			}
		}
	}()
	return sync.OnceFunc(func() {
		close(stopped)
		<-ended
	})
}

// begin begins the answer before its status is known.
func (q *request) begin() {
	if q.begun {
		return
	}
	q.begun = true
	q.w.Header().Set("Content-Type", "application/xml")
	q.w.WriteHeader(http.StatusOK)
	_, _ = io.WriteString(q.w, xml.Header) // the client may be gone
}
