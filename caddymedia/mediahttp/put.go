package mediahttp

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/caddymedia/media/caddymedia/internal/aliases"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/caddymedia/tokens"
)

// putAddress is the address of an upload of one file: its alias, sub folder and name.
type putAddress struct {
	alias, subFolder, name string
	problem                string // for the caller; empty if there is none
}

// putAddressOf returns the address in a path. A name is not needed for other methods.
func putAddressOf(u *url.URL, kind aliases.Kind) *putAddress {
	segments, problem := segmentsOf(strings.TrimPrefix(u.EscapedPath(), "/"))
	const start = 3 // api, upload and the kind
	if problem == "" && (len(segments) < start+2 || strings.Join(segments[:start], "/") != uploadPath[1:]+kind.Name()) {
		problem = "the address is " + uploadPath + kind.Name() + "/<alias>/<name>, or has a sub folder between them"
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

// putFile returns the endpoint of an upload of one file, which is the body of the request.
func (h *Handler) putFile(kind aliases.Kind) endpoint {
	return func(service *media.Service, w http.ResponseWriter, r *http.Request) error {
		u := h.uploadFrom(w, r, kind, tokens.Upload)
		u.put = putAddressOf(r.URL, kind)
		return u.serve(service, w, r)
	}
}
