package mediacmd

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestCache: the command shows what the running Caddy says of its caches, and empties them.
func TestCache(t *testing.T) {
	t.Parallel()
	const filled = `{"entries": 5, "bytes": 1258291, "max_size": 10737418240, "hits": 4, "misses": 3, "in_use": true}`
	caches := `{"bucket": ` + filled + `, "other": {"max_size": 67108864}}`
	var emptied []string
	admin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodGet && r.URL.Path == "/media/caches":
			_, _ = io.WriteString(w, caches)
		case r.Method == http.MethodDelete && r.URL.Path == "/media/caches/bucket":
			emptied = append(emptied, r.URL.Path)
			_, _ = io.WriteString(w, `{"max_size": 10737418240, "hits": 4, "misses": 3, "in_use": true}`)
		default:
			http.Error(w, `{"error":"The folder cannot be used."}`, http.StatusConflict)
		}
	}))
	t.Cleanup(admin.Close)
	for _, test := range []struct{ args, want string }{
		{"", "storage  size     of      entries  hits  misses\n" +
			"bucket   1.2 MiB  10 GiB  5        4     3\n" +
			"other    0 B      64 MiB  0        0     0  not in use, the log says why\n"},
		{"bucket --json", `{"storage":"bucket","entries":5,"bytes":1258291,"max_size":10737418240,"hits":4,"misses":3,"evicted":0,"damaged":0,"in_use":true}` + "\n"},
		{"bucket --empty", "bucket   0 B   10 GiB  0        4     3\n"},
		{"other --empty", "emptying the cache of other: asking the running Caddy: The folder cannot be used."},
		{"none", `no storage "none" of the running Caddy has a cache`},
	} {
		args := append(strings.Fields(test.args), "--address", strings.TrimPrefix(admin.URL, "http://"))
		out, messages, err := run(t, cacheCommand(), args...)
		if !strings.Contains(fmt.Sprint(out, messages, err), test.want) {
			t.Errorf("%q: %q, %q, %v; want %q", test.args, out, messages, err, test.want)
		}
	}
	if len(emptied) != 1 {
		t.Errorf("emptied %q, want one", emptied)
	}
	caches = `{}`
	if out, _, err := run(t, cacheCommand(), "--address", strings.TrimPrefix(admin.URL, "http://")); err != nil || out != "no storage has a cache\n" {
		t.Errorf("%q, error %v", out, err)
	}
}
