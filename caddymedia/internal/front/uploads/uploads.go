// Package uploads has the endpoints that store files: forms, PUT of one file, and resumable
// uploads, for clients and for the panel. It admits a request and counts it; what is stored, and
// under which name, is decided by package upload, and the protocol of resumable uploads is in
// package tus. Begin with [Form] and the store of its request.
package uploads

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/op"
	"github.com/caddymedia/media/caddymedia/internal/core/resumable"
	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/core/upload"
	"github.com/caddymedia/media/caddymedia/internal/front/caller"
	"github.com/caddymedia/media/caddymedia/internal/front/httpx"
	"github.com/caddymedia/media/caddymedia/internal/front/tus"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/bytesize"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
)

// maxBoundary is the length of the longest boundary, RFC 2046 section 5.1.1.
const maxBoundary = 70

// formWanted is for clients that send the file itself as the body, such as curl -T.
const formWanted = "send the file in a part called files[], or by PUT to %s/<alias>/<name>"

// Form returns the endpoint that stores the files of a form, and those of addresses.
func Form(g *caller.Gate, kind item.Kind) caller.Endpoint {
	return func(running *service.Service, w http.ResponseWriter, r *http.Request) error {
		u := requestFrom(g, w, r, kind, access.Upload, access.Import)
		u.imports = true
		return u.serve(running, w, r)
	}
}

// requestFrom returns a request of a caller with a token, whose account needs one of the rights, or
// with a ticket, whose account needs the first one.
func requestFrom(g *caller.Gate, w http.ResponseWriter, r *http.Request, kind item.Kind, rights ...access.Right) *uploadRequest {
	return &uploadRequest{
		Gate: g, kind: kind, origin: item.OriginHTTP, rights: rights, baseURL: g.BaseURL(r) + g.MountPrefix(r),
		authenticate: func(ctx context.Context, running *service.Service) (access.Caller, *item.Failure) {
			who, failure := g.Authenticate(ctx, running, w, r)
			if failure != nil || who.Ticket == nil && slices.ContainsFunc(rights, who.Account.May) {
				return who, failure
			}
			return who, op.Need(who.Account, rights[0])
		},
	}
}

// Serve stores the files of a form of a known caller, without a token. The body must be unread. The
// error is an *[httpx.Error]; then nothing was written.
func Serve(g *caller.Gate, w http.ResponseWriter, r *http.Request, kind item.Kind, known caller.Known) error {
	return g.Answer(w, r, requestOf(g, r, kind, known).serve)
}

// requestOf returns a request of a known caller.
func requestOf(g *caller.Gate, r *http.Request, kind item.Kind, known caller.Known) *uploadRequest {
	return &uploadRequest{Gate: g, kind: kind, origin: known.Origin, baseURL: g.BaseURL(r), authenticate: known.Authenticate}
}

// uploadRequest is one request to store items.
type uploadRequest struct {
	*caller.Gate
	put          *putAddress // of the one file that is the body; nil for a form
	kind         item.Kind
	origin       item.Origin
	rights       []access.Right // of which the account needs one; none if the caller is known to have it
	baseURL      string         // of public addresses
	imports      bool           // it may have addresses to import
	purge        bool           // what it replaces is kept in no trash; known after admit
	hold         []string       // values of hold in the address; known after admit
	held         []*resumable.Upload
	authenticate op.Authenticator
}

// serve authenticates the request, receives its body and responds. If possible it refuses a request
// before it reads the body.
func (u *uploadRequest) serve(running *service.Service, w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Cache-Control", "no-store")
	method := http.MethodPost
	if u.put != nil {
		method = http.MethodPut
	}
	if r.Method != method {
		w.Header().Set("Allow", method)
		nobody := u.Nobody(running, r, u.origin)
		return u.refuseUnread(nobody, w, r, u.request(nobody, r), u.otherMethod())
	}
	return u.Admit(running, w, r, u.origin, u.authenticate, u.store)
}

