package mediahttp

import (
	"context"
	"errors"
	"mime"
	"net/http"
	"time"

	"github.com/caddymedia/media/caddymedia/ingest"
	"github.com/caddymedia/media/caddymedia/internal/bytesize"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/caddymedia/tokens"
)

// maxBoundary is the length of the longest boundary, RFC 2046 section 5.1.1.
const maxBoundary = 70

// refusal is the response to a request whose body is not read.
type refusal struct {
	status  int
	reason  ingest.Reason
	message string
}

// authenticator returns the account of a request, according to a service.
type authenticator func(ctx context.Context, service *media.Service) (tokens.Account, *refusal)

// upload returns an endpoint that stores the files of an authenticated request.
func (h *Handler) upload(kind ingest.Kind) endpoint {
	return func(service *media.Service, w http.ResponseWriter, r *http.Request) error {
		u := &upload{
			Handler: h, kind: kind, origin: ingest.OriginHTTP, baseURL: h.baseURL(r) + h.options.MountPrefix(r),
			authenticate: func(ctx context.Context, service *media.Service) (tokens.Account, *refusal) {
				return h.authenticate(ctx, service, w, r.Header)
			},
		}
		return u.serve(service, w, r)
	}
}

func (h *Handler) authenticate(ctx context.Context, service *media.Service, w http.ResponseWriter, header http.Header) (tokens.Account, *refusal) {
	var account tokens.Account
	apiKey, token, err := credentials(header)
	message := "missing, wrong or expired API key and token"
	if err != nil {
		message = err.Error()
	} else {
		account, err = service.Issuer().Verify(ctx, token, apiKey)
	}
	switch {
	case err == nil:
		return account, nil
	case errors.Is(err, tokens.ErrUnavailable):
		h.options.Log.Error("token store unreachable", "error", err)
		retryAfter(w, time.Second)
		return account, &refusal{http.StatusServiceUnavailable, ingest.Unavailable, "tokens cannot be checked now, try again later"}
	case errors.Is(err, tokens.ErrMalformed):
		message = "the token is not of the form of tokens here: send it exactly as it was received, without quotes or brackets"
	}
	w.Header().Set("WWW-Authenticate", "Bearer") // RFC 6750 section 3
	return account, &refusal{http.StatusUnauthorized, ingest.Unauthorized, message}
}

// Caller is an authenticated caller of [Handler.Upload].
type Caller struct {
	// Account limits the aliases. Its API key is recorded as the actor.
	Account tokens.Account
	// Origin of the items.
	Origin ingest.Origin
	// Confirm, if set, reports whether the caller may still store files. It is called before the
	// body is read and before the commit, with the service that then answers new requests.
	Confirm func(running *media.Service) bool
}

// Upload stores the files of a caller like the upload endpoints, but without a token. The body must
// be unread. The error is an *[Error]; then nothing was written.
func (h *Handler) Upload(w http.ResponseWriter, r *http.Request, kind ingest.Kind, caller Caller) error {
	u := &upload{
		Handler: h, kind: kind, origin: caller.Origin, baseURL: h.baseURL(r),
		authenticate: func(_ context.Context, running *media.Service) (tokens.Account, *refusal) {
			if caller.Confirm != nil && !caller.Confirm(running) {
				return caller.Account, &refusal{http.StatusUnauthorized, ingest.Unauthorized, "the caller is logged out or may not upload any more"}
			}
			return caller.Account, nil
		},
	}
	return h.serveWith(w, r, u.serve)
}

// upload is one request to store files.
type upload struct {
	*Handler
	kind         ingest.Kind
	origin       ingest.Origin
	baseURL      string // of public addresses
	authenticate authenticator
}

// serve authenticates the request, receives its body and responds. If possible it refuses a request
// before it reads the body.
func (u *upload) serve(service *media.Service, w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Cache-Control", "no-store")
	limits := service.Limits()
	account, boundary, refused := u.admit(service, w, r)
	query := r.URL.Query()
	req := ingest.Request{
		Kind: u.kind, Alias: query.Get("alias"), SubFolder: query.Get("sub_folder"),
		Allows: account.Allows, Confirm: u.confirm, BaseURL: u.baseURL,
		Actor: ingest.Actor{Origin: u.origin, Account: account.APIKey, Client: u.options.Client(r)},
	}
	if refused == nil {
		ended, ok := service.BeginUpload(req.Actor)
		if ok {
			defer ended()
		} else {
			retryAfter(w, time.Second)
			refused = &refusal{http.StatusTooManyRequests, ingest.Busy, "the account has too many uploads under way, try again later"}
		}
	}
	if refused != nil {
		failures := ingest.Failures{{Reason: refused.reason, Message: refused.message}}
		service.Observer().Refused(r.Context(), req, failures)
		return u.refuse(service, w, r, refused.status, failures)
	}
	r.Body = &watchedBody{ReadCloser: r.Body}
	timed, stop := newTimedBody(w, r.Body, limits.MaxUploadTime)
	defer stop()
	body := http.MaxBytesReader(w, timed, limits.MaxBody)
	items, failures := service.Uploader().Upload(r.Context(), req, ingest.Form(body, boundary))
	if failures != nil {
		return u.refuse(service, w, r, statusOf(failures), failures)
	}
	return answer(w, http.StatusOK, uploadAnswerOf(items))
}

// admit authenticates the request and checks its header. It returns the boundary of the form.
func (u *upload) admit(service *media.Service, w http.ResponseWriter, r *http.Request) (tokens.Account, string, *refusal) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return tokens.Account{}, "", &refusal{http.StatusMethodNotAllowed, ingest.BadRequest, "use POST"}
	}
	account, refused := u.authenticate(r.Context(), service)
	if refused != nil {
		return account, "", refused
	}
	mediaType, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || mediaType != "multipart/form-data" {
		return account, "", &refusal{http.StatusUnsupportedMediaType, ingest.BadRequest, "the body must be multipart/form-data"}
	}
	boundary := params["boundary"]
	if boundary == "" || len(boundary) > maxBoundary {
		return account, "", &refusal{http.StatusBadRequest, ingest.BadRequest, "the boundary of the form is missing or too long"}
	}
	if limit := service.Limits().MaxBody; r.ContentLength > limit {
		return account, "", &refusal{
			http.StatusRequestEntityTooLarge, ingest.TooLarge,
			"the request is larger than " + bytesize.Format(limit),
		}
	}
	query := r.URL.Query()
	for _, name := range []string{"alias", "sub_folder"} {
		if len(query[name]) > 1 {
			return account, "", &refusal{http.StatusBadRequest, ingest.BadRequest, "the parameter " + name + " is sent twice"}
		}
	}
	return account, boundary, nil
}

// confirm authenticates the request again before the commit, with the service that then answers new
// requests. An upload may outlast its token, its account and its configuration.
func (u *upload) confirm(ctx context.Context, alias string) *ingest.Failure {
	running, release := u.source.Running()
	defer release()
	account, refused := u.authenticate(ctx, running)
	switch {
	case refused != nil:
		return &ingest.Failure{Reason: refused.reason, Message: refused.message}
	case !account.Allows(alias):
		return &ingest.Failure{Reason: ingest.Forbidden, Message: "the account may not use the alias any more"}
	}
	return nil
}
