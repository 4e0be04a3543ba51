package docs_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/integration/pages"
	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// signers are the programs in caddymedia/docs/clients that sign addresses, and what runs them.
var signers = map[string]string{"sign.php": "php", "sign.py": "python3", "sign.mjs": "node", "sign.sh": "sh"}

// signed runs a program that signs, and returns the query that it prints.
func signed(t *testing.T, script, key string, args ...string) string {
	t.Helper()
	if script == "sign.sh" {
		servers.Program(t, "openssl")
	}
	cmd := exec.CommandContext(t.Context(), servers.Program(t, signers[script]), append([]string{filepath.Join(clientFolder(t), script)}, args...)...)
	cmd.Env = append(os.Environ(), "MEDIA_SIGNING_KEY="+key)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %q: %v", script, args, err)
	}
	return strings.TrimSuffix(string(out), "\n")
}

// TestSigners: each program signs the test vectors.
func TestSigners(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(filepath.Join(pages.Root(t), "caddymedia", "docs", "signing.json"))
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct {
		Key, Kind, Alias, Scope, Name, Rendition, Download, Signature string
		Expires, Generation                                           int64
	}
	if err := json.Unmarshal(b, &vectors); err != nil {
		t.Fatal(err)
	}
	for script := range signers {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			for i, v := range vectors {
				query := signed(t, script, v.Key, v.Kind, v.Alias, v.Scope, v.Name, strconv.FormatInt(v.Expires, 10),
					v.Rendition, v.Download, strconv.FormatInt(v.Generation, 10))
				want := url.Values{"expires": {strconv.FormatInt(v.Expires, 10)}, "signature": {v.Signature}}
				if v.Scope == "folder" {
					want.Set("scope", v.Name)
				}
				if v.Download != "" {
					want.Set("download", v.Download)
				}
				if got, err := url.ParseQuery(query); err != nil || got.Encode() != want.Encode() {
					t.Fatalf("%d: got %s (%v), want %s", i, query, err, want.Encode())
				}
			}
		})
	}
}

// TestSignersAreAccepted: the service accepts the addresses that each program has signed offline.
func TestSignersAreAccepted(t *testing.T) {
	const key = "a signing key, which is shared with a site"
	s := site.Start(t, site.Basic+"signing_key \""+key+"\"\nfile_alias papers {\nprivate\n}\n", "media")
	const name = "ěš č+&.txt"
	address := s.URL + "/static/file/papers/" + url.PathEscape(name)
	expires := strconv.FormatInt(time.Now().Add(time.Minute).Unix(), 10)
	for script := range signers {
		t.Run(script, func(t *testing.T) {
			for query, want := range map[string]int{
				signed(t, script, key, "file", "papers", "filename", name, expires):                                http.StatusNotFound,
				signed(t, script, key, "file", "papers", "filename", name, expires, "", "a+b č.txt", "0"):          http.StatusNotFound,
				signed(t, script, key, "file", "papers", "folder", "/", expires):                                   http.StatusNotFound,
				signed(t, script, key, "file", "papers", "filename", name, expires, "", "", "1"):                   http.StatusForbidden,
				signed(t, script, strings.ToUpper(key), "file", "papers", "filename", name, expires):               http.StatusForbidden,
				strings.Replace(signed(t, script, key, "file", "papers", "filename", name, expires), "=", "=1", 1): http.StatusForbidden,
			} {
				if got := s.Get(t, strings.TrimPrefix(address, s.URL)+"?"+query); got.Status != want {
					t.Errorf("%s: status %d, want %d", query, got.Status, want)
				}
			}
		})
	}
}

// TestDocsSign: the commands of the pages print what the pages say, and addresses that are accepted.
func TestDocsSign(t *testing.T) {
	servers.Program(t, "php")
	servers.Program(t, "curl")
	s := site.Start(t, site.LocalDefault+"account "+site.APIKey+" "+site.CheapHash+" {\nmay sign\n}\nimage_alias photos {\nprivate\n}\n", "media")
	run := func(command string, env ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), servers.Program(t, "sh"), "-euc", command)
		cmd.Dir, cmd.Env = pages.Root(t), append(os.Environ(), env...)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", command, err)
		}
		return string(out)
	}
	const signing, http = "signing.md", "http-serving.md"
	query := strings.TrimSpace(run(pages.Example(t, signing, "sh", "MEDIA_SIGNING_KEY")))
	if !strings.Contains(pages.Text(t, signing), "photo.jpg?"+query+"\n") {
		t.Errorf("the page does not have %s", query)
	}
	var answer struct{ Result []struct{ URL string } }
	out := run(pages.Example(t, http, "sh", "$SERVER/api/sign"), "SERVER="+s.URL, "TOKEN="+s.Token(t, site.APIKey))
	if err := json.Unmarshal([]byte(out), &answer); err != nil || len(answer.Result) != 1 {
		t.Fatalf("%v in %s", err, out)
	}
	const missing = 404 // but not forbidden
	if got := s.Fetch(t, answer.Result[0].URL); got.Status != missing {
		t.Errorf("%s: status %d", answer.Result[0].URL, got.Status)
	}
}
