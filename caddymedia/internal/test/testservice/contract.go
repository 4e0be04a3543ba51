package testservice

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"github.com/caddymedia/media/caddymedia/mediahttp"
)

// contract is the OpenAPI document, with the observed operations.
type contract struct {
	doc *openapi3.T

	mu   sync.Mutex
	seen map[string]bool // operations and statuses, as "generateToken 200"
}

// document is the contract of all sites.
var document = sync.OnceValues(func() (*contract, error) {
	doc, err := openapi3.NewLoader().LoadFromData(mediahttp.OpenAPI)
	if err == nil {
		err = doc.Validate(context.Background())
	}
	return &contract{doc: doc, seen: map[string]bool{}}, err
})

// compare compares a request and its response with the document.
func compare(t *testing.T, r *http.Request, sent string, got *Reply) {
	t.Helper()
	c, err := document()
	if err == nil {
		err = c.compare(r, sent, got)
	}
	if err != nil {
		t.Errorf("%s %s: %d: %v", r.Method, r.URL.Path, got.Status, err)
	}
}

// CheckAllSeen reports responses of the OpenAPI document that no test of the process has received.
func CheckAllSeen(t *testing.T) {
	t.Helper()
	c, err := document()
	if err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for path, item := range c.doc.Paths.Map() {
		for _, operation := range item.Operations() {
			for status := range operation.Responses.Map() {
				// 500 is a fault of the service itself, of which none is known.
				if seen := c.seen[operation.OperationID+" "+status]; seen == (status == "500") {
					t.Errorf("%s: %s %s: seen is %t", path, operation.OperationID, status, seen)
				}
			}
		}
	}
}

// compare compares a request and its response with the document. A path that it does not have is
// not of the service.
func (c *contract) compare(r *http.Request, sent string, answer *Reply) error {
	route, params := c.route(r)
	if route == nil {
		return nil
	}
	c.mu.Lock()
	c.seen[route.Operation.OperationID+" "+strconv.Itoa(answer.Status)] = true
	c.mu.Unlock()
	documented := route.Operation.Responses.Status(answer.Status)
	if documented == nil {
		return fmt.Errorf("the document has no such status")
	}
	request := r.Clone(context.Background())
	request.Body = io.NopCloser(strings.NewReader(sent))
	input := &openapi3filter.RequestValidationInput{
		Request: request, PathParams: params, Route: route, QueryParams: r.URL.Query(),
		Options: &openapi3filter.Options{
			IncludeResponseStatus: true, AuthenticationFunc: credentialsSent,
			ExcludeRequestBody: route.Method == http.MethodPut, // of any type, or of none
		},
	}
	if !slices.Contains(malformed, answer.Status) {
		if err := openapi3filter.ValidateRequest(request.Context(), input); err != nil {
			return fmt.Errorf("the request was accepted, but is not documented: %w", err)
		}
	}
	header := withoutCORS(answer.Header)
	if err := compareHeaders(documented.Value, header); err != nil {
		return err
	}
	if route.Method == http.MethodHead || documented.Value.Content == nil {
		return nil
	}
	output := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: answer.Status, Header: header, Options: input.Options,
	}
	return openapi3filter.ValidateResponse(request.Context(), output.SetBodyBytes([]byte(answer.Body)))
}

// malformed are the statuses of requests that May violate the document.
var malformed = []int{
	http.StatusBadRequest, http.StatusUnauthorized, http.StatusNotFound, http.StatusMethodNotAllowed,
	http.StatusConflict, http.StatusPreconditionFailed, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType,
	http.StatusPreconditionRequired, http.StatusUnprocessableEntity,
}

// credentialsSent checks that a request has the header that a scheme of the document names, or its
// other spelling.
func credentialsSent(_ context.Context, input *openapi3filter.AuthenticationInput) error {
	scheme, header := input.SecurityScheme, input.RequestValidationInput.Request.Header
	if scheme.In == "cookie" && (header.Get("Test-User") != "" || header.Get("Remote-User") != "") {
		return nil
	}
	spellings := map[string][]string{
		"HTTP_SERVICE_API_KEY":      {"Http_service_api_key", "Service-Api-Key"},
		"HTTP_SERVICE_ACCESS_TOKEN": {"Http_service_access_token", "Service-Access-Token"},
	}
	for _, names := range [][]string{{scheme.Name}, spellings[scheme.Name], {"Authorization"}} {
		for _, name := range names {
			if header.Get(name) != "" && (scheme.Type == "apiKey") == (name != "Authorization") {
				return nil
			}
		}
	}
	return fmt.Errorf("no %s", input.SecuritySchemeName)
}

