package panel

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/caddymedia/media/caddymedia/internal/caddy/adminapi"
	"github.com/caddymedia/media/caddymedia/internal/caddy/modules"
	"github.com/caddymedia/media/caddymedia/internal/caddy/plugin"
	"github.com/caddymedia/media/caddymedia/internal/front/caller"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
)

const (
	defaultIdle       = time.Hour
	defaultLifetime   = 12 * time.Hour
	loginRealm        = "panel"
	loginRoute        = "/login"
	cookieName        = "media-admin"
	authenticatedUser = "http.auth.user.id"

	// publicElsewhere answers a login with the password of Caddyfile.example that does not come from
	// this machine.
	publicElsewhere = "The password of this user is in the documentation, so it opens the panel only on the computer that runs it. " +
		"There, replace it with the output of: caddy media account"
)

// login authenticates the users of the panel by a form and a session.
type login struct {
	base         string            // of the panel
	fingerprints map[string]string // of users and their hashes
	public       []string          // users with the password of Caddyfile.example
	passwords    *access.Passwords
	sessions     *sessions
	limits       sessionLimits
	now          func() time.Time
}

// newLogin returns a login with the expanded hashes of the users.
func (p *Panel) newLogin(app *plugin.App) (*login, error) {
	l := &login{
		base: p.base, now: p.now, fingerprints: make(map[string]string, len(p.Login)),
		limits: sessionLimits{
			cmp.Or(time.Duration(p.SessionIdle), defaultIdle), cmp.Or(time.Duration(p.SessionLifetime), defaultLifetime),
		},
	}
	expand := modules.Expander()
	hashes := make(map[string]string, len(p.Login))
	for user, hash := range p.Login {
		hash, err := app.OwnPassword(hash)
		if err != nil {
			return nil, fmt.Errorf("user %q: %w", user, err)
		}
		hashes[user] = expand.Secret(fmt.Sprintf("user %q", user), hash)
		l.fingerprints[user] = access.Account{APIKey: user, PasswordHash: hashes[user]}.Fingerprint()
	}
	if err := expand.Err(); err != nil {
		return nil, err
	}
	var err error
	if l.passwords, err = app.Passwords(loginRealm, hashes); err != nil {
		return nil, err
	}
	l.public, l.sessions = plugin.PublicNames(hashes), openSessions()
	return l, nil
}

func (p *Panel) validateLogin() error {
	switch {
	case p.User != "":
		return errors.New("login and user exclude each other: either the panel authenticates, or another handler")
	case p.SessionIdle < 0 || p.SessionLifetime < 0:
		return errors.New("session is negative")
	}
	for user := range p.Login {
		if user != strings.TrimSpace(user) || user == "" {
			return fmt.Errorf("login: the user %q is empty, or begins or ends with a space", user)
		}
	}
	for _, editor := range p.Editors {
		if _, ok := p.Login[editor]; !ok {
			return fmt.Errorf("editors: there is no user %q in login", editor)
		}
	}
	for _, u := range p.Uploaders {
		for _, user := range u.Users {
			if _, ok := p.Login[user]; !ok {
				return fmt.Errorf("uploaders: there is no user %q in login", user)
			}
		}
	}
	return nil
}

// user returns the user of a request's session, or "" without a session. A session ends when its
// user is removed or gets another password.
func (l *login) user(r *http.Request) string {
	cookie, err := r.Cookie(l.cookieName(r))
	if err != nil {
		return ""
	}
	session, ok := l.sessions.find(cookie.Value, l.limits, r.Header.Get(adminapi.BackgroundHeader) == "", l.now())
	if !ok {
		return ""
	}
	if l.fingerprints[session.user] != session.fingerprint {
		l.sessions.end(cookie.Value)
		return ""
	}
	return session.user
}

// mounted returns base as the browser sees it. The two differ where `handle_path`, for instance,
// removes a prefix.
func mounted(r *http.Request, base string) string { return plugin.MountPrefix(r) + base }

// redirect redirects a browser to another address of the panel.
func (p *Panel) redirect(w http.ResponseWriter, r *http.Request, route string) {
	http.Redirect(w, r, mounted(r, p.base)+route, http.StatusSeeOther) //nolint:gosec // a prefix never begins with "//"
}

// cookieName returns the name of the session cookie. Over TLS its prefix keeps browsers from
// accepting a cookie of that name that was set without TLS or, if the panel has its own site, by
// another host.
func (l *login) cookieName(r *http.Request) string {
	switch {
	case !overTLS(r):
		return cookieName
	case mounted(r, l.base) == "":
		return "__Host-" + cookieName
	default:
		return "__Secure-" + cookieName
	}
}

// setCookie sets the session cookie, which is sent to the panel alone. A negative age removes it.
func (l *login) setCookie(w http.ResponseWriter, r *http.Request, value string, maxAge int) {
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // Secure wherever the browser uses TLS
		Name: l.cookieName(r), Value: value, MaxAge: maxAge, Path: mounted(r, l.base) + "/",
		Secure: overTLS(r), HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
}

