package s3api_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/core/upload"
	"github.com/caddymedia/media/caddymedia/internal/front/s3api"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/internal/test/testservice"
	"github.com/caddymedia/media/caddymedia/media"
)

// operation is a request with the rights of which the account needs one; none for a request of any
// account. $ID is a multipart upload of the key there.txt, and $PART the entity tag of its part 1.
// there.txt is stored.
type operation struct {
	name string // as in the table of the package, with a word about what is special
	call call
	may  []string
	also string // a right that the account needs besides; empty for none
}

const source = "X-Amz-Copy-Source"

var (
	write     = []string{"upload", "replace"}
	mayList   = []string{"list"}
	mayDelete = []string{"delete"}
	mayCopy   = []string{"copy"}
)

// operations returns requests for all operations of the package, for a bucket. Those that change
// something come last.
func operations(bucket string) []operation {
	there, fresh := bucket+"/there.txt", bucket+"/fresh.txt"
	copies := func(of string) http.Header { return http.Header{source: {of}} }
	return []operation{
		{"service GET ", call{method: "GET"}, nil, ""},
		{"bucket HEAD ", call{method: "HEAD", key: bucket}, nil, ""},
		{"bucket GET location", call{method: "GET", key: bucket, query: "location"}, nil, ""},
		{"bucket GET versioning", call{method: "GET", key: bucket, query: "versioning"}, nil, ""},
		{"bucket GET acl", call{method: "GET", key: bucket, query: "acl"}, nil, ""},
		{"bucket PUT ", call{method: "PUT", key: bucket}, nil, ""},
		{"bucket GET ", call{method: "GET", key: bucket}, mayList, ""},
		{"bucket GET  by version 2", call{method: "GET", key: bucket, query: "list-type=2"}, mayList, ""},
		{"bucket GET uploads", call{method: "GET", key: bucket, query: "uploads"}, write, ""},
		{"object GET ", call{method: "GET", key: there}, mayList, ""},
		{"object GET  of a folder", call{method: "GET", key: bucket + "/sub/"}, mayList, ""},
		{"object HEAD ", call{method: "HEAD", key: there}, mayList, ""},
		{"object GET acl", call{method: "GET", key: there, query: "acl"}, mayList, ""},
		{"object GET tagging", call{method: "GET", key: there, query: "tagging"}, mayList, ""},
		{"object GET attributes", call{method: "GET", key: there, query: "attributes", header: http.Header{"X-Amz-Object-Attributes": {"ETag"}}}, mayList, ""},
		{"object PUT acl", call{method: "PUT", key: there, query: "acl"}, write, ""},
		{"object GET uploadId", call{method: "GET", key: there, query: "uploadId=$ID"}, write, ""},
		{"object PUT copy onto itself", call{method: "PUT", key: there, header: copies(there)}, mayCopy, ""},
		{"object PUT  of a folder", call{method: "PUT", key: bucket + "/folder/"}, []string{"upload"}, ""},
		{"object PUT uploadId", call{method: "PUT", key: there, query: "partNumber=2&uploadId=$ID", body: "x"}, write, ""},
		{"object PUT uploadId copy", call{method: "PUT", key: there, query: "partNumber=3&uploadId=$ID", header: copies(there)}, mayCopy, "list"},
		{"object POST uploads", call{method: "POST", key: fresh, query: "uploads"}, []string{"upload"}, ""},
		{"object POST uploads of a stored key", call{method: "POST", key: there, query: "uploads"}, []string{"replace"}, ""},
		{"object PUT ", call{method: "PUT", key: fresh, body: "x"}, []string{"upload"}, ""},
		{"object PUT  of a stored key", call{method: "PUT", key: there, body: "x"}, []string{"replace"}, ""},
		{"object PUT copy", call{method: "PUT", key: bucket + "/copy.txt", header: copies(there)}, mayCopy, ""},
		{"object POST uploadId", call{method: "POST", key: there, query: "uploadId=$ID", body: "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber>" +
			"<ETag>$PART</ETag></Part></CompleteMultipartUpload>"}, []string{"replace"}, ""},
		{"bucket POST delete", call{method: "POST", key: bucket, query: "delete", body: "<Delete><Object><Key>there.txt</Key></Object></Delete>"}, mayDelete, ""},
		{"object DELETE ", call{method: "DELETE", key: bucket + "/sub/there.txt"}, mayDelete, ""},
		{"object DELETE uploadId", call{method: "DELETE", key: bucket + "/other.txt", query: "uploadId=$OTHER"}, write, ""},
	}
}

