package mediahttp

import (
	"context"
	"crypto/rand"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/bytesize"
	"github.com/caddymedia/media/caddymedia/internal/httpx"
	"github.com/caddymedia/media/caddymedia/internal/item"
	"github.com/caddymedia/media/caddymedia/internal/resumable"
	"github.com/caddymedia/media/caddymedia/internal/service"
	"github.com/caddymedia/media/caddymedia/internal/tus"
	"github.com/caddymedia/media/caddymedia/internal/upload"
	"github.com/caddymedia/media/caddymedia/tokens"
)

// maxBoundary is the length of the longest boundary, RFC 2046 section 5.1.1.
const maxBoundary = 70

// spareUploads is how many uploads a ticket may have under way beside one for each file that it has
// left.
const spareUploads = 2

// formWanted is for clients that send the file itself as the body, such as curl -T.
const formWanted = "send the file in a part called files[], or by PUT to %s/<alias>/<name>"

var tooManyUploads = &refusal{
	http.StatusTooManyRequests, item.Busy, "the account, or the ticket or its client, has too many uploads under way, try again later",
}

// upload returns an endpoint that stores the files of an authenticated request.
func (h *Handler) upload(kind item.Kind) endpoint {
	return func(running *service.Service, w http.ResponseWriter, r *http.Request) error {
		u := h.uploadFrom(w, r, kind, tokens.Upload, tokens.Import)
		u.imports = true
		return u.serve(running, w, r)
	}
}

// uploadFrom returns a request of a caller with a token, whose account needs one of the rights, or
// with a ticket, whose account needs the first one.
func (h *Handler) uploadFrom(w http.ResponseWriter, r *http.Request, kind item.Kind, rights ...tokens.Right) *uploadRequest {
	return &uploadRequest{
		Handler: h, kind: kind, origin: item.OriginHTTP, baseURL: h.baseURL(r) + h.options.MountPrefix(r),
		authenticate: func(ctx context.Context, running *service.Service) (tokens.Caller, *refusal) {
			caller, refused := h.authenticate(ctx, running, w, r)
			if refused != nil || caller.Ticket == nil && slices.ContainsFunc(rights, caller.Account.May) {
				return caller, refused
			}
			return caller, rightRefusal(caller.Account, rights[0])
		},
	}
}

// Upload stores the files of a caller like the upload endpoints, but without a token. The body must
// be unread. The error is an *[Error]; then nothing was written.
func (h *Handler) Upload(w http.ResponseWriter, r *http.Request, kind item.Kind, caller Caller) error {
	return h.serveWith(w, r, h.uploadOf(r, kind, caller).serve)
}

// uploadOf returns a request of a caller without a token.
func (h *Handler) uploadOf(r *http.Request, kind item.Kind, caller Caller) *uploadRequest {
	return &uploadRequest{Handler: h, kind: kind, origin: caller.Origin, baseURL: h.baseURL(r), authenticate: caller.authenticate}
}

// uploadRequest is one request to store items.
type uploadRequest struct {
	*Handler
	put          *putAddress // of the one file that is the body; nil for a form
	kind         item.Kind
	origin       item.Origin
	baseURL      string // of public addresses
	imports      bool   // it may have addresses to import
	folder       string // of the user
	authenticate authenticator
}

// serve authenticates the request, receives its body and responds. If possible it refuses a request
// before it reads the body.
func (u *uploadRequest) serve(running *service.Service, w http.ResponseWriter, r *http.Request) error {
	return u.repeatable(running, w, r, u.origin, u.authenticate, u.store)
}

// store is serve for one attempt at the request.
func (u *uploadRequest) store(running *service.Service, w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Cache-Control", "no-store")
	caller, boundary, refused := u.admit(running, w, r)
	u.folder = caller.Account.Folder
	req, rep := u.request(running, r, caller), repetitionOf(r.Context())
	if refused == nil {
		refused = rep.replayRefusal(req.Allows)
	}
	if refused == nil && u.put != nil && hasCondition(r.Header) {
		named, _ := running.Alias(u.kind, req.Alias) // an unknown one is refused below
		req.Matches, refused = conditionOf(r.Header, named)
	}
	if refused == nil {
		ended, ok := running.BeginUpload(req.Actor, caller.Ticket, spareUploads)
		if ok {
			defer rep.untilSent(ended)()
		} else {
			httpx.RetryAfter(w, time.Second)
			refused = tooManyUploads
		}
	}
	if refused != nil {
		return u.refuseUnread(running, w, r, req, refused)
	}
	if failures := u.precheck(running, r, req); failures != nil {
		return u.refuse(running, w, r, httpx.StatusOf(failures), failures)
	}
	httpx.Watch(r)
	timed, stop := httpx.NewTimedBody(w, r.Body, running.UploadTime(caller.Ticket))
	defer stop()
	body, refused := rep.match(http.MaxBytesReader(w, timed, running.Limits().MaxBody), boundary)
	if refused != nil {
		return u.refuseUnread(running, w, r, req, refused)
	}
	if rep.isAnswered() {
		if refused := rep.replay(u.Handler, running, w, r, req.Actor); refused != nil {
			return u.refuseUnread(running, w, r, req, refused)
		}
		return nil
	}
	source := upload.Form(body, boundary)
	if u.put != nil {
		source = upload.Body(u.put.name, body)
	}
	items, failures := running.Uploader().Upload(r.Context(), req, source)
	if failures != nil {
		running.CountRefused(r.Context(), caller.Ticket, failures)
		return u.refuse(running, w, r, httpx.StatusOf(failures), failures)
	}
	if u.put != nil {
		w.Header().Set("Location", items[0].FullPath)
		return httpx.AnswerItems(w, http.StatusCreated, items)
	}
	return httpx.AnswerItems(w, http.StatusOK, items)
}

