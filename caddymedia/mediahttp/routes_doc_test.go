package mediahttp

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestRoutesAndOpenAPI: the document has the addresses and methods of all endpoints, and no others.
func TestRoutesAndOpenAPI(t *testing.T) {
	t.Parallel()
	var document struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal(OpenAPI, &document); err != nil {
		t.Fatal(err)
	}
	documented := make([][]string, len(routes))
	for path, operations := range document.Paths {
		path = strings.NewReplacer("{alias}", "a", "{filename}", "b/c.txt", "{id}", "d").Replace(path)
		if _, ok := operations["get"]; ok {
			operations["head"] = nil
		}
		delete(operations, "parameters")
		for method := range operations {
			method = strings.ToUpper(method)
			i := slices.IndexFunc(routes, func(e route) bool {
				_, ok := e.match(method, path, e.path)
				return ok
			})
			if i < 0 {
				t.Errorf("%s %s has no endpoint", method, path)
				continue
			}
			documented[i] = append(documented[i], method)
		}
	}
	for i, e := range routes {
		slices.Sort(documented[i])
		if got, want := slices.Sorted(slices.Values(e.methods)), slices.Compact(documented[i]); !slices.Equal(got, want) {
			t.Errorf("%s: methods %v, documented %v", e.usage, got, want)
		}
	}
}

// TestRouteOfOtherPaths: finding out that a path is not one of the service costs nothing.
func TestRouteOfOtherPaths(t *testing.T) {
	h := New(nil, Options{})
	for _, path := range []string{"/", "/blog/2026/a-page.html", "/static/css/site.css", "/ap", "/favicon.ico"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(10, func() {
			if h.route(r) != nil {
				t.Errorf("%s has an endpoint", path)
			}
		}); n > 0 {
			t.Errorf("%s: %v allocations", path, n)
		}
	}
}
