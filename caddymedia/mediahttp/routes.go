package mediahttp

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/caddymedia/media/caddymedia/internal/aliases"
	"github.com/caddymedia/media/caddymedia/internal/httpx"
	"github.com/caddymedia/media/caddymedia/media"
)

// Paths of the endpoints, and the starts of those that a kind follows.
const (
	tokenPath  = "/api/auth/generateToken" //nolint:gosec // no password
	ticketPath = "/api/auth/ticket"
	signPath   = "/api/sign"
	uploadPath = "/api/upload/"
	itemsPath  = "/api/items/"
)

// route is an endpoint: a path, for some with the paths below it.
type route struct {
	path    string
	folded  string // the path as near misses of it are compared
	usage   string // the whole address, for messages
	flat    bool   // failures are those of a login
	methods []string
	// owns reports whether a request is for the endpoint. rest is the path behind that of the
	// endpoint: empty, or from a slash on.
	owns  func(method, rest string) bool
	serve func(h *Handler, rest string) endpoint
}

// routes are all endpoints. A request is for the first one that owns it. Near misses, the methods
// of CORS and the test of the OpenAPI document use them too.
var routes = newRoutes()

func newRoutes() []route {
	alone := func(_, rest string) bool { return rest == "" }
	below := func(_, _ string) bool { return true }
	post := []string{http.MethodPost}
	var all []route
	for _, kind := range []aliases.Kind{aliases.Image, aliases.File} {
		upload, resumable, items := uploadPath+kind.Name(), uploadPath+kind.Name()+resumableSuffix, itemsPath+kind.Name()
		all = append(all, route{
			path: "/static/" + string(kind), methods: []string{http.MethodGet, http.MethodHead}, owns: isStatic,
			serve: func(h *Handler, rest string) endpoint { return h.static(kind, rest[1:]) },
		}, route{
			path: upload, methods: post, owns: alone,
			serve: func(h *Handler, _ string) endpoint { return h.upload(kind) },
		}, route{
			path: resumable, owns: below,
			methods: []string{http.MethodOptions, http.MethodPost, http.MethodHead, http.MethodGet, http.MethodPatch, http.MethodDelete},
			serve:   func(h *Handler, rest string) endpoint { return h.resumable(kind, strings.TrimPrefix(rest, "/")) },
		}, route{
			path: upload, usage: upload + "/<alias>/<name>", methods: []string{http.MethodPut}, owns: isPut,
			serve: func(h *Handler, _ string) endpoint { return h.putFile(kind) },
		}, route{
			path: items, usage: items + "/<alias>", owns: below,
			methods: []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete},
			serve:   func(h *Handler, _ string) endpoint { return h.items(kind) },
		})
	}
	all = append(all, route{
		path: tokenPath, flat: true, methods: post, owns: alone,
		serve: func(h *Handler, _ string) endpoint { return h.generateToken },
	}, route{
		path: ticketPath, flat: true, methods: post, owns: alone,
		serve: func(h *Handler, _ string) endpoint { return h.issueTicket },
	}, route{
		path: signPath, flat: true, methods: post, owns: alone,
		serve: func(h *Handler, _ string) endpoint { return h.sign },
	})
	for i := range all {
		all[i].folded, all[i].usage = folded(all[i].path), cmp.Or(all[i].usage, all[i].path)
	}
	return all
}

// isStatic reports whether a request is for an item below the path of a kind.
func isStatic(method, rest string) bool {
	return rest != "" && (method == http.MethodGet || method == http.MethodHead)
}

// isPut reports whether a request is for the address of an upload of one file. With another method
// than PUT, only a complete address is, and a near miss of a resumable upload is not.
func isPut(method, rest string) bool {
	alias, name, _ := strings.Cut(strings.TrimPrefix(rest, "/"), "/")
	return method == http.MethodPut || alias != "" && name != "" && folded(alias) != folded(resumableSuffix)
}

// match returns the part of a path behind prefix, and whether the request is for the endpoint.
func (e *route) match(method, path, prefix string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(path, prefix)
	return rest, ok && (rest == "" || rest[0] == '/') && e.owns(method, rest)
}

// route returns the endpoint of the decoded path, which keys are also made of. It is nil for the
// other paths of the site.
func (h *Handler) route(r *http.Request) endpoint {
	path := r.URL.Path
	for i := range routes {
		rest, ok := routes[i].match(r.Method, path, routes[i].path)
		switch {
		case !ok:
		case hasDots(rest) && isAPI(path): // a matcher in front of the service may read it as another path
			return h.misaddressed(&routes[i], http.StatusBadRequest, badSegment)
		default:
			return routes[i].serve(h, rest)
		}
	}
	if !isAPI(path) {
		return nil // at no cost for the pages of the site
	}
	path = folded(path)
	for i := range routes {
		if _, ok := routes[i].match(r.Method, path, routes[i].folded); ok {
			right := h.options.MountPrefix(r) + routes[i].usage
			return h.misaddressed(&routes[i], http.StatusNotFound, "there is no such address: use "+right)
		}
	}
	return nil
}

// isAPI reports whether a path begins like those of the endpoints but the stored items, in any case
// and with any number of slashes.
func isAPI(path string) bool {
	const first = "api"
	start := strings.TrimLeft(path, "/")
	return len(start) >= len(first) && strings.EqualFold(start[:len(first)], first)
}

// hasDots reports whether a path has a segment that is . or ..
func hasDots(path string) bool {
	return strings.Contains(path, "/.") && slices.ContainsFunc(strings.Split(path, "/"), func(segment string) bool {
		return segment == "." || segment == ".."
	})
}

// folded returns a path in lower case, without extra slashes and without the plural of its
// segments.
func folded(path string) string {
	segments := strings.FieldsFunc(strings.ToLower(path), func(r rune) bool { return r == '/' })
	for i, segment := range segments {
		segments[i] = strings.TrimSuffix(segment, "s")
	}
	return strings.Join(segments, "/")
}

// misaddressed returns an endpoint that refuses a request for an address that is not right.
func (h *Handler) misaddressed(e *route, status int, message string) endpoint {
	return func(_ *media.Service, w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Cache-Control", "no-store")
		if e.flat {
			return httpx.AnswerUnread(w, r, status, tokenFailure{Message: message})
		}
		return httpx.Refuse(w, r, h.options.Log, status, aliases.Failures{{Message: message}})
	}
}