// withUploads returns a front with stored objects and multipart uploads, and the variables of
// operations.
func withUploads(t *testing.T) (f *front, vars *strings.Replacer) {
	t.Helper()
	f = newFront(t, all...)
	for _, bucket := range []string{"docs", "keep"} {
		f.site.Put(t, "file/"+bucket+"/there.txt", "there")
		f.site.Put(t, "file/"+bucket+"/sub/there.txt", "there")
	}
	m := f.begin(t, docs, "there.txt")
	m.mustSend(t, 1, []byte("part"))
	return f, strings.NewReplacer("$ID", m.id, "$PART", *m.parts[0].ETag, "$OTHER", f.begin(t, docs, "other.txt").id)
}

func (c call) with(vars *strings.Replacer) call {
	c.query, c.body = vars.Replace(c.query), vars.Replace(c.body)
	return c
}

// TestRights: each operation needs one of its rights and no other, with each right alone and with
// all others. What is refused changes nothing.
func TestRights(t *testing.T) {
	t.Parallel()
	var known []string
	for _, o := range operations(docs) {
		for _, name := range s3api.Operations() {
			if o.name == name || strings.HasPrefix(o.name, name+" ") {
				known = append(known, name)
			}
		}
	}
	for _, name := range s3api.Operations() {
		if !slices.Contains(known, name) {
			t.Errorf("no request for %q", name)
		}
	}
	check := func(name string, rights []string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, vars := withUploads(t)
			f.reload(t, func(c *media.Config) { c.Accounts[testservice.SomeKey].May = rights })
			has := func(right string) bool { return slices.Contains(rights, right) }
			for _, o := range operations(docs) {
				before := f.site.Objects(t)
				allowed := (o.may == nil || slices.ContainsFunc(o.may, has)) && (o.also == "" || has(o.also))
				a := f.do(t, o.call.with(vars))
				refused := a.status == http.StatusForbidden && (a.Code == "AccessDenied" || o.call.method == "HEAD")
				if refused == allowed || allowed && o.name != "bucket PUT " && a.status >= 300 {
					t.Errorf("%s: %d %s %s", o.name, a.status, a.Code, a.Message)
				}
				after := f.site.Objects(t)
				if !allowed && !maps.Equal(after, before) {
					t.Errorf("%s: stored are %q", o.name, slices.Sorted(maps.Keys(after)))
				}
				f.site.Put(t, "file/docs/there.txt", "there")
			}
		})
	}
	for i, right := range access.Rights() {
		check("only "+string(right), []string{string(right)})
		var others []string
		for j, other := range access.Rights() {
			if j != i {
				others = append(others, string(other))
			}
		}
		check("not "+string(right), others)
	}
}

// TestAliasesOfAccounts: no operation reaches an alias that the account may not use, also as the
// source of a copy, and the account does not learn which ones exist.
func TestAliasesOfAccounts(t *testing.T) {
	t.Parallel()
	f, vars := withUploads(t)
	f.reload(t, func(c *media.Config) { c.Accounts[testservice.SomeKey].Aliases = []string{"docs"} })
	before := f.site.Objects(t)
	answers := map[string]string{}
	for _, bucket := range []string{keep, "file-none", "none", "image-docs-"} {
		for _, o := range operations(bucket) {
			if o.call.key == "" {
				continue
			}
			a := f.do(t, o.call.with(vars))
			got := strings.ReplaceAll(fmt.Sprintln(a.status, a.Code, a.Message), bucket, "")
			if a.status != http.StatusForbidden || answers[o.name] != "" && answers[o.name] != got {
				t.Errorf("%s of %s: %s, want %s", o.name, bucket, got, answers[o.name])
			}
			answers[o.name] = got
		}
	}
	for _, from := range []string{keep, "file-none", "/" + keep, "file-docs/../" + keep, "file-docs%2F..%2F" + keep} {
		for _, query := range []string{"", "partNumber=4&uploadId=$ID"} {
			c := call{method: "PUT", key: docs + "/there.txt", query: query, header: http.Header{source: {from + "/there.txt"}}}
			if a := f.do(t, c.with(vars)); a.status != http.StatusForbidden && a.status != http.StatusNotFound {
				t.Errorf("a copy from %s: %d %s %s", from, a.status, a.Code, a.Message)
			}
		}
	}
	if list := f.do(t, call{method: "GET"}); strings.Count(list.body, "<Bucket>") != 1 || !strings.Contains(list.body, docs) {
		t.Errorf("buckets: %s", list.body)
	}
	if after := f.site.Objects(t); !maps.Equal(after, before) {
		t.Errorf("stored are %q", slices.Sorted(maps.Keys(after)))
	}
}

