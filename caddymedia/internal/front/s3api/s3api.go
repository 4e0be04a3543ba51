// Package s3api serves the service to programs that know S3: aliases are buckets, and items are
// objects. It translates requests and answers; rights, checks, names and bytes are those of
// packages op, upload, serve and service, so that none of them is passed by. Begin with
// [Handler] and its table of operations; a signature is verified in signature.go, and a body is
// decoded in body.go.
package s3api

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/xml"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/core/upload"
	"github.com/caddymedia/media/caddymedia/internal/front/caller"
	"github.com/caddymedia/media/caddymedia/internal/front/httpx"
	"github.com/caddymedia/media/caddymedia/internal/front/serve"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
)

// Options of a Handler.
type Options struct {
	// Region is the answer to a client that asks for the location of a bucket. Signatures may have
	// any.
	Region string
	// Domain is the host below which buckets are host names; empty for buckets in the path only.
	Domain string
}

// Handler answers S3 requests with the services of a gate.
type Handler struct {
	*caller.Gate

	options Options
	items   *serve.Server
	markers *simplelru.LRU[string, string] // see [listing.resume]; with mu
	mu      sync.Mutex
}

// New returns a handler.
func New(gate *caller.Gate, options Options) *Handler {
	markers, _ := simplelru.NewLRU[string, string](maxMarkers, nil) // fails for a size of 0 only
	return &Handler{Gate: gate, options: options, items: serve.New(gate), markers: markers}
}

// ServeHTTP answers a request, whatever its path is.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := &request{Handler: h, w: w, r: r, ctx: r.Context(), id: rand.Text(), began: h.Now()}
	if r.ContentLength == 0 && r.ProtoMajor == 1 && strings.EqualFold(r.Header.Get("Expect"), "100-continue") {
		w.WriteHeader(http.StatusContinue) // Go does so only before bytes, but boto3 and old SDKs await it
	}
	w.Header().Set("X-Amz-Request-Id", q.id)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	err := h.Answer(w, r, func(running *service.Service, w http.ResponseWriter, r *http.Request) error {
		q.running, q.w, q.r = running, w, r
		if q.cors() {
			return nil
		}
		if failed := q.serve(); failed != nil {
			q.refuse(failed)
		}
		return nil
	})
	if err != nil {
		q.refuse(errorOf(slowDown, "the service is being started or stopped"))
	}
}

// request is one request.
type request struct {
	*Handler
	running *service.Service
	w       http.ResponseWriter
	r       *http.Request
	ctx     context.Context //nolint:containedctx // a request lives as long as one call
	id      string
	began   time.Time // signatures are compared with this time, also after a long body

	bucket, key string
	query       url.Values
	signature   *signature
	secret      string
	permit      *caller.Permit // its ticket is a presigned address; nil for the account itself
	begun       bool           // the answer, see [request.begin]
	alias       *item.Alias    // of the bucket; nil for the list of buckets
}

// operation answers a request of its kind. The account needs one of the rights.
type operation struct {
	serve  func(*request) *Error
	rights []access.Right
}

