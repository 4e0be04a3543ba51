package mediahttp

import (
	"context"
	"errors"
	"mime"
	"net/http"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/caddymedia/media/caddymedia/ingest"
	"github.com/caddymedia/media/caddymedia/mediaapp"
	"github.com/caddymedia/media/caddymedia/tokens"
)

type uploadAnswer struct {
	Success bool         `json:"success"`
	Result  []uploadItem `json:"result"`
}

type uploadItem struct {
	FullPath string `json:"full_path"`
	Filename string `json:"filename"`
	WebP     string `json:"webp,omitempty"`
}

type uploadFailure struct {
	Success bool          `json:"success"`
	Errors  []itemFailure `json:"errors"`
}

type itemFailure struct {
	Message  string `json:"message"`
	Filename string `json:"filename"`
}

// maxBoundary is the longest boundary, RFC 2046 section 5.1.1.
const maxBoundary = 70

// upload stores the files of a request. Whatever can be refused is, before the body is
// read.
func (h *Handler) upload(kind ingest.Kind) endpoint {
	return func(app *mediaapp.App, w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Cache-Control", "no-store")
		account, boundary, refusal := h.admit(app, w, r)
		if refusal != nil {
			return h.refuse(app, w, r, kind, refusal.status, ingest.Failures{{Message: refusal.message}})
		}
		query := r.URL.Query()
		for _, name := range []string{"alias", "sub_folder"} {
			if len(query[name]) > 1 {
				return h.refuse(app, w, r, kind, http.StatusBadRequest, ingest.Failures{{Message: "the parameter " + name + " is sent twice"}})
			}
		}
		r.Body = &watchedBody{ReadCloser: r.Body}
		body := http.MaxBytesReader(w, r.Body, app.MaxBody())
		items, err := app.Gate().Form(r.Context(), body, boundary, ingest.Request{
			Kind: kind, Alias: query.Get("alias"), SubFolder: query.Get("sub_folder"),
			Allows: account.Allows, BaseURL: baseURL(r),
		})
		if failures, ok := errors.AsType[ingest.Failures](err); ok {
			return h.refuse(app, w, r, kind, statusOf(failures), failures)
		}
		result := make([]uploadItem, len(items))
		for i, item := range items {
			result[i] = uploadItem{FullPath: item.FullPath, Filename: item.Filename, WebP: item.WebP}
		}
		return answer(w, http.StatusOK, uploadAnswer{Success: true, Result: result})
	}
}

// refusal is why a request is not even read.
type refusal struct {
	status  int
	message string
}

// admit decides from the head of a request whether its body is read: who sends it, and
// whether it can be a form that is small enough.
func (h *Handler) admit(app *mediaapp.App, w http.ResponseWriter, r *http.Request) (tokens.Account, string, *refusal) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return tokens.Account{}, "", &refusal{http.StatusMethodNotAllowed, "use POST"}
	}
	account, refused := h.authenticate(r.Context(), app, w, r.Header)
	if refused != nil {
		return account, "", refused
	}
	mediaType, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || mediaType != "multipart/form-data" {
		return account, "", &refusal{http.StatusUnsupportedMediaType, "the body must be multipart/form-data"}
	}
	boundary := params["boundary"]
	if boundary == "" || len(boundary) > maxBoundary {
		return account, "", &refusal{http.StatusBadRequest, "the boundary of the form is missing or too long"}
	}
	if r.ContentLength > app.MaxBody() {
		return account, "", &refusal{
			http.StatusRequestEntityTooLarge,
			"the request is larger than " + strconv.FormatInt(app.MaxBody(), 10) + " bytes",
		}
	}
	return account, boundary, nil
}

func (h *Handler) authenticate(ctx context.Context, app *mediaapp.App, w http.ResponseWriter, header http.Header) (tokens.Account, *refusal) {
	apiKey, token, err := credentials(header)
	var account tokens.Account
	if err == nil {
		account, err = app.Issuer().Verify(ctx, token, apiKey)
	}
	switch {
	case err == nil:
		return account, nil
	case errors.Is(err, tokens.ErrUnavailable):
		h.log.Error("token store cannot be used", zap.Error(err))
		retryAfter(w, time.Second)
		return account, &refusal{http.StatusServiceUnavailable, "tokens cannot be checked now, try again later"}
	default:
		w.Header().Set("WWW-Authenticate", "Bearer") // RFC 6750 section 3
		return account, &refusal{http.StatusUnauthorized, "missing, wrong or expired API key and token"}
	}
}

// refuse answers what failed, and logs what is not the caller's fault.
func (h *Handler) refuse(app *mediaapp.App, w http.ResponseWriter, r *http.Request, kind ingest.Kind, status int, failures ingest.Failures) error {
	app.CountFailure(map[ingest.Kind]string{ingest.Image: "image", ingest.File: "file"}[kind], strconv.Itoa(status))
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
			h.log.Log(level, f.Message, zap.Int("status", status), zap.Error(f.Err))
		}
	}
	return h.answerUnread(w, r, status, failed)
}

// waitFor is how long a caller had better wait: a line of pictures is worked off in some
// seconds, and who sends his picture again makes it longer.
func waitFor(failures ingest.Failures) time.Duration {
	for _, f := range failures {
		if f.Reason == ingest.Busy {
			return 5 * time.Second
		}
	}
	return time.Second
}

// statuses of the reasons, in the order of spec'd precedence: the highest wins.
var statuses = map[ingest.Reason]int{
	ingest.Internal:      http.StatusInternalServerError,
	ingest.BadRequest:    http.StatusBadRequest,
	ingest.Forbidden:     http.StatusForbidden,
	ingest.Conflict:      http.StatusConflict,
	ingest.TooLarge:      http.StatusRequestEntityTooLarge,
	ingest.BadContent:    http.StatusUnsupportedMediaType,
	ingest.StorageFailed: http.StatusBadGateway,
	ingest.Unavailable:   http.StatusServiceUnavailable,
	ingest.NoSpace:       http.StatusInsufficientStorage,
	ingest.Busy:          http.StatusServiceUnavailable,
}

// statusOf is the highest status of several failures.
func statusOf(failures ingest.Failures) int {
	highest := 0
	for _, f := range failures {
		highest = max(highest, statuses[f.Reason])
	}
	return highest
}
