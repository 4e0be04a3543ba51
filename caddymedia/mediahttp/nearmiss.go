package mediahttp

import (
	"net/http"
	"strings"

	"github.com/caddymedia/media/caddymedia/internal/aliases"
	"github.com/caddymedia/media/caddymedia/internal/httpx"
	"github.com/caddymedia/media/caddymedia/media"
)

// endpoints are the paths of all endpoints by their folded form.
var endpoints = func() map[string]string {
	byFolded := map[string]string{}
	for _, path := range []string{
		tokenPath, ticketPath, signPath, imagePath, filePath, imagePath + resumableSuffix, filePath + resumableSuffix,
	} {
		byFolded[folded(path)] = path
	}
	return byFolded
}()

// rightPath returns the path of the endpoint that a path is almost that of; empty if there is none.
func rightPath(path string) string {
	path = folded(path)
	for _, kind := range []aliases.Kind{aliases.Image, aliases.File} {
		if start := itemsPath + kind.Name(); path == folded(start) || strings.HasPrefix(path, folded(start)+"/") {
			return start + "/<alias>"
		}
	}
	return endpoints[path]
}

// folded returns a path in lower case, without extra slashes and without the plural of its segments.
func folded(path string) string {
	segments := strings.FieldsFunc(strings.ToLower(path), func(r rune) bool { return r == '/' })
	for i, segment := range segments {
		segments[i] = strings.TrimSuffix(segment, "s")
	}
	return strings.Join(segments, "/")
}

// nearMiss returns an endpoint that names the right path to a client whose path is almost that of an
// endpoint. It returns nil for all other paths, because the site may use them.
func (h *Handler) nearMiss(path string) endpoint {
	const first = "api"
	if start := strings.TrimLeft(path, "/"); len(start) < len(first) || !strings.EqualFold(start[:len(first)], first) {
		return nil // at no cost for the pages of the site
	}
	right := rightPath(path)
	if right == "" {
		return nil
	}
	return func(_ *media.Service, w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Cache-Control", "no-store")
		message := "there is no such address: use " + h.options.MountPrefix(r) + right
		if right == tokenPath || right == ticketPath || right == signPath {
			return httpx.AnswerUnread(w, r, http.StatusNotFound, tokenFailure{Message: message})
		}
		return httpx.Refuse(w, r, h.options.Log, http.StatusNotFound, aliases.Failures{{Message: message}})
	}
}
