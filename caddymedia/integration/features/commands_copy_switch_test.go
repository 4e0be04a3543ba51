package features_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/integration/site"
)

// TestCopyThenSwitch moves an alias to another storage under a running Caddy. The uploaded items
// keep their addresses, and uploads between the two steps are copied by the same command.
func TestCopyThenSwitch(t *testing.T) {
	t.Parallel()
	c := site.NewChild(t)
	c.Start("tokens memory\n" + site.Account + fromTo)
	putItems(t, c.Root, 40, func(i int) int { return i * 1000 })
	before := answers(t, c, 1)
	arguments := []string{"copy", "from", "to", "--alias", "file/content", "--address", c.Admin, "--json"}
	if got := report(t, c.Media(arguments...).Must(t)); got.Copied.Items != 40 {
		t.Errorf("%+v", got)
	}
	client := c.HTTP1()
	client.MustPut(t, client.MustLogin(t), "content", "late.txt", []byte("late"))
	switchAlias(t, c, "to", before)
	if got := report(t, c.Media(arguments...).Must(t)); got.Copied.Items != 1 || got.Present.Items != 40 {
		t.Errorf("after the switch: %+v", got)
	}
	mustBeSame(t, c.Root, c.Root+"-to")
	if now := answers(t, c, 1); len(now) != 41 {
		t.Errorf("%d addresses answer", len(now))
	}
}

// TestCopyOfStaleVariant: a variant older than its image is not copied, since it would be taken
// for current. Files have no variants.
func TestCopyOfStaleVariant(t *testing.T) {
	t.Parallel()
	c := site.NewChild(t)
	config := c.WriteConfig(fromTo)
	for i, name := range []string{"a.jpg.webp", "a.jpg"} {
		for _, folder := range []string{"img/content", "file/content"} {
			path := filepath.Join(c.Root, folder, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(path), 0o600); err != nil {
				t.Fatal(err)
			}
			stored := time.Unix(int64(1_700_000_000+i), 0)
			if err := os.Chtimes(path, stored, stored); err != nil {
				t.Fatal(err)
			}
		}
	}
	r := c.Media("copy", "from", "to", "--json", "--config", config)
	got := report(t, r)
	if r.Code != 1 || got.Copied.Items != 3 || got.Failed.Items != 1 || got.failures["img/content/a.jpg.webp"] == "" {
		t.Errorf("exit code %d: %+v", r.Code, got)
	}
}

// switchAlias sets another storage for file/content, and expects its addresses to answer as before.
func switchAlias(t *testing.T, c *site.Child, to string, before map[string]string) {
	t.Helper()
	status, body := c.Change(http.MethodPatch, "file_aliases/content/storage", fmt.Sprintf("%q", to))
	if status != http.StatusOK {
		t.Fatalf("switching the alias: %d %s", status, body)
	}
	for _, address := range slices.Sorted(maps.Keys(before)) {
		if got := answer(t, c, address); got != before[address] {
			t.Errorf("%s answers %q on %s, want %q", address, got, to, before[address])
		}
	}
}

// answers returns the site's answers for the big item and every each-th of the others, by address.
func answers(t *testing.T, c *site.Child, each int) map[string]string {
	t.Helper()
	found := map[string]string{}
	for i, name := range site.FilesBelow(t, c.Root) {
		if i%each == 0 || filepath.Base(name) == "big.bin" {
			address := (&url.URL{Path: "/static/" + name}).String()
			found[address] = answer(t, c, address)
		}
	}
	return found
}

// answer returns the status, the headers and the hash of the body of an answer.
func answer(t *testing.T, c *site.Child, address string) string {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := client.Get("http://" + c.Plain + address)
	if errors.Is(err, io.EOF) { // the server before a reload has accepted the connection, and ended
		r, err = client.Get("http://" + c.Plain + address)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		t.Errorf("%s: %s", address, r.Status)
	}
	sum := sha256.New()
	n, err := io.Copy(sum, r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d %s %s %d %x",
		r.StatusCode, r.Header.Get("Content-Type"), r.Header.Get("Cache-Control"), n, sum.Sum(nil))
}
