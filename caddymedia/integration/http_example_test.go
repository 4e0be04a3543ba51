package integration

import (
	"bytes"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

const exampleAddress = "http://localhost:8080"

func exampleCaddyfile(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "Caddyfile.example"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestExampleIsTidy: Caddyfile.example adapts without a warning and is formatted by `caddy fmt`.
// Its log filter is the one tested for secrets.
func TestExampleIsTidy(t *testing.T) {
	example := exampleCaddyfile(t)
	_, warnings, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(example), map[string]any{"filename": "Caddyfile.example"})
	if err != nil || len(warnings) != 0 {
		t.Errorf("adapting: %v, warnings %v", err, warnings)
	}
	if got := string(caddyfile.Format([]byte(example))); got != example {
		t.Errorf("caddy fmt makes of it:\n%s", got)
	}
	if !strings.Contains(strings.Join(strings.Fields(example), " "), strings.Join(strings.Fields(logFilter), " ")) {
		t.Errorf("its log filter is not:\n%s", logFilter)
	}
}

// TestExampleRuns runs Caddyfile.example, unchanged except for the port, and follows the first
// steps of a new user.
func TestExampleRuns(t *testing.T) {
	withinOneDay()
	s, output := runExample(t, "off")
	r := s.login(t, "try-out", "only for trying out")
	var answer struct {
		Success   bool   `json:"success"`
		Token     string `json:"token"`
		ExpiresAt int64  `json:"expires_at"`
	}
	r.decode(t, &answer)
	if !answer.Success {
		t.Fatalf("no token: %d %s", r.status, r.body)
	}
	if in := time.Until(time.Unix(answer.ExpiresAt, 0)); in < 23*time.Hour || in > 25*time.Hour {
		t.Errorf("the token expires in %v, want 24h", in)
	}
	header := merged(documented("try-out", answer.Token), formType)
	picture := jpegOf(t, 30, 20)
	image := s.do(t, http.MethodPost, "/api/upload/image", header, form(file("Test Filename ěščř.JPG", picture), field("alias", "content"))).one(t)
	document := s.do(t, http.MethodPost, "/api/upload/file", header, form(file("Manual.pdf", pdfDocument), field("sub_folder", "manuals"))).one(t)
	folder := time.Now().Format("06-01/02")
	for got, want := range map[string]string{
		image.FullPath: s.url + "/static/img/content/" + folder + "/test-filename-escr.jpg", document.FullPath: s.url + "/static/file/content/manuals/manual.pdf",
		s.fetch(t, image.FullPath).body: picture, s.fetch(t, document.FullPath).body: pdfDocument,
	} {
		if got != want {
			t.Errorf("got %.200q, want %.200q", got, want)
		}
	}
	if r := s.get(t, "/"); r.status != http.StatusNotFound || !strings.Contains(r.body, tokenPath) {
		t.Errorf("elsewhere: %d %q", r.status, r.body)
	}
	s.do(t, http.MethodPost, "/api/upload/file", header, form(file("x.php", "x"))).failures(t, http.StatusUnsupportedMediaType)
	log := output()
	if !strings.Contains(log, "http.log.access") || strings.Contains(log, answer.Token) {
		t.Errorf("the log lacks accesses, or has the token:\n%s", log)
	}
	for line := range strings.Lines(log) {
		if namesKey(line, "try-out") {
			t.Errorf("the key is logged: %s", line)
		}
	}
}

// runExample runs Caddyfile.example in a process on a free port, with its admin endpoint at the
// address admin. output stops the process and returns its output.
func runExample(t *testing.T, admin string) (s *site, output func() string) {
	t.Helper()
	address := servers.FreeAddress(t)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	url := "http://localhost:" + port
	config := strings.Replace(exampleCaddyfile(t), exampleAddress, url, 1)
	config = strings.Replace(config, "{\n", "{\n\tadmin "+admin+"\n", 1)
	home := tempFolder(t)
	if err := os.WriteFile(filepath.Join(home, "Caddyfile"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd := exec.Command(executable, "run")
	cmd.Dir = home
	cmd.Env = append(os.Environ(), runCaddy+"=1", "HOME="+home, "XDG_DATA_HOME="+home+"/data", "XDG_CONFIG_HOME="+home+"/config")
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	transport := &http.Transport{DialContext: (&net.Dialer{Timeout: time.Second}).DialContext}
	stop := func() {
		transport.CloseIdleConnections()
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
		select {
		case <-ended:
			ended <- nil
		case <-time.After(prompt):
			_ = cmd.Process.Kill()
			t.Error("Caddy does not end")
		}
	}
	t.Cleanup(stop)
	for deadline := time.Now().Add(3 * prompt); ; time.Sleep(20 * time.Millisecond) {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
			break
		}
		if time.Now().After(deadline) {
			stop()
			t.Fatalf("Caddy does not start:\n%s", out.String())
		}
	}
	s = &site{url: url, address: address, client: &http.Client{Transport: transport, Timeout: 30 * time.Second}}
	return s, func() string {
		stop()
		return out.String()
	}
}
