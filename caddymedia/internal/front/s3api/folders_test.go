package s3api_test

import (
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/caddymedia/media/caddymedia/internal/test/testservice"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/local"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// folderBackends are one without folders and one with.
var folderBackends = map[string]func(*testing.T) storagedrivers.Driver{
	"memory": func(*testing.T) storagedrivers.Driver { return memory.New() },
	"local": func(t *testing.T) storagedrivers.Driver {
		t.Helper()
		return local.New(local.Config{Root: t.TempDir(), Sync: new(false)}, slog.New(slog.DiscardHandler))
	},
}

// onFolders runs a test on each of folderBackends.
func onFolders(t *testing.T, test func(*testing.T, *front)) {
	t.Helper()
	for name, backend := range folderBackends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newFrontOn(t, backend(t), all...))
		})
	}
}

// list returns all keys and prefixes of a list, in pages of any size; they must not depend on it.
func (f *front) list(t *testing.T, bucket, prefix, delimiter string) []string {
	t.Helper()
	var all []string
	for i, most := range []int32{1000, 1, 2} {
		var names []string
		pages := awss3.NewListObjectsV2Paginator(f.Client, &awss3.ListObjectsV2Input{
			Bucket: &bucket, Prefix: &prefix, Delimiter: &delimiter, MaxKeys: &most,
		})
		for pages.HasMorePages() {
			page, err := pages.NextPage(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			entries := entriesOf(page.Contents, page.CommonPrefixes)
			if len(names) > 0 && len(entries) > 0 && entries[0] <= names[len(names)-1] {
				t.Errorf("%q by %q: %q is behind %q", prefix, delimiter, entries, names)
			}
			names = append(names, entries...)
			if keys := entriesOf(page.Contents, nil); !slices.IsSortedFunc(page.Contents, func(a, b types.Object) int { return strings.Compare(*a.Key, *b.Key) }) {
				t.Errorf("%q by %q: %q", prefix, delimiter, keys)
			}
		}
		if i == 0 {
			all = names
		} else if !slices.Equal(names, all) {
			t.Errorf("%q by %q, %d at once: %q, want %q", prefix, delimiter, most, names, all)
		}
	}
	return all
}

func (f *front) wantList(t *testing.T, prefix, delimiter string, want ...string) {
	t.Helper()
	if got := f.list(t, docs, prefix, delimiter); !slices.Equal(got, want) {
		t.Errorf("%q by %q: %q, want %q", prefix, delimiter, got, want)
	}
}

// remove deletes keys, the first by itself and the others at once.
func (f *front) remove(t *testing.T, first string, others ...string) {
	t.Helper()
	if _, err := f.DeleteObject(t.Context(), &awss3.DeleteObjectInput{Bucket: aws.String(docs), Key: &first}); err != nil {
		t.Error(err)
	}
	if len(others) == 0 {
		return
	}
	var objects []types.ObjectIdentifier
	for _, key := range others {
		objects = append(objects, types.ObjectIdentifier{Key: &key})
	}
	out, err := f.DeleteObjects(t.Context(), &awss3.DeleteObjectsInput{Bucket: aws.String(docs), Delete: &types.Delete{Objects: objects}})
	if err != nil || len(out.Errors) > 0 || len(out.Deleted) != len(others) {
		t.Errorf("deleting %q: %+v, %v", others, out, err)
	}
}

// has returns the entity tag of HEAD; empty for no object.
func (f *front) has(t *testing.T, key string) string {
	t.Helper()
	out, err := f.HeadObject(t.Context(), &awss3.HeadObjectInput{Bucket: aws.String(docs), Key: &key})
	if codeOf(err) == "NotFound" {
		return ""
	}
	if err != nil || out.LastModified == nil {
		t.Errorf("head of %s: %+v, %v", key, out, err)
		return ""
	}
	return *out.ETag
}

// TestFolders: a folder of a client is an object until it is deleted, with items and without.
func TestFolders(t *testing.T) {
	t.Parallel()
	onFolders(t, func(t *testing.T, f *front) {
		tag := f.put(t, docs, "a/", "")
		if again := f.put(t, docs, "a/", ""); again != tag || f.has(t, "a/") != tag || f.get(t, docs, "a/") != "" {
			t.Errorf("tags %s, %s and %s", tag, again, f.has(t, "a/"))
		}
		f.wantList(t, "", "", "a/")
		f.wantList(t, "", "/", "a/")
		f.wantList(t, "a", "/", "a/")
		f.wantList(t, "a/", "/", "a/")
		f.wantList(t, "a/", "", "a/")
		f.wantList(t, "a/!", "")
		f.put(t, docs, "a/b/", "")
		f.put(t, docs, "a/b/1.txt", "x")
		f.wantList(t, "", "", "a/", "a/b/", "a/b/1.txt")
		f.wantList(t, "a/", "/", "a/", "a/b/")
		f.wantList(t, "", "b", "a/", "a/b")
		f.remove(t, "a/b/1.txt")
		f.wantList(t, "a/", "/", "a/", "a/b/")
		f.remove(t, "a/b/", "a/", "never/")
		f.wantList(t, "", "")
		f.wantList(t, "", "/")
		if f.has(t, "a/") != "" || f.has(t, "a/b/") != "" {
			t.Error("a deleted folder is there")
		}
		if left := f.site.Keys(t, ""); len(left) > 0 {
			t.Errorf("stored: %q", left)
		}
	})
}

// TestEmptiedFolders: a folder that a client has not made is in no list without its items.
func TestEmptiedFolders(t *testing.T) {
	t.Parallel()
	onFolders(t, func(t *testing.T, f *front) {
		for _, key := range []string{"a/1.txt", "b/c/2.txt", "b/d/e/3.txt", "f/4.txt"} {
			f.put(t, docs, key, "x")
		}
		if f.has(t, "b/c/") == "" {
			t.Error("a folder with an item is not there")
		}
		f.wantList(t, "", "/", "a/", "b/", "f/")
		f.remove(t, "a/1.txt", "b/c/2.txt")
		f.wantList(t, "", "/", "b/", "f/")
		f.wantList(t, "b/", "/", "b/d/")
		if f.has(t, "b/c/") != "" {
			t.Error("an emptied folder is there")
		}
		f.remove(t, "b/d/e/3.txt")
		f.wantList(t, "", "/", "f/")
	})
}

// TestHiddenFolders: the name of a folder is before those of its items, also if the key of its
// marker is not.
func TestHiddenFolders(t *testing.T) {
	t.Parallel()
	onFolders(t, func(t *testing.T, f *front) {
		want := []string{"a/", "a/ 1.txt", "a/ b/", "a/ b/!.txt", "a/ c/2.txt", "a/!.txt", "a/0.txt", "a/d/ 3.txt"}
		for _, key := range want {
			f.put(t, docs, key, "")
		}
		f.wantList(t, "", "", want...)
		f.wantList(t, "a/", "", want...)
		f.wantList(t, "a/", "/", "a/", "a/ 1.txt", "a/ b/", "a/ c/", "a/!.txt", "a/0.txt", "a/d/")
		f.wantList(t, "a/ b", "", "a/ b/", "a/ b/!.txt")
	})
}

// TestCopiedFolders: clients rename folders by copies.
func TestCopiedFolders(t *testing.T) {
	t.Parallel()
	onFolders(t, func(t *testing.T, f *front) {
		f.put(t, docs, "a/", "")
		f.put(t, docs, "b/1.txt", "x")
		for _, tt := range []struct{ from, to, want string }{
			{"a/", "c/", ""},
			{"a/", "a/", ""},
			{"b/", "d/", ""},
			{"a/", "a.txt", "InvalidRequest"},
			{"b/1.txt", "e/", "InvalidRequest"},
			{"none/", "e/", "NoSuchKey"},
		} {
			_, err := f.CopyObject(t.Context(), &awss3.CopyObjectInput{
				Bucket: aws.String(docs), Key: &tt.to, CopySource: aws.String(docs + "/" + tt.from),
			})
			wantCode(t, tt.from+" to "+tt.to, err, tt.want)
		}
		f.wantList(t, "", "", "a/", "b/1.txt", "c/", "d/")
	})
}

// TestRefusedFolders: a folder has the names of folders of items, and markers are of this package
// alone.
func TestRefusedFolders(t *testing.T) {
	t.Parallel()
	f := newFront(t, all...)
	for name, target := range map[string]string{
		"no name": docs + "//", "below nothing": docs + "/a//", "of uploads": docs + "/@uploads/", "marker": docs + "/a/!@folder",
		"marker as a folder": docs + "/!@FOLDER/a.txt", "restricted": docs + "/a.php/", "sanitized": "file-content/A B/",
		"long": docs + "/" + strings.Repeat("x", 256) + "/", "item below nothing": docs + "/a//x",
	} {
		a := f.do(t, call{method: http.MethodPut, key: target})
		if a.Code != "InvalidRequest" {
			t.Errorf("%s: %d %s %s", name, a.status, a.Code, a.Message)
		}
		if strings.HasSuffix(name, "below nothing") && strings.Contains(a.Message, "sanitize") {
			t.Errorf("%s: %s", name, a.Message)
		}
	}
	if left := f.site.Keys(t, ""); len(left) > 0 {
		t.Errorf("stored: %q", left)
	}
}

func TestConditionsOfFolders(t *testing.T) {
	t.Parallel()
	f := newFront(t, all...)
	put := func(match, none *string) error {
		_, err := f.PutObject(t.Context(), &awss3.PutObjectInput{Bucket: aws.String(docs), Key: aws.String("a/"), IfMatch: match, IfNoneMatch: none})
		return err
	}
	wantCode(t, "a missing one", put(aws.String("*"), nil), "PreconditionFailed")
	wantCode(t, "a new one", put(nil, aws.String("*")), "")
	wantCode(t, "one that is there", put(nil, aws.String("*")), "PreconditionFailed")
	tag := f.has(t, "a/")
	wantCode(t, "of its tag", put(&tag, nil), "")
	remove := func(match string) error {
		_, err := f.DeleteObject(t.Context(), &awss3.DeleteObjectInput{Bucket: aws.String(docs), Key: aws.String("a/"), IfMatch: &match})
		return err
	}
	wantCode(t, "deleting another", remove(`"x"`), "PreconditionFailed")
	wantCode(t, "deleting it", remove(tag), "")
	f.wantList(t, "", "")
}

// TestMarkersAreNoItems: the other interfaces do not show the marker of a folder. If one of them
// deletes the folder, the marker is deleted too.
func TestMarkersAreNoItems(t *testing.T) {
	t.Parallel()
	onFolders(t, func(t *testing.T, f *front) {
		f.put(t, docs, "a/", "")
		f.put(t, docs, "a/1.txt", "x")
		for _, target := range []string{"/static/file/docs/a/!@folder", "/api/items/file/docs/a/!@folder"} {
			f.site.Do(t, http.MethodGet, target, testservice.Bearer, "").Want(t, http.StatusNotFound, "")
		}
		items := f.site.Do(t, http.MethodGet, "/api/items/file/docs?recursive=1", testservice.Bearer, "").Want(t, http.StatusOK, "")
		if strings.Contains(items.Body, "!@folder") {
			t.Errorf("listed: %s", items.Body)
		}
		if got := f.get(t, docs, "a/!@folder"); got != "NoSuchKey" {
			t.Errorf("read: %s", got)
		}
		f.remove(t, "a/!@folder")
		f.wantList(t, "", "", "a/", "a/1.txt")
		time.Sleep(time.Millisecond) // what is stored by now is older than the next request
		removed := f.site.Do(t, http.MethodPost, "/api/items/file/docs", testservice.Urlencoded+testservice.Bearer, "action=delete&folder=a")
		if !strings.Contains(removed.Body, `"deleted":1`) {
			t.Errorf("deleting the folder: %d %s", removed.Status, removed.Body)
		}
		f.wantList(t, "", "")
	})
}
