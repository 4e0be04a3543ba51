// Package ticketserver runs the documented programs that exchange a token for tickets.
package ticketserver

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/pages"
	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// All are the functions that start a program with an environment, by its language. Each returns the
// address of the program, which ends with the test.
var All = map[string]func(t *testing.T, env []string) string{"Node": Node, "PHP": PHP}

// Folder returns the folder of the documented programs and pages.
func Folder(t *testing.T) string {
	t.Helper()
	return filepath.Join(pages.Root(t), "caddymedia", "docs", "clients")
}

// Node starts the server in JavaScript. The header Remote-User names a logged-in user.
func Node(t *testing.T, env []string) string {
	t.Helper()
	node, address := servers.Program(t, "node"), servers.FreeAddress(t)
	_, port, _ := strings.Cut(address, ":")
	servers.Start(t, address, func() *exec.Cmd {
		cmd := exec.Command(node, filepath.Join(Folder(t), "ticket.mjs"))
		cmd.Env = append(env, "PORT="+port)
		return cmd
	})
	return address
}

// PHP starts the script in PHP's own web server. The path /log-in logs a client in, by a session.
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
require '%s';
`, filepath.Join(Folder(t), "ticket.php")))
	servers.Start(t, address, func() *exec.Cmd {
		cmd := exec.Command(php, "-q", "-d", "session.save_path="+folder, "-S", address, router)
		cmd.Env = append(env, "TMPDIR="+folder)
		return cmd
	})
	return address
}
