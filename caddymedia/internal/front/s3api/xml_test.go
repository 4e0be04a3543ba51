package s3api_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/caddymedia/media/caddymedia/internal/front/s3api"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/local"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// TestKeysInXML: whatever a key is, clients find it in a list, and delete it by what they have
// found.
func TestKeysInXML(t *testing.T) {
	t.Parallel()
	f, ctx := newFront(t, all...), t.Context()
	keys := []string{
		"]]>.txt", "<Key>a</Key>&amp;&#1;.txt", `"quoted'.txt`, "a b+c%20d.txt", "ü\U0001F600\ufffd.txt", "-->.txt", "<![CDATA[.txt",
		"a/" + strings.Repeat("k", 190) + "/" + strings.Repeat("ü", 90) + ".txt",
	}
	objects := make([]types.ObjectIdentifier, 0, len(keys))
	for _, key := range keys {
		f.put(t, docs, key, key)
		objects = append(objects, types.ObjectIdentifier{Key: &key})
	}
	slices.Sort(keys)
	if got := f.names(t, docs); !slices.Equal(got, keys) {
		t.Errorf("listed %q, want %q", got, keys)
	}
	out, err := f.DeleteObjects(ctx, &awss3.DeleteObjectsInput{Bucket: aws.String(docs), Delete: &types.Delete{Objects: objects}})
	if err != nil || len(out.Deleted) != len(keys) || f.names(t, docs) != nil {
		t.Errorf("deleted %d of %d, %v, left %q", len(out.Deleted), len(keys), err, f.names(t, docs))
	}
}

// TestForeignKeys: objects whose names XML cannot have, which others have stored, break no list.
// Clients that ask for encoded names can tell them.
func TestForeignKeys(t *testing.T) {
	t.Parallel()
	f := newFront(t, all...)
	for _, key := range []string{"a\x01b.txt", "a\nb.txt", "a\x7fb.txt", "a\ufffeb.txt"} {
		f.site.Put(t, "file/docs/"+key, "x")
	}
	for query, want := range map[string]string{"list-type=2": "", "list-type=2&encoding-type=url": "a%01b.txt", "encoding-type=url&delimiter=b": "a%01b", "list-type=2&prefix=a%01": "", "delimiter=%01": ""} {
		a := f.do(t, call{method: http.MethodGet, key: docs, query: query})
		var list struct {
			Contents       []struct{ Key string }
			CommonPrefixes []struct{ Prefix string }
		}
		if err := xml.Unmarshal([]byte(a.body), &list); err != nil || a.status != http.StatusOK || !strings.Contains(a.body, want) {
			t.Errorf("%s: %d %q, %v, want %q", query, a.status, a.body, err, want)
		}
	}
}

