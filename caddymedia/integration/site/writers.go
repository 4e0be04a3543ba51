package site

import (
	"bytes"
	"net/http"
	"sync"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/sample"
)

// WritersOfOneName runs writers that upload files of one name at the same time, through the clients
// in turn. It returns the stored names, which must be distinct and readable through the other
// client.
func WritersOfOneName(t *testing.T, writers int, clients []*Client, tokens []string) []string {
	t.Helper()
	names := make([]string, writers)
	contents := make([][]byte, writers)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range writers {
		contents[i] = sample.Described(uint64(i), 1000+i)
		wg.Go(func() {
			<-start
			r, err := clients[i%2].Upload(t.Context(), tokens[i%2], "content",
				StreamPart{"photo.bin", bytes.NewReader(contents[i])})
			if err != nil || r.Status != http.StatusOK {
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
		clients[(i+1)%2].MustFetch(t, "content", name, contents[i])
	}
	return names
}
