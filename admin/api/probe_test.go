package api

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
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

// TestWrongOptions: invalid options are reported without connecting, and without Caddy's prefixes.
func TestWrongOptions(t *testing.T) {
	load(t, oneFolder)
	for body, want := range map[string]string{
		``:                    "no JSON",
		`{`:                   "no JSON",
		`null`:                "no JSON",
		`{}`:                  "no JSON",
		`{"driver": null}`:    "no JSON",
		`{"driver": "local"}`: "no JSON",
		`{"driver": {"name": "local", "root": "/x"}} {}`:          "no JSON",
		`{"driver": {"name": "local", "root": "/x"}, "keep": ""}`: "no JSON",

		`{"driver": {}}`:                                                                    "name",
		`{"driver": {"name": "floppy"}}`:                                                    "unknown driver \"floppy\"; there are ",
		`{"driver": {"name": "local"}}`:                                                     "root",
		`{"driver": {"name": "local", "rooot": "/x"}}`:                                      `unknown field "rooot"`,
		`{"driver": {"name": "local", "root": 5}}`:                                          "root",
		`{"driver": {"name": "local", "root": "{env.NOT_SET}"}}`:                            "NOT_SET",
		`{"driver": {"name": "sftp", "address": "x", "user": "x", "password": "hunter22"}}`: "host_key is required",
		`{"driver": {"name": "s3"}}`:                                                        "bucket",
	} {
		w := ask(t, New(), http.MethodPost, "/probe", body)
		wantError(t, w, http.StatusBadRequest, want)
		for _, unwanted := range []string{"provision", "decoding module", "hunter22"} {
			if strings.Contains(w.Body.String(), unwanted) {
				t.Errorf("%s: %s", body, w.Body)
			}
		}
	}
	large := `{"driver": {"name": "local", "root": "` + strings.Repeat("x", maxBody) + `"}}`
	wantError(t, ask(t, New(), http.MethodPost, "/probe", large), http.StatusRequestEntityTooLarge, "1 MiB")
}

// TestWrongOptionIsNamed: the answer names the option at fault.
func TestWrongOptionIsNamed(t *testing.T) {
	load(t, oneFolder)
	for body, want := range map[string]string{
		`{"driver": {"name": "s3"}}`:                                                 "driver.bucket",
		`{"driver": {"name": "ftp", "address": "x"}}`:                                "driver.user",
		`{"driver": {"name": "floppy"}}`:                                             "",
		`{"driver": {"name": "sftp", "address": "x", "user": "x", "password": "x"}}`: "driver.host_key",
		`{"driver": {"name": "local", "root": {"root": 1}}}`:                         "",
	} {
		got := decoded[failure](t, ask(t, New(), http.MethodPost, "/probe", body), http.StatusBadRequest)
		if got.Option != want {
			t.Errorf("%s: %+v, want the option %q", body, got, want)
		}
	}
}

// TestProbeOfEditor: the editor takes the secrets of an unsaved driver apart, and needs its endpoint.
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
