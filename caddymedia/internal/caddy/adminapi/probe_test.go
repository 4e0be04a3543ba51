package adminapi

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

func TestProbeSaved(t *testing.T) {
	root := load(t, full)
	got := decoded[probeAnswer](t, ask(t, New(), http.MethodPost, "/storages/main/probe", ""), http.StatusOK)
	if !got.OK || len(got.Steps) != 9 || len(got.Guarantees) != 3 {
		t.Errorf("%+v", got)
	}
	for _, step := range got.Steps {
		if !step.OK || step.Message != "" || step.Detail != "" || step.Title == "" {
			t.Errorf("%+v", step)
		}
	}
	left, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range left {
		if !strings.HasPrefix(entry.Name(), ".") {
			t.Errorf("the probe has left %s", entry.Name())
		}
	}
	got = decoded[probeAnswer](t, ask(t, New(), http.MethodPost, "/storages/far/probe", ""), http.StatusOK)
	if got.OK || len(got.Steps) != 1 || len(got.Guarantees) != 0 || got.Steps[0].OK || got.Steps[0].Message == "" || got.Steps[0].Detail == "" {
		t.Errorf("%+v", got)
	}
}

// TestWrongOptions: invalid options are reported without connecting, without Caddy's prefixes, and
// with the option at fault.
func TestWrongOptions(t *testing.T) {
	load(t, oneFolder)
	for body, want := range map[string]struct{ text, option string }{
		``:                    {"no JSON", ""},
		`null`:                {"no JSON", ""},
		`{}`:                  {"no JSON", ""},
		`{"driver": null}`:    {"no JSON", ""},
		`{"driver": "local"}`: {"no JSON", ""},
		`{"driver": {"name": "local", "root": "/x"}} {}`:          {"no JSON", ""},
		`{"driver": {"name": "local", "root": "/x"}, "keep": ""}`: {"no JSON", ""},

		`{"driver": {}}`:                                                                    {"name", ""},
		`{"driver": {"name": "floppy"}}`:                                                    {"unknown driver \"floppy\"; there are ", ""},
		`{"driver": {"name": "local"}}`:                                                     {"root", "driver.root"},
		`{"driver": {"name": "local", "rooot": "/x"}}`:                                      {`unknown field "rooot"`, ""},
		`{"driver": {"name": "local", "root": {"root": 1}}}`:                                {"root", ""},
		`{"driver": {"name": "local", "root": "{env.NOT_SET}"}}`:                            {"NOT_SET", "driver.root"},
		`{"driver": {"name": "sftp", "address": "x", "user": "x", "password": "hunter22"}}`: {"host_key is required", "driver.host_key"},
		`{"driver": {"name": "s3"}}`:                                                        {"bucket", "driver.bucket"},
		`{"driver": {"name": "ftp", "address": "x"}}`:                                       {"user", "driver.user"},
	} {
		w := ask(t, New(), http.MethodPost, "/probe", body)
		wantError(t, w, http.StatusBadRequest, want.text)
		if got := decoded[failure](t, w, http.StatusBadRequest); got.Option != want.option {
			t.Errorf("%s: %+v, want the option %q", body, got, want.option)
		}
		for _, unwanted := range []string{"provision", "decoding module", "hunter22"} {
			if strings.Contains(w.Body.String(), unwanted) {
				t.Errorf("%s: %s", body, w.Body)
			}
		}
	}
	large := `{"driver": {"name": "local", "root": "` + strings.Repeat("x", maxBody) + `"}}`
	wantError(t, ask(t, New(), http.MethodPost, "/probe", large), http.StatusRequestEntityTooLarge, "1 MiB")
}

// TestProbeOfEditor: the editor takes the secrets of an unsaved driver apart, and needs its
// endpoint.
func TestProbeOfEditor(t *testing.T) {
	root := load(t, oneFolder)
	handler := New()
	handler.editor = &editor{client: new(client)}
	got := decoded[probeAnswer](t, ask(t, handler, http.MethodPost, "/probe", `{"driver": {"name": "local", "root": "`+root+`/new"}}`), http.StatusOK)
	if !got.OK {
		t.Errorf("%+v", got)
	}
	w := ask(t, handler, http.MethodPost, "/probe", `{"driver": {"name": "ftp", "address": "x"}, "secrets": {"driver.none": "x"}}`)
	wantError(t, w, http.StatusBadRequest, "driver.none")
	handler.editor.client = nil
	w = ask(t, handler, http.MethodPost, "/probe", `{"driver": {"name": "local", "root": "`+root+`"}}`)
	wantError(t, w, http.StatusBadGateway, "switched off")
}

