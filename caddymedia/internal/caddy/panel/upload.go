package panel

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/front/caller"
	"github.com/caddymedia/media/caddymedia/internal/front/httpx"
	"github.com/caddymedia/media/caddymedia/internal/front/items"
	"github.com/caddymedia/media/caddymedia/internal/front/uploads"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
)

const (
	notRunning   = "the media service is not running"
	mayNotUpload = "Your user may not upload."
)

// upload stores files as the public endpoints do, in the aliases of the visitor.
func (p *Panel) upload(w http.ResponseWriter, r *http.Request, v visitor, rest string) {
	word, below, isBelow := strings.Cut(rest, "/")
	kind := item.Kind(word)
	endpoint, id, _ := strings.Cut(below, "/")
	if kind != item.Image && kind != item.File || isBelow && endpoint != "resumable" {
		p.fail(w, r, http.StatusNotFound, "there is no such route")
		return
	}
	if !v.account.May(access.Upload) {
		p.fail(w, r, http.StatusForbidden, mayNotUpload)
		return
	}
	known, ended := p.caller(r, v)
	defer ended()
	if isBelow {
		p.uploadResumable(w, r, kind, id, known)
		return
	}
	if failed, ok := errors.AsType[*httpx.Error](uploads.Serve(p.gate, w, r, kind, known)); ok {
		p.fail(w, r, failed.Status, notRunning)
	}
}

// items lists, deletes, moves, copies and replaces items as the public endpoints do, by the rights
// of the visitor.
func (p *Panel) items(w http.ResponseWriter, r *http.Request, v visitor) {
	base := url.URL{Path: p.base + "/api/items/"}
	rest, ok := strings.CutPrefix(r.URL.EscapedPath(), base.EscapedPath())
	word, path, isBelow := strings.Cut(rest, "/")
	kind := item.Kind(word)
	if kind != item.Image && kind != item.File || !ok || !isBelow {
		p.fail(w, r, http.StatusNotFound, "there is no such route")
		return
	}
	known := caller.Known{Account: v.account, Origin: item.OriginPanel}
	if !reads(r) {
		var ended func()
		known, ended = p.caller(r, v)
		defer ended()
	}
	if failed, ok := errors.AsType[*httpx.Error](items.Serve(p.gate, w, r, kind, path, known)); ok {
		p.fail(w, r, failed.Status, notRunning)
	}
}

// caller returns the visitor of a request that changes items. The session does not become idle
// until ended is called.
func (p *Panel) caller(r *http.Request, v visitor) (known caller.Known, ended func()) {
	confirm, ended := p.uploadSession(r, v)
	return caller.Known{Account: v.account, Origin: item.OriginPanel, Confirm: confirm}, ended
}

// uploadResumable serves the resumable uploads of a visitor who may upload. Reading the state of an
// upload may finish it. The pages use the methods themselves: one in a header would pass the checks
// of another.
func (p *Panel) uploadResumable(w http.ResponseWriter, r *http.Request, kind item.Kind, id string, known caller.Known) {
	if r.Header.Get("X-Http-Method-Override") != "" {
		p.fail(w, r, http.StatusBadRequest, "use the method itself instead of X-HTTP-Method-Override")
		return
	}
	path := mounted(r, p.base) + "/api/upload/" + string(kind) + "/resumable"
	err := uploads.ServeResumable(p.gate, w, r, kind, path, id, known)
	if failed, ok := errors.AsType[*httpx.Error](err); ok {
		message := notRunning
		if failed.Status == http.StatusNotFound {
			message = "resumable uploads are off"
		}
		p.fail(w, r, failed.Status, message)
	}
}

// provisioned maps the panels of all configurations to the media services of these. A request may
// outlast the configuration under which it began; the panels of the configuration that runs at its
// end confirm it.
var provisioned sync.Map // *Panel to *service.Service

// anyPanel reports whether fits is true for a panel in the configuration of a service.
func anyPanel(service *service.Service, fits func(*Panel) bool) bool {
	found := false
	provisioned.Range(func(p, of any) bool {
		found = of == service && fits(p.(*Panel)) // nothing else is in it
		return !found
	})
	return found
}

// uploadSession keeps the session of a request from becoming idle until the caller calls ended.
// confirm reports whether v may still change items. A panel of the running configuration must have
// v as an editor, or as an uploader with the same rights. With a login, the session must be valid
// and the password hash unchanged; without one, the `user` of that panel must be the same.
func (p *Panel) uploadSession(r *http.Request, v visitor) (confirm func(running *service.Service) bool, ended func()) {
	if p.login == nil {
		return func(running *service.Service) bool {
			return anyPanel(running, func(other *Panel) bool {
				return other.login == nil && other.User == p.User && other.mayStill(v)
			})
		}, func() {}
	}
	var secret string
	if cookie, err := r.Cookie(p.login.cookieName(r)); err == nil {
		secret = cookie.Value
	}
	fingerprint := p.login.fingerprints[v.name]
	return func(running *service.Service) bool {
		return p.login.sessions.lasts(secret, fingerprint, p.login.now()) && anyPanel(running, func(other *Panel) bool {
			return other.login != nil && other.login.fingerprints[v.name] == fingerprint && other.mayStill(v)
		})
	}, p.login.sessions.beginUpload(secret, p.login.now)
}
