package docs_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/caddymedia/mediahttp"
)

// contract is the OpenAPI document, with its observed operations.
type contract struct {
	t   *testing.T
	doc *openapi3.T

	mu   sync.Mutex
	seen map[string]bool // operations and statuses, as "generateToken 200"
}

// loadContract reads and validates the document.
func loadContract(t *testing.T) *contract {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(mediahttp.OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return &contract{t: t, doc: doc, seen: map[string]bool{}}
}

// observe compares all requests and answers on the site with the document until the test ends.
func (c *contract) observe(s *site.Site) *site.Site {
	s.Client.Transport = &observer{contract: c, next: s.Client.Transport}
	return s
}

type observer struct {
	contract *contract
	next     http.RoundTripper
}

// RoundTrip sends a request, and reports differences from the document.
func (o *observer) RoundTrip(r *http.Request) (*http.Response, error) {
	sent, err := replay(&r.Body)
	if err != nil {
		return nil, err
	}
	answer, err := o.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := replay(&answer.Body)
	if err != nil {
		return nil, err
	}
	if err := o.contract.compare(r, sent, answer, body); err != nil {
		o.contract.t.Errorf("%s %s: %d: %v", r.Method, r.URL.Path, answer.StatusCode, err)
	}
	return answer, nil
}

// replay reads a body and restores it.
func replay(body *io.ReadCloser) ([]byte, error) {
	if *body == nil {
		return nil, nil
	}
	defer (*body).Close()
	content, err := io.ReadAll(*body)
	*body = io.NopCloser(bytes.NewReader(content))
	return content, err
}

func (c *contract) compare(r *http.Request, sent []byte, answer *http.Response, body []byte) error {
	route, params := c.route(r)
	if route == nil {
		return fmt.Errorf("the document has no such operation")
	}
	c.mu.Lock()
	c.seen[route.Operation.OperationID+" "+strconv.Itoa(answer.StatusCode)] = true
	c.mu.Unlock()
	documented := route.Operation.Responses.Status(answer.StatusCode)
	if documented == nil {
		return fmt.Errorf("the document has no such status")
	}
	request := r.Clone(context.Background())
	request.Body = io.NopCloser(bytes.NewReader(sent))
	input := &openapi3filter.RequestValidationInput{
		Request: request, PathParams: params, Route: route, QueryParams: r.URL.Query(),
		Options: &openapi3filter.Options{IncludeResponseStatus: true, AuthenticationFunc: credentialsSent},
	}
	if !slices.Contains(malformed, answer.StatusCode) {
		if err := openapi3filter.ValidateRequest(request.Context(), input); err != nil {
			return fmt.Errorf("the request was accepted, but is not documented: %w", err)
		}
	}
	if err := compareHeaders(documented.Value, answer.Header); err != nil {
		return err
	}
	if r.Method == http.MethodHead || documented.Value.Content == nil {
		return nil
	}
	output := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: answer.StatusCode, Header: answer.Header, Options: input.Options,
	}
	return openapi3filter.ValidateResponse(request.Context(), output.SetBodyBytes(body))
}

// malformed are the statuses of requests that may violate the document.
var malformed = []int{
	http.StatusBadRequest, http.StatusUnauthorized, http.StatusMethodNotAllowed,
	http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType,
}

// credentialsSent checks that a request has the header that a scheme of the document names.
func credentialsSent(_ context.Context, input *openapi3filter.AuthenticationInput) error {
	scheme, header := input.SecurityScheme, input.RequestValidationInput.Request.Header
	if scheme.Type == "http" && strings.HasPrefix(header.Get("Authorization"), "Bearer ") {
		return nil
	}
	if scheme.Type == "apiKey" && scheme.In == "header" && (header.Get(scheme.Name) != "" || header[scheme.Name] != nil) {
		return nil
	}
	return fmt.Errorf("no %s", input.SecuritySchemeName)
}

// route finds the operation of a request. Methods that are not in the document belong to the 405 of
// POST. The last parameter of an item is the rest of the path.
func (c *contract) route(r *http.Request) (*routers.Route, map[string]string) {
	path, params := r.URL.Path, map[string]string{}
	for _, pattern := range []string{"/static/img/", "/static/file/"} {
		if rest, ok := strings.CutPrefix(path, pattern); ok {
			path = pattern + "{alias}/{filename}"
			params["alias"], params["filename"], _ = strings.Cut(rest, "/")
		}
	}
	item := c.doc.Paths.Value(path)
	if item == nil {
		return nil, nil
	}
	operation := cmp.Or(item.GetOperation(r.Method), item.Post)
	return &routers.Route{Spec: c.doc, Path: path, PathItem: item, Method: r.Method, Operation: operation}, params
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

// complete fails the test for parts of the document that were not observed, except for the
// exceptions, which must not be observed.
func (c *contract) complete(exceptions []string) {
	c.t.Helper()
	for path, item := range c.doc.Paths.Map() {
		for _, operation := range item.Operations() {
			for status := range operation.Responses.Map() {
				what := operation.OperationID + " " + status
				if c.seen[what] == slices.Contains(exceptions, what) {
					c.t.Errorf("%s: %s: seen is %v", path, what, c.seen[what])
				}
			}
		}
	}
}
