package items

import (
	"errors"
	"net/http"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/front/caller"
	"github.com/caddymedia/media/caddymedia/internal/front/httpx"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/internal/leaf/signing"
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
	if failure := p.NeedOne(access.Sign); failure != nil {
		return signRefused(running, w, r, caller.Refused(failure))
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
	signed, err := p.Sign(r.Context(), req)
	failure, isFailure := errors.AsType[*item.Failure](err)
	switch {
	case isFailure:
		return signRefused(running, w, r, caller.Refused(failure))
	case err != nil:
		return caller.RefuseForm(running, w, r, signEndpoint, http.StatusBadRequest, err.Error())
	}
	return httpx.Answer(w, http.StatusOK, signAnswer{Success: true, Result: signed})
}

// signRefused responds to a refused request for signed addresses.
func signRefused(running *service.Service, w http.ResponseWriter, r *http.Request, refused *caller.Refusal) error {
	if refused.Failure.Reason == item.Unavailable {
		httpx.RetryAfter(w, time.Second)
	}
	return caller.RefuseForm(running, w, r, signEndpoint, refused.Status, refused.Failure.Message)
}