// The operations by method and sub resource, for the list of buckets, a bucket and an object.
var (
	mayList  = []access.Right{access.List}
	mayWrite = []access.Right{access.Upload, access.Replace}

	serviceOperations = map[string]operation{"GET ": {(*request).listBuckets, nil}}
	bucketOperations  = map[string]operation{
		"HEAD ": {(*request).headBucket, nil}, "GET location": {(*request).location, nil},
		"GET ": {inTurn((*request).listObjects), mayList}, "GET versioning": {(*request).versioning, nil},
		"GET acl": {(*request).acl, nil}, "PUT ": {(*request).createBucket, nil},
		"POST delete": {(*request).deleteObjects, []access.Right{access.Delete}}, "GET uploads": {inTurn((*request).listMultiparts), mayWrite},
	}
	objectOperations = map[string]operation{
		"GET ": {(*request).getObject, mayList}, "HEAD ": {(*request).getObject, mayList},
		"PUT ": {(*request).putObject, mayWrite}, "PUT copy": {(*request).copyObject, []access.Right{access.Copy}},
		"DELETE ": {(*request).deleteObject, []access.Right{access.Delete}},
		"GET acl": {(*request).acl, mayList}, "PUT acl": {(*request).setACL, mayWrite},
		"GET tagging": {(*request).tagging, mayList}, "GET attributes": {(*request).attributes, mayList},
		"POST uploads": {(*request).createMultipart, mayWrite}, "PUT uploadId": {(*request).uploadPart, mayWrite},
		"PUT uploadId copy": {(*request).copyPart, []access.Right{access.Copy}}, "POST uploadId": {(*request).completeMultipart, mayWrite},
		"DELETE uploadId": {(*request).abortMultipart, mayWrite}, "GET uploadId": {inTurn((*request).listParts), mayWrite},
	}
)

// maxListed is about the largest list in bytes.
const maxListed = 1 << 20

// inTurn is an operation whose answer is in memory until the client has read it: an account has
// only some at once.
func inTurn(serve func(*request) *Error) func(*request) *Error {
	return func(q *request) *Error {
		leave, refused := q.permit.EnterQueue(q.ctx, q.w, service.OtherCall, maxListed)
		if refused != nil {
			return failureError(refused.Failure)
		}
		defer leave()
		return serve(q)
	}
}

// absent are the codes with which S3 says that a bucket has no such configuration.
var absent = map[string]string{
	"policy": "NoSuchBucketPolicy", "cors": "NoSuchCORSConfiguration", "lifecycle": "NoSuchLifecycleConfiguration",
	"encryption": "ServerSideEncryptionConfigurationNotFoundError", "object-lock": "ObjectLockConfigurationNotFoundError",
	"tagging": "NoSuchTagSet", "website": "NoSuchWebsiteConfiguration", "publicAccessBlock": "NoSuchPublicAccessBlockConfiguration",
	"ownershipControls": "OwnershipControlsNotFoundError", "replication": "ReplicationConfigurationNotFoundError",
	"policyStatus": "NoSuchBucketPolicy",
}

// subResources are the parameters that make another operation of a request.
var subResources = []string{
	"acl", "tagging", "location", "versioning", "versions", "uploads", "uploadId", "delete", "restore", "select", "torrent",
	"retention", "legal-hold", "attributes", "requestPayment", "notification", "logging", "accelerate", "analytics", "inventory",
	"metrics", "intelligent-tiering", "policy", "cors", "lifecycle", "encryption", "object-lock", "website", "publicAccessBlock",
	"ownershipControls", "replication", "policyStatus",
}

// serve authenticates the caller, finds the operation and carries it out.
func (q *request) serve() *Error {
	q.bucket, q.key = q.target(q.r)
	if q.bucket == "" && q.key != "" {
		return errorOf(invalidRequest, "the address has no bucket")
	}
	var err error
	if q.query, err = url.ParseQuery(q.r.URL.RawQuery); err != nil { // what is not read would be signed all the same
		return errorOf(invalidRequest, "the query is malformed")
	}
	for name := range q.query {
		if name = strings.ToLower(name); strings.HasPrefix(name, "x-amz-copy-source") || strings.HasPrefix(name, "x-amz-server-side-encryption-customer") {
			return errorOf(notImplemented, "send "+name+" as a header")
		}
	}
	if failed := q.authenticate(); failed != nil {
		return failed
	}
	if version := q.query.Get("versionId"); version != "" && version != "null" {
		return &Error{http.StatusNotFound, "NoSuchVersion", "objects have one version"}
	}
	if _, ok := q.r.Header["X-Amz-Server-Side-Encryption-Customer-Algorithm"]; ok {
		return errorOf(notImplemented, "keys of the client are not known here")
	}
	sub := q.subResource()
	operations := serviceOperations
	switch {
	case q.key != "":
		operations = objectOperations
		if q.r.Method == http.MethodPut && (sub == "" || sub == "uploadId") && q.r.Header.Get("X-Amz-Copy-Source") != "" {
			sub = strings.TrimSpace(sub + " copy")
		}
	case q.bucket != "":
		operations = bucketOperations
	}
	op, known := operations[q.r.Method+" "+sub]
	code := absent[sub]
	if !known && (code == "" || q.bucket == "" || q.key != "" || q.r.Method != http.MethodGet) {
		return errorOf(notImplemented, "this operation is not known here")
	}
	if failed := q.admit(op.rights); failed != nil {
		q.report(op.rights, failed)
		return failed
	}
	if !known {
		return &Error{http.StatusNotFound, code, "buckets have no such configuration here"}
	}
	q.ctx = storagedrivers.WithOwner(q.ctx, q.permit.Actor.Owner())
	return op.serve(q)
}

