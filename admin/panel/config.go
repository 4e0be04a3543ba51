package panel

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"go.uber.org/zap"

	"github.com/caddymedia/media/admin/edit"
)

const adminOff = "Caddy's admin endpoint is switched off (`admin off`), so that the configuration cannot be changed here."

// serveConfig serves a route below "config": an entry of a section, the download, or the Caddyfile.
func (p *Panel) serveConfig(w http.ResponseWriter, r *http.Request, rest string) {
	if p.editor == nil {
		p.fail(w, r, http.StatusBadGateway, adminOff)
		return
	}
	if rest == "" {
		p.download(w, r)
		return
	}
	if rest == "caddyfile" {
		p.caddyfile(w, r)
		return
	}
	word, name, _ := strings.Cut(rest, "/")
	section := edit.Section(word)
	switch {
	case !p.allowed(w, r, http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete):
	case r.Method == http.MethodPut:
		p.put(w, r, section, name)
	case r.Method == http.MethodDelete:
		p.remove(w, r, section, name)
	default:
		p.entry(w, r, section, name)
	}
}

func (p *Panel) entry(w http.ResponseWriter, r *http.Request, section edit.Section, name string) {
	entry, err := p.editor.Entry(r.Context(), section, name)
	if err != nil {
		p.failEdit(w, r, err)
		return
	}
	w.Header().Set("ETag", entry.Tag)
	answer(w, http.StatusOK, entry)
}

// expected returns the condition in the headers of a change.
func expected(h http.Header) edit.Condition {
	return edit.Condition{New: h.Get("If-None-Match") == "*", Tags: strings.Join(h.Values("If-Match"), ",")}
}

// submitted is the body of a change.
type submitted struct {
	Value       map[string]any    `json:"value"`
	Secrets     map[string]string `json:"secrets"`
	NewPassword bool              `json:"new_password"`
}

// saved is the answer to a change. Password is set if one was generated for an account.
type saved struct {
	Section  edit.Section `json:"section"`
	Name     string       `json:"name"`
	APIKey   string       `json:"api_key,omitempty"`
	Password string       `json:"password,omitempty"`
}

func (p *Panel) put(w http.ResponseWriter, r *http.Request, section edit.Section, name string) {
	var body submitted
	if !p.readJSON(w, r, &body) {
		return
	}
	if body.Value == nil { // all options would go, such as the list that limits an account
		p.fail(w, r, http.StatusBadRequest, "the value is missing")
		return
	}
	made, err := p.editor.Put(r.Context(), edit.Change{
		Section: section, Name: name, Condition: expected(r.Header),
		Value: body.Value, Secrets: body.Secrets, NewPassword: body.NewPassword,
	})
	if err != nil {
		p.failEdit(w, r, err)
		return
	}
	status, result := http.StatusOK, saved{Section: section, Name: name}
	if made.Created {
		status = http.StatusCreated
	}
	if made.Password != "" {
		result.APIKey, result.Password = name, made.Password
	}
	w.Header().Set("ETag", made.Entry.Tag)
	answer(w, status, result)
}

func (p *Panel) remove(w http.ResponseWriter, r *http.Request, section edit.Section, name string) {
	if err := p.editor.Delete(r.Context(), section, name, expected(r.Header)); err != nil {
		p.failEdit(w, r, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// download serves the configuration as a file without secrets.
func (p *Panel) download(w http.ResponseWriter, r *http.Request) {
	if !p.allowed(w, r, http.MethodGet, http.MethodHead) {
		return
	}
	app, err := p.editor.Download(r.Context())
	if err != nil {
		p.failEdit(w, r, err)
		return
	}
	body, err := json.MarshalIndent(map[string]any{"apps": map[string]any{"media": app}}, "", "\t")
	if err != nil {
		p.failEdit(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Disposition", `attachment; filename="media.json"`)
	_, _ = w.Write(append(body, '\n')) // the client may be gone
}

// caddyfile serves the configuration as a global option of a Caddyfile, without secrets.
func (p *Panel) caddyfile(w http.ResponseWriter, r *http.Request) {
	if !p.allowed(w, r, http.MethodGet, http.MethodHead) {
		return
	}
	made, err := p.editor.Caddyfile(r.Context())
	if err != nil {
		p.failEdit(w, r, err)
		return
	}
	answer(w, http.StatusOK, made)
}

// problem is the answer to a failed request.
type problem struct {
	Error   string      `json:"error"`
	Option  string      `json:"option,omitempty"`
	UsedBy  []edit.Use  `json:"used_by,omitempty"`
	Current *edit.Entry `json:"current,omitempty"`
}

// failEdit answers with the error of reading or changing an entry.
func (p *Panel) failEdit(w http.ResponseWriter, r *http.Request, err error) {
	failed, ok := errors.AsType[*edit.Error](err)
	if !ok {
		p.log.Error("changing the configuration", zap.Error(err))
		p.fail(w, r, http.StatusInternalServerError, "something went wrong; the log says what")
		return
	}
	if failed.Current != nil {
		w.Header().Set("ETag", failed.Current.Tag)
	}
	answer(w, failed.Status, problem{failed.Message, failed.Option, failed.UsedBy, failed.Current})
}
