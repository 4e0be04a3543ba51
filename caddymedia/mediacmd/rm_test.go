package mediacmd

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// keys returns the keys of the objects below root.
func keys(t *testing.T, root string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() && !strings.HasPrefix(entry.Name(), ".") {
			found = append(found, strings.TrimPrefix(path, root+"/"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestRm: items go with their variants, and nothing else goes.
func TestRm(t *testing.T) {
	all := []string{
		"file/docs/a.pdf", "img/content/a.jpg", "img/content/a.jpg-2.jpg", "img/content/a.jpg.webp", "img/content/b/c.jpg",
		"img/content/b/c.jpg.webp", "img/content/b/gone.jpg.webp", "other/a.jpg.webp", "x.txt",
	}
	for name, test := range map[string]struct {
		args string
		gone []string
		want string // in the output or in the error
	}{
		"an item":            {"-y img/content/a.jpg", []string{"img/content/a.jpg", "img/content/a.jpg.webp"}, "img/content/a.jpg: removed\n"},
		"by its key":         {"-y main/img/content/a.jpg", []string{"img/content/a.jpg", "img/content/a.jpg.webp"}, "main/img/content/a.jpg: removed\n"},
		"two":                {"-y main/x.txt file/docs/a.pdf", []string{"x.txt", "file/docs/a.pdf"}, "2 removed, 0 failed"},
		"no item of ours":    {"-y main/other/a.jpg.webp", []string{"other/a.jpg.webp"}, "removed"},
		"a folder":           {"-y -r img/content/b", []string{"img/content/b/c.jpg", "img/content/b/c.jpg.webp", "img/content/b/gone.jpg.webp"}, "2 removed, 0 failed"},
		"an alias":           {"-y -r img/content", slices.DeleteFunc(slices.Clone(all), func(key string) bool { return !strings.HasPrefix(key, "img/") }), "4 removed"},
		"a storage":          {"-y -r main", all, "7 removed, 0 failed"},
		"dry":                {"--dry-run -r img/content", nil, "4 items, 9.0 KiB; nothing was removed"},
		"an orphan":          {"-y img/content/b/gone.jpg.webp", []string{"img/content/b/gone.jpg.webp"}, "removed"},
		"a variant":          {"-y img/content/a.jpg.webp", nil, "remove the image"},
		"missing":            {"-y img/content/none.jpg main/x.txt", []string{"x.txt"}, "img/content/none.jpg: there is no such object or folder"},
		"not asked":          {"img/content/a.jpg", nil, "--yes is needed"},
		"not recursive":      {"-y img/content/b", nil, "it is a folder: --recursive"},
		"all, not recursive": {"-y img/content", nil, "img/content is not an item: --recursive"},
		"one is wrong":       {"-y main/x.txt none/a", nil, `no storage "none"`},
		"JSON":               {"-y --json main/x.txt", []string{"x.txt"}, `{"path":"main/x.txt","size":1536,"removed":true}` + "\n" + `{"dry_run":false,"items":1,"bytes":1536,"removed":1,"failed":0}`},
		"broken":             {"-y file/lost/a", nil, "The root is not a folder"},
		"broken, not asked":  {"file/lost/a", nil, "file/lost/a: The root is not a folder"},
		"nothing is given":   {"", nil, "rm needs at least one <storage or alias>/<name>"},
	} {
		t.Run(name, func(t *testing.T) {
			config, root := configured(t)
			stored(t, root, all...)
			out, messages, err := run(t, rmCommand(), append(strings.Fields(test.args), "--config", config)...)
			if !strings.Contains(fmt.Sprint(out, messages, err), test.want) {
				t.Errorf("%q, %q, %v; want %q", out, messages, err, test.want)
			}
			want := slices.DeleteFunc(slices.Clone(all), func(key string) bool { return slices.Contains(test.gone, key) })
			if left := keys(t, root); !slices.Equal(left, want) {
				t.Errorf("left are %q, want %q", left, want)
			}
		})
	}
}

// TestRmByRunningCaddy: the running Caddy removes its items; its refusals are shown.
func TestRmByRunningCaddy(t *testing.T) {
	config, root := configured(t)
	stored(t, root, "img/content/a b%.jpg", "img/content/denied.jpg", "x.txt")
	var file struct{ Apps json.RawMessage }
	raw, err := os.ReadFile(config)
	if err == nil {
		err = json.Unmarshal(raw, &file)
	}
	if err != nil {
		t.Fatal(err)
	}
	var removed []string
	admin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodGet && r.URL.Path == "/config/apps":
			_, _ = w.Write(file.Apps)
		case strings.Contains(r.URL.Path, "denied"):
			http.Error(w, `{"error":"The user may not."}`, http.StatusBadGateway)
		default:
			removed = append(removed, r.Method+" "+r.RequestURI)
			w.WriteHeader(http.StatusNoContent)
		}
	}))
	t.Cleanup(admin.Close)
	address := strings.TrimPrefix(admin.URL, "http://")
	_, messages, err := run(t, rmCommand(), "-y", "img/content/a b%.jpg", "img/content/denied.jpg", "main/x.txt", "--address", address)
	if err == nil || messages != "img/content/denied.jpg: asking the running Caddy: The user may not.\n" {
		t.Errorf("%q, error %v", messages, err)
	}
	if want := []string{"DELETE /media/items/img/content/a%20b%25.jpg"}; !slices.Equal(removed, want) {
		t.Errorf("asked for %q, want %q", removed, want)
	}
	if left := keys(t, root); !slices.Equal(left, []string{"img/content/a b%.jpg", "img/content/denied.jpg"}) {
		t.Errorf("the command itself left %q", left)
	}
}
