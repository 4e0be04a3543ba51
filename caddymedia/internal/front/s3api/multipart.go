package s3api

import (
	"cmp"
	"encoding/base64"
	"errors"
	"hash"
	"io"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/caddymedia/media/caddymedia/internal/core/resumable"
	"github.com/caddymedia/media/caddymedia/internal/front/httpx"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
)

// Bounds of multipart uploads, https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html.
const (
	maxPart  = 5 << 30
	minPart  = 5 << 20
	maxParts = 10_000
)

// uploads returns the store of resumable uploads, which multipart uploads are.
func (q *request) uploads() (*resumable.Store, *Error) {
	store := q.running.Uploads()
	if store == nil {
		return nil, errorOf(notImplemented, "multipart uploads need resumable uploads, which are off")
	}
	return store, nil
}

func (q *request) record() resumable.Record {
	actor := q.permit.Actor
	folder, name := splitKey(q.key)
	return resumable.Record{
		Owner: actor.Owner(), Origin: string(actor.Origin), Account: actor.Account, Client: actor.Client, Address: actor.Ticket,
		Kind: q.alias.Kind.Name(), Alias: q.alias.Name, SubFolder: folder, Filename: name, Length: resumable.Unknown,
	}
}

// createMultipart begins a multipart upload.
func (q *request) createMultipart() *Error {
	store, failed := q.uploads()
	if failed != nil {
		return failed
	}
	req, name, failed := q.upload()
	if failed != nil {
		return failed
	}
	if failures := q.running.Uploader().Precheck(q.ctx, req, name, 0); failures != nil {
		return q.failure(failures)
	}
	algorithm := one(q.r.Header, "X-Amz-Checksum-Algorithm")
	if algorithm != "" && checksums[strings.ToLower(algorithm)] == nil {
		return errorOf(invalidRequest, "the header x-amz-checksum-algorithm names no algorithm that is known here")
	}
	rec := q.record()
	rec.Form, rec.Metadata = resumable.Multipart, strings.ToLower(algorithm)
	u, err := store.Create(q.ctx, q.running.UploadStorage(q.alias.Kind, q.alias.Name), resumable.Creation{Record: rec, Files: 1})
	if err != nil {
		return q.multipartError(err)
	}
	if algorithm != "" {
		q.w.Header().Set("X-Amz-Checksum-Algorithm", algorithm)
	}
	q.answer(http.StatusOK, "InitiateMultipartUploadResult", struct {
		Bucket   string
		Key      string
		UploadId string //nolint:revive // the name of the element
	}{Bucket: q.bucket, Key: q.key, UploadId: u.ID})
	return nil
}

// multipartError returns the error for one of the store of resumable uploads.
func (q *request) multipartError(err error) *Error {
	body, isBody := errors.AsType[*resumable.BodyError](err)
	switch {
	case isBody:
		if failed, ok := errors.AsType[*Error](body.Err); ok {
			return failed
		}
		return errorOf(incompleteBody, "the body could not be read to its end")
	case errors.Is(err, resumable.ErrUnknown), errors.Is(err, fs.ErrNotExist):
		return errNoSuchUpload
	case errors.Is(err, resumable.ErrParts), errors.Is(err, resumable.ErrRepeated), errors.Is(err, resumable.ErrScope):
		return errorOf(invalidPart, "a part is missing, or its entity tag is another one")
	case errors.Is(err, resumable.ErrSmall):
		return &Error{http.StatusBadRequest, "EntityTooSmall", "each part but the last has at least 5 MiB"}
	case errors.Is(err, resumable.ErrTooLarge):
		return errorOf(entityTooLarge, "the part is too large")
	case errors.Is(err, resumable.ErrTooMany):
		return errorOf(slowDown, "the account has too many unfinished uploads, or too many bytes in them")
	}
	if failure, ok := errors.AsType[*item.Failure](err); ok {
		return q.failure(item.Failures{failure})
	}
	if failures, ok := errors.AsType[item.Failures](err); ok {
		return q.failure(failures)
	}
	return storageError("store the part", err)
}

