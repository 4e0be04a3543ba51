package panel

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddymedia/media/caddymedia/internal/adminapi"
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
