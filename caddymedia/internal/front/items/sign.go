package items

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/front/caller"
	"github.com/caddymedia/media/caddymedia/internal/front/httpx"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/internal/leaf/signing"
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
var signForm = caller.FormLimits{Bytes: SetForm.Bytes, Fields: maxSigned + 100, Time: SetForm.Time}

// signAnswer is the response to a request for signed addresses.
type signAnswer struct {
	Success bool                    `json:"success"`
	Result  []service.SignedAddress `json:"result"`
}

// Sign returns the endpoint that responds with signed addresses of private items.
func Sign(g *caller.Gate) caller.Endpoint {
	return func(running *service.Service, w http.ResponseWriter, r *http.Request) error {
		return sign(g, running, w, r)
	}
}

func sign(g *caller.Gate, running *service.Service, w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Cache-Control", "no-store")
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return caller.RefuseForm(running, w, r, signEndpoint, http.StatusMethodNotAllowed, "use POST")
	}
	p := g.Permit(running, r, item.OriginHTTP, accounts(g, w, r))
	account, refused := p.Account, p.Refused
	if refused == nil && !account.May(access.Sign) {
		refused = caller.Refuse(http.StatusForbidden, item.Forbidden, "the account may not sign addresses: it needs the right sign")
	}
	if refused != nil {
		return signRefused(running, w, r, refused)
	}
	leave, refused := p.EnterQueue(r.Context(), w, service.OtherCall, signForm.Memory(r))
	if refused != nil {
		return signRefused(running, w, r, refused)
	}
	defer leave()
	form, status, message := signForm.Read(w, r, g.Now, "kind")
	if message != "" {
		return caller.RefuseForm(running, w, r, signEndpoint, status, message)
	}
	fields := caller.FormFields{Form: form}
	kind, known := item.KindOf(fields.Text("kind", ""))
	req := service.SignRequest{
		Kind: kind, Alias: fields.Text("alias", item.DefaultAlias), Filenames: form["filename"],
		Folder: fields.Text("folder", ""), Rendition: fields.Text("rendition", ""), Download: fields.Text("download", ""),
		ExpiresIn: time.Duration(fields.Number("expires_in", int64(defaultSigned/time.Second), int64(signing.MaxLifetime/time.Second))) * time.Second,
		BaseURL:   g.BaseURL(r) + g.MountPrefix(r),
	}
	switch {
	case !known:
		fields.Fail("the field kind must be image or file")
	case len(req.Filenames) > maxSigned:
		fields.Fail("there are more than 1000 fields filename")
	}
	if fields.Problem != "" {
		return caller.RefuseForm(running, w, r, signEndpoint, http.StatusBadRequest, fields.Problem)
	}
	if !account.Allows(req.Alias) { // it must not learn which aliases exist
		return signRefused(running, w, r, caller.Refuse(http.StatusForbidden, item.Forbidden, "the account may not use the alias "+quoted(req.Alias)))
	}
	if len(req.Filenames) == 0 {
		req.Folder = cmp.Or(req.Folder, account.Folder)
	}
	covers := func(path string) bool { return account.Covers(path) }
	if req.Folder != "" && !covers(req.Folder) || slices.ContainsFunc(req.Filenames, func(name string) bool { return !covers(name) }) {
		return signRefused(running, w, r, noFolder)
	}
	signed, err := running.Sign(r.Context(), req)
	switch {
	case errors.Is(err, tokens.ErrUnavailable):
		return signRefused(running, w, r, g.StoreUnreachable(r.Context(), "addresses cannot be signed now, try again later", err))
	case err != nil:
		return caller.RefuseForm(running, w, r, signEndpoint, http.StatusBadRequest, err.Error())
	}
	running.Observer().Signed(r.Context(), account.APIKey, len(signed))
	return httpx.Answer(w, http.StatusOK, signAnswer{Success: true, Result: signed})
}

// signRefused responds to a refused request for signed addresses.
func signRefused(running *service.Service, w http.ResponseWriter, r *http.Request, refused *caller.Refusal) error {
	if refused.Reason == item.Unavailable {
		httpx.RetryAfter(w, time.Second)
	}
	return caller.RefuseForm(running, w, r, signEndpoint, refused.Status, refused.Message)
}
