package browser_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/pages"
	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// TestS3Uppy: the documented page of another site stores files with Uppy's plug-in for S3, also in
// parts, with addresses of the documented program. The secret never reaches the browser.
func TestS3Uppy(t *testing.T) {
	needsBrowser(t)
	const secret, small, large, partSize = "a secret of the test", 1000, 12 << 20, 5 << 20
	uppy, node, sdks := browserPackage(t, "uppy"), servers.Program(t, "node"), os.Getenv("MEDIA_TEST_SDKS")
	if sdks == "" {
		site.Skip(t, "MEDIA_TEST_SDKS is not set")
	}
	program := t.TempDir()
	if err := os.Symlink(filepath.Join(sdks, "v3", "node_modules"), filepath.Join(program, "node_modules")); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/uppy/", http.StripPrefix("/uppy", http.FileServer(http.Dir(uppy))))
	mux.HandleFunc("/sign", func(w http.ResponseWriter, r *http.Request) {
		request, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		cmd := exec.CommandContext(r.Context(), node, "--no-warnings", "--input-type=module", "--eval",
			"import { sign } from './sign.mjs'; console.log(JSON.stringify(await sign(JSON.parse(process.argv[1]))));", string(request))
		cmd.Dir, cmd.Env = program, append(os.Environ(), "AWS_ACCESS_KEY_ID="+site.APIKey, "AWS_SECRET_ACCESS_KEY="+secret)
		address, err := cmd.Output()
		if err != nil {
			t.Errorf("signing %s: %v", request, err)
		}
		_, _ = w.Write(address)
	})
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		page := pages.Example(t, "s3.md", "html", "AwsS3")
		_, _ = io.WriteString(w, "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<link rel=\"icon\" href=\"data:,\">\n"+
			"<title>A page</title>\n<h1>A page</h1>\n"+strings.ReplaceAll(page, "100_000_000", "5_000_000"))
	})
	own := httptest.NewServer(mux)
	t.Cleanup(own.Close)
	s := site.Start(t, "cors "+own.URL+"\naccount "+site.APIKey+" "+site.CheapHash+" {\nmay upload\ns3_secret \""+secret+"\"\n}\n"+
		"storage default {\ndriver local $ROOT\nsub_folder_format /\nsanitize off\noverwrite_strategy overwrite\n}\n"+
		"file_alias docs {\nextensions *\n}\n", "media_s3")
	site.PutFile(t, filepath.Join(program, "sign.mjs"), strings.ReplaceAll(pages.Example(t, "s3.md", "js", "export async function sign"), "https://s3.example.com", s.URL))
	browse(t, "s3uppy", facts{
		Panel: own.URL + "/", Service: s.URL, Secrets: []string{secret},
		More: map[string]int{"small": small, "large": large, "partSize": partSize},
	})
	for name, size := range map[string]int{"small.bin": small, "large.bin": large} {
		found, _ := filepath.Glob(filepath.Join(s.Root, "file", "docs", "*-"+name))
		if len(found) != 1 || !bytes.Equal(site.ReadFile(t, found[0]), bytes.Repeat([]byte(name), size/len(name)+1)[:size]) {
			t.Errorf("%s is stored as %s, or with other bytes", name, found)
		}
	}
}