// endSent ends the session in the cookie of a request, if any.
func (l *login) endSent(r *http.Request) {
	if sent, err := r.Cookie(l.cookieName(r)); err == nil {
		l.sessions.end(sent.Value)
	}
}

// overTLS reports whether the browser uses TLS, to Caddy or to a proxy that Caddy trusts.
func overTLS(r *http.Request) bool {
	return r.TLS != nil || plugin.TrustedProxy(r) && r.Header.Get("X-Forwarded-Proto") == "https"
}

// serveLogin serves the login page, its form and the logout. It refuses all other requests without
// a session. It returns false if the request has a session and is still to be served.
func (p *Panel) serveLogin(w http.ResponseWriter, r *http.Request, v visitor, rest string) bool {
	switch {
	case rest == loginRoute && r.Method == http.MethodPost:
		p.logIn(w, r)
	case rest == loginRoute && v.name != "" && reads(r):
		p.redirect(w, r, "/")
	case rest == loginRoute:
		if p.allowed(w, r, http.MethodGet, http.MethodHead, http.MethodPost) {
			p.pages.serveLogin(w, r, http.StatusOK, loginPage{})
		}
	case v.name != "" && rest == "/api/session" && r.Method == http.MethodDelete:
		p.logOut(w, r, v)
	case v.name != "":
		return false
	case reads(r) && (rest == "" || rest == "/"):
		p.redirect(w, r, loginRoute)
	case reads(r) && slices.Contains(openFiles, strings.TrimPrefix(rest, "/assets/"+p.pages.version+"/")) &&
		p.pages.serve(w, r, mounted(r, p.base), rest):
	default:
		p.fail(w, r, http.StatusUnauthorized, "You are logged out.")
	}
	return true
}

// logIn checks the form of the login page and starts a session.
func (p *Panel) logIn(w http.ResponseWriter, r *http.Request) {
	if err := p.guard.Check(r); err != nil {
		p.fail(w, r, http.StatusForbidden, otherSite)
		return
	}
	form, status, message := caller.SmallForm.Read(w, r, p.now, "user", "password")
	if message != "" {
		p.fail(w, r, status, message)
		return
	}
	user := form.Get("user")
	if slices.Contains(p.login.public, user) && !p.gate.IsLocal(r) {
		p.logLogin(r, user, "refused")
		p.pages.serveLogin(w, r, http.StatusForbidden, loginPage{user, publicElsewhere})
		return
	}
	client, _ := netip.ParseAddr(plugin.ClientOf(r.Context())) // all unknown addresses count as one client
	err := p.login.passwords.Check(r.Context(), user, form.Get("password"), client)
	if err == nil {
		p.logLogin(r, user, "ok")
		p.login.endSent(r)
		p.login.setCookie(w, r, p.login.sessions.begin(user, p.login.fingerprints[user], p.login.limits, p.login.now()), 0)
		p.redirect(w, r, "/")
		return
	}
	if throttled, ok := errors.AsType[*access.ThrottledError](err); ok {
		p.logLogin(r, user, "throttled")
		seconds := strconv.Itoa(max(1, int(math.Ceil(throttled.RetryAfter.Seconds()))))
		w.Header().Set("Retry-After", seconds)
		p.pages.serveLogin(w, r, http.StatusTooManyRequests, loginPage{user, "Too many attempts. Try again in " + seconds + " s."})
		return
	}
	if !errors.Is(err, access.ErrCredentials) {
		return // the browser is gone
	}
	p.logLogin(r, user, "refused")
	if err != access.ErrCredentials { //nolint:errorlint // more than that: the hash cannot be compared with
		p.log.Error("checking a password", zap.Error(err))
	}
	p.pages.serveLogin(w, r, http.StatusUnauthorized, loginPage{user, "Wrong user or password."})
}

// logOut ends the session of a request.
func (p *Panel) logOut(w http.ResponseWriter, r *http.Request, v visitor) {
	if err := p.guard.Check(r); err != nil {
		p.fail(w, r, http.StatusForbidden, otherSite)
		return
	}
	p.login.endSent(r)
	p.login.setCookie(w, r, "", -1)
	p.logLogin(r, v.name, "logged out")
	w.WriteHeader(http.StatusNoContent)
}

// logLogin logs the result of a login. It omits unknown user names, because people type passwords
// into the wrong field. Throttled logins are logged at debug level, because there may be very many.
func (p *Panel) logLogin(r *http.Request, user, result string) {
	if _, known := p.login.fingerprints[user]; !known {
		user = ""
	}
	level := zap.InfoLevel
	if result == "throttled" {
		level = zap.DebugLevel
	}
	p.log.Log(level, "login to the panel", zap.String("user", user),
		zap.String("client", plugin.ClientOf(r.Context())), zap.String("result", result))
}
