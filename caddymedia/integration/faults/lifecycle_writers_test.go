package faults_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// TestWritersOfOneName uploads 64 files of one name at the same time through two processes into one
// folder.
func TestWritersOfOneName(t *testing.T) {
	t.Parallel()
	one, two := site.NewChild(t), site.NewChild(t)
	two.Root = one.Root
	for _, c := range []*site.Child{one, two} {
		c.Start(site.InMemory)
	}
	clients := []*site.Client{one.HTTP1(), two.HTTP1()}
	names := site.WritersOfOneName(t, 64, clients, []string{clients[0].MustLogin(t), clients[1].MustLogin(t)})
	dated := regexp.MustCompile(`^photo-\d{10}\.bin$`)
	for i, name := range names {
		if name != "photo.bin" && !dated.MatchString(name) {
			t.Errorf("writer %d got the name %q", i, name)
		}
	}
	if !slices.Contains(names, "photo.bin") {
		t.Error("no upload got the plain name")
	}
	one.Stop()
	two.Stop()
	site.MustHaveOnly(t, filepath.Join(one.Root, "keep"), names...)
}

// TestWritersOverwriteOneName: two processes repeatedly replace one file at the same time. Every
// read during that is complete.
func TestWritersOverwriteOneName(t *testing.T) {
	t.Parallel()
	one, two := site.NewChild(t), site.NewChild(t)
	two.Root = one.Root
	clients := make([]*site.Client, 2)
	tokens := make([]string, 2)
	for i, c := range []*site.Child{one, two} {
		c.Start(site.InMemory)
		clients[i] = c.HTTP1()
		tokens[i] = clients[i].MustLogin(t)
	}
	clients[0].MustPut(t, tokens[0], "over", "photo.bin", sample.Described(0, 50_000))
	var writers, readers sync.WaitGroup
	done := make(chan struct{})
	for i := range 8 {
		writers.Go(func() {
			for n := range 5 {
				content := sample.Described(uint64(100*i+n), 1000+20_000*i+n)
				r, err := clients[i%2].Upload(t.Context(), tokens[i%2], "over",
					site.StreamPart{Name: "photo.bin", Body: bytes.NewReader(content)})
				if err != nil || r.Status != http.StatusOK || r.Result[0].Filename != "photo.bin" {
					t.Errorf("writer %d: %v %v", i, r, err)
				}
			}
		})
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if err := readWhole(clients[i%2], "over", "photo.bin"); err != nil {
					t.Errorf("reader %d: %v", i, err)
					return
				}
			}
		})
	}
	writers.Wait()
	close(done)
	readers.Wait()
	one.Stop()
	two.Stop()
	site.MustHaveOnly(t, filepath.Join(one.Root, "replace"), "photo.bin")
	if b, err := os.ReadFile(filepath.Join(one.Root, "replace", "photo.bin")); err != nil || sample.Verify(b) != nil {
		t.Error("the final file is not complete:", err, sample.Verify(b))
	}
}

// readWhole fetches a file that must be complete.
func readWhole(c *site.Client, alias, name string) error {
	r, err := c.Get(c.Base + "/static/file/" + alias + "/" + name)
	if err != nil {
		return site.UnansweredError{Err: err}
	}
	defer r.Body.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(r.Body); err != nil {
		return err
	}
	if r.StatusCode != http.StatusOK {
		return statusError(r.StatusCode)
	}
	return sample.Verify(b.Bytes())
}

// statusError is an unexpected status of an answer.
type statusError int

func (e statusError) Error() string { return fmt.Sprintf("status %d", int(e)) }