// target returns the bucket and the key of a request.
func (h *Handler) target(r *http.Request) (bucket, key string) {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	path := strings.TrimPrefix(r.URL.Path, "/")
	if bucket, ok := strings.CutSuffix(strings.ToLower(host), "."+strings.ToLower(h.options.Domain)); ok && h.options.Domain != "" {
		return bucket, path
	}
	bucket, key, _ = strings.Cut(path, "/")
	return bucket, key
}

// subResource returns the name of the sub resource of the request; empty for none.
func (q *request) subResource() string {
	for _, name := range subResources {
		if q.query.Has(name) {
			return name
		}
	}
	return ""
}

// authenticate sets the permit of the signature.
func (q *request) authenticate() *Error {
	var failed *Error
	if q.signature, failed = signatureOf(q.r); failed != nil {
		return failed
	}
	if q.permit = q.Permit(q.running, q.r, item.OriginS3, q.verify); q.permit.Refused != nil {
		return failureError(q.permit.Refused)
	}
	return q.admitVisitor()
}

// verify returns the account of the signature, according to a service, and the ticket of a
// signature in the query. Wrong signatures are not throttled: a secret of 16 bytes cannot be
// guessed, and a throttle by network would shut out the neighbours of an attacker.
func (q *request) verify(_ context.Context, running *service.Service) (who access.Caller, failure *item.Failure) {
	account, known := running.Issuer().Account(q.signature.accessKey)
	if !known {
		account = access.Account{}
	}
	q.secret = account.S3Secret
	if failed := q.signature.verify(q.asSent(), account.S3Secret, q.began); failed != nil {
		failure = &item.Failure{Reason: item.Forbidden, Message: failed.Message, Err: failed}
	}
	return access.Caller{Account: account, Ticket: q.ticket()}, failure
}

// asSent returns the request with the path that its client has signed: a prefix may have been
// removed before the handler.
func (q *request) asSent() *http.Request {
	prefix, err := url.PathUnescape(q.MountPrefix(q.r))
	if err != nil || prefix == "" {
		return q.r
	}
	sent, address := *q.r, *q.r.URL
	address.Path, address.RawPath, sent.URL = prefix+address.Path, "", &address
	return &sent
}

// admit finds the alias of the bucket. The account needs one of the rights, if there are any.
func (q *request) admit(rights []access.Right) *Error {
	if q.bucket == "" {
		return nil
	}
	var failed *Error
	if q.alias, failed = q.find(q.bucket); failed != nil {
		return failed
	}
	if failure := q.permit.NeedOne(rights...); failure != nil {
		return failureError(failure)
	}
	return nil
}