var errNoSuchUpload = &Error{http.StatusNotFound, "NoSuchUpload", "there is no such multipart upload: it was completed, aborted, or has expired"}

// multipart returns the multipart upload of the request.
func (q *request) multipart() (*resumable.Store, *resumable.Upload, *Error) {
	store, failed := q.uploads()
	if failed != nil {
		return nil, nil, failed
	}
	u, err := store.Find(q.ctx, q.permit.Actor.Owner(), q.query.Get("uploadId"))
	if err != nil {
		return nil, nil, q.multipartError(err)
	}
	folder, name := splitKey(q.key)
	if u.Outcome != nil || u.Form != resumable.Multipart || u.Kind != q.alias.Kind.Name() || u.Alias != q.alias.Name || u.SubFolder != folder || u.Filename != name {
		return nil, nil, errNoSuchUpload
	}
	return store, u, nil
}

// partNumber returns the number of the part.
func (q *request) partNumber() (int, *Error) {
	n, err := strconv.ParseUint(q.query.Get("partNumber"), 10, 31) // which takes no sign
	if err != nil || n < 1 || n > maxParts {
		return 0, errorOf(invalidArgument, "partNumber is a number from 1 to 10,000")
	}
	return int(n), nil
}

// uploadPart stores the body as a part.
func (q *request) uploadPart() *Error {
	httpx.Watch(q.r)
	body, length, failed := bodyOf(q.r, q.signature, q.secret)
	if failed != nil {
		return failed
	}
	timed, stop := httpx.NewTimedBody(q.w, io.NopCloser(body), q.running.UploadTime(q.permit.Ticket))
	defer stop()
	part, failed := q.storePart(timed, length, timed.End, body.sums)
	if failed != nil {
		return failed
	}
	return q.stored(body, partTag(part))
}

// partTag returns the entity tag of a part, which has its ID.
func partTag(part *resumable.Upload) string { return `"` + part.ID + tagEnd + `"` }

// tagEnd ends all entity tags, so that no client takes one for an MD5.
const tagEnd = "-1"

// storePart stores bytes as a part, with the checksums that are known at their end, and with that
// of the algorithm of the multipart upload. length is negative if it is not known.
func (q *request) storePart(from io.Reader, length int64, interrupt func(), sums func() map[string]string) (*resumable.Upload, *Error) {
	number, failed := q.partNumber()
	if failed != nil {
		return nil, failed
	}
	store, multipart, failed := q.multipart()
	if failed != nil {
		return nil, failed
	}
	limit := min(maxPart, q.alias.MaxSize)
	if length > limit {
		return nil, errorOf(entityTooLarge, "the part is larger than an item may be")
	}
	ended, refused := q.permit.BeginUpload(q.w)
	if refused != nil {
		return nil, failureError(refused.Failure)
	}
	defer ended()
	rec := q.record()
	rec.Form, rec.Multipart, rec.Number = resumable.Part, multipart.ID, number
	if length >= 0 {
		limit = length
	}
	var own hash.Hash
	if algorithm := checksums[multipart.Metadata]; algorithm != nil {
		own = algorithm()
		from = io.TeeReader(from, own)
	}
	part, err := store.Create(q.ctx, multipart.Storage(), resumable.Creation{Record: rec, Files: 1, Limit: limit})
	if err != nil {
		return nil, q.multipartError(err)
	}
	err = part.Append(q.ctx, resumable.Body{
		Reader: from, Limit: limit, Interrupt: interrupt,
		Reserve: func() (func(), error) { return q.running.ReserveFile(q.permit.Actor) },
	})
	if err == nil && length >= 0 && part.Offset() != length {
		err = &resumable.BodyError{Err: errorOf(incompleteBody, "the body is shorter than it says")}
	}
	if err == nil { // the part is complete only now that its hashes and signatures are right
		known := sums()
		if own != nil {
			known[multipart.Metadata] = base64.StdEncoding.EncodeToString(own.Sum(nil))
		}
		err = part.CompletePart(q.ctx, multipart, known)
	}
	if err != nil {
		part.Drop(q.ctx, nil)
		return nil, q.multipartError(err)
	}
	return part, nil
}

