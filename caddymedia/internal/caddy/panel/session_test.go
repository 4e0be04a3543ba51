package panel

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddymedia/media/caddymedia/internal/caddy/adminapi"
	"github.com/caddymedia/media/caddymedia/internal/caddy/plugin"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
)

// TestSession: changes last only if Caddy starts with its saved configuration and has saved the
// running one.
func TestSession(t *testing.T) {
	const running = `{"storages":{"a":{"driver":{"name":"local","root":"/a"}}},"limits":{"max_files":9007199254740993}}`
	resume := []string{"caddy", "run", "--resume"}
	for name, c := range map[string]struct {
		args  []string
		saved string // "" is no file
		want  bool
		note  string
	}{
		"resumed and saved":        {resume, `{"apps":{"http":{},"media":` + running + `}}`, true, ""},
		"persisting by name":       {resume, `{"admin":{"config":{"persist":true}},"apps":{"media":` + running + `}}`, true, ""},
		"without --resume":         {[]string{"caddy", "run", "--config", "x"}, `{"apps":{"media":` + running + `}}`, false, "--resume"},
		"nothing is saved":         {resume, "", false, "persist_config"},
		"something else is saved":  {resume, `{"apps":{"media":{"storages":{}}}}`, false, "persist_config"},
		"another number is saved":  {resume, `{"apps":{"media":` + strings.Replace(running, "993", "992", 1) + `}}`, false, "persist_config"},
		"it is not saved any more": {resume, `{"admin":{"config":{"persist":false}},"apps":{"media":` + running + `}}`, false, "persist_config"},
		"a broken file":            {resume, `{"apps":`, false, "persist_config"},
	} {
		t.Run(name, func(t *testing.T) {
			before := caddy.ConfigAutosavePath
			defer func() { caddy.ConfigAutosavePath = before }()
			caddy.ConfigAutosavePath = filepath.Join(t.TempDir(), "autosave.json")
			if c.saved != "" {
				if err := os.WriteFile(caddy.ConfigAutosavePath, []byte(c.saved), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			p := &Panel{args: c.args, api: editorOn(t, running)}
			s := p.session(t.Context(), visitor{name: "x", editor: true})
			if s.Lasting != c.want || !strings.Contains(s.LastingNote, c.note) || (s.LastingNote == "") != c.want || s.WhyNot != "" {
				t.Errorf("%+v", s)
			}
		})
	}
}

// editorOn returns the API with an editor of a configuration.
func editorOn(t *testing.T, running string) *adminapi.Handler {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, running) }))
	t.Cleanup(server.Close)
	return newAPI(t, strings.TrimPrefix(server.URL, "http://"))
}

func newAPI(t *testing.T, address string) *adminapi.Handler {
	t.Helper()
	handler, err := adminapi.NewEditor(address, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	return handler
}

func TestSessionWithoutAdmin(t *testing.T) {
	t.Parallel()
	s := (&Panel{args: []string{"caddy", "run", "--resume"}, api: newAPI(t, adminapi.Off)}).session(t.Context(), visitor{name: "x", editor: true})
	if s.Lasting || !strings.Contains(s.WhyNot, "`admin off`") || !s.Editor {
		t.Errorf("%+v", s)
	}
}

// TestSessionPublicPassword: editors and readers get the names with the password of
// Caddyfile.example, uploaders do not.
func TestSessionPublicPassword(t *testing.T) { // not parallel: Caddy has globals
	const public = "$argon2id$v=19$m=47104,t=1,p=1$A4jf1aqXBp1xxJ37lPh12A$WaFuBSrB5SmdEcA4byiDJ83t54g74DSO4UiWcMTjXHQ"
	other := public[:len(public)-1] + "A"
	for name, c := range map[string]struct {
		account, login string // the hash of the account shop, and the users of the panel
		want           []string
	}{
		"both":     {public, `"alice": "` + public + `", "bob": "` + other + `", "carla": "` + public + `"`, []string{"account `shop`, panel user `alice`, panel user `carla`.", "`caddy media account <name>`"}},
		"account":  {public, `"alice": "` + other + `", "carla": "` + other + `"`, []string{"documentation: account `shop`."}},
		"user":     {other, `"alice": "{env.MEDIA_TEST_HASH}", "carla": "` + other + `"`, []string{"documentation: panel user `alice`."}},
		"no login": {public, "", []string{"documentation: account `shop`."}},
		"nobody":   {other, `"alice": "` + other + `", "carla": "` + other + `"`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("MEDIA_TEST_HASH", public)
			p := panelOf(t, c.account, c.login)
			p.Editors, p.Uploaders = []string{"alice"}, []Uploaders{{Users: []string{"carla"}}}
			for user, sees := range map[string]bool{"alice": true, "bob": true, "carla": false} {
				got := p.session(t.Context(), p.visitorOf(user)).PublicPassword
				if (got != "") != (sees && c.want != nil) {
					t.Errorf("%s sees %q", user, got)
				}
				for _, part := range c.want {
					if sees && !strings.Contains(got, part) {
						t.Errorf("%s sees %q without %q", user, got, part)
					}
				}
			}
		})
	}
}

// panelOf returns the provisioned panel of a configuration with the account shop.
func panelOf(t *testing.T, hash, login string) *Panel {
	t.Helper()
	ctx, err := caddy.ProvisionContext(&caddy.Config{
		Admin: &caddy.AdminConfig{Disabled: true},
		Logging: &caddy.Logging{Logs: map[string]*caddy.CustomLog{
			"default": {BaseLog: caddy.BaseLog{WriterRaw: json.RawMessage(`{"output":"discard"}`)}},
		}},
		AppsRaw: caddy.ModuleMap{"media": json.RawMessage(`{"tokens": {"store": "memory"}, "accounts": {"shop": {"password_hash": "` + hash + `"}}}`)},
	})
	if err != nil {
		t.Fatal(err)
	}
	module, err := ctx.LoadModuleByID("http.handlers.media_admin", json.RawMessage(`{"admin": "off", "login": {`+login+`}}`))
	if err != nil {
		t.Fatal(err)
	}
	p := module.(*Panel)
	t.Cleanup(func() {
		app, err := ctx.App("media")
		if err := errors.Join(err, p.Cleanup(), app.(*plugin.App).Cleanup()); err != nil {
			t.Error(err)
		}
	})
	return p
}

func TestArguments(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]struct {
		resumed bool
		file    string
	}{
		"caddy run":                                  {false, ""},
		"caddy run --resume":                         {true, ""},
		"caddy run -r":                               {true, ""},
		"caddy run --resume=true":                    {true, ""},
		"caddy run --resume=false":                   {false, ""},
		"caddy run --environ --config /etc/x":        {false, "/etc/x"},
		"caddy run --config=/etc/x --resume":         {true, "/etc/x"},
		"caddy start -c /etc/x":                      {false, "/etc/x"},
		"caddy run --config":                         {false, ""},
		"caddy run --configuration /etc/x --resumed": {false, ""},
	} {
		args := strings.Fields(line)
		if got := resumed(args); got != want.resumed {
			t.Errorf("%s: resumed %t", line, got)
		}
		if got := valueOf(args, "--config", "-c"); got != want.file {
			t.Errorf("%s: file %q", line, got)
		}
	}
}

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