// report reports that a request to change items is refused, before anything is done, because the
// account may not.
func (q *request) report(rights []access.Right, failed *Error) {
	name, alias, _ := strings.Cut(q.bucket, "-")
	kind, ok := item.KindOf(name)
	failure := &item.Failure{Reason: item.Forbidden, Message: failed.Message}
	switch isSet := q.key == ""; {
	case !ok || failed.Status != http.StatusForbidden:
	case slices.Contains(rights, access.Delete):
		q.running.Observer().DeletionEnded(q.ctx, service.Deletion{
			Kind: kind, Alias: alias, Filename: q.key, IsSet: isSet, Actor: q.permit.Actor, Failure: failure,
		})
	case !isSet && (q.r.Method == http.MethodPut || q.r.Method == http.MethodPost):
		q.running.Observer().Refused(q.ctx, upload.Operation{Kind: kind, Alias: alias, Filename: q.key, Actor: q.permit.Actor}, item.Failures{failure})
	}
}

// find returns the alias of a bucket.
func (q *request) find(bucket string) (*item.Alias, *Error) {
	kind, name, _ := strings.Cut(bucket, "-")
	known, ok := item.KindOf(kind)
	alias, failure := q.permit.Alias(known, name)
	switch {
	case failure != nil && failure.Reason == item.Forbidden:
		return nil, errorOf(accessDenied, "the account may not use this bucket")
	case failure != nil, !ok:
		return nil, errorOf(noSuchBucket, "buckets are called image-<alias> and file-<alias>")
	}
	return alias, nil
}

// BucketOf returns the bucket of an alias.
func BucketOf(a *item.Alias) string { return a.Kind.Name() + "-" + a.Name }

// cors lets the pages of allowed origins read the answer, and reports whether the request was a
// preflight one.
func (q *request) cors() bool {
	origins := q.running.Origins()
	if origins == nil {
		return false
	}
	header := q.w.Header()
	if caller.AllowOrigin(origins, header, q.r) {
		header.Set("Access-Control-Expose-Headers", "ETag, x-amz-request-id, Content-Length, Content-Range, Last-Modified, Retry-After")
		header.Set("Access-Control-Allow-Methods", "GET, HEAD, PUT, POST, DELETE")
		if asked := q.r.Header["Access-Control-Request-Headers"]; asked != nil {
			header.Set("Access-Control-Allow-Headers", strings.Join(asked, ", "))
		}
		header.Set("Access-Control-Max-Age", caller.CORSMaxAge)
	}
	if q.r.Method != http.MethodOptions || q.r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	httpx.NoContent(q.w, q.r)
	return true
}

// refuse answers with an error. The body of the request is not read to its end.
func (q *request) refuse(failed *Error) {
	if q.running != nil {
		q.running.Observer().Failed(q.ctx, "s3", strconv.Itoa(failed.Status))
	}
	if failed.Status == http.StatusServiceUnavailable && q.w.Header().Get("Retry-After") == "" {
		httpx.RetryAfter(q.w, httpx.BusyRetry)
	}
	resource := q.r.URL.Path
	if len(resource) > item.MaxName { // a stranger may send much more, and leave the answer unread
		resource = resource[:item.MaxName]
	}
	q.answer(failed.Status, "Error", errorAnswer{Code: failed.Code, Message: failed.Message, Resource: resource, RequestId: q.id})
}

// namespace is that of all answers but errors.
const namespace = "http://s3.amazonaws.com/doc/2006-03-01/"

// answer writes v as an XML element.
func (q *request) answer(status int, name string, v any) {
	var body bytes.Buffer
	element := xml.StartElement{Name: xml.Name{Space: namespace, Local: name}}
	if status >= http.StatusBadRequest {
		element.Name.Space = ""
	}
	if !q.begun {
		body.WriteString(xml.Header)
	}
	if err := xml.NewEncoder(&body).EncodeElement(v, element); err != nil {
		panic(err) // of types of this package
	}
	if q.begun {
		_, _ = body.WriteTo(q.w) // the client may be gone
		return
	}
	q.w.Header().Set("Content-Type", "application/xml")
	q.w.Header().Set("Cache-Control", "no-store")
	if q.r.Method == http.MethodHead {
		q.w.WriteHeader(status)
		return
	}
	httpx.AnswerBytes(q.w, q.r, status, body.Bytes())
}
