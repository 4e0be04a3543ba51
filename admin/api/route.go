package api

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/caddymedia/mediaapp"
)

// call is one request.
type call struct {
	handler *Handler
	app     *mediaapp.App
	service *media.Service
	w       http.ResponseWriter
	r       *http.Request
	args    []string // what stands for the wildcards of its route
	secrets []string // of a submitted driver
}

// routes are all routes of the API. "*" stands for one segment of the path and "**" for all that
// follow. Segments are decoded one by one.
var routes = []struct {
	method, pattern string
	serve           func(*call) error
}{
	{http.MethodGet, "kinds", (*call).kinds},
	{http.MethodGet, "storages", (*call).storages},
	{http.MethodGet, "storages/*", (*call).storage},
	{http.MethodPost, "storages/*/probe", (*call).probeSaved},
	{http.MethodPost, "probe", (*call).probeUnsaved},
	{http.MethodPost, "hostkey", (*call).hostKey},
	{http.MethodGet, "aliases", (*call).aliases},
	{http.MethodGet, "accounts", (*call).accounts},
	{http.MethodDelete, "accounts/*/tokens", (*call).endTokens},
	{http.MethodGet, "items/*/*", (*call).items},
	{http.MethodGet, "items/*/*/**", (*call).item},
	{http.MethodDelete, "items/*/*/**", (*call).deleteItem},
	{http.MethodGet, "uploads", (*call).uploads},
	{http.MethodDelete, "uploads/*/*", (*call).endUpload},
	{http.MethodGet, "health", (*call).health},
}

// route calls the matching route.
func (c *call) route() error {
	path, err := segments(c.r.URL)
	if err != nil {
		return err
	}
	method := c.r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	var allowed []string
	for _, route := range routes {
		args, ok := match(strings.Split(route.pattern, "/"), path)
		if !ok {
			continue
		}
		if route.method == method {
			c.args = args
			return route.serve(c)
		}
		allowed = append(allowed, route.method)
	}
	if allowed == nil {
		return failf(http.StatusNotFound, "There is nothing at this address.")
	}
	if slices.Contains(allowed, http.MethodGet) {
		allowed = append(allowed, http.MethodHead)
	}
	slices.Sort(allowed)
	list := strings.Join(allowed, ", ")
	c.w.Header().Set("Allow", list)
	return failf(http.StatusMethodNotAllowed, "This address takes %s only.", list)
}

// segments returns the decoded segments of the path. A segment with an encoded slash is not found.
func segments(u *url.URL) ([]string, error) {
	path := strings.Split(strings.TrimPrefix(u.EscapedPath(), "/"), "/")
	for i, segment := range path {
		plain, err := url.PathUnescape(segment)
		if err != nil {
			return nil, failf(http.StatusBadRequest, "The address is malformed.")
		}
		if strings.Contains(plain, "/") {
			return nil, failf(http.StatusNotFound, "There is nothing at this address.")
		}
		path[i] = plain
	}
	return path, nil
}

// match returns the path segments for the wildcards of a pattern, or false if the path does not
// match.
func match(pattern, path []string) ([]string, bool) {
	var args []string
	for i, want := range pattern {
		switch {
		case i >= len(path):
			return nil, false
		case want == "**":
			return append(args, strings.Join(path[i:], "/")), true
		case want == "*":
			args = append(args, path[i])
		case want != path[i]:
			return nil, false
		}
	}
	return args, len(path) == len(pattern)
}