// TestHostileXML: a body that is no XML of its operation changes nothing.
func TestHostileXML(t *testing.T) {
	t.Parallel()
	f := newFront(t, all...)
	f.put(t, docs, "a.txt", "x")
	m := f.begin(t, docs, "b.txt")
	m.mustSend(t, 1, []byte("part"))
	part := "<Part><PartNumber>1</PartNumber><ETag>" + *m.parts[0].ETag + "</ETag></Part>"
	key := "<Object><Key>a.txt</Key></Object>"
	for name, tt := range map[string]struct{ deletion, completion, want string }{
		"nothing":        {"", "", "MalformedXML"},
		"no XML":         {"a.txt", "1", "MalformedXML"},
		"another root":   {"<Remove>" + key + "</Remove>", "<Complete>" + part + "</Complete>", "MalformedXML"},
		"not closed":     {"<Delete>" + key, "<CompleteMultipartUpload>" + part, "MalformedXML"},
		"an entity":      {`<!DOCTYPE d [<!ENTITY k "a.txt">]><Delete><Object><Key>&k;</Key></Object></Delete>`, `<!DOCTYPE d [<!ENTITY k "1">]><CompleteMultipartUpload>` + strings.Replace(part, ">1<", ">&k;<", 1) + "</CompleteMultipartUpload>", "MalformedXML"},
		"another coding": {`<?xml version="1.0" encoding="UTF-16"?><Delete>` + key + "</Delete>", `<?xml version="1.0" encoding="koi8-r"?><CompleteMultipartUpload>` + part + "</CompleteMultipartUpload>", "MalformedXML"},
		"invalid UTF-8":  {"<Delete><Object><Key>\xff</Key></Object>" + key + "</Delete>", "<CompleteMultipartUpload><a>\xff</a>" + part + "</CompleteMultipartUpload>", "MalformedXML"},
		"a control":      {"<Delete><Object><Key>\x01</Key></Object>" + key + "</Delete>", "<CompleteMultipartUpload><a>&#1;</a>" + part + "</CompleteMultipartUpload>", "MalformedXML"},
		"too many":       {"<Delete>" + strings.Repeat(key, 1001) + "</Delete>", "<CompleteMultipartUpload>" + strings.Repeat(part, 10_001) + "</CompleteMultipartUpload>", "MalformedXML"},
		"too deep":       {"<Delete>" + strings.Repeat("<a>", 1<<20) + key, "<CompleteMultipartUpload>" + strings.Repeat("<a>", 1<<20) + part, "MalformedXML"},
		"too long":       {"<Delete>" + strings.Repeat(" ", 4<<20) + key + "</Delete>", "<CompleteMultipartUpload>" + strings.Repeat(" ", 4<<20) + part + "</CompleteMultipartUpload>", "IncompleteBody"},
	} {
		a := f.do(t, call{method: http.MethodPost, key: docs, query: "delete", body: tt.deletion})
		if a.Code != tt.want {
			t.Errorf("deletion of %s: %d %s %s, want %s", name, a.status, a.Code, a.Message, tt.want)
		}
		a = f.do(t, call{method: http.MethodPost, key: docs + "/b.txt", query: "uploadId=" + m.id, body: tt.completion})
		if a.Code != tt.want {
			t.Errorf("completion of %s: %d %s %s, want %s", name, a.status, a.Code, a.Message, tt.want)
		}
		if got := f.names(t, docs); !slices.Equal(got, []string{"a.txt"}) {
			t.Fatalf("%s: stored are %q", name, got)
		}
	}
}

// TestHostileTokens: a continuation token that a client has made up reads nothing outside of the
// bucket, on folders too.
func TestHostileTokens(t *testing.T) {
	t.Parallel()
	for name, backend := range map[string]storagedrivers.Driver{
		"memory": memory.New(), "local": local.New(local.Config{Root: t.TempDir(), Sync: new(false)}, slog.New(slog.DiscardHandler)),
	} {
		f := newFrontOn(t, backend, all...)
		for _, key := range []string{"file/docs/a/b.txt", "file/docs/there.txt", "file/docs2/x.txt", "file/keep/kept.txt", "img/content/x.png"} {
			f.site.Put(t, key, "x")
		}
		m := f.begin(t, docs, "open.txt")
		m.mustSend(t, 1, []byte("x"))
		for _, page := range []string{
			"file/", "file/docs", "file/docs/", "file/docs/a", "file/docs/a/b.txt", "file/docs/there.txt/x", "file/docs/../keep/", "file/keep/", "img/", "@uploads/open/", "../",
			"/etc/passwd", ".", "..", "", "\x00", "zzz", "file/docs/\xff", "file/docs//", strings.Repeat("a/", 10_000), "1", "{}",
		} {
			for _, after := range []string{"", "a", "../keep", "\x00", "zzz"} {
				token, err := json.Marshal(map[string]string{"p": page, "a": after})
				if err != nil {
					t.Fatal(err)
				}
				for _, query := range []string{"", "&delimiter=%2F", "&prefix=a&delimiter=%2F", "&prefix=a%2F", "&delimiter=t", "&max-keys=1"} {
					a := f.do(t, call{method: http.MethodGet, key: docs, query: "list-type=2&continuation-token=" + base64.RawURLEncoding.EncodeToString(token) + query})
					var list struct{ Contents []struct{ Key string } }
					if err := xml.Unmarshal([]byte(a.body), &list); a.status >= 500 || a.status == http.StatusOK && err != nil {
						t.Errorf("%s, %s%s: %d %s, %v", name, token, query, a.status, a.body, err)
					}
					for _, object := range list.Contents {
						if object.Key != "a/b.txt" && object.Key != "there.txt" {
							t.Errorf("%s, %s%s: listed %q", name, token, query, object.Key)
						}
					}
				}
			}
		}
	}
}

