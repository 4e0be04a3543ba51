package mediahttp

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/httpx"
	"github.com/caddymedia/media/caddymedia/internal/item"
	"github.com/caddymedia/media/caddymedia/internal/service"
	"github.com/caddymedia/media/caddymedia/internal/signing"
	"github.com/caddymedia/media/caddymedia/tokens"
)

const (
	// signEndpoint is the name of the endpoint in metrics.
	signEndpoint = "sign"
	// maxSigned is the largest number of addresses that a request signs.
	maxSigned = 1000
	// defaultSigned is the lifetime of an address whose request names none.
	defaultSigned = time.Hour
)

// signForm are the limits of the form with the names to sign.
var signForm = formLimits{setForm.bytes, maxSigned + 100, setForm.time}

// signAnswer is the response to a request for signed addresses.
type signAnswer struct {
	Success bool                    `json:"success"`
	Result  []service.SignedAddress `json:"result"`
}

// sign responds with signed addresses of private items.
func (h *Handler) sign(running *service.Service, w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Cache-Control", "no-store")
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return refuseForm(running, w, r, signEndpoint, http.StatusMethodNotAllowed, "use POST")
	}
	account, refused := h.authenticateAccount(r.Context(), running, w, r)
	if refused == nil && !account.May(tokens.Sign) {
		refused = &refusal{http.StatusForbidden, item.Forbidden, "the account may not sign addresses: it needs the right sign"}
	}
	if refused != nil {
		return h.signRefused(running, w, r, refused)
	}
	actor := item.Actor{Origin: item.OriginHTTP, Account: account.APIKey, User: account.User, Client: h.options.Client(r)}
	leave, refused := h.enterQueue(running, w, r, actor, service.OtherCall, signForm.memory(r))
	if refused != nil {
		return h.signRefused(running, w, r, refused)
	}
	defer leave()
	form, status, message := signForm.read(w, r, h.options.Now, "kind")
	if message != "" {
		return refuseForm(running, w, r, signEndpoint, status, message)
	}
	fields := formFields{form: form}
	kind, known := item.KindOf(fields.text("kind", ""))
	req := service.SignRequest{
		Kind: kind, Alias: fields.text("alias", item.DefaultAlias), Filenames: form["filename"],
		Folder: fields.text("folder", ""), Rendition: fields.text("rendition", ""), Download: fields.text("download", ""),
		ExpiresIn: time.Duration(fields.number("expires_in", int64(defaultSigned/time.Second), int64(signing.MaxLifetime/time.Second))) * time.Second,
		BaseURL:   h.baseURL(r) + h.options.MountPrefix(r),
	}
	switch {
	case !known:
		fields.fail("the field kind must be image or file")
	case len(req.Filenames) > maxSigned:
		fields.fail("there are more than 1000 fields filename")
	}
	if fields.problem != "" {
		return refuseForm(running, w, r, signEndpoint, http.StatusBadRequest, fields.problem)
	}
	if !account.Allows(req.Alias) { // it must not learn which aliases exist
		return h.signRefused(running, w, r, &refusal{http.StatusForbidden, item.Forbidden, "the account may not use the alias " + quoted(req.Alias)})
	}
	if len(req.Filenames) == 0 {
		req.Folder = cmp.Or(req.Folder, account.Folder)
	}
	covers := func(path string) bool { return service.Covers(account, path) }
	if req.Folder != "" && !covers(req.Folder) || slices.ContainsFunc(req.Filenames, func(name string) bool { return !covers(name) }) {
		return h.signRefused(running, w, r, noFolder)
	}
	signed, err := running.Sign(r.Context(), req)
	switch {
	case errors.Is(err, tokens.ErrUnavailable):
		return h.signRefused(running, w, r, h.storeUnreachable(r.Context(), "addresses cannot be signed now, try again later", err))
	case err != nil:
		return refuseForm(running, w, r, signEndpoint, http.StatusBadRequest, err.Error())
	}
	running.Observer().Signed(r.Context(), account.APIKey, len(signed))
	return httpx.Answer(w, http.StatusOK, signAnswer{Success: true, Result: signed})
}

// signRefused responds to a refused request for signed addresses.
func (h *Handler) signRefused(running *service.Service, w http.ResponseWriter, r *http.Request, refused *refusal) error {
	if refused.reason == item.Unavailable {
		httpx.RetryAfter(w, time.Second)
	}
	return refuseForm(running, w, r, signEndpoint, refused.status, refused.message)
}