// otherMethod returns the refusal of a request with another method.
func (u *uploadRequest) otherMethod() *caller.Refusal {
	message := "use PUT, with the file as the body"
	if u.put == nil {
		message = "use POST: " + u.wanted()
	}
	return caller.Refuse(http.StatusMethodNotAllowed, item.BadRequest, message)
}

// wanted says how a client of forms sends a file.
func (u *uploadRequest) wanted() string {
	return fmt.Sprintf(formWanted, caller.UploadPath+u.kind.Name())
}

// store is serve for one attempt at the request.
func (u *uploadRequest) store(p *caller.Permit, w http.ResponseWriter, r *http.Request) error {
	boundary, refused := u.admit(p, r)
	req, rep := u.request(p, r), p.Repetition
	if refused == nil && rep.IsAnswered() {
		refused = caller.Refused(rep.MayReplay(req.Allows))
	}
	if refused == nil && u.put != nil && caller.HasCondition(r.Header) {
		named, _ := p.Service.Alias(u.kind, req.Alias) // an unknown one is refused below
		matches, failure := caller.Condition(r.Header, named)
		req.Matches, refused = matches, caller.Refused(failure)
	}
	if refused == nil {
		var ended func()
		if ended, refused = p.BeginUpload(w); refused == nil {
			defer ended()
		}
	}
	if refused != nil {
		return u.refuseUnread(p, w, r, req, refused)
	}
	if failures := u.precheck(p, r, req); failures != nil {
		return u.refuse(p, w, r, httpx.StatusOf(failures), failures)
	}
	httpx.Watch(r)
	timed, stop := httpx.NewTimedBody(w, r.Body, p.Service.UploadTime(p.Ticket))
	defer stop()
	body, failure := rep.Match(http.MaxBytesReader(w, timed, p.Service.Limits().MaxBody), boundary)
	refused = caller.Refused(failure)
	if refused == nil && rep.IsAnswered() {
		if refused = p.Replay(w, r); refused == nil {
			return nil
		}
	}
	if refused != nil {
		return u.refuseUnread(p, w, r, req, refused)
	}
	source := upload.Form(body, boundary)
	if u.put != nil {
		source = upload.Body(u.put.name, body)
	}
	items, failures := p.Service.Uploader().Upload(r.Context(), req, source)
	if failures != nil {
		p.Service.CountRefused(r.Context(), p.Ticket, failures)
		status := httpx.StatusOf(failures)
		if errors.Is(failures[0].Err, resumable.ErrTooMany) {
			status = http.StatusTooManyRequests
			httpx.RetryAfter(w, time.Minute)
		}
		return u.refuse(p, w, r, status, failures)
	}
	if u.held != nil {
		return httpx.AnswerHeld(w, http.StatusAccepted, u.held...)
	}
	if u.put != nil {
		w.Header().Set("Location", items[0].FullPath)
		return httpx.AnswerItems(w, http.StatusCreated, items)
	}
	return httpx.AnswerItems(w, http.StatusOK, items)
}

// request returns the request for the uploader.
func (u *uploadRequest) request(p *caller.Permit, r *http.Request) upload.Upload {
	alias, subFolder := u.destination(r)
	rights := u.rights
	if u.purge {
		rights = append(slices.Clip(rights), access.Purge)
	}
	req := upload.Upload{SubFolder: subFolder, Request: p.Request(u.kind, alias, u.baseURL, rights)}
	req.Purge, req.Hold = u.purge, p.Holding(u.kind, u.rights, u.hold, &u.held)
	if p.Ticket != nil && p.Attempt.IsRepeated() {
		req.Forced.MaxFiles = p.Ticket.MaxFiles // the items may be counted already
	}
	if u.imports {
		u.limitSources(p, &req)
	}
	return req
}

