//go:build linux

package load_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/site"
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
	addr := freeAddr(b)
	conf := filepath.Join(dir, "Caddyfile")
	path := func(name string) string { return filepath.Join(dir, name) }
	writeFile(b, conf, fmt.Sprintf(benchCaddyfile, addr, path("tokens.db"), path("synced"), path("unsynced"), site.Account))
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

// startBenchCaddy runs a build of the service in a child process with folders in dir, waits until it answers
// at addr, and logs in.
func startBenchCaddy(b *testing.B, program, conf, dir, addr string) (token string, process *os.Process) {
	b.Helper()
	caddy := exec.CommandContext(b.Context(), program, "run", "--config", conf, "--adapter", "caddyfile")
	caddy.Env = append(os.Environ(), site.RunCaddy+"=1", "XDG_CONFIG_HOME="+dir, "XDG_DATA_HOME="+dir)
	start(b, caddy)
	await(b, "tcp", addr)

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
	return answer.Token, caddy.Process
}
