// Package ticketserver runs the documented programs that exchange a token for tickets, and those
// that save the form of a page.
package ticketserver

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/pages"
	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// All are the functions that start the two programs with an environment, by their language. Each
// returns the address of both, which end with the test. The form is saved at the path /save.
var All = map[string]func(t *testing.T, env []string) string{"Node": Node, "PHP": PHP}

// Folder returns the folder of the documented programs and pages.
func Folder(t *testing.T) string {
	t.Helper()
	return filepath.Join(pages.Root(t), "caddymedia", "docs", "clients")
}

// Node starts the servers in JavaScript. The header Remote-User names a logged-in user.
func Node(t *testing.T, env []string) string {
	t.Helper()
	node, mux := servers.Program(t, "node"), http.NewServeMux()
	for path, script := range map[string]string{"/": "ticket.mjs", "/save": "save.mjs"} {
		address := servers.FreeAddress(t)
		_, port, _ := strings.Cut(address, ":")
		servers.Start(t, address, func() *exec.Cmd {
			cmd := exec.Command(node, filepath.Join(Folder(t), script))
			cmd.Env = append(slices.Clone(env), "PORT="+port)
			return cmd
		})
		mux.Handle(path, httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: address}))
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// PHP starts the scripts in PHP's own web server. The path /log-in logs a client in, by a session.
func PHP(t *testing.T, env []string) string {
	t.Helper()
	php, address, folder := servers.Program(t, "php"), servers.FreeAddress(t), t.TempDir()
	if modules, err := exec.Command(php, "-m").Output(); err != nil || !strings.Contains(string(modules), "\ncurl\n") {
		site.Skip(t, "php has no curl extension")
	}
	router := filepath.Join(folder, "router.php")
	site.PutFile(t, router, fmt.Sprintf(`<?php
if ($_SERVER['REQUEST_URI'] === '/log-in') {
	session_start();
	$_SESSION['user'] = 17;
	exit;
}
require '%s/' . (strtok($_SERVER['REQUEST_URI'], '?') === '/save' ? 'save.php' : 'ticket.php');
`, Folder(t)))
	servers.Start(t, address, func() *exec.Cmd {
		cmd := exec.Command(php, "-q", "-d", "session.save_path="+folder, "-S", address, router)
		cmd.Env = append(env, "TMPDIR="+folder)
		return cmd
	})
	return address
}