// refuseUnread responds to a request whose body is not read to its end, and reports it.
func (u *uploadRequest) refuseUnread(p *caller.Permit, w http.ResponseWriter, r *http.Request, req upload.Upload, refused *caller.Refusal) error {
	failures := item.Failures{refused.Failure}
	p.Service.Observer().Refused(r.Context(), req.Operation(), failures)
	return u.refuse(p, w, r, refused.Status, failures)
}

// precheck returns the failures of a PUT that are known before its body is read.
func (u *uploadRequest) precheck(p *caller.Permit, r *http.Request, req upload.Upload) item.Failures {
	if u.put == nil || p.Repetition.IsAnswered() {
		return nil
	}
	return p.Service.Uploader().Precheck(r.Context(), req, u.put.name, max(r.ContentLength, 0))
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
func (u *uploadRequest) limitSources(p *caller.Permit, req *upload.Upload) {
	limits := p.Service.Limits()
	req.ImportTime, req.MaxImported = limits.MaxUploadTime, limits.MaxBody
	req.NoFiles, req.NoImports = op.Need(p.Account, access.Upload), op.Need(p.Account, access.Import)
	if p.Ticket != nil {
		req.NoImports = item.Failf(item.Forbidden, "a ticket is for files only: send a token to import addresses")
	}
	if req.NoImports == nil {
		req.Import = p.Service.Importer(req.Actor)
	}
}

// refuse responds with the failures of an upload.
func (u *uploadRequest) refuse(p *caller.Permit, w http.ResponseWriter, r *http.Request, status int, failures item.Failures) error {
	p.Service.Observer().Failed(r.Context(), u.kind.Name(), strconv.Itoa(status))
	return httpx.Refuse(w, r, u.Log, status, failures)
}

// admit checks the caller and the header of the request. It returns the boundary of the form.
func (u *uploadRequest) admit(p *caller.Permit, r *http.Request) (boundary string, refused *caller.Refusal) {
	failure := p.Refused
	if failure == nil {
		failure = caller.TicketFailure(p.Caller, u.kind)
	}
	if failure != nil && (failure != caller.ErrUsedUp || !p.Attempt.IsRepeated()) { // the items may be counted already
		return "", caller.Refused(failure)
	}
	if limit := p.Service.Limits().MaxBody; r.ContentLength > limit {
		return "", caller.Refuse(http.StatusRequestEntityTooLarge, item.TooLarge, "the request is larger than "+bytesize.Format(limit))
	}
	var query url.Values
	if r.URL.RawQuery != "" {
		query = r.URL.Query()
	}
	u.hold = query["hold"]
	refused = caller.BodyRefusal(u.kind, r.Header, query)
	if refused == nil {
		refused = u.readPurge(p, query)
	}
	switch {
	case refused != nil:
		return "", refused
	case u.put == nil:
		return u.boundary(r, query)
	case u.put.problem != "":
		return "", caller.Refuse(http.StatusBadRequest, item.BadRequest, u.put.problem)
	}
	return "", nil
}

// readPurge sets purge. It returns the refusal of a caller that may not; nil for others.
func (u *uploadRequest) readPurge(p *caller.Permit, query url.Values) *caller.Refusal {
	var problem string
	u.purge, problem = caller.Purges(query)
	switch {
	case problem != "":
		return caller.Refuse(http.StatusBadRequest, item.BadRequest, problem)
	case u.purge && p.Ticket != nil:
		return caller.Refuse(http.StatusForbidden, item.Forbidden, "a ticket purges nothing: send a token")
	case u.purge:
		return caller.Refused(p.NeedOne(access.Purge))
	}
	return nil
}

// boundary returns the boundary of the form in the body.
func (u *uploadRequest) boundary(r *http.Request, query url.Values) (boundary string, refused *caller.Refusal) {
	bad := func(status int, message string) (string, *caller.Refusal) {
		return "", caller.Refuse(status, item.BadRequest, message)
	}
	if caller.HasCondition(r.Header) {
		return bad(http.StatusBadRequest, "conditions such as If-Match are for PUT: send the form without them")
	}
	mediaType, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil && mediaType != "" {
		return bad(http.StatusUnsupportedMediaType, "the body must be multipart/form-data: quote the boundary in the Content-Type")
	}
	if err != nil || mediaType != "multipart/form-data" {
		return bad(http.StatusUnsupportedMediaType, "the body must be multipart/form-data: "+u.wanted())
	}
	if boundary = params["boundary"]; boundary == "" || len(boundary) > maxBoundary {
		return bad(http.StatusBadRequest, "the boundary of the form is missing or too long")
	}
	if name := caller.SentTwice(query, "alias", "sub_folder"); name != "" {
		return bad(http.StatusBadRequest, "the parameter "+name+" is sent twice")
	}
	return boundary, nil
}

// putAddress is the address of an upload of one file: its alias, sub folder and name.
type putAddress struct {
	alias, subFolder, name string
	problem                string // for the caller; empty if there is none
}

// putAddressOf returns the address in a path. A name is not needed for other methods.
func putAddressOf(u *url.URL, kind item.Kind) *putAddress {
	segments, problem := caller.Segments(strings.TrimPrefix(u.EscapedPath(), "/"))
	const start = 3 // api, upload and the kind
	if problem == "" && (len(segments) < start+2 || strings.Join(segments[:start], "/") != caller.UploadPath[1:]+kind.Name()) {
		problem = "the address is " + caller.UploadPath + kind.Name() + "/<alias>/<name>, or has a sub folder between them"
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

// Put returns the endpoint of an upload of one file, which is the body of the request.
func Put(g *caller.Gate, kind item.Kind) caller.Endpoint {
	return func(running *service.Service, w http.ResponseWriter, r *http.Request) error {
		u := requestFrom(g, w, r, kind, access.Upload)
		u.put = putAddressOf(r.URL, kind)
		return u.serve(running, w, r)
	}
}

// ResumableSuffix is the end of the paths of the endpoints, before the ID of an upload.
const ResumableSuffix = "/resumable"

// Resumable returns the endpoint of resumable uploads. id is that of an upload; empty for the
// endpoint itself.
func Resumable(g *caller.Gate, kind item.Kind, id string) caller.Endpoint {
	return func(running *service.Service, w http.ResponseWriter, r *http.Request) error {
		path := g.MountPrefix(r) + caller.UploadPath + kind.Name() + ResumableSuffix
		return requestFrom(g, w, r, kind, access.Upload).resumable(path, id)(running, w, r)
	}
}

// ServeResumable serves resumable uploads of a known caller, without a token.
// path is that of the endpoint as the client sees it, and id that of an upload; empty for the
// endpoint itself. The caller's origin and account own the uploads. HEAD and GET may store an item,
// and a header may name another method, so the permission must not depend on the method. The error
// is an *[httpx.Error]; then nothing was written. Its status is 404 if resumable uploads are off.
func ServeResumable(
	g *caller.Gate, w http.ResponseWriter, r *http.Request, kind item.Kind, path, id string, known caller.Known,
) error {
	return g.Answer(w, r, requestOf(g, r, kind, known).resumable(path, id))
}

// resumable returns the endpoint of resumable uploads for the caller of u.
func (u *uploadRequest) resumable(path, id string) caller.Endpoint {
	e := &tus.Endpoint{Gate: u.Gate, Kind: u.kind, Path: path, BaseURL: u.baseURL, Origin: u.origin, Authenticate: u.ofKind}
	return func(running *service.Service, w http.ResponseWriter, r *http.Request) error {
		return e.Serve(running, w, r, id)
	}
}

// ofKind authenticates the caller, whose ticket must be for the kind.
func (u *uploadRequest) ofKind(ctx context.Context, running *service.Service) (access.Caller, *item.Failure) {
	who, failure := u.authenticate(ctx, running)
	if failure == nil && !who.AllowsKind(u.kind.Name()) {
		failure = caller.TicketFailure(who, u.kind)
	}
	return who, failure
}
