package faults_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/integration/site"
)

// TestDeleteFolderDuringUploads: a folder of many items is deleted while ten clients upload into it.
// What the last request finds is older than it; all items that are stored after its beginning are
// there, with their bytes, and no others. MEDIA_TEST_ITEMS sets the number of items.
func TestDeleteFolderDuringUploads(t *testing.T) {
	t.Parallel()
	items := site.Number(t, "MEDIA_TEST_ITEMS", 600)
	for name, start := range map[string]func(testing.TB) site.Backend{"s3": site.StartS3, "sftp": site.StartSFTP} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t)
			c := site.NewChild(t)
			const all = "account " + site.APIKey + " " + site.CheapHash + " {\nmay upload list delete\n}\n"
			c.Start(strings.Replace(p.Media(p.Address, ""), site.Account, all, 1))
			d := &deletedFolder{client: c.HTTP1(), sent: map[string]time.Time{}, stored: map[string]time.Time{}}
			d.token = d.client.MustLogin(t)
			d.run(t, items)
		})
	}
}

// deletedFolder is a folder that is deleted while items are stored in it.
type deletedFolder struct {
	client *site.Client
	token  string

	mu           sync.Mutex
	sent, stored map[string]time.Time // when uploads began and were acknowledged, by filename
}

func (d *deletedFolder) run(t *testing.T, items int) {
	var ended atomic.Bool
	defer ended.Store(true)
	const together = 50 // files of a request
	var first sync.WaitGroup
	for client := range 10 {
		first.Go(func() {
			for i := client * together; i < items; i += 10 * together {
				names := make([]string, 0, together)
				for j := i; j < min(i+together, items); j++ {
					names = append(names, fmt.Sprintf("old-%05d.bin", j))
				}
				d.upload(t, names...)
			}
		})
	}
	first.Wait()
	if len(d.stored) != items {
		t.Fatalf("%d items stored, want %d", len(d.stored), items)
	}

	const pause = 200 * time.Millisecond // so that deletions are faster than uploads
	var uploads sync.WaitGroup
	for client := range 10 {
		uploads.Go(func() {
			for i := 0; !ended.Load(); i++ {
				d.upload(t, fmt.Sprintf("new-%d-%05d.bin", client, i))
				time.Sleep(pause)
			}
		})
	}
	var before, began time.Time // bounds of the beginning of the last request
	total, requests := 0, 0
	for again := true; again; requests++ {
		var deleted int
		deleted, before, began = d.delete(t)
		total += deleted
		// Older items are left by an answer with 1,000, and by one after half a minute.
		again = total < items || deleted == 1000 || time.Since(before) > 14*time.Second
	}
	ended.Store(true)
	uploads.Wait()

	left := d.list(t)
	kept, spared, gone := 0, 0, 0
	for name, sent := range d.sent {
		stored, answered := d.stored[name]
		switch there := left[name]; {
		case answered && sent.After(began) && !there:
			t.Errorf("%s was stored after the request, %v after its beginning, and is gone", name, sent.Sub(began))
		case answered && stored.Before(before.Add(-2*time.Second)) && there: // times in whole seconds
			t.Errorf("%s was stored %v before the request, and is there", name, before.Sub(stored))
		case there && sent.After(began):
			kept++
		case there:
			spared++
		default:
			gone++
		}
		if left[name] {
			d.client.MustFetch(t, "content", "folder/"+name, []byte(name))
		}
		delete(left, name)
	}
	if len(left) > 0 {
		t.Errorf("%d items that nobody has stored: %v", len(left), left)
	}
	if kept == 0 {
		t.Error("no upload began after the last request")
	}
	t.Logf("%d requests deleted %d items; of all uploads %d are gone, %d kept, and %d of the seconds before", requests, total, gone, kept, spared)
}

// upload stores items with their names as contents in one request.
func (d *deletedFolder) upload(t *testing.T, names ...string) {
	parts := make([]site.StreamPart, len(names))
	begin := time.Now()
	d.mu.Lock()
	for i, name := range names {
		parts[i] = site.StreamPart{Name: name, Body: strings.NewReader(name)}
		d.sent[name] = begin
	}
	d.mu.Unlock()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.client.Base+"/api/upload/file?sub_folder=folder", site.StreamForm("content", parts...))
	if err != nil {
		t.Error(err)
		return
	}
	req.Header.Set("Content-Type", "multipart/form-data; boundary="+site.StreamBoundary)
	req.Header.Set("Authorization", "Bearer "+d.token)
	r, err := d.client.Do(req)
	if err != nil {
		t.Error(err)
		return
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		t.Errorf("uploading %s: %s", names[0], r.Status)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, name := range names {
		d.stored[name] = time.Now()
	}
}

// delete sends one request. It returns the number of deleted items, and times before and after its
// beginning: the service asks for the body when it has begun.
func (d *deletedFolder) delete(t *testing.T) (deleted int, before, began time.Time) {
	t.Helper()
	trace := &httptrace.ClientTrace{Got100Continue: func() { began = time.Now() }}
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodPost,
		d.client.Base+"/api/items/file/content", strings.NewReader(url.Values{"action": {"delete"}, "folder": {"folder"}}.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Authorization", "Bearer "+d.token)
	req.Header.Set("Expect", "100-continue")
	before = time.Now()
	var answer struct {
		Success, More bool
		Deleted       int
	}
	d.answer(t, req, &answer)
	if !answer.Success || began.IsZero() {
		t.Fatalf("%+v, asked for the body: %v", answer, began)
	}
	return answer.Deleted, before, began
}

// list returns the names of all items in the folder.
func (d *deletedFolder) list(t *testing.T) map[string]bool {
	t.Helper()
	names, cursor := map[string]bool{}, ""
	for {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
			d.client.Base+"/api/items/file/content?"+url.Values{"folder": {"folder"}, "limit": {"200"}, "cursor": {cursor}}.Encode(), nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+d.token)
		var page struct {
			Result []struct{ Filename string }
			Next   string
		}
		d.answer(t, req, &page)
		for _, item := range page.Result {
			names[strings.TrimPrefix(item.Filename, "folder/")] = true
		}
		if cursor = page.Next; cursor == "" {
			return names
		}
	}
}

// answer decodes the answer to a request that must succeed.
func (d *deletedFolder) answer(t *testing.T, req *http.Request, v any) {
	t.Helper()
	r, err := d.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %s", req.Method, req.URL, r.Status)
	}
	if err := json.NewDecoder(r.Body).Decode(v); err != nil {
		t.Fatal(err)
	}
}
