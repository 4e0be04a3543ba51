package mediahttp

import (
	"context"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/aliases"
	"github.com/caddymedia/media/caddymedia/internal/bytesize"
	"github.com/caddymedia/media/caddymedia/internal/httpx"
	"github.com/caddymedia/media/caddymedia/internal/upload"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/caddymedia/tokens"
)

// maxBoundary is the length of the longest boundary, RFC 2046 section 5.1.1.
const maxBoundary = 70

// spareUploads is how many uploads a ticket may have under way beside one for each file that it has
// left.
const spareUploads = 2

// formWanted is for clients that send the file itself as the body, such as curl -T.
const formWanted = "send the file in a part called files[], or by PUT to %s/<alias>/<name>"

// refusal is the response to a request whose body is not read.
type refusal struct {
	status  int
	reason  aliases.Reason
	message string
}

var tooManyUploads = &refusal{
	http.StatusTooManyRequests, aliases.Busy, "the account, or the ticket or its client, has too many uploads under way, try again later",
}

// authenticator returns the caller of a request, according to a service.
type authenticator func(ctx context.Context, service *media.Service) (tokens.Caller, *refusal)

// upload returns an endpoint that stores the files of an authenticated request.
func (h *Handler) upload(kind aliases.Kind) endpoint {
	return func(service *media.Service, w http.ResponseWriter, r *http.Request) error {
		u := h.uploadFrom(w, r, kind, tokens.Upload, tokens.Import)
		u.imports = true
		return u.serve(service, w, r)
	}
}

// uploadFrom returns a request of a caller with a token, whose account needs one of the rights, or
// with a ticket, whose account needs the first one.
func (h *Handler) uploadFrom(w http.ResponseWriter, r *http.Request, kind aliases.Kind, rights ...tokens.Right) *uploadRequest {
	return &uploadRequest{
		Handler: h, kind: kind, origin: aliases.OriginHTTP, baseURL: h.baseURL(r) + h.options.MountPrefix(r),
		authenticate: func(ctx context.Context, service *media.Service) (tokens.Caller, *refusal) {
			caller, refused := h.authenticate(ctx, service, w, r)
			if refused != nil || caller.Ticket == nil && slices.ContainsFunc(rights, caller.Account.May) {
				return caller, refused
			}
			return caller, rightRefusal(caller.Account, rights[0])
		},
	}
}

// Caller is an authenticated caller of [Handler.Upload], [Handler.UploadResumable] and [Handler.Items].
type Caller struct {
	// Account limits the aliases, and its rights limit the changes by Handler.Items. Its API key is
	// recorded as the actor.
	Account tokens.Account
	// Origin of the requests.
	Origin aliases.Origin
	// Confirm, if set, reports whether the caller may still change items. It is called before the
	// body is read and before the commit, with the service that then answers new requests.
	Confirm func(running *media.Service) bool
}

// authenticate is the authenticator of a caller without a token.
func (c Caller) authenticate(_ context.Context, running *media.Service) (tokens.Caller, *refusal) {
	caller := tokens.Caller{Account: c.Account}
	if c.Confirm != nil && !c.Confirm(running) {
		return caller, &refusal{http.StatusUnauthorized, aliases.Unauthorized, "the caller is logged out or may not change items any more"}
	}
	return caller, nil
}

// Upload stores the files of a caller like the upload endpoints, but without a token. The body must
// be unread. The error is an *[Error]; then nothing was written.
func (h *Handler) Upload(w http.ResponseWriter, r *http.Request, kind aliases.Kind, caller Caller) error {
	return h.serveWith(w, r, h.uploadOf(r, kind, caller).serve)
}

// uploadOf returns a request of a caller without a token.
func (h *Handler) uploadOf(r *http.Request, kind aliases.Kind, caller Caller) *uploadRequest {
	return &uploadRequest{Handler: h, kind: kind, origin: caller.Origin, baseURL: h.baseURL(r), authenticate: caller.authenticate}
}