// copyPart stores an object, or a range of one, as a part.
func (q *request) copyPart() *Error {
	if failure := q.permit.NeedOne(mayList...); failure != nil {
		return failureError(failure)
	}
	from, stored, _, failed := q.source()
	if failed != nil {
		return failed
	}
	wanted, failed := copyRange(q.r.Header.Get("X-Amz-Copy-Source-Range"), stored.Size)
	if failed != nil {
		return failed
	}
	reader, info, err := from.Storage.Open(q.ctx, stored.Key, wanted)
	if err != nil {
		return storageError("read the source", err)
	}
	defer reader.Close()
	if !info.Same(stored) {
		return errorOf(operationAborted, "the source is being replaced, try again later")
	}
	part, failed := q.storePart(reader, wanted.Length, func() {}, func() map[string]string { return map[string]string{} })
	if failed != nil {
		return failed
	}
	q.answer(http.StatusOK, "CopyPartResult", struct {
		LastModified string
		ETag         string
	}{LastModified: stamp(part.Changed()), ETag: partTag(part)})
	return nil
}

// copyRange returns the range of a source; the whole one without a header.
func copyRange(header string, size int64) (storagedrivers.Range, *Error) {
	if header == "" {
		return storagedrivers.Range{Length: size}, nil
	}
	bounds, inBytes := strings.CutPrefix(header, "bytes=")
	first, last, isRange := strings.Cut(bounds, "-")
	from, err := strconv.ParseUint(first, 10, 63)
	to, lastErr := strconv.ParseUint(last, 10, 63)
	switch {
	case !inBytes || !isRange || err != nil || lastErr != nil || from > to:
		return storagedrivers.Range{}, errorOf(invalidArgument, "the header x-amz-copy-source-range is bytes=<first>-<last>")
	case int64(to) >= size:
		return storagedrivers.Range{}, errorOf(invalidRange, "the source has no such range")
	}
	return storagedrivers.Range{Offset: int64(from), Length: int64(to-from) + 1}, nil
}

// abortMultipart removes a multipart upload and its parts.
func (q *request) abortMultipart() *Error {
	_, u, failed := q.multipart()
	if failed != nil {
		return failed
	}
	if err := u.EndMultipart(q.ctx); err != nil {
		return q.multipartError(err)
	}
	q.w.WriteHeader(http.StatusNoContent)
	return nil
}

type partAnswer struct {
	PartNumber   int
	LastModified string
	ETag         string
	Size         int64
}

// listParts answers with the parts of a multipart upload.
func (q *request) listParts() *Error {
	store, u, failed := q.multipart()
	if failed != nil {
		return failed
	}
	after, most, failed := q.page("part-number-marker", "max-parts")
	if failed != nil {
		return failed
	}
	marker, err := strconv.Atoi("0" + after)
	if err != nil {
		return errorOf(invalidArgument, "part-number-marker is a number")
	}
	parts, err := store.MultipartParts(q.ctx, u)
	if err != nil {
		return q.multipartError(err)
	}
	answer := struct {
		Bucket               string
		Key                  string
		UploadId             string //nolint:revive // the name of the element
		Initiator, Owner     owner
		StorageClass         string
		PartNumberMarker     int
		NextPartNumberMarker int
		MaxParts             int
		IsTruncated          bool
		Part                 []partAnswer
	}{
		Bucket: q.bucket, Key: q.key, UploadId: u.ID, Initiator: q.owner(), Owner: q.owner(), StorageClass: "STANDARD",
		PartNumberMarker: marker, MaxParts: most,
	}
	for _, part := range parts {
		switch {
		case part.Number <= marker:
		case len(answer.Part) == most:
			answer.IsTruncated = true
		default:
			answer.Part = append(answer.Part, partAnswer{part.Number, stamp(part.Changed()), partTag(part), part.Length})
			answer.NextPartNumberMarker = part.Number
		}
	}
	q.answer(http.StatusOK, "ListPartsResult", answer)
	return nil
}

