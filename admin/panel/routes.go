package panel

import (
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"strings"

	"github.com/caddymedia/media/admin/api"
	"github.com/caddymedia/media/caddymedia/httpx"
	"github.com/caddymedia/media/caddymedia/ingest"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/caddymedia/mediaapp"
	"github.com/caddymedia/media/caddymedia/mediahttp"
)

// maxJSON is the maximum size of a request with JSON in bytes.
const maxJSON = 1 << 20

// serveAPI serves a route below "<path>/api/". The caller has checked that the visitor may use it.
func (p *Panel) serveAPI(w http.ResponseWriter, r *http.Request, v visitor, route string) {
	area, rest, _ := strings.Cut(route, "/")
	if area != "upload" && !p.takesJSON(w, r) {
		return
	}
	switch {
	case area == "upload":
		p.upload(w, r, v, rest)
	case area == "session" && rest == "":
		if p.allowed(w, r, http.MethodGet, http.MethodHead) {
			answer(w, http.StatusOK, p.session(r.Context(), v))
		}
	case route == "openapi.json":
		if p.allowed(w, r, http.MethodGet, http.MethodHead) {
			answer(w, http.StatusOK, json.RawMessage(mediahttp.OpenAPI))
		}
	case area == "config":
		p.serveConfig(w, r, rest)
	case area == "preview":
		p.preview(w, r, rest)
	case route == "probe" && r.Method == http.MethodPost:
		p.probe(w, r)
	default:
		p.routes.ServeHTTP(w, r.WithContext(api.WithActor(r.Context(), v.actor(r))))
	}
}

// takesJSON reports whether the request may have its body. It refuses one that is too large, or
// that a form of another site could send.
func (p *Panel) takesJSON(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodPut && r.Method != http.MethodPost {
		return true
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		p.fail(w, r, http.StatusUnsupportedMediaType, "the body must be application/json")
		return false
	}
	if r.ContentLength > maxJSON {
		p.tooLarge(w, r)
		return false
	}
	return true
}

func (p *Panel) tooLarge(w http.ResponseWriter, r *http.Request) {
	p.fail(w, r, http.StatusRequestEntityTooLarge, "the request is larger than 1 MiB")
}

// readJSON decodes the body of a request as [httpx.ReadJSON] does. It returns false after it has
// answered with an error.
func (p *Panel) readJSON(w http.ResponseWriter, r *http.Request, into any) bool {
	err := httpx.ReadJSON(w, r, maxJSON, into)
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		p.tooLarge(w, r)
		return false
	}
	if err != nil {
		p.fail(w, r, http.StatusBadRequest, "the body is not the JSON that is expected here")
	}
	return err == nil
}

const notRunning = "the media service is not running"

// use returns the running service, which stays open until release is called. It returns false after
// it has answered that no service is running.
func (p *Panel) use(w http.ResponseWriter, r *http.Request) (service *media.Service, release func(), ok bool) {
	app, release, err := mediaapp.AcquireActive()
	if err != nil {
		p.fail(w, r, http.StatusServiceUnavailable, notRunning)
		return nil, nil, false
	}
	return app.Service(), release, true
}

// kindOf returns the kind of an alias in an address.
func kindOf(word string) (ingest.Kind, bool) {
	kind := ingest.Kind(word)
	return kind, kind == ingest.Image || kind == ingest.File
}

// trial is the request for a probe of a storage that is not saved.
type trial struct {
	Driver  map[string]any    `json:"driver"`
	Secrets map[string]string `json:"secrets"`
	Keep    string            `json:"keep"`
}

// probe probes a storage that is not saved. It takes secrets that are not given from the storage
// named in keep.
func (p *Panel) probe(w http.ResponseWriter, r *http.Request) {
	var asked trial
	if !p.readJSON(w, r, &asked) {
		return
	}
	if p.editor == nil {
		p.fail(w, r, http.StatusBadGateway, adminOff)
		return
	}
	driver, err := p.editor.Driver(r.Context(), asked.Driver, asked.Secrets, asked.Keep)
	if err != nil {
		p.failEdit(w, r, err)
		return
	}
	body, err := json.Marshal(driver)
	if err != nil {
		p.failEdit(w, r, err)
		return
	}
	p.api.Try(w, r, body) //nolint:contextcheck // it takes the one of the request
}
