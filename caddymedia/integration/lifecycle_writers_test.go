package integration

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
)

// binaries are the aliases of most tests in this file: content keeps existing items, over replaces
// them.
const binaries = `
storage keep {
	driver local $ROOT/keep
}
storage replace {
	driver local $ROOT/replace
	overwrite_strategy overwrite
}
file_alias content {
	storage keep
	prefix /
	extensions bin
}
file_alias over {
	storage replace
	prefix /
	extensions bin
}
`

const inMemory = "tokens memory\n" + account + binaries

// TestWritersOfOneName uploads 64 files of one name at the same time through two processes into one
// folder.
func TestWritersOfOneName(t *testing.T) {
	one, two := newChild(t), newChild(t)
	two.root = one.root
	for _, c := range []*child{one, two} {
		c.start(inMemory)
	}
	clients := []*childClient{one.http1(), two.http1()}
	names := writersOfOneName(t, 64, clients, []string{clients[0].mustLogin(t), clients[1].mustLogin(t)})
	dated := regexp.MustCompile(`^photo-\d{10}\.bin$`)
	for i, name := range names {
		if name != "photo.bin" && !dated.MatchString(name) {
			t.Errorf("writer %d got the name %q", i, name)
		}
	}
	if !slices.Contains(names, "photo.bin") {
		t.Error("no upload got the plain name")
	}
	one.stop()
	two.stop()
	mustHaveOnly(t, filepath.Join(one.root, "keep"), names...)
}

// writersOfOneName runs writers that upload files of one name at the same time, through the clients
// in turn. It returns the stored names, which must be distinct and readable through the other
// client.
func writersOfOneName(t *testing.T, writers int, clients []*childClient, tokens []string) []string {
	t.Helper()
	names := make([]string, writers)
	contents := make([][]byte, writers)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range writers {
		contents[i] = described(uint64(i), 1000+i)
		wg.Go(func() {
			<-start
			r, err := clients[i%2].upload(t.Context(), tokens[i%2], "content",
				childPart{"photo.bin", bytes.NewReader(contents[i])})
			if err != nil || r.status != http.StatusOK {
				t.Errorf("writer %d: %v %v", i, r, err)
				return
			}
			names[i] = r.Result[0].Filename
		})
	}
	close(start)
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	owners := map[string]int{}
	for i, name := range names {
		if other, taken := owners[name]; taken {
			t.Errorf("writers %d and %d both got the name %s", other, i, name)
		}
		owners[name] = i
		clients[(i+1)%2].mustFetch(t, "content", name, contents[i])
	}
	return names
}

// TestWritersOverwriteOneName: two processes repeatedly replace one file at the same time. Every
// read during that is complete.
func TestWritersOverwriteOneName(t *testing.T) {
	one, two := newChild(t), newChild(t)
	two.root = one.root
	clients := make([]*childClient, 2)
	tokens := make([]string, 2)
	for i, c := range []*child{one, two} {
		c.start(inMemory)
		clients[i] = c.http1()
		tokens[i] = clients[i].mustLogin(t)
	}
	clients[0].mustPut(t, tokens[0], "over", "photo.bin", described(0, 50_000))
	var writers, readers sync.WaitGroup
	done := make(chan struct{})
	for i := range 8 {
		writers.Go(func() {
			for n := range 5 {
				content := described(uint64(100*i+n), 1000+20_000*i+n)
				r, err := clients[i%2].upload(t.Context(), tokens[i%2], "over",
					childPart{"photo.bin", bytes.NewReader(content)})
				if err != nil || r.status != http.StatusOK || r.Result[0].Filename != "photo.bin" {
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
	one.stop()
	two.stop()
	mustHaveOnly(t, filepath.Join(one.root, "replace"), "photo.bin")
	if b, err := os.ReadFile(filepath.Join(one.root, "replace", "photo.bin")); err != nil || whole(b) != nil {
		t.Error("the final file is not complete:", err, whole(b))
	}
}

// TestOverwriteDuringDownload: a download gets all of the old file although it is replaced
// meanwhile.
func TestOverwriteDuringDownload(t *testing.T) {
	c := newTLSChild(t)
	c.start(inMemory)
	token := c.http1().mustLogin(t)
	old := described(1, 20_000_000)
	for i, client := range c.clients() {
		client.mustPut(t, token, "over", "file.bin", old)
		download := beginDownload(t, client, "over", "file.bin", old)
		replacement := described(uint64(i+2), 1_000_000*(i+1))
		client.mustPut(t, token, "over", "file.bin", replacement)
		client.mustFetch(t, "over", "file.bin", replacement)
		download.finish(t)
	}
}

// readWhole fetches a file that must be complete.
func readWhole(c *childClient, alias, name string) error {
	r, err := c.Get(c.base + "/static/file/" + alias + "/" + name)
	if err != nil {
		return unansweredError{err}
	}
	defer r.Body.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(r.Body); err != nil {
		return err
	}
	if r.StatusCode != http.StatusOK {
		return statusError(r.StatusCode)
	}
	return whole(b.Bytes())
}

// statusError is an unexpected status of an answer.
type statusError int

func (e statusError) Error() string { return fmt.Sprintf("status %d", int(e)) }