// request returns the request for the uploader.
func (u *uploadRequest) request(running *service.Service, r *http.Request, caller tokens.Caller) upload.Upload {
	alias, subFolder := u.destination(r)
	rep := repetitionOf(r.Context())
	req := upload.Upload{SubFolder: subFolder, Request: upload.Request{
		Kind: u.kind, Alias: alias,
		Allows: func(alias string) bool { return caller.Allows(u.kind.Name(), alias) },
		Forced: service.ForcedBy(caller), Confirm: u.confirm, BaseURL: u.baseURL, Repetition: rep.repeats(),
		Actor: item.Actor{Origin: u.origin, Account: caller.Account.APIKey, User: caller.Account.User, Client: u.options.Client(r), Ticket: caller.Ticket.HexID()},
	}}
	if caller.Ticket != nil && rep.isRepeated() {
		req.Forced.MaxFiles = caller.Ticket.MaxFiles // the items may be counted already
	}
	if u.imports {
		u.limitSources(running, caller, &req)
	}
	return req
}

// refuseUnread responds to a request whose body is not read to its end, and reports it.
func (u *uploadRequest) refuseUnread(running *service.Service, w http.ResponseWriter, r *http.Request, req upload.Upload, refused *refusal) error {
	failures := item.Failures{{Reason: refused.reason, Message: refused.message}}
	running.Observer().Refused(r.Context(), req.Operation(), failures)
	return u.refuse(running, w, r, refused.status, failures)
}

// precheck returns the failures of a PUT that are known before its body is read.
func (u *uploadRequest) precheck(running *service.Service, r *http.Request, req upload.Upload) item.Failures {
	if u.put == nil || repetitionOf(r.Context()).isAnswered() {
		return nil
	}
	return running.Uploader().Precheck(r.Context(), req, u.put.name, max(r.ContentLength, 0))
}

// destination returns the alias and the sub folder in the address of the request. A form may name
// others.
func (u *uploadRequest) destination(r *http.Request) (alias, subFolder string) {
	if u.put != nil {
		return u.put.alias, u.put.subFolder
	}
	query := r.URL.Query()
	return query.Get("alias"), query.Get("sub_folder")
}

// limitSources sets where the caller's files may come from: the body, addresses, or both.
func (u *uploadRequest) limitSources(running *service.Service, caller tokens.Caller, req *upload.Upload) {
	limits := running.Limits()
	req.Import, req.ImportTime, req.MaxImported = running.Importer(req.Actor), time.Duration(limits.MaxUploadTime), limits.MaxBody
	refused := rightRefusal(caller.Account, tokens.Import)
	if caller.Ticket != nil {
		refused = &refusal{http.StatusForbidden, item.Forbidden, "a ticket is for files only: send a token to import addresses"}
	}
	if refused != nil {
		req.NoImports = &item.Failure{Reason: refused.reason, Message: refused.message}
	}
	if refused := rightRefusal(caller.Account, tokens.Upload); refused != nil {
		req.NoFiles = &item.Failure{Reason: refused.reason, Message: refused.message}
	}
}

// refuse responds with the failures of an upload.
func (u *uploadRequest) refuse(running *service.Service, w http.ResponseWriter, r *http.Request, status int, failures item.Failures) error {
	running.Observer().Failed(r.Context(), u.kind.Name(), strconv.Itoa(status))
	return httpx.Refuse(w, r, u.options.Log, status, failures)
}