// uploadRequest is one request to store items.
type uploadRequest struct {
	*Handler
	put          *putAddress // of the one file that is the body; nil for a form
	kind         aliases.Kind
	origin       aliases.Origin
	baseURL      string // of public addresses
	imports      bool   // it may have addresses to import
	folder       string // of the user
	authenticate authenticator
}

// serve authenticates the request, receives its body and responds. If possible it refuses a request
// before it reads the body.
func (u *uploadRequest) serve(service *media.Service, w http.ResponseWriter, r *http.Request) error {
	return u.repeatable(service, w, r, u.origin, u.authenticate, u.store)
}

// store is serve for one attempt at the request.
func (u *uploadRequest) store(service *media.Service, w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Cache-Control", "no-store")
	caller, boundary, refused := u.admit(service, w, r)
	u.folder = caller.Account.Folder
	req, rep := u.request(service, r, caller), repetitionOf(r.Context())
	if refused == nil {
		refused = rep.replayRefusal(req.Allows)
	}
	if refused == nil && u.put != nil && hasCondition(r.Header) {
		named, _ := service.Alias(u.kind, req.Alias) // an unknown one is refused below
		req.Matches, refused = conditionOf(r.Header, named)
	}
	if refused == nil {
		ended, ok := service.BeginUpload(req.Actor, caller.Ticket, spareUploads)
		if ok {
			defer rep.untilSent(ended)()
		} else {
			httpx.RetryAfter(w, time.Second)
			refused = tooManyUploads
		}
	}
	if refused != nil {
		return u.refuseUnread(service, w, r, req, refused)
	}
	if failures := u.precheck(service, r, req); failures != nil {
		return u.refuse(service, w, r, httpx.StatusOf(failures), failures)
	}
	httpx.Watch(r)
	timed, stop := httpx.NewTimedBody(w, r.Body, service.UploadTime(caller.Ticket))
	defer stop()
	body, refused := rep.match(http.MaxBytesReader(w, timed, service.Limits().MaxBody), boundary)
	if refused != nil {
		return u.refuseUnread(service, w, r, req, refused)
	}
	if rep.isAnswered() {
		leave, refused := u.enterQueue(service, w, r, req.Actor, media.OtherCall, int64(len(rep.answer.Body)))
		if refused != nil {
			return u.refuseUnread(service, w, r, req, refused)
		}
		defer leave()
		return rep.replay(w, r)
	}
	source := upload.Form(body, boundary)
	if u.put != nil {
		source = upload.Body(u.put.name, body)
	}
	items, failures := service.Uploader().Upload(r.Context(), req, source)
	if failures != nil {
		service.CountRefused(r.Context(), caller.Ticket, failures)
		return u.refuse(service, w, r, httpx.StatusOf(failures), failures)
	}
	if u.put != nil {
		w.Header().Set("Location", items[0].FullPath)
		return httpx.AnswerItems(w, http.StatusCreated, items)
	}
	return httpx.AnswerItems(w, http.StatusOK, items)
}

// request returns the request for the uploader.
func (u *uploadRequest) request(service *media.Service, r *http.Request, caller tokens.Caller) upload.Upload {
	alias, subFolder := u.destination(r)
	rep := repetitionOf(r.Context())
	req := upload.Upload{SubFolder: subFolder, Request: upload.Request{
		Kind: u.kind, Alias: alias,
		Allows: func(alias string) bool { return caller.Allows(u.kind.Name(), alias) },
		Forced: media.ForcedBy(caller), Confirm: u.confirm, BaseURL: u.baseURL, Repetition: rep.repeats(),
		Actor: aliases.Actor{Origin: u.origin, Account: caller.Account.APIKey, User: caller.Account.User, Client: u.options.Client(r), Ticket: caller.Ticket.HexID()},
	}}
	if caller.Ticket != nil && rep.isRepeated() {
		req.Forced.MaxFiles = caller.Ticket.MaxFiles // the items may be counted already
	}
	if u.imports {
		u.limitSources(service, caller, &req)
	}
	return req
}

