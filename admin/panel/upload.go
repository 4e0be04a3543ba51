package panel

import (
	"errors"
	"net/http"
	"strings"

	"github.com/caddymedia/media/caddymedia/aliases"
	"github.com/caddymedia/media/caddymedia/mediahttp"
	"github.com/caddymedia/media/caddymedia/tokens"
)

// upload stores files as the public endpoints do. Editors may upload to all aliases.
func (p *Panel) upload(w http.ResponseWriter, r *http.Request, v visitor, rest string) {
	word, below, isBelow := strings.Cut(rest, "/")
	kind, ok := kindOf(word)
	endpoint, id, _ := strings.Cut(below, "/")
	if !ok || isBelow && endpoint != "resumable" {
		p.fail(w, r, http.StatusNotFound, "there is no such route")
		return
	}
	confirm, ended := p.uploadSession(r, v)
	defer ended()
	caller := mediahttp.Caller{Account: tokens.Account{APIKey: v.name}, Origin: aliases.OriginPanel, Confirm: confirm}
	if isBelow {
		p.uploadResumable(w, r, v, word, id, caller)
		return
	}
	if failed, ok := errors.AsType[*mediahttp.Error](p.uploads.Upload(w, r, kind, caller)); ok {
		p.fail(w, r, failed.Status, notRunning)
	}
}

// uploadResumable serves the resumable uploads of an editor. Reading the state of an upload may
// finish it, so it is for editors too. The pages use the methods themselves: one in a header would
// pass the checks of another.
func (p *Panel) uploadResumable(w http.ResponseWriter, r *http.Request, v visitor, word, id string, caller mediahttp.Caller) {
	if !v.editor {
		p.fail(w, r, http.StatusForbidden, onlyLooking)
		return
	}
	if r.Header.Get("X-Http-Method-Override") != "" {
		p.fail(w, r, http.StatusBadRequest, "use the method itself instead of X-HTTP-Method-Override")
		return
	}
	path := mounted(r, p.base) + "/api/upload/" + word + "/resumable"
	err := p.uploads.UploadResumable(w, r, aliases.Kind(word), path, id, caller)
	if failed, ok := errors.AsType[*mediahttp.Error](err); ok {
		message := notRunning
		if failed.Status == http.StatusNotFound {
			message = "resumable uploads are off"
		}
		p.fail(w, r, failed.Status, message)
	}
}
