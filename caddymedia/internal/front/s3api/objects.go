package s3api

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/op"
	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/core/upload"
	"github.com/caddymedia/media/caddymedia/internal/front/caller"
	"github.com/caddymedia/media/caddymedia/internal/front/httpx"
	"github.com/caddymedia/media/caddymedia/internal/front/serve"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
)

// tagOf returns the entity tag of an object, in quotes: that of the item in another form. Clients
// take 32 hexadecimal digits alone for an MD5 of the bytes, but not with a number of parts behind
// them.
func tagOf(alias *item.Alias, info storagedrivers.Info) string {
	if isMarker(info) {
		return folderTag(nameOf(alias, info))
	}
	return tag(caller.EntityTag(alias, info), info.Size)
}

// exactTag is tagOf for changes; empty if the tag may be that of another generation.
func exactTag(alias *item.Alias, info storagedrivers.Info) string {
	if !isMarker(info) && !caller.IsMatchable(alias, caller.EntityTag(alias, info)) {
		return ""
	}
	return tagOf(alias, info)
}

func tag(entity string, size int64) string {
	if entity == "" {
		entity = strconv.FormatInt(size, 10)
	}
	sum := sha256.Sum256([]byte(entity))
	return `"` + hex.EncodeToString(sum[:16]) + tagEnd + `"`
}

// getObject answers with an object, a range of it, or its header.
func (q *request) getObject() *Error {
	if _, isFolder := folderOf(q.key); isFolder {
		return q.getFolder()
	}
	if number := q.query.Get("partNumber"); number != "" && number != "1" {
		return &Error{http.StatusRequestedRangeNotSatisfiable, "InvalidPartNumber", "an object has one part"}
	}
	if !q.alias.MayBeItem(q.key) {
		return errorOf(noSuchKey, "there is no such object")
	}
	out := &objectWriter{ResponseWriter: q.w, request: q}
	err := q.items.Object(q.running, out, q.r.WithContext(q.ctx), q.alias, q.key, serve.ObjectOptions{
		Tag: tag, Header: q.override, IsVisitor: q.permit.Ticket != nil,
	})
	if failed, ok := errors.AsType[*httpx.Error](err); ok {
		if failed.Status == http.StatusGone {
			return errorOf(noSuchKey, "there is no such object")
		}
		return statusError(failed.Status)
	}
	return nil
}

// overrides are the headers that a signed request may set in its answer.
var overrides = []string{"Content-Type", "Content-Disposition", "Content-Language", "Content-Encoding", "Cache-Control", "Expires"}

func (q *request) override(header http.Header) {
	for _, name := range overrides {
		if value := q.query.Get("response-" + strings.ToLower(name)); value != "" {
			header.Set(name, value)
		}
	}
}

// emptyRange matches the last 0 bytes.
var emptyRange = regexp.MustCompile(`(?i)^bytes=[ \t]*-0+[ \t]*$`)

// objectWriter answers refusals of conditions and ranges in the form of S3.
type objectWriter struct {
	http.ResponseWriter
	*request
	refused bool
}

func (w *objectWriter) WriteHeader(status int) {
	sent := w.r.Header.Get("Range")
	if status == http.StatusOK && w.r.Method == http.MethodGet && sent != "" &&
		(w.Header().Get("Content-Length") == "0" || emptyRange.MatchString(sent)) {
		status = http.StatusRequestedRangeNotSatisfiable // S3 has no range of nothing
	}
	switch status {
	case http.StatusPreconditionFailed, http.StatusRequestedRangeNotSatisfiable:
		w.refused = true
		for _, name := range []string{"Content-Length", "Content-Type", "Content-Disposition", "ETag", "Last-Modified"} {
			w.Header().Del(name)
		}
		w.request.refuse(statusError(status))
	default:
		w.ResponseWriter.WriteHeader(status)
	}
}

func (w *objectWriter) Write(p []byte) (int, error) {
	if w.refused {
		return len(p), nil
	}
	return w.ResponseWriter.Write(p)
}

// ReadFrom lets the kernel send a file.
func (w *objectWriter) ReadFrom(r io.Reader) (int64, error) {
	if w.refused {
		return io.Copy(io.Discard, r)
	}
	return io.Copy(w.ResponseWriter, r)
}

