package panel

import (
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/access"
)

func TestSessionsBounded(t *testing.T) {
	t.Parallel()
	s := &sessions{byID: map[access.ID]*loggedIn{}}
	limits, now := sessionLimits{time.Hour, 12 * time.Hour}, time.Unix(1_900_000_000, 0)
	other := s.begin("bob", "b", limits, now)
	secrets := make([]string, 0, 2*maxSessions)
	for n := range 2 * maxSessions {
		secrets = append(secrets, s.begin("alice", "a", limits, now.Add(time.Duration(n)*time.Second)))
	}
	if len(s.byID) != maxSessions+1 {
		t.Errorf("%d sessions", len(s.byID))
	}
	for i, secret := range append(secrets[maxSessions:], other) {
		if _, ok := s.find(secret, limits, true, now.Add(time.Minute)); !ok {
			t.Errorf("session %d has ended", i)
		}
	}
	s.begin("alice", "a", limits, now.Add(2*time.Hour))
	if len(s.byID) != 1 {
		t.Errorf("%d sessions after all have ended", len(s.byID))
	}
}

// TestSessionsOfTwoPanels: logins to one panel end no session of a user of the same name in
// another.
func TestSessionsOfTwoPanels(t *testing.T) {
	t.Parallel()
	s := &sessions{byID: map[access.ID]*loggedIn{}}
	long, short := sessionLimits{8 * time.Hour, 24 * time.Hour}, sessionLimits{time.Minute, time.Hour}
	now := time.Unix(1_900_000_000, 0)
	secret := s.begin("alice", "one", long, now)
	now = now.Add(2 * time.Hour)
	for range maxSessions {
		s.begin("alice", "other", short, now)
	}
	if _, ok := s.find(secret, long, true, now); !ok {
		t.Error("the session has ended")
	}
	s.begin("alice", "one", long, now.Add(time.Hour))
	if n := len(s.byID); n != 2 {
		t.Errorf("%d sessions, want the two of the panel with long ones", n)
	}
}

// TestSessionsShared: the configurations before and after a reload use the same sessions.
func TestSessionsShared(t *testing.T) {
	before := openSessions()
	after := openSessions()
	if before != after {
		t.Error("a reload loses the sessions")
	}
	for range 2 {
		if err := closeSessions(); err != nil {
			t.Error(err)
		}
	}
	if openSessions() == before {
		t.Error("the sessions outlive the last panel")
	}
	if err := closeSessions(); err != nil {
		t.Error(err)
	}
}
