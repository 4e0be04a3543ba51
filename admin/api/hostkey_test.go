package api

import (
	"net/http"
	"strings"
	"testing"

	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// TestHostKey: the key of a host is answered without a login, and a host that is none is explained.
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
	wantError(t, ask(t, New(), http.MethodGet, "/hostkey", ""), http.StatusMethodNotAllowed, "POST")
}