// admit authenticates the request and checks its header. It returns the boundary of the form.
func (u *uploadRequest) admit(running *service.Service, w http.ResponseWriter, r *http.Request) (tokens.Caller, string, *refusal) {
	bad := func(status int, message string) *refusal { return &refusal{status, item.BadRequest, message} }
	wanted := fmt.Sprintf(formWanted, uploadPath+u.kind.Name())
	method, otherwise := http.MethodPost, "use POST: "+wanted
	if u.put != nil {
		method, otherwise = http.MethodPut, "use PUT, with the file as the body"
	}
	if r.Method != method {
		w.Header().Set("Allow", method)
		return tokens.Caller{}, "", bad(http.StatusMethodNotAllowed, otherwise)
	}
	rep := repetitionOf(r.Context())
	caller, refused := rep.authenticate(r.Context(), running, u.authenticate)
	if refused == nil {
		refused = ticketRefusal(caller, u.kind)
		if refused == usedUp && rep.isRepeated() {
			refused = nil // the items may be counted already
		}
	}
	if refused != nil {
		return caller, "", refused
	}
	if limit := running.Limits().MaxBody; r.ContentLength > limit {
		return caller, "", &refusal{http.StatusRequestEntityTooLarge, item.TooLarge, "the request is larger than " + bytesize.Format(limit)}
	}
	var query url.Values
	if r.URL.RawQuery != "" {
		query = r.URL.Query()
	}
	if refused := bodyRefusal(u.kind, r.Header, query); refused != nil {
		return caller, "", refused
	}
	if u.put != nil {
		if u.put.problem != "" {
			return caller, "", bad(http.StatusBadRequest, u.put.problem)
		}
		return caller, "", nil
	}
	if hasCondition(r.Header) {
		return caller, "", bad(http.StatusBadRequest, "conditions such as If-Match are for PUT: send the form without them")
	}
	mediaType, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil && mediaType != "" {
		wanted = "quote the boundary in the Content-Type"
	}
	if err != nil || mediaType != "multipart/form-data" {
		return caller, "", bad(http.StatusUnsupportedMediaType, "the body must be multipart/form-data: "+wanted)
	}
	boundary := params["boundary"]
	if boundary == "" || len(boundary) > maxBoundary {
		return caller, "", bad(http.StatusBadRequest, "the boundary of the form is missing or too long")
	}
	if name := repeated(query, "alias", "sub_folder"); name != "" {
		return caller, "", bad(http.StatusBadRequest, "the parameter "+name+" is sent twice")
	}
	return caller, boundary, nil
}

// conditionHeaders are the conditions of requests that change an item, RFC 9110 section 13.1.
var conditionHeaders = []string{"If-Match", "If-None-Match", "If-Unmodified-Since"}

// hasCondition reports whether a request has a condition.
func hasCondition(header http.Header) bool {
	return slices.ContainsFunc(conditionHeaders, func(name string) bool { return len(header.Values(name)) > 0 })
}

// bodyRefusal returns the refusal of a request whose body is encoded, or has a piece of a file.
// Otherwise it returns nil.
func bodyRefusal(kind item.Kind, header http.Header, query url.Values) *refusal {
	if failure := upload.PieceOf(kind, header, query); failure != nil {
		return &refusal{http.StatusBadRequest, failure.Reason, failure.Message}
	}
	if httpx.IsEncoded(header) {
		return &refusal{http.StatusUnsupportedMediaType, item.BadRequest, httpx.EncodedBody}
	}
	return nil
}

// confirm authenticates the request again before the commit, with the service that then answers new
// requests. An upload may outlast its token, its account and its configuration. The items of a
// ticket are counted until settle is called.
func (u *uploadRequest) confirm(ctx context.Context, c upload.Commitment) (settle func(upload.Outcome), failure *item.Failure) {
	running, release := u.next()
	caller, refused := u.authenticate(ctx, running)
	if refused == nil && !caller.Allows(u.kind.Name(), c.Alias) {
		refused = otherAlias
	}
	if refused == nil && caller.Account.Folder != u.folder {
		refused = otherFolder
	}
	rep := repetitionOf(ctx)
	if refused == nil {
		refused = rep.keep(ctx, u.Handler, c.Alias)
	}
	var charged func(stored bool)
	if refused == nil {
		charged, refused = u.charge(ctx, running, caller.Ticket, c)
	}
	if refused != nil {
		release()
		return nil, &item.Failure{Reason: refused.reason, Message: refused.message}
	}
	return func(outcome upload.Outcome) {
		defer release()
		rep.settle(outcome)
		if charged != nil {
			charged(outcome == upload.AllStored)
		}
	}, nil
}

