package panel

import (
	"net/http"
	"slices"
	"sync"

	"github.com/caddymedia/media/caddymedia/media"
)

// provisioned holds the panels of all configurations. An upload may outlast the configuration under
// which it began; the panels of the configuration that runs at its end confirm it.
var provisioned = registry{panels: map[*media.Service][]*Panel{}}

// registry holds panels by the media service of their configuration.
type registry struct {
	mu     sync.Mutex
	panels map[*media.Service][]*Panel
}

func (g *registry) add(service *media.Service, p *Panel) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.panels[service] = append(g.panels[service], p)
}

func (g *registry) remove(p *Panel) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for service, panels := range g.panels {
		if panels = slices.DeleteFunc(panels, func(other *Panel) bool { return other == p }); len(panels) == 0 {
			delete(g.panels, service)
		} else {
			g.panels[service] = panels
		}
	}
}

// any reports whether fits is true for a panel in the configuration of a service.
func (g *registry) any(service *media.Service, fits func(*Panel) bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.ContainsFunc(g.panels[service], fits)
}

// uploadSession keeps the session of a request from becoming idle until the caller calls ended.
// confirm reports whether v may still upload. A panel of the running configuration must have v as
// an editor. With a login, the session must be valid and the password hash unchanged; without one,
// the `user` of that panel must be the same.
func (p *Panel) uploadSession(r *http.Request, v visitor) (confirm func(running *media.Service) bool, ended func()) {
	if p.login == nil {
		return func(running *media.Service) bool {
			return provisioned.any(running, func(other *Panel) bool {
				return other.login == nil && other.User == p.User && other.edits(v.name)
			})
		}, func() {}
	}
	var secret string
	if cookie, err := r.Cookie(p.login.cookieName(r)); err == nil {
		secret = cookie.Value
	}
	fingerprint := p.login.fingerprints[v.name]
	return func(running *media.Service) bool {
		return p.login.sessions.lasts(secret, fingerprint, p.login.now()) && provisioned.any(running, func(other *Panel) bool {
			return other.login != nil && other.login.fingerprints[v.name] == fingerprint && other.edits(v.name)
		})
	}, p.login.sessions.beginUpload(secret, p.login.now)
}

// edits reports whether a user is an editor.
func (p *Panel) edits(user string) bool {
	return len(p.Editors) == 0 || slices.Contains(p.Editors, user)
}
