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
)

// signers are the programs in caddymedia/docs/clients that sign addresses.
var signers = map[string]string{"sign.php": "php", "sign.py": "python3", "sign.mjs": "node", "sign.sh": "sh"}

// signed runs a program that signs, and returns the query that it prints.
func signed(t *testing.T, script, key string, args ...string) string {
	t.Helper()
	program, err := exec.LookPath(signers[script])
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, append([]string{filepath.Join(clientFolder(t), script)}, args...)...)
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

// TestSignersAreAccepted: the service accepts the addresses of each program, which has asked nobody.
func TestSignersAreAccepted(t *testing.T) {
	const key = "a signing key, which is shared with a site"
	s := site.Start(t, site.Basic+"signing_key \""+key+"\"\nfile_alias papers {\nprivate\n}\n", "media")
	const name = "ěš č+&.txt"
	address := s.URL + "/static/file/papers/" + url.PathEscape(name)
	expires := strconv.FormatInt(time.Now().Add(time.Minute).Unix(), 10)
	for script := range signers {
		for query, want := range map[string]int{
			signed(t, script, key, "file", "papers", "filename", name, expires):                                http.StatusNotFound,
			signed(t, script, key, "file", "papers", "filename", name, expires, "", "a+b č.txt", "0"):          http.StatusNotFound,
			signed(t, script, key, "file", "papers", "folder", "/", expires):                                   http.StatusNotFound,
			signed(t, script, key, "file", "papers", "filename", name, expires, "", "", "1"):                   http.StatusForbidden,
			signed(t, script, strings.ToUpper(key), "file", "papers", "filename", name, expires):               http.StatusForbidden,
			strings.Replace(signed(t, script, key, "file", "papers", "filename", name, expires), "=", "=1", 1): http.StatusForbidden,
		} {
			if got := s.Get(t, strings.TrimPrefix(address, s.URL)+"?"+query); got.Status != want {
				t.Errorf("%s: %s: status %d, want %d", script, query, got.Status, want)
			}
		}
	}
}
