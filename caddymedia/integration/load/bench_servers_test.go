//go:build linux

package load_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

const benchCaddyfile = `{
	admin off
	persist_config off
	media {
		%[5]s
		tokens bolt %[2]q
		storage synced {
			driver local %[3]q
		}
		storage unsynced {
			driver local %[4]q {
				sync off
			}
		}
		image_alias unsynced {
			storage unsynced
		}
		file_alias synced {
			storage synced
		}
		file_alias unsynced {
			storage unsynced
		}
	}
}
http://%[1]s {
	media
}
`

// startOurs starts the service with one alias for each write mode.
func startOurs(b *testing.B, dir string) []server {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	return startService(b, dir, self)
}

// startBefore starts the build in MEDIA_BENCH_BEFORE, if there is one.
func startBefore(b *testing.B, dir string) []server {
	b.Helper()
	program := os.Getenv("MEDIA_BENCH_BEFORE")
	if program == "" {
		return nil
	}
	servers := startService(b, dir, program)
	for i := range servers {
		servers[i].name = "before-" + servers[i].name
	}
	return servers
}

func startService(b *testing.B, dir, program string) []server {
	b.Helper()
	makeDirs(b, dir, "synced", "unsynced")
	addr := servers.FreeAddress(b)
	conf := filepath.Join(dir, "Caddyfile")
	path := func(name string) string { return filepath.Join(dir, name) }
	site.PutFile(b, conf, fmt.Sprintf(benchCaddyfile, addr, path("tokens.db"), path("synced"), path("unsynced"), site.Account))
	token, process := startBenchCaddy(b, program, conf, dir, addr)
	names := []string{"unsynced", "synced"}
	servers := make([]server, len(names))
	authorization := "Authorization: Bearer " + token + "\r\n"
	for i, name := range names {
		servers[i] = server{
			name: name, addr: addr, form: true, dir: path(name), authorization: authorization,
			head:  "POST /api/upload/file?alias=" + name + " HTTP/1.1\r\n" + authorization,
			peers: []string{"nginx", "php"}, processes: []*os.Process{process},
			address: "/static/file/" + name + "/", items: filepath.Join(path(name), "file", name),
		}
	}
	return servers
}

// startBenchCaddy runs a build of the service in a child process with folders in dir, waits until
// it answers at addr, and logs in.
func startBenchCaddy(b *testing.B, program, conf, dir, addr string) (token string, process *os.Process) {
	b.Helper()
	caddy := exec.CommandContext(b.Context(), program, "run", "--config", conf, "--adapter", "caddyfile")
	caddy.Env = append(os.Environ(), site.RunCaddy+"=1", "XDG_CONFIG_HOME="+dir, "XDG_DATA_HOME="+dir)
	process = start(b, caddy, "tcp", addr)

	resp, err := http.PostForm("http://"+addr+"/api/auth/generateToken",
		url.Values{"api_key": {site.APIKey}, "password": {site.Password}})
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct{ Token string }
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || answer.Token == "" {
		b.Fatalf("no token: %s, %v", resp.Status, err)
	}
	return answer.Token, process
}

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
	addr := servers.FreeAddress(b)
	conf := filepath.Join(dir, "nginx.conf")
	site.PutFile(b, conf, fmt.Sprintf(nginxConf, addr, dir, userNginx))
	master := exec.CommandContext(b.Context(), nginx, "-p", dir, "-e", "nginx.log", "-c", conf)
	start(b, master, "tcp", addr)
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
	site.PutFile(b, conf, fmt.Sprintf(phpConf, dir, userPHP))
	site.PutFile(b, filepath.Join(dir, "upload.php"), phpScript)
	manager := exec.CommandContext(b.Context(), php, "--allow-to-run-as-root", "--fpm-config", conf)
	start(b, manager, "unix", filepath.Join(dir, "php.sock"))
	return []server{webdav, {
		name: "php", addr: addr, form: true, dir: filepath.Join(dir, "php"),
		head: "POST /upload.php HTTP/1.1\r\n", peers: []string{"nginx"},
		processes: []*os.Process{manager.Process, master.Process},
	}}
}

// start runs a server until the benchmark ends, and waits until it listens.
func start(b *testing.B, cmd *exec.Cmd, network, addr string) *os.Process {
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
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		conn, err := net.Dial(network, addr)
		if err == nil {
			conn.Close()
			return cmd.Process
		}
		if time.Now().After(end) {
			b.Fatalf("waiting for %s: %v", addr, err)
		}
	}
}

func makeDirs(b *testing.B, dir string, names ...string) {
	b.Helper()
	for _, name := range names {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkResumable uploads 1 GiB to the same disk through this service, as a resumable upload and
// as a form, each with and without `sync`, and through tusd if that is installed. tusd never syncs.
// Compare the ratios, see [BenchmarkUpload]. MiB-added is the peak of a server's memory above that
// before an upload.
func BenchmarkResumable(b *testing.B) {
	dir := benchDir(b)
	ours := startOurs(b, filepath.Join(dir, "media"))
	all := startTusd(b, filepath.Join(dir, "tusd"))
	for _, s := range ours {
		s.name += "-form"
		s.peers = nil
		alias := filepath.Base(s.dir)
		makeDirs(b, s.dir, filepath.Join("file", alias)) // before the first item
		s.dir = filepath.Join(s.dir, "file", alias)
		all = append(all, s)
		s.name = alias
		s.peers = []string{"tusd", s.name + "-form"}
		s.head, s.resumable = resumableHeads("/api/upload/file/resumable", s.authorization, "alias", s.name, "filename", "file.pdf")
		all = append(all, s)
	}
	w := workloads[0]
	b.Run(w.name, func(b *testing.B) { w.run(b, all) })
}

// resumableHeads returns the heads of a PATCH, without its first line, and of a creation.
func resumableHeads(path, authorization string, metadata ...string) (patch, create string) {
	header := authorization + "Tus-Resumable: 1.0.0\r\n"
	patch = header + "Upload-Offset: 0\r\nContent-Type: application/offset+octet-stream\r\n"
	create = "POST " + path + " HTTP/1.1\r\n" + header + "Upload-Metadata: "
	for i := 0; i < len(metadata); i += 2 {
		if i > 0 {
			create += ","
		}
		create += metadata[i] + " " + base64.StdEncoding.EncodeToString([]byte(metadata[i+1]))
	}
	return patch, create + "\r\n"
}

// startTusd starts tusd if it is installed.
func startTusd(b *testing.B, dir string) []server {
	b.Helper()
	tusd := servers.Installed("tusd")
	if tusd == "" {
		b.Log("tusd is not installed: there is nothing to compare with")
		return nil
	}
	makeDirs(b, dir, "files")
	addr := servers.FreeAddress(b)
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		b.Fatal(err)
	}
	s := server{name: "tusd", addr: addr, dir: filepath.Join(dir, "files")}
	cmd := exec.CommandContext(b.Context(), tusd, "-host", host, "-port", port, "-upload-dir", s.dir)
	s.processes = []*os.Process{start(b, cmd, "tcp", addr)}
	s.head, s.resumable = resumableHeads("/files/", "", "filename", "file.pdf")
	return []server{s}
}

// benchDir returns the folder of a benchmark, on the disk that MEDIA_BENCH_DIR selects.
func benchDir(b *testing.B) string {
	b.Helper()
	dir := os.Getenv("MEDIA_BENCH_DIR")
	if dir == "" {
		return b.TempDir()
	}
	dir, err := os.MkdirTemp(dir, "media-bench-")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
