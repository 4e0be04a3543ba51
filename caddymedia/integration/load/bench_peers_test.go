//go:build linux

package load_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

const nginxConf = `%[3]s
daemon off;
worker_processes 2;
pid nginx.pid;
error_log nginx.log;
events { worker_connections 1024; }
http {
	access_log off;
	client_max_body_size 0;
	client_body_temp_path body;
	fastcgi_temp_path fastcgi;
	proxy_temp_path proxy;
	scgi_temp_path scgi;
	uwsgi_temp_path uwsgi;
	keepalive_requests 10000000;
	server {
		listen %[1]s;
		location /nginx/ {
			root %[2]s;
			dav_methods PUT;
		}
		location = /upload.php {
			fastcgi_pass unix:%[2]s/php.sock;
			fastcgi_keep_conn on;
			fastcgi_read_timeout 600s;
			fastcgi_param SCRIPT_FILENAME %[2]s/upload.php;
			fastcgi_param REQUEST_METHOD $request_method;
			fastcgi_param CONTENT_TYPE $content_type;
			fastcgi_param CONTENT_LENGTH $content_length;
		}
	}
}
`

const phpConf = `[global]
daemonize = no
error_log = %[1]s/php.log
[upload]
%[2]s
listen = %[1]s/php.sock
pm = static
pm.max_children = 8
php_admin_value[upload_max_filesize] = 4G
php_admin_value[post_max_size] = 4G
php_admin_value[upload_tmp_dir] = %[1]s/phptmp
`

const phpScript = `<?php
$file = $_FILES['files'];
foreach ($file['name'] as $i => $name) {
	if (!move_uploaded_file($file['tmp_name'][$i], __DIR__ . '/php/' . basename($name))) {
		http_response_code(500);
	}
}
`

// startPeers starts the installed servers to compare with. They keep all of their files in dir, so
// that nothing is copied from disk to disk.
func startPeers(b *testing.B, dir string) []server {
	b.Helper()
	nginx := servers.Installed("nginx")
	if nginx == "" {
		b.Log("nginx is not installed: there is nothing to compare with")
		return nil
	}
	makeDirs(b, dir, "nginx", "php", "phptmp")
	userNginx, userPHP := "", ""
	if os.Geteuid() == 0 { // the workers need access to the folder
		userNginx, userPHP = "user root root;", "user = root\ngroup = root"
	}
	addr := freeAddr(b)
	conf := filepath.Join(dir, "nginx.conf")
	writeFile(b, conf, fmt.Sprintf(nginxConf, addr, dir, userNginx))
	master := exec.CommandContext(b.Context(), nginx, "-p", dir, "-e", "nginx.log", "-c", conf)
	start(b, master)
	await(b, "tcp", addr)
	webdav := server{
		name: "nginx", addr: addr, head: "PUT /nginx/" + firstName + " HTTP/1.1\r\n", dir: filepath.Join(dir, "nginx"),
		processes: []*os.Process{master.Process}, address: "/nginx/", items: filepath.Join(dir, "nginx"),
	}
	php := servers.Installed("php-fpm*")
	if php == "" {
		b.Log("php-fpm is not installed: skipped")
		return []server{webdav}
	}
	conf = filepath.Join(dir, "php.conf")
	writeFile(b, conf, fmt.Sprintf(phpConf, dir, userPHP))
	writeFile(b, filepath.Join(dir, "upload.php"), phpScript)
	manager := exec.CommandContext(b.Context(), php, "--allow-to-run-as-root", "--fpm-config", conf)
	start(b, manager)
	await(b, "unix", filepath.Join(dir, "php.sock"))
	return []server{webdav, {
		name: "php", addr: addr, form: true, dir: filepath.Join(dir, "php"),
		head: "POST /upload.php HTTP/1.1\r\n", peers: []string{"nginx"},
		processes: []*os.Process{manager.Process, master.Process},
	}}
}

// start runs a server until the benchmark ends.
func start(b *testing.B, cmd *exec.Cmd) {
	b.Helper()
	var output strings.Builder
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Wait() // it was stopped
		if b.Failed() {
			b.Logf("%s:\n%s", cmd, output.String())
		}
	})
}

// await waits until a server listens.
func await(b *testing.B, network, addr string) {
	b.Helper()
	var conn net.Conn
	err := os.ErrDeadlineExceeded
	for end := time.Now().Add(10 * time.Second); err != nil && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		conn, err = net.Dial(network, addr)
	}
	if err != nil {
		b.Fatalf("waiting for %s: %v", addr, err)
	}
	conn.Close()
}

func freeAddr(b *testing.B) string {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func makeDirs(b *testing.B, dir string, names ...string) {
	b.Helper()
	for _, name := range names {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			b.Fatal(err)
		}
	}
}

func writeFile(b *testing.B, path, content string) {
	b.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		b.Fatal(err)
	}
}