// charge counts the items of a form that are about to be committed on a ticket, if it has one. The
// caller must call settle unless it is nil, and the service must stay open until then. The items of a
// request with a key count once, however often it is repeated with the same bytes.
func (u *uploadRequest) charge(ctx context.Context, running *service.Service, ticket *tokens.Ticket, c upload.Commitment) (settle func(stored bool), refused *refusal) {
	if ticket == nil {
		return nil, nil
	}
	use, rep := rand.Text(), repetitionOf(ctx)
	if rep != nil {
		digest, err := c.Digest()
		if err != nil {
			return nil, &refusal{http.StatusInternalServerError, item.Internal, "internal error"}
		}
		use = rep.id + " " + digest
	}
	charged, err := running.Charge(ctx, ticket, use, c.Items, rep.isRepeated())
	switch {
	case err == nil && rep.isRepeated():
		return nil, nil // the items of an earlier attempt may be stored
	case err == nil && rep != nil:
		return func(stored bool) { charged(stored || rep.isLost()) }, nil // or those of a later one
	case err == nil:
		return charged, nil
	}
	failure := resumable.Uncounted(err)
	if failure.Reason == item.Unavailable {
		return nil, u.storeUnreachable(ctx, failure.Message, err)
	}
	return nil, &refusal{http.StatusForbidden, failure.Reason, failure.Message}
}

// putAddress is the address of an upload of one file: its alias, sub folder and name.
type putAddress struct {
	alias, subFolder, name string
	problem                string // for the caller; empty if there is none
}

// putAddressOf returns the address in a path. A name is not needed for other methods.
func putAddressOf(u *url.URL, kind item.Kind) *putAddress {
	segments, problem := segmentsOf(strings.TrimPrefix(u.EscapedPath(), "/"))
	const start = 3 // api, upload and the kind
	if problem == "" && (len(segments) < start+2 || strings.Join(segments[:start], "/") != uploadPath[1:]+kind.Name()) {
		problem = "the address is " + uploadPath + kind.Name() + "/<alias>/<name>, or has a sub folder between them"
	}
	last := len(segments) - 1
	if problem == "" && strings.Contains(segments[last], `\`) {
		problem = "the name in the address contains a backslash: separate folders by slashes"
	}
	if problem != "" {
		return &putAddress{problem: problem}
	}
	return &putAddress{alias: segments[start], subFolder: strings.Join(segments[start+1:last], "/"), name: segments[last]}
}

// putFile returns the endpoint of an upload of one file, which is the body of the request.
func (h *Handler) putFile(kind item.Kind) endpoint {
	return func(running *service.Service, w http.ResponseWriter, r *http.Request) error {
		u := h.uploadFrom(w, r, kind, tokens.Upload)
		u.put = putAddressOf(r.URL, kind)
		return u.serve(running, w, r)
	}
}

// resumableSuffix is the end of the paths of the endpoints, before the ID of an upload.
const resumableSuffix = "/resumable"

// resumable returns the endpoint of resumable uploads. id is that of an upload; empty for the
// endpoint itself.
func (h *Handler) resumable(kind item.Kind, id string) endpoint {
	return func(running *service.Service, w http.ResponseWriter, r *http.Request) error {
		path := h.options.MountPrefix(r) + uploadPath + kind.Name() + resumableSuffix
		return h.uploadFrom(w, r, kind, tokens.Upload).resumable(r, path, id)(running, w, r)
	}
}

// UploadResumable serves resumable uploads of a caller like their endpoints, but without a token.
// path is that of the endpoint as the client sees it, and id that of an upload; empty for the
// endpoint itself. The caller's origin and account own the uploads. HEAD and GET may store an item,
// and a header may name another method, so the permission must not depend on the method. The error
// is an *[Error]; then nothing was written. Its status is 404 if resumable uploads are off.
func (h *Handler) UploadResumable(w http.ResponseWriter, r *http.Request, kind item.Kind, path, id string, caller Caller) error {
	return h.serveWith(w, r, h.uploadOf(r, kind, caller).resumable(r, path, id))
}

// resumable returns the endpoint of resumable uploads for the caller of u.
func (u *uploadRequest) resumable(r *http.Request, path, id string) endpoint {
	e := &tus.Endpoint{
		Kind: u.kind, Path: path, BaseURL: u.baseURL, Origin: u.origin, Client: u.options.Client(r),
		Running: u.next, Log: u.options.Log,
		Authenticate: func(ctx context.Context, running *service.Service) (tokens.Caller, *item.Failure) {
			caller, refused := u.authenticate(ctx, running)
			if refused == nil && !caller.AllowsKind(u.kind.Name()) {
				refused = ticketRefusal(caller, u.kind)
			}
			if refused != nil {
				return caller, &item.Failure{Reason: refused.reason, Message: refused.message}
			}
			return caller, nil
		},
	}
	return func(running *service.Service, w http.ResponseWriter, r *http.Request) error {
		return e.Serve(running, w, r, id)
	}
}