type multipartAnswer struct {
	Key              string
	UploadId         string //nolint:revive // the name of the element
	Initiator, Owner owner
	StorageClass     string
	Initiated        string
}

// listMultiparts answers with the multipart uploads of the account in the bucket.
func (q *request) listMultiparts() *Error {
	store, failed := q.uploads()
	if failed != nil {
		return failed
	}
	marker, most, failed := q.page("key-marker", "max-uploads")
	if failed != nil {
		return failed
	}
	all, err := store.Multiparts(q.ctx, q.permit.Actor.Owner())
	if err != nil {
		return q.multipartError(err)
	}
	answer := struct {
		Bucket             string
		KeyMarker          string
		NextKeyMarker      string `xml:",omitempty"`
		NextUploadIdMarker string `xml:",omitempty"` //nolint:revive // the name of the element
		Prefix, Delimiter  string
		MaxUploads         int
		IsTruncated        bool
		Upload             []multipartAnswer
		CommonPrefixes     []prefixAnswer
	}{Bucket: q.bucket, KeyMarker: marker, Prefix: q.query.Get("prefix"), Delimiter: q.query.Get("delimiter"), MaxUploads: most}
	for _, u := range all {
		if u.Kind == q.alias.Kind.Name() && u.Alias == q.alias.Name {
			answer.Upload = append(answer.Upload, multipartAnswer{
				Key: strings.TrimPrefix(path.Join(u.SubFolder, u.Filename), "/"), UploadId: u.ID, Initiator: q.owner(), Owner: q.owner(),
				StorageClass: "STANDARD", Initiated: stamp(u.Created),
			})
		}
	}
	answer.Upload = slices.DeleteFunc(answer.Upload, func(u multipartAnswer) bool {
		return !strings.HasPrefix(u.Key, answer.Prefix) || u.Key < marker || u.Key == marker && u.UploadId <= q.query.Get("upload-id-marker")
	})
	slices.SortFunc(answer.Upload, func(a, b multipartAnswer) int {
		return cmp.Or(strings.Compare(a.Key, b.Key), strings.Compare(a.UploadId, b.UploadId))
	})
	uploads := answer.Upload
	answer.Upload = nil
	for _, u := range uploads {
		prefix, isPrefix := commonPrefix(u.Key, answer.Prefix, answer.Delimiter)
		switch {
		case isPrefix && (prefix <= marker || slices.Contains(answer.CommonPrefixes, prefixAnswer{prefix})):
			continue
		case len(answer.Upload)+len(answer.CommonPrefixes) == most:
			answer.IsTruncated = true
		case isPrefix:
			answer.CommonPrefixes = append(answer.CommonPrefixes, prefixAnswer{prefix})
			answer.NextKeyMarker, answer.NextUploadIdMarker = prefix, ""
		default:
			answer.Upload = append(answer.Upload, u)
			answer.NextKeyMarker, answer.NextUploadIdMarker = u.Key, u.UploadId
		}
		if answer.IsTruncated {
			break
		}
	}
	if !answer.IsTruncated {
		answer.NextKeyMarker, answer.NextUploadIdMarker = "", ""
	}
	q.answer(http.StatusOK, "ListMultipartUploadsResult", answer)
	return nil
}

// page returns the marker and the size of the page that a list asks for.
func (q *request) page(marker, most string) (after string, size int, failed *Error) {
	size = maxKeys
	if text := q.query.Get(most); text != "" {
		n, err := strconv.ParseUint(text, 10, 31)
		if err != nil || n == 0 {
			return "", 0, errorOf(invalidArgument, most+" is a number, at least 1")
		}
		size = min(int(n), maxKeys)
	}
	return q.query.Get(marker), size, nil
}