// TestUploadsOfOthers: no account lists, continues, completes or aborts the multipart uploads of
// another, with any rights.
func TestUploadsOfOthers(t *testing.T) {
	t.Parallel()
	f, vars := withUploads(t)
	f.reload(t, func(c *media.Config) {
		c.Accounts[testservice.SomeKey] = &media.Account{PasswordHash: "x"}
		c.Accounts["other"] = &media.Account{PasswordHash: "x", S3Secret: secret, May: []string{"upload", "replace", "list", "copy", "delete"}}
	})
	f.key = "other"
	before := f.site.Objects(t)
	for _, o := range operations(docs) {
		if strings.Contains(o.name, "uploadId") {
			if a := f.do(t, o.call.with(vars)); a.Code != "NoSuchUpload" {
				t.Errorf("%s: %d %s %s", o.name, a.status, a.Code, a.Message)
			}
		}
	}
	if a := f.do(t, call{method: "GET", key: docs, query: "uploads"}); a.status != http.StatusOK || strings.Contains(a.body, "<Upload>") {
		t.Errorf("uploads: %d %s", a.status, a.body)
	}
	own := f.do(t, call{method: "POST", key: docs + "/there.txt", query: "uploads"}).uploadID(t)
	a := f.do(t, call{method: "POST", key: docs + "/there.txt", query: "uploadId=" + own, body: vars.Replace(
		"<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>$PART</ETag></Part></CompleteMultipartUpload>")})
	if a.Code != "InvalidPart" {
		t.Errorf("an own upload with the part of another account: %d %s %s", a.status, a.Code, a.Message)
	}
	f.do(t, call{method: "DELETE", key: docs + "/there.txt", query: "uploadId=" + own})
	if after := f.site.Objects(t); !maps.Equal(after, before) {
		t.Errorf("stored are %q", slices.Sorted(maps.Keys(after)))
	}
}

// TestRevoked: an account that ends, or loses its secret, its rights or the alias while it sends a
// body, or while the source of a copy is read, stores and deletes nothing.
func TestRevoked(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*media.Config, *media.Account){
		"account": func(c *media.Config, _ *media.Account) { delete(c.Accounts, testservice.SomeKey) },
		"S3":      func(_ *media.Config, a *media.Account) { a.S3Secret = "" },
		"secret":  func(_ *media.Config, a *media.Account) { a.S3Secret = "another secret of it" },
		"rights":  func(_ *media.Config, a *media.Account) { a.May = []string{"list"} },
		"alias":   func(_ *media.Config, a *media.Account) { a.Aliases = []string{"keep"} },
		"replace": func(_ *media.Config, a *media.Account) { a.May = []string{"upload", "list", "copy", "delete"} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, o := range operations(docs) {
				if !slices.Contains([]string{"object PUT ", "object PUT  of a stored key", "object PUT copy", "object POST uploadId", "bucket POST delete"}, o.name) {
					continue
				}
				if name == "replace" && o.name != "object PUT  of a stored key" {
					continue
				}
				f, vars := withUploads(t)
				lose := sync.OnceFunc(func() {
					f.reload(t, func(c *media.Config) { change(c, c.Accounts[testservice.SomeKey]) })
				})
				before := f.site.Objects(t)
				c := o.call.with(vars)
				body := c.body
				if c.body = ""; body != "" {
					c.payload = "UNSIGNED-PAYLOAD"
				}
				r, w := f.request(t, c), httptest.NewRecorder() // a client could read the body before the request is received
				if body != "" {
					r.Body, r.ContentLength = io.NopCloser(&reloading{Reader: strings.NewReader(body), reload: lose}), -1
				} else {
					f.site.Driver.Fail = func(op, key string) error {
						if (op == "open" || op == "stat") && key == "file/docs/there.txt" {
							lose()
						}
						return nil
					}
				}
				if s3api.New(f.site.Gate, s3api.Options{}).ServeHTTP(w, r); w.Code != http.StatusForbidden {
					t.Errorf("%s: %d %s", o.name, w.Code, w.Body)
				}
				if after := itemsOf(f.site.Objects(t)); !maps.Equal(after, itemsOf(before)) {
					t.Errorf("%s: stored are %q", o.name, slices.Sorted(maps.Keys(after)))
				}
			}
		})
	}
}

