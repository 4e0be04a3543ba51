package panel

import (
	"crypto/rand"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
)

// maxSessions is the maximum number of sessions of a user. A new session ends the oldest one then.
const maxSessions = 50

// sessionPool holds the sessions of the process while any configuration has a panel with a login.
// Every change in the panel is a reload, which must not end them.
var sessionPool = caddy.NewUsagePool()

const sessionKey = "sessions"

// sessions holds the sessions of logged-in users. It keeps only the hashes of cookies.
type sessions struct {
	mu   sync.Mutex
	byID map[access.ID]*loggedIn
}

type loggedIn struct {
	user string
	// fingerprint is the fingerprint of the user's name and hash at the time of the login.
	fingerprint string
	began, seen time.Time
	// limits are the limits of the session's panel. The sessions of all panels are kept together.
	limits sessionLimits
	// uploads is the number of running uploads. They keep the session from becoming idle.
	uploads int
}

// sessionLimits are the maximum time without a request and the maximum total time of a session.
type sessionLimits struct{ idle, lifetime time.Duration }

func (s *loggedIn) over(now time.Time) bool {
	return s.uploads == 0 && now.Sub(s.seen) >= s.limits.idle || now.Sub(s.began) >= s.limits.lifetime
}

func openSessions() *sessions {
	shared, _ := sessionPool.LoadOrStore(sessionKey, &sessions{byID: map[access.ID]*loggedIn{}})
	return shared.(*sessions) // nothing else is in the pool
}

func closeSessions() error {
	_, err := sessionPool.Delete(sessionKey)
	return err
}

// begin returns the secret of a new session and removes expired sessions. Users are compared by
// fingerprint, because two panels may have different users of the same name.
func (s *sessions) begin(user, fingerprint string, limits sessionLimits, now time.Time) (secret string) {
	secret = rand.Text() + rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	var oldest access.ID
	count := 0
	for id, session := range s.byID {
		switch {
		case session.over(now):
			delete(s.byID, id)
		case session.fingerprint == fingerprint:
			if count++; count == 1 || session.began.Before(s.byID[oldest].began) {
				oldest = id
			}
		}
	}
	if count >= maxSessions {
		delete(s.byID, oldest)
	}
	s.byID[access.IDOf(secret)] = &loggedIn{user: user, fingerprint: fingerprint, began: now, seen: now, limits: limits}
	return secret
}

// find returns the session of a secret and sets its limits. It returns false if there is no session
// or it has expired. active reports whether the request is an activity of the user.
func (s *sessions) find(secret string, limits sessionLimits, active bool, now time.Time) (loggedIn, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := access.IDOf(secret)
	session, ok := s.byID[id]
	if !ok {
		return loggedIn{}, false
	}
	session.limits = limits
	if session.over(now) {
		delete(s.byID, id)
		return loggedIn{}, false
	}
	if active {
		session.seen = now
	}
	return *session, true
}

// beginUpload keeps the session of a secret from becoming idle until the caller calls ended.
func (s *sessions) beginUpload(secret string, now func() time.Time) (ended func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	session, ok := s.byID[access.IDOf(secret)]
	if !ok {
		return func() {}
	}
	session.uploads++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		session.uploads--
		session.seen = now()
	}
}

// lasts reports whether a secret has a valid session with this fingerprint.
func (s *sessions) lasts(secret, fingerprint string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	session, ok := s.byID[access.IDOf(secret)]
	return ok && !session.over(now) && session.fingerprint == fingerprint
}

// end ends the session of a secret.
func (s *sessions) end(secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byID, access.IDOf(secret))
}