// silentHost returns the address of a host that accepts connections and never answers. The channels
// receive a value when a connection begins and ends.
func silentHost(t *testing.T) (address string, begun, ended chan struct{}) {
	t.Helper()
	begun, ended = make(chan struct{}, 100), make(chan struct{}, 100)
	address = listen(t, func(conn net.Conn) {
		begun <- struct{}{}
		_, _ = io.Copy(io.Discard, conn)
		ended <- struct{}{}
	})
	return address, begun, ended
}

func waitsFor(address string) string {
	return fmt.Sprintf(`{"driver": {"name": "sftp", "address": %q, "user": "x", "password": "hunter22",
		"insecure_skip_host_key": true, "timeout": "1h"}}`, address)
}

// TestProbeEnds: a probe ends with its caller or at its time limit, and closes the connection.
func TestProbeEnds(t *testing.T) {
	load(t, oneFolder)
	address, begun, ended := silentHost(t)
	handler := New()
	ctx, cancel := context.WithCancel(t.Context())
	var answered sync.WaitGroup
	answered.Go(func() {
		r := httptest.NewRequest(http.MethodPost, "/probe", strings.NewReader(waitsFor(address))).WithContext(ctx)
		handler.ServeHTTP(httptest.NewRecorder(), r)
	})
	<-begun
	cancel()
	answered.Wait()
	<-ended

	handler.maxTime = 200 * time.Millisecond
	got := decoded[probeAnswer](t, ask(t, handler, http.MethodPost, "/probe", waitsFor(address)), http.StatusOK)
	if got.OK || !strings.Contains(got.Steps[0].Message, "does not answer") {
		t.Errorf("%+v", got)
	}
	<-ended
}

// TestManyProbes: all handlers together run a limited number of probes.
func TestManyProbes(t *testing.T) {
	load(t, oneFolder)
	address, begun, _ := silentHost(t)
	ctx, cancel := context.WithCancel(t.Context())
	var answered sync.WaitGroup
	for range maxProbes {
		answered.Go(func() {
			r := httptest.NewRequest(http.MethodPost, "/probe", strings.NewReader(waitsFor(address))).WithContext(ctx)
			New().ServeHTTP(httptest.NewRecorder(), r)
		})
	}
	for range maxProbes {
		<-begun
	}
	for _, path := range []string{"/probe", "/storages/main/probe"} {
		w := ask(t, New(), http.MethodPost, path, waitsFor(address))
		wantError(t, w, http.StatusTooManyRequests, "Try again")
		if w.Header().Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
	}
	cancel()
	answered.Wait()
	if w := ask(t, New(), http.MethodPost, "/storages/main/probe", ""); w.Code != http.StatusOK {
		t.Errorf("after the others: %d %s", w.Code, w.Body)
	}
}

// listen returns the address of a server that serves each connection with f.
func listen(t *testing.T, f func(net.Conn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				f(conn)
			}()
		}
	}()
	return listener.Addr().String()
}

// TestProbeExplains: the errors of drivers are explained, without the password.
func TestProbeExplains(t *testing.T) {
	root := load(t, oneFolder)
	files(t, root, "a-file")
	const password = "not-the-password"
	ftp := func(address string) map[string]any {
		return map[string]any{"name": "ftp", "address": address, "user": "x", "password": password, "timeout": "1s"}
	}
	for want, driver := range map[string]map[string]any{
		"":                                {"name": "local", "root": filepath.Join(root, "new")},
		"The root is not a folder":        {"name": "local", "root": filepath.Join(root, "a-file")},
		"The host refused the connection": ftp("127.0.0.1:1"),
		"The host does not answer":        ftp(listen(t, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })),
		"The host ended the connection":   ftp(listen(t, func(net.Conn) {})),
		"is full":                         {"name": "foreign", "fault": "full", "word": password},
		"without an explanation":          {"name": "foreign", "fault": "strange", "word": password},
	} {
		body, err := json.Marshal(map[string]any{"driver": driver})
		if err != nil {
			t.Fatal(err)
		}
		w := ask(t, New(), http.MethodPost, "/probe", string(body))
		got := decoded[probeAnswer](t, w, http.StatusOK)
		if want == "" {
			if !got.OK || len(got.Steps) != 9 || len(got.Guarantees) != 3 || got.Steps[0].Message != "" {
				t.Errorf("%s", w.Body)
			}
		} else if got.OK || len(got.Steps) != 1 || len(got.Guarantees) != 0 || !strings.Contains(got.Steps[0].Message, want) ||
			got.Steps[0].Detail == "" || strings.Contains(w.Body.String(), password) {
			t.Errorf("want %q: %s", want, w.Body)
		}
	}
}

