package gcs

import (
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
)

// TestPageIsOneRequest: a full page needs one request. The service returns at most 1,000 names at a
// time, so one more would need a second request.
func TestPageIsOneRequest(t *testing.T) {
	t.Parallel()
	const most, objects = 1000, 2500
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		query := r.URL.Query()
		from, _ := strconv.Atoi(cmp.Or(query.Get("pageToken"), query.Get("startOffset"))) // none is the first
		limit, err := strconv.Atoi(query.Get("maxResults"))
		if err != nil {
			limit = most
		}
		to := min(from+min(limit, most), objects)
		items := make([]string, 0, to-from)
		for i := from; i < to; i++ {
			items = append(items, fmt.Sprintf(`{"name":"%04d","size":"1","generation":"1"}`, i))
		}
		next := ""
		if to < objects {
			next = fmt.Sprintf(`"nextPageToken":"%04d",`, to)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{%s"items":[%s]}`, next, strings.Join(items, ","))
	}))
	defer server.Close()
	d := opened(t, Config{Bucket: "bucket", Endpoint: server.URL})
	pages, listed := int32(0), 0
	for opts := (storagedrivers.ListOptions{}); ; pages++ {
		page, err := d.List(t.Context(), opts)
		test.Must(t, err)
		for _, info := range page.Objects {
			if want := fmt.Sprintf("%04d", listed); info.Key != want {
				t.Fatalf("listed %s, want %s", info.Key, want)
			}
			listed++
		}
		if opts.Cursor = page.Next; opts.Cursor == "" {
			pages++
			break
		}
	}
	if listed != objects || requests.Load() != pages {
		t.Errorf("%d objects on %d pages by %d requests, want %d, and as many requests as pages",
			listed, pages, requests.Load(), objects)
	}
}