// Unwrap returns the writer of the connection.
func (w *objectWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// putObject stores the body under the key, after all checks of an upload.
func (q *request) putObject() *Error {
	httpx.Watch(q.r)
	body, length, failed := bodyOf(q.r, q.signature, q.secret)
	if failed != nil {
		return failed
	}
	if _, isFolder := folderOf(q.key); isFolder {
		return q.putFolder(body)
	}
	req, name, failed := q.upload()
	if failed != nil {
		return failed
	}
	ended, refused := q.permit.BeginUpload(q.w)
	if refused != nil {
		return failureError(refused.Failure)
	}
	defer ended()
	if failures := q.running.Uploader().Precheck(q.ctx, req, name, max(length, 0)); failures != nil {
		return q.failure(failures)
	}
	timed, stop := httpx.NewTimedBody(q.w, io.NopCloser(body), q.running.UploadTime(q.permit.Ticket))
	defer stop()
	items, failures := q.running.Uploader().Upload(q.ctx, req, upload.Body(name, http.MaxBytesReader(q.w, failing{timed}, q.running.Limits().MaxBody)))
	if failures != nil {
		return q.failure(failures)
	}
	return q.stored(body, tagOf(q.alias, items[0].Info))
}

// stored answers that a body was stored, with its entity tag and the checksums that were sent.
func (q *request) stored(b *body, tag string) *Error {
	for algorithm, sum := range b.sums() {
		q.w.Header().Set(checksumPrefix+algorithm, sum)
	}
	q.w.Header().Set("ETag", tag)
	q.w.Header().Set("Content-Length", "0")
	q.w.WriteHeader(http.StatusOK)
	return nil
}

// failing is a body whose errors in the form of S3 are failures, so that the uploader returns them.
type failing struct{ io.ReadCloser }

func (f failing) Read(p []byte) (int, error) {
	n, err := f.ReadCloser.Read(p)
	if failed, ok := errors.AsType[*Error](err); ok {
		err = &item.Failure{Reason: item.BadRequest, Message: failed.Message, Err: failed}
	}
	return n, err
}

// splitKey returns the folder of a key, and its last segment.
func splitKey(key string) (folder, name string) {
	at := strings.LastIndexByte(key, '/')
	if at < 0 {
		return "/", key
	}
	return key[:at], key[at+1:]
}

// upload returns the request to store an object under the key, and under no other, with the last
// segment of the key. The account needs the right to replace an object, or to store a new one.
func (q *request) upload() (req upload.Upload, name string, failed *Error) {
	folder, name := splitKey(q.key)
	req = upload.Upload{Exact: q.key, SubFolder: folder, Request: q.permit.Request(q.alias.Kind, q.alias.Name, q.BaseURL(q.r), mayWrite)}
	header := q.r.Header.Clone()
	encodings := strings.Join(header["Content-Encoding"], ",")
	header["Content-Encoding"] = strings.Split(strings.ReplaceAll(encodings, "aws-chunked", "identity"), ",") // which body.go decodes
	if refused := caller.BodyRefusal(q.alias.Kind, header, nil); refused != nil {
		return req, name, errorOf(invalidRequest, refused.Failure.Message)
	}
	if caller.HasCondition(q.r.Header) {
		if req.Matches, failed = conditionOf(q.r.Header, q.alias); failed != nil {
			return req, name, failed
		}
	}
	matchesOne := q.r.Header.Get("If-Match") != ""
	if q.alias.Overwrite && !q.permit.Account.May(access.Replace) || !q.permit.Account.May(access.Upload) || matchesOne {
		req.Permits = func(stored storagedrivers.Info) *item.Failure {
			if matchesOne && stored.Key == "" {
				return &item.Failure{Reason: item.Missing, Message: "there is no such object"}
			}
			right := access.Upload
			if stored.Key != "" {
				right = access.Replace
			}
			return op.Need(q.permit.Account, right)
		}
	}
	return req, name, nil
}

// conditionOf returns the conditions in the headers, whose tags are those of objects.
func conditionOf(header http.Header, alias *item.Alias) (func(storagedrivers.Info) bool, *Error) {
	header = header.Clone()
	for _, name := range []string{"If-Match", "If-None-Match"} { // S3 takes tags without quotes too
		for i, value := range header[name] {
			if value = strings.TrimSpace(value); value != "*" && !strings.ContainsAny(value, `",`) {
				header[name][i] = `"` + value + `"`
			}
		}
	}
	matches, failure := caller.ConditionOf(header, func(info storagedrivers.Info) string { return exactTag(alias, info) },
		func(tag string) bool { return tag != "" })
	if failure != nil {
		return nil, failureError(failure)
	}
	return matches, nil
}

// deleteObject deletes an object. S3 says the same of one that is not there.
func (q *request) deleteObject() *Error {
	matches, failed := conditionOf(q.r.Header, q.alias)
	if failed != nil {
		return failed
	}
	var err error
	if name, isFolder := folderOf(q.key); isFolder {
		err = q.permit.DeleteMarker(q.ctx, q.alias, name, matches)
	} else {
		_, err = q.permit.Delete(q.ctx, op.Deletion{Alias: q.alias, Filename: name, Matches: matches})
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return storageError("delete the object", err)
	}
	q.w.WriteHeader(http.StatusNoContent)
	return nil
}

type deleteRequest struct {
	XMLName xml.Name `xml:"Delete"`
	Quiet   bool
	Objects []deletedObject `xml:"Object"`
}

type deletedObject struct{ Key, ETag string }

type deletedAnswer struct{ Key string }

type undeletedAnswer struct{ Key, Code, Message string }

// deleteObjects deletes up to 1,000 objects.
func (q *request) deleteObjects() *Error {
	leave, refused := q.permit.EnterQueue(q.ctx, q.w, service.DeletedSet, q.xmlBytes())
	if refused != nil {
		return failureError(refused.Failure)
	}
	defer leave()
	body, _, failed := bodyOf(q.r, q.signature, q.secret)
	if failed != nil {
		return failed
	}
	var sent deleteRequest
	if failed := q.readXML(body, &sent); failed != nil {
		return failed
	}
	if len(sent.Objects) > op.MaxSet || len(sent.Objects) == 0 {
		return errorOf(malformedXML, "there are no keys, or more than 1,000")
	}
	distinct, at := op.Distinct(sent.Objects)
	set := op.Set{Alias: q.alias, MayMiss: true} // S3 says the same of an object that is not there
	for _, object := range distinct {
		set.Items = append(set.Items, q.inSet(object))
	}
	outcomes, failure := q.permit.DeleteSet(q.ctx, set)
	if failure != nil {
		return failureError(failure)
	}
	answer := struct {
		Deleted []deletedAnswer   //
		Errors  []undeletedAnswer `xml:"Error"`
	}{}
	for _, object := range sent.Objects {
		switch err := outcomes[at[object]].Err; {
		case err != nil:
			failed := storageError("delete the object", err)
			answer.Errors = append(answer.Errors, undeletedAnswer{object.Key, failed.Code, failed.Message})
		case !sent.Quiet:
			answer.Deleted = append(answer.Deleted, deletedAnswer{object.Key})
		}
	}
	q.answer(http.StatusOK, "DeleteResult", answer)
	return nil
}

// inSet returns an object as one of a set. It may name its entity tag, without quotes too.
func (q *request) inSet(object deletedObject) op.InSet {
	one := op.InSet{}
	one.Filename, one.IsMarker = folderOf(object.Key)
	if object.ETag != "" && object.ETag != "*" {
		tag := `"` + strings.Trim(object.ETag, `"`) + `"`
		one.Matches = func(info storagedrivers.Info) bool { return tag == exactTag(q.alias, info) }
	}
	return one
}

// Bounds of the body of a request that deletes many objects or completes a multipart upload.
const (
	maxXML     = 4 << 20
	maxXMLTime = time.Minute
)

// xmlBytes is how many bytes of the body may be in memory.
func (q *request) xmlBytes() int64 {
	if q.r.ContentLength < 0 {
		return maxXML
	}
	return min(q.r.ContentLength, maxXML)
}

// readXML reads a small body.
func (q *request) readXML(body io.Reader, v any) *Error {
	timed, stop := httpx.NewTimedBody(q.w, io.NopCloser(body), maxXMLTime)
	defer stop()
	all, err := io.ReadAll(io.LimitReader(timed, maxXML+1))
	if failed, ok := errors.AsType[*Error](err); ok {
		return failed
	}
	if err != nil || len(all) > maxXML {
		return errorOf(incompleteBody, "the body is too long, or could not be read to its end")
	}
	if xml.Unmarshal(all, v) != nil {
		return errorOf(malformedXML, "the body is not the XML of this operation")
	}
	return nil
}

// copyObject copies an object, of this bucket or of another one, under the key.
func (q *request) copyObject() *Error {
	if caller.HasCondition(q.r.Header) {
		return errorOf(notImplemented, "a copy has conditions for its source only")
	}
	from, stored, matches, failed := q.source()
	if failed != nil {
		return failed
	}
	if _, isFolder := folderOf(q.key); isFolder || isMarker(stored) {
		return q.copyFolder(stored)
	}
	key := from.Filename(stored.Key)
	ended, refused := q.permit.BeginUpload(q.w)
	if refused != nil {
		return failureError(refused.Failure)
	}
	defer ended()
	info := stored
	if from != q.alias || key != q.key {
		items, failures := q.permit.Transfer(q.ctx, op.Move{
			From: from, Filename: key, ToAlias: q.alias, To: q.key, Exact: true, Copy: true, Matches: matches, BaseURL: q.BaseURL(q.r),
		})
		if failures != nil {
			return q.failure(failures)
		}
		info = items[0].Info
	}
	q.answerCopy(info)
	return nil
}

// answerCopy answers that an object is a copy.
func (q *request) answerCopy(info storagedrivers.Info) {
	q.answer(http.StatusOK, "CopyObjectResult", struct {
		LastModified string
		ETag         string
	}{LastModified: stamp(info.ModTime), ETag: tagOf(q.alias, info)})
}

// source finds the source of a copy: its alias, the object, and the conditions for it, which hold.
func (q *request) source() (from *item.Alias, stored storagedrivers.Info, matches func(storagedrivers.Info) bool, failed *Error) {
	text, version, isVersion := strings.Cut(one(q.r.Header, "X-Amz-Copy-Source"), "?versionId=")
	path, err := url.PathUnescape(text)
	bucket, key, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if err != nil || key == "" || isVersion && version != "null" {
		return nil, stored, nil, errorOf(invalidArgument, "the header x-amz-copy-source is /<bucket>/<key>")
	}
	if from, failed = q.find(bucket); failed == nil {
		stored, failed = q.stat(from, key)
	}
	if failed != nil {
		return nil, stored, nil, failed
	}
	const prefix = "X-Amz-Copy-Source-"
	header := http.Header{}
	for _, name := range []string{"If-Match", "If-None-Match", "If-Unmodified-Since"} {
		if values := q.r.Header[prefix+name]; values != nil {
			header[name] = values
		}
	}
	others, failed := conditionOf(header, from)
	if failed != nil {
		return nil, stored, nil, failed
	}
	since, err := http.ParseTime(q.r.Header.Get(prefix + "If-Modified-Since"))
	matches = func(info storagedrivers.Info) bool {
		return others(info) && (err != nil || info.ModTime.Truncate(time.Second).After(since))
	}
	if !matches(stored) {
		return nil, stored, nil, errorOf(preconditionFailed, "a condition for the source does not hold")
	}
	return from, stored, matches, nil
}

// attributes answers with the facts of an object that the client names. An object has no parts, and
// no checksums are kept: S3 leaves out what an object has not.
func (q *request) attributes() *Error {
	wanted := map[string]bool{}
	for _, value := range q.r.Header["X-Amz-Object-Attributes"] {
		for name := range strings.SplitSeq(value, ",") {
			wanted[strings.TrimSpace(name)] = true
		}
	}
	if len(wanted) == 0 {
		return errorOf(invalidArgument, "the header x-amz-object-attributes names no attribute")
	}
	info, failed := q.stat(q.alias, q.key)
	if failed != nil {
		return failed
	}
	answer := struct {
		ETag         string `xml:",omitempty"`
		StorageClass string `xml:",omitempty"`
		ObjectSize   *int64 `xml:",omitempty"`
	}{}
	for name := range wanted {
		switch name {
		case "ETag":
			answer.ETag = strings.Trim(tagOf(q.alias, info), `"`)
		case "StorageClass":
			answer.StorageClass = "STANDARD"
		case "ObjectSize":
			answer.ObjectSize = &info.Size
		case "Checksum", "ObjectParts":
		default:
			return errorOf(invalidArgument, "the header x-amz-object-attributes names an unknown attribute")
		}
	}
	q.w.Header().Set("Last-Modified", info.ModTime.UTC().Format(http.TimeFormat))
	q.answer(http.StatusOK, "GetObjectAttributesResponse", answer)
	return nil
}

// setACL accepts an access list: what everybody may read is a matter of the alias.
func (q *request) setACL() *Error {
	if _, failed := q.stat(q.alias, q.key); failed != nil {
		return failed
	}
	q.w.WriteHeader(http.StatusOK)
	return nil
}

func (q *request) tagging() *Error {
	if _, failed := q.stat(q.alias, q.key); failed != nil {
		return failed
	}
	q.answer(http.StatusOK, "Tagging", struct {
		TagSet struct{}
	}{})
	return nil
}