// TestRefusedTokens: a page that the storage refuses is an error of the client, unless it did not
// ask for one.
func TestRefusedTokens(t *testing.T) {
	t.Parallel()
	driver := memory.New()
	f := newFrontOn(t, driver, all...)
	driver.Fail = func(op, _ string) error {
		if op == "list" {
			return errors.New("no such page")
		}
		return nil
	}
	for token, want := range map[string]int{"": http.StatusInternalServerError, "eyJwIjoieCJ9": http.StatusBadRequest} {
		if a := f.do(t, call{method: http.MethodGet, key: docs, query: "list-type=2&continuation-token=" + token}); a.status != want {
			t.Errorf("token %q: %d %s, want %d", token, a.status, a.body, want)
		}
	}
}

// TestListsInTurn: of the lists of an account, whose answers are in memory until they are read,
// only some are made at once.
func TestListsInTurn(t *testing.T) {
	t.Parallel()
	var now, most atomic.Int64
	driver := memory.New()
	driver.Fail = func(op, _ string) error {
		if op == "list" {
			most.Store(max(most.Load(), now.Add(1)))
			time.Sleep(10 * time.Millisecond)
			now.Add(-1)
		}
		return nil
	}
	f := newFrontOn(t, driver, all...)
	m := f.begin(t, docs, "a.txt")
	for _, c := range []call{
		{method: http.MethodGet, key: docs},
		{method: http.MethodGet, key: docs, query: "list-type=2&delimiter=x"},
		{method: http.MethodGet, key: docs, query: "uploads"},
		{method: http.MethodGet, key: docs + "/a.txt", query: "uploadId=" + m.id},
	} {
		most.Store(0)
		var group sync.WaitGroup
		for range 50 {
			group.Go(func() {
				if a := f.do(t, c); a.status != http.StatusOK {
					t.Errorf("%+v: %d %s", c, a.status, a.body)
				}
			})
		}
		group.Wait()
		if most.Load() > 8 {
			t.Errorf("%+v: %d at once", c, most.Load())
		}
	}
}

// TestFormsInTurn: of the requests of an account with XML, which is read into memory, only some are
// read at once.
func TestFormsInTurn(t *testing.T) {
	t.Parallel()
	f := newFront(t, all...)
	m := f.begin(t, docs, "a.txt")
	handler := s3api.New(f.site.Gate, s3api.Options{})
	for _, c := range []call{
		{method: http.MethodPost, key: docs, query: "delete", payload: "UNSIGNED-PAYLOAD"},
		{method: http.MethodPost, key: docs + "/a.txt", query: "uploadId=" + m.id, payload: "UNSIGNED-PAYLOAD"},
	} {
		var now, most atomic.Int64
		var group sync.WaitGroup
		for range 50 {
			r := f.request(t, c)
			r.ContentLength = 3
			r.Body = io.NopCloser(io.MultiReader(waiting{func() {
				most.Store(max(most.Load(), now.Add(1)))
				time.Sleep(10 * time.Millisecond)
				now.Add(-1)
			}}, strings.NewReader("xml")))
			group.Go(func() {
				w := httptest.NewRecorder()
				if handler.ServeHTTP(w, r); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "MalformedXML") {
					t.Errorf("%+v: %d %s", c, w.Code, w.Body)
				}
			})
		}
		group.Wait()
		if most.Load() > 8 {
			t.Errorf("%+v: %d at once", c, most.Load())
		}
	}
}