// itemsOf returns the objects that are items.
func itemsOf(objects map[string]string) map[string]string {
	maps.DeleteFunc(objects, func(key, _ string) bool { return strings.HasPrefix(key, "@uploads/") })
	return objects
}

// refusals records what an observer learns of refused requests.
type refusals struct {
	testservice.Observer

	mu    sync.Mutex
	lines []string
}

func (r *refusals) add(what string, actor item.Actor, alias, filename string, reason item.Reason) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, fmt.Sprintf("%s by %s %s of %s %s: %s", what, actor.Origin, actor.Account, alias, filename, reason))
}

func (r *refusals) Refused(_ context.Context, op upload.Operation, failures item.Failures) {
	r.add("upload", op.Actor, op.Alias, op.Filename, failures[0].Reason)
}

func (r *refusals) DeletionEnded(_ context.Context, d service.Deletion) {
	r.add("deletion", d.Actor, d.Alias, d.Filename, d.Failure.Reason)
}

func (r *refusals) Failed(_ context.Context, endpoint, status string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, endpoint+" "+status)
}

// TestRefusedRequestsAreReported: the audit log has a line for a change that the account may not
// make, and the metrics count each error.
func TestRefusedRequestsAreReported(t *testing.T) {
	t.Parallel()
	f, vars := withUploads(t)
	observer := &refusals{}
	f.reload(t, func(c *media.Config) {
		c.Observer = observer
		c.Accounts[testservice.SomeKey].May, c.Accounts[testservice.SomeKey].Aliases = []string{"sign"}, []string{"docs"}
	})
	const refused = "by s3 site-one of docs "
	for name, want := range map[string]string{
		"object PUT ": "upload " + refused + "fresh.txt: forbidden", "object PUT copy": "upload " + refused + "copy.txt: forbidden",
		"object POST uploadId": "upload " + refused + "there.txt: forbidden", "object DELETE ": "deletion " + refused + "sub/there.txt: forbidden",
		"bucket POST delete": "deletion " + refused + ": forbidden", "object GET ": "", "bucket GET ": "", "object DELETE uploadId": "",
	} {
		for _, o := range operations(docs) {
			if o.name != name {
				continue
			}
			observer.lines = nil
			f.do(t, o.call.with(vars))
			if got := strings.Join(observer.lines, "\n"); got != strings.TrimPrefix(want+"\ns3 403", "\n") {
				t.Errorf("%s: reported is %q, want %q", name, got, want)
			}
		}
	}
	observer.lines = nil
	f.do(t, call{method: "PUT", key: keep + "/a.txt"})
	f.do(t, call{method: "GET", key: docs, query: "torrent"})
	r := f.request(t, call{method: "DELETE", key: docs + "/there.txt"})
	r.Header.Set("X-Amz-Date", "20261128T000000Z")
	f.sent(t, r)
	want := []string{"upload by s3 site-one of keep a.txt: forbidden", "s3 403", "s3 501", "s3 403"}
	if !slices.Equal(observer.lines, want) {
		t.Errorf("reported are %q, want %q", observer.lines, want)
	}
}