// TestHostKey: the key of a host is returned without a login, and a backend without keys is
// explained.
func TestHostKey(t *testing.T) {
	load(t, oneFolder)
	server := servers.OpenSSH(t)
	body := `{"driver": {"name": "sftp", "address": "` + server.Address + `", "password": "hunter22"}}`
	got := decoded[hostKeyAnswer](t, ask(t, New(), http.MethodPost, "/hostkey", body), http.StatusOK)
	if !strings.HasPrefix(server.HostKey, got.HostKey) || got.HostKey == "" || !strings.HasPrefix(got.Fingerprint, "SHA256:") {
		t.Errorf("%+v, want %s", got, server.HostKey)
	}
	for body, want := range map[string]string{
		`{"driver": {"name": "local", "root": "/x"}}`: "no key", `{"driver": {"name": "floppy"}}`: "no key", `{}`: "no JSON",
	} {
		wantError(t, ask(t, New(), http.MethodPost, "/hostkey", body), http.StatusBadRequest, want)
	}
	w := ask(t, New(), http.MethodPost, "/hostkey", `{"driver": {"name": "sftp", "address": "127.0.0.1:1", "password": "hunter22"}}`)
	wantError(t, w, http.StatusBadGateway, "refused the connection")
}

func TestGuarantees(t *testing.T) {
	t.Parallel()
	none := guarantees(storagedrivers.Features{})
	all := guarantees(storagedrivers.Features{Create: storagedrivers.Atomic, Replace: storagedrivers.Atomic, Together: storagedrivers.Atomic})
	for i, name := range []string{"create", "replace", "restore"} {
		if none[i].Name != name || all[i].Name != name || none[i].Holds || !all[i].Holds ||
			none[i].Text == all[i].Text || none[i].Text == "" || all[i].Text == "" {
			t.Errorf("%+v, %+v", none[i], all[i])
		}
	}
}

// TestProbeCheck: a check is tested by test files, and its state is that of the last question.
func TestProbeCheck(t *testing.T) {
	judge := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	load(t, `{"file_aliases": {"docs": {"checks": {"judge": {"http": "`+judge.URL+`"}}}}}`)
	state := func() healthAnswer {
		t.Helper()
		all := get[healthOfAll](t, "/health").Checks
		if len(all) != 1 || all[0].Alias != "docs" || all[0].Kind != "file" || all[0].Name != "judge" {
			t.Fatalf("%+v", all)
		}
		return all[0].Health
	}
	if got := state(); got.State != "unknown" || got.Message == "" {
		t.Errorf("before: %+v", got)
	}
	probe := func() probeAnswer {
		t.Helper()
		return decoded[probeAnswer](t, ask(t, New(), http.MethodPost, "/aliases/file/docs/checks/judge/probe", ""), http.StatusOK)
	}
	if got := probe(); !got.OK || len(got.Steps) != 4 || got.Steps[1].Note == "" || len(got.Guarantees) > 0 {
		t.Errorf("%+v", got)
	}
	if got := state(); got.State != "up" || got.Checked == "" {
		t.Errorf("after: %+v", got)
	}
	judge.Close()
	if got := probe(); got.OK || len(got.Steps) != 1 || got.Steps[0].Message == "" {
		t.Errorf("closed: %+v", got)
	}
	if got := state(); got.State != "down" || got.Message == "" || got.Detail == "" {
		t.Errorf("closed: %+v", got)
	}
	for _, path := range []string{"img/docs/checks/judge", "file/other/checks/judge", "file/docs/checks/other"} {
		wantError(t, ask(t, New(), http.MethodPost, "/aliases/"+path+"/probe", ""), http.StatusNotFound, "no ")
	}
}
