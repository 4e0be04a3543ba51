package panel

import (
	"crypto/rand"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddymedia/media/caddymedia/tokens"
)

// maxSessions is the largest number of sessions of a user. The oldest one ends for one more.
const maxSessions = 50

// sessionPool holds the sessions of the process while any configuration has a panel with a login.
// Every change in the panel is a reload, which must not end them.
var sessionPool = caddy.NewUsagePool()

const sessionKey = "sessions"

// sessions holds the sessions of logged-in users. Only the hash of a cookie is kept.
type sessions struct {
	mu   sync.Mutex
	byID map[tokens.ID]*loggedIn
}

type loggedIn struct {
	user string
	// fingerprint is the one of the user's name and hash at the time of the login.
	fingerprint string
	began, seen time.Time
	// limits are those of its panel. Sessions of several panels are kept together.
	limits sessionLimits
	// uploads is how many are under way. The session is not idle meanwhile.
	uploads int
}

// sessionLimits are how long a session lasts without a request, and at most.
type sessionLimits struct{ idle, lifetime time.Duration }

func (s *loggedIn) over(now time.Time) bool {
	return s.uploads == 0 && now.Sub(s.seen) >= s.limits.idle || now.Sub(s.began) >= s.limits.lifetime
}

func openSessions() *sessions {
	shared, _ := sessionPool.LoadOrStore(sessionKey, &sessions{byID: map[tokens.ID]*loggedIn{}})
	return shared.(*sessions) // nothing else is in the pool
}

func closeSessions() error {
	_, err := sessionPool.Delete(sessionKey)
	return err
}

// begin returns the secret of a new session. It removes sessions that are over. Users are the same if
// their fingerprints are: equal names of two panels are not.
func (s *sessions) begin(user, fingerprint string, limits sessionLimits, now time.Time) (secret string) {
	secret = rand.Text() + rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	var oldest tokens.ID
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
	s.byID[tokens.IDOf(secret)] = &loggedIn{user: user, fingerprint: fingerprint, began: now, seen: now, limits: limits}
	return secret
}

// find returns the session of a secret; false if there is none or it is over by limits, which are its
// own from then on. active reports that its user has done something.
func (s *sessions) find(secret string, limits sessionLimits, active bool, now time.Time) (loggedIn, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := tokens.IDOf(secret)
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

// beginUpload keeps the session of a secret from being idle until the caller calls ended.
func (s *sessions) beginUpload(secret string, now func() time.Time) (ended func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	session, ok := s.byID[tokens.IDOf(secret)]
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

// lasts reports whether there is a session of a secret with this fingerprint.
func (s *sessions) lasts(secret, fingerprint string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	session, ok := s.byID[tokens.IDOf(secret)]
	return ok && !session.over(now) && session.fingerprint == fingerprint
}

// end ends the session of a secret.
func (s *sessions) end(secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byID, tokens.IDOf(secret))
}