// route finds the operation of a request. Methods that are not in the document belong to the 405 of
// POST, PATCH or DELETE. HEAD of a list, and of a held upload, is GET.
func (c *contract) route(r *http.Request) (*routers.Route, map[string]string) {
	path, params := documentedPath(r.Method, r.URL.Path)
	item := c.doc.Paths.Value(path)
	if item == nil {
		return nil, nil
	}
	method := r.Method
	if strings.Contains(path, "/resumable") {
		method = cmp.Or(strings.Join(r.Header.Values("X-HTTP-Method-Override"), ","), method)
	}
	if method == http.MethodHead && (strings.HasPrefix(path, ItemsPath) || strings.Contains(path, "/held/")) {
		method = http.MethodGet
	}
	operation := cmp.Or(item.GetOperation(method), item.Post, item.Patch, item.Delete, item.Put)
	if operation == nil {
		return nil, nil
	}
	return &routers.Route{Spec: c.doc, Path: path, PathItem: item, Method: method, Operation: operation}, params
}

// documentedPath returns the path of the document for that of a request, and its parameters. The
// last one is the rest of the path.
func documentedPath(method, path string) (documented string, params map[string]string) {
	for _, prefix := range []string{"/static/img/", "/static/file/"} {
		if rest, ok := strings.CutPrefix(path, prefix); ok {
			alias, filename, _ := strings.Cut(rest, "/")
			return prefix + "{alias}/{filename}", map[string]string{"alias": alias, "filename": filename}
		}
	}
	for _, prefix := range []string{ItemsPath + "image/", ItemsPath + "file/"} {
		if rest, ok := strings.CutPrefix(path, prefix); ok {
			alias, filename, below := strings.Cut(rest, "/")
			if !below {
				return prefix + "{alias}", map[string]string{"alias": alias}
			}
			return prefix + "{alias}/{filename}", map[string]string{"alias": alias, "filename": filename}
		}
	}
	for _, prefix := range []string{"/api/upload/image/resumable", "/api/upload/file/resumable"} {
		if id, ok := strings.CutPrefix(path, prefix+"/"); ok {
			if id == "" {
				return prefix, nil
			}
			return prefix + "/{id}", map[string]string{"id": id}
		}
	}
	for _, prefix := range []string{ImagePath + "/held/", FilePath + "/held/"} {
		if id, ok := strings.CutPrefix(path, prefix); ok && method != http.MethodPut {
			return prefix + "{id}", map[string]string{"id": id}
		}
	}
	for _, prefix := range []string{ImagePath + "/", FilePath + "/"} {
		if rest, ok := strings.CutPrefix(path, prefix); ok {
			if alias, filename, _ := strings.Cut(rest, "/"); filename != "" {
				return prefix + "{alias}/{filename}", map[string]string{"alias": alias, "filename": filename}
			}
		}
	}
	return path, nil
}

// withoutCORS returns a header without what the option cors adds to all responses, which the
// document says once.
func withoutCORS(header http.Header) http.Header {
	header = header.Clone()
	maps.DeleteFunc(header, func(name string, _ []string) bool { return strings.HasPrefix(name, "Access-Control-") })
	if vary := slices.DeleteFunc(header["Vary"], func(v string) bool { return v == "Origin" }); len(vary) == 0 {
		header.Del("Vary")
	} else {
		header["Vary"] = vary
	}
	return header
}

// transport are headers of HTTP itself, which are not documented.
var transport = []string{"Connection", "Content-Length", "Content-Type", "Date", "Server"}

// compareHeaders reports headers that are undocumented, invalid or missing.
func compareHeaders(documented *openapi3.Response, header http.Header) error {
	known := map[string]*openapi3.Header{}
	for name, one := range documented.Headers {
		known[http.CanonicalHeaderKey(name)] = one.Value
		if one.Value.Required && header.Get(name) == "" {
			return fmt.Errorf("no header %s", name)
		}
	}
	for name, values := range header {
		if slices.Contains(transport, name) {
			continue
		}
		if known[name] == nil || len(values) != 1 {
			return fmt.Errorf("header %s: %q is not in the document", name, values)
		}
		var value any = values[0]
		if known[name].Schema.Value.Type.Is("integer") {
			number, err := strconv.ParseFloat(values[0], 64)
			if err != nil {
				return fmt.Errorf("header %s: %w", name, err)
			}
			value = number
		}
		if err := known[name].Schema.Value.VisitJSON(value, openapi3.EnableJSONSchema2020()); err != nil {
			return fmt.Errorf("header %s: %w", name, err)
		}
	}
	return nil
}