// refuseUnread responds to a request whose body is not read to its end, and reports it.
func (u *uploadRequest) refuseUnread(service *media.Service, w http.ResponseWriter, r *http.Request, req upload.Upload, refused *refusal) error {
	failures := aliases.Failures{{Reason: refused.reason, Message: refused.message}}
	service.Observer().Refused(r.Context(), req.Operation(), failures)
	return u.refuse(service, w, r, refused.status, failures)
}

// precheck returns the failures of a PUT that are known before its body is read.
func (u *uploadRequest) precheck(service *media.Service, r *http.Request, req upload.Upload) aliases.Failures {
	if u.put == nil || repetitionOf(r.Context()).isAnswered() {
		return nil
	}
	return service.Uploader().Precheck(r.Context(), req, u.put.name, max(r.ContentLength, 0))
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
func (u *uploadRequest) limitSources(service *media.Service, caller tokens.Caller, req *upload.Upload) {
	limits := service.Limits()
	req.Import, req.ImportTime, req.MaxImported = service.Importer(req.Actor), time.Duration(limits.MaxUploadTime), limits.MaxBody
	refused := rightRefusal(caller.Account, tokens.Import)
	if caller.Ticket != nil {
		refused = &refusal{http.StatusForbidden, aliases.Forbidden, "a ticket is for files only: send a token to import addresses"}
	}
	if refused != nil {
		req.NoImports = &aliases.Failure{Reason: refused.reason, Message: refused.message}
	}
	if refused := rightRefusal(caller.Account, tokens.Upload); refused != nil {
		req.NoFiles = &aliases.Failure{Reason: refused.reason, Message: refused.message}
	}
}

// refuse responds with the failures of an upload.
func (u *uploadRequest) refuse(service *media.Service, w http.ResponseWriter, r *http.Request, status int, failures aliases.Failures) error {
	service.Observer().Failed(r.Context(), u.kind.Name(), strconv.Itoa(status))
	return httpx.Refuse(w, r, u.options.Log, status, failures)
}

// admit authenticates the request and checks its header. It returns the boundary of the form.
func (u *uploadRequest) admit(service *media.Service, w http.ResponseWriter, r *http.Request) (tokens.Caller, string, *refusal) {
	bad := func(status int, message string) *refusal { return &refusal{status, aliases.BadRequest, message} }
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
	caller, refused := rep.authenticate(r.Context(), service, u.authenticate)
	if refused == nil {
		refused = ticketRefusal(caller, u.kind)
		if refused == usedUp && rep.isRepeated() {
			refused = nil // the items may be counted already
		}
	}
	if refused != nil {
		return caller, "", refused
	}
	if limit := service.Limits().MaxBody; r.ContentLength > limit {
		return caller, "", &refusal{http.StatusRequestEntityTooLarge, aliases.TooLarge, "the request is larger than " + bytesize.Format(limit)}
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
func bodyRefusal(kind aliases.Kind, header http.Header, query url.Values) *refusal {
	if failure := upload.PieceOf(kind, header, query); failure != nil {
		return &refusal{http.StatusBadRequest, failure.Reason, failure.Message}
	}
	if httpx.IsEncoded(header) {
		return &refusal{http.StatusUnsupportedMediaType, aliases.BadRequest, httpx.EncodedBody}
	}
	return nil
}

// confirm authenticates the request again before the commit, with the service that then answers new
// requests. An upload may outlast its token, its account and its configuration. The items of a
// ticket are counted until settle is called.
func (u *uploadRequest) confirm(ctx context.Context, c upload.Commitment) (settle func(upload.Outcome), failure *aliases.Failure) {
	running, release := u.source.Running()
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
		return nil, &aliases.Failure{Reason: refused.reason, Message: refused.message}
	}
	return func(outcome upload.Outcome) {
		defer release()
		rep.settle(outcome)
		if charged != nil {
			charged(outcome == upload.AllStored)
		}
	}, nil
}
