package mediahttp

import (
	"context"
	"mime"
	"net/http"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/caddymedia/media/caddymedia/ingest"
	"github.com/caddymedia/media/caddymedia/mediaapp"
	"github.com/caddymedia/media/caddymedia/tokens"
)

// Uploads answers upload requests as the endpoints do, for handlers that know their callers
// by themselves. Origin and Log are required.
type Uploads struct {
	// Origin is where the items come from.
	Origin ingest.Origin
	// Log takes what is not the caller's fault.
	Log *zap.Logger
	// Confirm, if set, reports whether the caller may still store files, by the app of the
	// configuration that runs then. It is called before the body is read and before the commit.
	Confirm func(running *mediaapp.App) bool

	prefix string // of public addresses, behind the host
}

// maxBoundary is the longest boundary, RFC 2046 section 5.1.1.
const maxBoundary = 70

// refusal is why a request is not even read.
type refusal struct {
	status  int
	reason  ingest.Reason
	message string
}

// Serve stores the files of a request of account, which needs no token, and answers it. What
// is stored is ascribed to the account's API key, and to the client as Caddy knows it.
// Nothing of the body may have been read. The app must stay open until Serve returns; the caller should
// call [Linger] when it has released the app. The error is for Caddy; nothing was answered then.
func (u Uploads) Serve(app *mediaapp.App, w http.ResponseWriter, r *http.Request, kind ingest.Kind, account tokens.Account) error {
	return u.serve(app, w, r, kind, func(running *mediaapp.App) (tokens.Account, *refusal) {
		if u.Confirm != nil && !u.Confirm(running) {
			return account, &refusal{http.StatusUnauthorized, ingest.Unauthorized, "the caller is logged out or may not upload any more"}
		}
		return account, nil
	})
}

// authenticator returns the account of a request by the accounts and tokens of an app.
type authenticator func(app *mediaapp.App) (tokens.Account, *refusal)

// serve is Serve for a caller that authenticate identifies. It refuses what it can before it reads
// the body.
func (u Uploads) serve(app *mediaapp.App, w http.ResponseWriter, r *http.Request, kind ingest.Kind, authenticate authenticator) error {
	w.Header().Set("Cache-Control", "no-store")
	account, boundary, refused := admit(app, w, r, authenticate)
	query := r.URL.Query()
	req := ingest.Request{
		Kind: kind, Alias: query.Get("alias"), SubFolder: query.Get("sub_folder"),
		Allows: account.Allows, Confirm: confirm(app, authenticate), BaseURL: baseURL(r) + u.prefix,
		Actor: ingest.Actor{Origin: u.Origin, Account: account.APIKey, Client: mediaapp.ClientOf(r.Context())},
	}
	if refused == nil {
		ended, ok := app.BeginUpload(req.Actor)
		if ok {
			defer ended()
		} else {
			retryAfter(w, time.Second)
			refused = &refusal{http.StatusTooManyRequests, ingest.Busy, "the account has too many uploads under way, try again later"}
		}
	}
	if refused != nil {
		failures := ingest.Failures{{Reason: refused.reason, Message: refused.message}}
		app.Uploader().Observer.Refused(r.Context(), req, failures)
		return u.refuse(app, w, r, kind, refused.status, failures)
	}
	r.Body = &watchedBody{ReadCloser: r.Body}
	timed, stop := newTimedBody(w, r.Body, app.MaxUploadTime())
	defer stop()
	body := http.MaxBytesReader(w, timed, app.MaxBody())
	items, failures := app.Uploader().Upload(r.Context(), req, ingest.Form(body, boundary))
	if failures != nil {
		return u.refuse(app, w, r, kind, statusOf(failures), failures)
	}
	result := make([]uploadItem, len(items))
	for i, item := range items {
		result[i] = uploadItem{FullPath: item.FullPath, Filename: item.Filename, WebP: item.WebP}
	}
	return answer(w, http.StatusOK, uploadAnswer{Success: true, Result: result})
}

// confirm authenticates the request once more, by the accounts and tokens of the configuration that
// runs then: an upload may outlast its token, its account and the configuration under which it began.
func confirm(app *mediaapp.App, authenticate authenticator) func(context.Context, string) *ingest.Failure {
	return func(_ context.Context, alias string) *ingest.Failure {
		running, release := app.Running()
		defer release()
		account, refused := authenticate(running)
		switch {
		case refused != nil:
			return &ingest.Failure{Reason: refused.reason, Message: refused.message}
		case !account.Allows(alias):
			return &ingest.Failure{Reason: ingest.Forbidden, Message: "the account may not use the alias any more"}
		}
		return nil
	}
}

// admit decides from the head of a request whether its body is read: who sends it, and
// whether it can be a form that is small enough.
func admit(app *mediaapp.App, w http.ResponseWriter, r *http.Request, authenticate authenticator) (tokens.Account, string, *refusal) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return tokens.Account{}, "", &refusal{http.StatusMethodNotAllowed, ingest.BadRequest, "use POST"}
	}
	account, refused := authenticate(app)
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
	if r.ContentLength > app.MaxBody() {
		return account, "", &refusal{
			http.StatusRequestEntityTooLarge, ingest.TooLarge,
			"the request is larger than " + strconv.FormatInt(app.MaxBody(), 10) + " bytes",
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

// refuse answers what failed, and logs what is not the caller's fault.
func (u Uploads) refuse(app *mediaapp.App, w http.ResponseWriter, r *http.Request, kind ingest.Kind, status int, failures ingest.Failures) error {
	app.CountFailure(kind.Name(), strconv.Itoa(status))
	if status == http.StatusServiceUnavailable && w.Header().Get("Retry-After") == "" {
		retryAfter(w, waitFor(failures))
	}
	failed := uploadFailure{Errors: make([]itemFailure, len(failures))}
	for i, f := range failures {
		failed.Errors[i] = itemFailure{Message: f.Message, Filename: f.Filename}
		if f.Err != nil {
			level := zap.WarnLevel
			if status >= http.StatusInternalServerError && f.Reason != ingest.Busy {
				level = zap.ErrorLevel
			}
			u.Log.Log(level, f.Message, zap.Int("status", status), zap.Error(f.Err))
		}
	}
	return answerUnread(w, r, status, failed)
}
