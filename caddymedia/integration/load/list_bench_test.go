//go:build linux

package load_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/integration/site"
)

// BenchmarkFarList lists 10,000 items of one folder on servers that are far away: the first page of 100,
// all pages of 200, and a search that finds nothing.
func BenchmarkFarList(b *testing.B) {
	for _, kind := range site.RemoteDrivers {
		b.Run(kind.Name, func(b *testing.B) {
			p := kind.Start(b)
			fillFar(b, p)
			for _, trip := range []time.Duration{20 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond} {
				b.Run(trip.String(), func(b *testing.B) {
					service := startRemoteBench(b, delayed(b, p, trip), benchDir(b))
					service.page(b, "folder=none")   // connects
					var first, all, search []float64 //nolint:prealloc // b.N is small
					for range b.N {
						first = append(first, seconds(func() { service.page(b, "folder=many") }))
						all = append(all, seconds(func() { service.walk(b, "folder=many&limit=200", farItems, nil) }))
						search = append(search, seconds(func() { service.walk(b, "folder=many&search=nothing", 0, nil) }))
					}
					b.ReportMetric(0, "ns/op") // meaningless for all together
					b.ReportMetric(1000*median(first), "ms-first")
					b.ReportMetric(median(all), "s-all")
					b.ReportMetric(median(search), "s-search")
				})
			}
		})
	}
}

const farItems = 10_000

// fillFar stores the items of BenchmarkFarList, in requests of 200.
func fillFar(b *testing.B, p site.Backend) {
	b.Helper()
	dir := benchDir(b)
	path := filepath.Join(dir, "item.pdf")
	writeFile(b, path, "%PDF-1.7\n")
	service := startRemoteBench(b, p, dir)
	for range farItems / 200 {
		service.send(b, "?sub_folder=many", func(form *multipart.Writer) error {
			var err error
			for i := range 200 {
				err = errors.Join(err, addFile(form, path, fmt.Sprintf("%d-%d.pdf", service.uploads, i)))
			}
			return err
		})
	}
}

// BenchmarkManyItems lists 1,000,000 items, or MEDIA_BENCH_ITEMS, of one folder or of 1,000 folders: the
// first page, once more, and all pages of 200 or those of two minutes, each name once and in order. A
// search in all of them goes on at its cursors. The memory of the service is sampled before, at its peak
// and afterwards. MEDIA_BENCH_DIR selects the disk of the local folder, and TMPDIR that of versitygw.
func BenchmarkManyItems(b *testing.B) {
	number := site.Number(b, "MEDIA_BENCH_ITEMS", 1_000_000)
	for _, folders := range []int{1, 1000} {
		b.Run(fmt.Sprintf("folders=%d", folders), func(b *testing.B) {
			p, dir := site.StartS3(b), benchDir(b)
			service := startRemoteBench(b, p, dir)
			for alias, root := range map[string]string{"near": filepath.Join(dir, "near"), "content": filepath.Join(p.Objects, "bench")} {
				names := fillFolders(b, filepath.Join(root, "file", alias), folders, number)
				b.Run(alias, func(b *testing.B) { service.benchMany(b, alias, names) })
			}
		})
	}
}

// fillFolders creates empty files and returns their names below the root, in their order.
func fillFolders(b *testing.B, root string, folders, number int) []string {
	b.Helper()
	names := make([]string, number)
	for i := range names {
		names[i] = fmt.Sprintf("%04d/item-%07d.pdf", i*folders/number, i)
		name := filepath.Join(root, names[i])
		if i == 0 || filepath.Dir(names[i]) != filepath.Dir(names[i-1]) {
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				b.Fatal(err)
			}
		}
		writeFile(b, name, "")
	}
	return names
}

func (s *remoteBench) benchMany(b *testing.B, alias string, names []string) {
	time.Sleep(5 * time.Second) // the names of a folder that has just changed are not kept
	s.alias = alias
	before, peak, _ := watchMemory([]*os.Process{s.process})
	for b.Loop() {
		b.ReportMetric(1000*seconds(func() { s.page(b, "folder=0000") }), "ms-first")
		b.ReportMetric(1000*seconds(func() { s.page(b, "folder=0000") }), "ms-again")
		pages := 0
		end := time.Now().Add(2 * time.Minute)
		took := seconds(func() {
			pages = s.walk(b, "recursive=1&limit=200", len(names), func(i int, name string) bool {
				if name != names[i] {
					b.Fatalf("item %d is %s, want %s", i, name, names[i])
				}
				return time.Now().Before(end)
			})
		})
		b.ReportMetric(float64(pages), "pages")
		b.ReportMetric(1000*took/float64(pages), "ms/page")
		const part = "77777"
		found := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !strings.Contains(name, part) })
		end = time.Now().Add(2 * time.Minute)
		took = seconds(func() {
			pages = s.walk(b, "limit=200&search="+part, len(found), func(i int, name string) bool {
				if name != found[i] {
					b.Fatalf("found item %d is %s, want %s", i, name, found[i])
				}
				return time.Now().Before(end)
			})
		})
		b.ReportMetric(float64(pages), "search-pages")
		b.ReportMetric(took, "s-search")
	}
	after, _ := memoryOf(s.process, "VmRSS")
	b.ReportMetric(0, "ns/op") // meaningless for all together
	b.ReportMetric(float64(before>>20), "MiB-before")
	b.ReportMetric(float64(peak()>>20), "MiB-peak")
	b.ReportMetric(float64(after>>20), "MiB-after")
}

// itemPage is a page of a list of items.
type itemPage struct {
	Result []struct{ Filename string }
	Next   string
}

// page returns a page of the items of the alias.
func (s *remoteBench) page(b *testing.B, query string) (page itemPage) {
	b.Helper()
	alias := s.alias
	if alias == "" {
		alias = "content"
	}
	req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, "http://"+s.address+"/api/items/file/"+alias+"?"+query, nil)
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(&page); err != nil || answer.StatusCode != http.StatusOK {
		b.Fatalf("%s: %s, %v", query, answer.Status, err)
	}
	return page
}

// walk lists all pages, which have number items, and returns how many pages there are. It passes each
// item to each, if that is not nil, and ends if each returns false.
func (s *remoteBench) walk(b *testing.B, query string, number int, each func(int, string) bool) (pages int) {
	b.Helper()
	n, cursor := 0, ""
	for {
		page := s.page(b, query+"&cursor="+url.QueryEscape(cursor))
		pages++
		more := true
		for _, item := range page.Result {
			if n == number {
				b.Fatalf("%s: more than %d items", query, number)
			}
			more = each == nil || each(n, item.Filename)
			n++
		}
		if cursor = page.Next; cursor == "" && n != number {
			b.Fatalf("%s: %d items, want %d", query, n, number)
		}
		if cursor == "" || !more {
			return pages
		}
	}
}

// seconds returns how long a function takes.
func seconds(f func()) float64 {
	begin := time.Now()
	f()
	return time.Since(begin).Seconds()
}
