//go:build unix

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
	makeDirs(b, dir, "synced", "unsynced")
	addr := freeAddr(b)
	conf := filepath.Join(dir, "Caddyfile")
	path := func(name string) string { return filepath.Join(dir, name) }
	writeFile(b, conf, fmt.Sprintf(benchCaddyfile, addr, path("tokens.db"), path("synced"), path("unsynced"), site.Account))
	token, process := startBenchCaddy(b, conf, dir, addr)
	names := []string{"unsynced", "synced"}
	servers := make([]server, len(names))
	authorization := "Authorization: Bearer " + token + "\r\n"
	for i, name := range names {
		servers[i] = server{
			name: name, addr: addr, form: true, dir: path(name), authorization: authorization,
			head:  "POST /api/upload/file?alias=" + name + " HTTP/1.1\r\n" + authorization,
			peers: []string{"nginx", "php"}, process: process,
		}
	}
	return servers
}

// startBenchCaddy runs the service in a child process with folders in dir, waits until it answers
// at addr, and logs in.
func startBenchCaddy(b *testing.B, conf, dir, addr string) (token string, process *os.Process) {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	caddy := exec.CommandContext(b.Context(), self, "run", "--config", conf, "--adapter", "caddyfile")
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
