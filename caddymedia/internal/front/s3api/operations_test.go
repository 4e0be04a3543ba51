package s3api_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/middleware"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/caddymedia/media/caddymedia/internal/front/s3api"
	"github.com/caddymedia/media/caddymedia/internal/test/testservice"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

const (
	docs = "file-docs" // overwrites, any name
	keep = "file-keep" // Append Time, any name
	pics = "image-replacing"
)

const secret = "a secret of the test"

var all = []string{"upload", "replace", "list", "copy", "delete"}

// front is an S3 front, and a client of it.
type front struct {
	*awss3.Client
	site    *testservice.Site
	address string
	key     string // that signs the requests of wire_test.go
}

// newFront starts a front whose account has some rights.
func newFront(t *testing.T, rights ...string) *front {
	t.Helper()
	return newFrontOn(t, memory.New(), rights...)
}

// newFrontOn is newFront on a backend.
func newFrontOn(t *testing.T, backend storagedrivers.Driver, rights ...string) *front {
	t.Helper()
	site := testservice.NewOn(t, backend, limits, func(c *media.Config) {
		account := c.Accounts[testservice.SomeKey]
		account.S3Secret, account.May = secret, rights
		replacing, exact := testservice.On("replacing"), testservice.On("exact")
		replacing.Storage = "any"
		any := c.Storages[1]                                                                                 // exact
		c.Storages = slices.DeleteFunc(c.Storages, func(s media.Storage) bool { return s.Name == "broken" }) // multipart uploads wait for it
		delete(c.FileAliases, "broken")
		delete(c.ImageAliases, "broken")
		any.Name, any.OverwriteStrategy = "any", "overwrite"
		c.Storages = append(c.Storages, any)
		c.FileAliases["docs"] = &media.FileAlias{AliasOptions: replacing, Extensions: []string{"*"}}
		c.FileAliases["keep"] = &media.FileAlias{AliasOptions: exact, Extensions: []string{"*"}}
	})
	handler := s3api.New(site.Gate, s3api.Options{Region: "us-east-1", Domain: "s3.example.com"})
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return &front{client(server.URL, testservice.SomeKey, secret), site, server.URL, testservice.SomeKey}
}

var limits = media.Limits{MaxBody: 64 << 20}

// reload changes the configuration.
func (f *front) reload(t *testing.T, change func(*media.Config)) {
	t.Helper()
	first := f.site.Change
	f.site.Change = func(c *media.Config) {
		first(c)
		change(c)
	}
	f.site.Reload(f.site.Service(t, limits, testservice.Account()))
}

func client(address, key, secret string) *awss3.Client {
	return awss3.New(awss3.Options{
		BaseEndpoint: aws.String(address), Region: "eu-north-1", UsePathStyle: true, RetryMaxAttempts: 1,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: key, SecretAccessKey: secret}, nil
		}),
	})
}

func (f *front) put(t *testing.T, bucket, key, text string) string {
	t.Helper()
	out, err := f.PutObject(t.Context(), &awss3.PutObjectInput{Bucket: &bucket, Key: &key, Body: strings.NewReader(text)})
	if err != nil {
		t.Fatalf("put %s/%s: %v", bucket, key, err)
	}
	return *out.ETag
}

// get returns the bytes of an object, or the code of the error.
func (f *front) get(t *testing.T, bucket, key string) string {
	t.Helper()
	out, err := f.GetObject(t.Context(), &awss3.GetObjectInput{Bucket: &bucket, Key: &key})
	if err != nil {
		return codeOf(err)
	}
	defer out.Body.Close()
	b, err := io.ReadAll(out.Body)
	if err != nil {
		t.Error(err)
	}
	return string(b)
}

// codeOf returns the code of an error; empty for none.
func codeOf(err error) string {
	if err == nil {
		return ""
	}
	if failed, ok := errors.AsType[smithy.APIError](err); ok {
		return failed.ErrorCode()
	}
	return err.Error()
}

func wantCode(t *testing.T, what string, err error, want string) {
	t.Helper()
	if got := codeOf(err); got != want {
		t.Errorf("%s: code %q, want %q: %v", what, got, want, err)
	}
}

// TestBelowPrefix: a client signs the whole path, also if a part of it is removed before the
// handler.
func TestBelowPrefix(t *testing.T) {
	t.Parallel()
	f, ctx := newFront(t, all...), t.Context()
	handler := s3api.New(f.site.Gate, s3api.Options{})
	for _, prefix := range []string{"/s3", "/a/ü x"} {
		server := httptest.NewServer(http.StripPrefix(prefix, handler))
		t.Cleanup(server.Close)
		address := server.URL + (&url.URL{Path: prefix}).EscapedPath()
		below := &front{client(address, f.key, secret), f.site, address, f.key}
		for _, key := range []string{"a.txt", "a/b/ü %20.bin"} {
			below.put(t, docs, key, prefix)
			if got := f.get(t, docs, key); got != prefix {
				t.Errorf("%s below %s: got %q", key, prefix, got)
			}
			if got := below.get(t, docs, key); got != prefix {
				t.Errorf("%s below %s: read %q", key, prefix, got)
			}
		}
		list, err := below.ListObjectsV2(ctx, &awss3.ListObjectsV2Input{Bucket: aws.String(docs), Prefix: aws.String("a/")})
		if err != nil || len(list.Contents) != 1 {
			t.Errorf("list below %s: %+v, %v", prefix, list, err)
		}
		_, err = client(server.URL, f.key, secret).ListBuckets(ctx, nil) // outside of the prefix
		if err == nil {
			t.Error("a request outside of the prefix is answered")
		}
		_, err = client(address, f.key, "another secret, which is long enough").ListBuckets(ctx, nil)
		wantCode(t, "another secret", err, "SignatureDoesNotMatch")
	}
}

func TestObjects(t *testing.T) {
	t.Parallel()
	f, ctx := newFront(t, all...), t.Context()
	for _, key := range []string{"a.txt", "a/b/ü +&=%20'()!.bin", "no-extension", "x.log"} {
		tag := f.put(t, docs, key, "hello "+key)
		if got := f.get(t, docs, key); got != "hello "+key {
			t.Errorf("%s: got %q", key, got)
		}
		head, err := f.HeadObject(ctx, &awss3.HeadObjectInput{Bucket: aws.String(docs), Key: &key})
		if err != nil || *head.ETag != tag || *head.ContentLength != int64(len("hello "+key)) || head.LastModified.IsZero() {
			t.Errorf("%s: head %+v, %v, want tag %s", key, head, err, tag)
		}
		list, err := f.ListObjectsV2(ctx, &awss3.ListObjectsV2Input{Bucket: aws.String(docs), Prefix: &key})
		if err != nil || len(list.Contents) != 1 || *list.Contents[0].ETag != tag || *list.Contents[0].Key != key {
			t.Errorf("%s: list %+v, %v, want tag %s", key, list, err, tag)
		}
		if strings.Count(tag, "-1") != 1 || len(tag) != len(`""-1`)+32 {
			t.Errorf("%s: tag %s", key, tag)
		}
	}
	key := "a.txt"
	if second := f.put(t, docs, key, "hello again"); f.get(t, docs, key) != "hello again" || second == f.put(t, docs, key, "hello three") {
		t.Error("an object is not replaced, or keeps its tag")
	}
	for header, want := range map[string]string{"bytes=0-4": "hello", "bytes=-5": "three", "bytes=6-": "three"} {
		out, err := f.GetObject(ctx, &awss3.GetObjectInput{Bucket: aws.String(docs), Key: &key, Range: &header})
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(out.Body); string(b) != want || err != nil {
			t.Errorf("%s: %q, %v", header, b, err)
		}
	}
	f.put(t, docs, "empty.txt", "")
	for _, key := range []string{key, "empty.txt"} {
		_, err := f.GetObject(ctx, &awss3.GetObjectInput{Bucket: aws.String(docs), Key: &key, Range: aws.String("bytes=100-")})
		wantCode(t, "range behind the end of "+key, err, "InvalidRange")
	}
	out, err := f.GetObject(ctx, &awss3.GetObjectInput{
		Bucket: aws.String(docs), Key: &key, ResponseContentType: aws.String("text/css"), ResponseContentDisposition: aws.String("inline"),
	})
	if err != nil || *out.ContentType != "text/css" || *out.ContentDisposition != "inline" || *out.CacheControl != "private" {
		t.Errorf("overridden header: %+v, %v", out, err)
	}
	out, err = f.GetObject(ctx, &awss3.GetObjectInput{Bucket: aws.String(docs), Key: &key, ResponseContentType: aws.String("text/html")})
	response, _ := middleware.GetRawResponse(out.ResultMetadata).(*smithyhttp.Response)
	if err != nil || *out.ContentType != "text/html" || !strings.Contains(response.Header.Get("Content-Security-Policy"), "sandbox") {
		t.Errorf("a page: %+v, %v", out, err)
	}
	for range 2 {
		_, err = f.DeleteObject(ctx, &awss3.DeleteObjectInput{Bucket: aws.String(docs), Key: &key})
		wantCode(t, "delete", err, "")
	}
	if got := f.get(t, docs, key); got != "NoSuchKey" {
		t.Errorf("after its deletion: %q", got)
	}
	_, err = f.HeadObject(ctx, &awss3.HeadObjectInput{Bucket: aws.String(docs), Key: &key})
	wantCode(t, "head of a missing object", err, "NotFound")
	f.put(t, docs, key, "hello")
	for _, header := range []string{"bytes=-0", "Bytes= -00 "} {
		_, err := f.GetObject(ctx, &awss3.GetObjectInput{Bucket: aws.String(docs), Key: &key, Range: &header})
		wantCode(t, header, err, "InvalidRange")
	}
}

func TestConditions(t *testing.T) {
	t.Parallel()
	f, ctx := newFront(t, all...), t.Context()
	bucket, key := aws.String(docs), aws.String("a.txt")
	put := func(match, none *string) error {
		_, err := f.PutObject(ctx, &awss3.PutObjectInput{Bucket: bucket, Key: key, Body: strings.NewReader("x"), IfMatch: match, IfNoneMatch: none})
		return err
	}
	wantCode(t, "put if there is one", put(aws.String("*"), nil), "NoSuchKey")
	wantCode(t, "put if there is none", put(nil, aws.String("*")), "")
	wantCode(t, "put if there is none, again", put(nil, aws.String("*")), "PreconditionFailed")
	tag := f.put(t, docs, "a.txt", "one")
	wantCode(t, "put of another tag", put(aws.String(`"x"`), nil), "PreconditionFailed")
	wantCode(t, "put of the tag", put(&tag, nil), "")
	wantCode(t, "put of the old tag", put(&tag, nil), "PreconditionFailed")
	tag = f.put(t, docs, "a.txt", "two")
	bare := strings.Trim(tag, `"`)
	for name, tt := range map[string]struct {
		in   awss3.GetObjectInput
		want string
	}{
		"match":            {awss3.GetObjectInput{IfMatch: &tag}, ""},
		"other match":      {awss3.GetObjectInput{IfMatch: aws.String(`"x"`)}, "PreconditionFailed"},
		"none match":       {awss3.GetObjectInput{IfNoneMatch: &tag}, "NotModified"},
		"other none match": {awss3.GetObjectInput{IfNoneMatch: aws.String(`"x"`)}, ""},
	} {
		tt.in.Bucket, tt.in.Key = bucket, key
		_, err := f.GetObject(ctx, &tt.in)
		wantCode(t, name, err, tt.want)
	}
	_, err := f.DeleteObject(ctx, &awss3.DeleteObjectInput{Bucket: bucket, Key: key, IfMatch: aws.String("x")})
	wantCode(t, "delete of another tag", err, "PreconditionFailed")
	_, err = f.DeleteObject(ctx, &awss3.DeleteObjectInput{Bucket: bucket, Key: key, IfMatch: &bare})
	wantCode(t, "delete of the tag without quotes", err, "")
}

// TestKept: items of an alias that keeps them are never replaced.
func TestKept(t *testing.T) {
	t.Parallel()
	f, ctx := newFront(t, all...), t.Context()
	bucket, key := aws.String(keep), aws.String("a/b.txt")
	tag := f.put(t, keep, *key, "one")
	if again := f.put(t, keep, *key, "one"); again != tag {
		t.Errorf("the same bytes: tag %s, want %s", again, tag)
	}
	_, err := f.PutObject(ctx, &awss3.PutObjectInput{Bucket: bucket, Key: key, Body: strings.NewReader("two")})
	wantCode(t, "other bytes", err, "OperationAborted")
	f.put(t, docs, "x.txt", "two")
	_, err = f.CopyObject(ctx, &awss3.CopyObjectInput{Bucket: bucket, Key: key, CopySource: aws.String(docs + "/x.txt")})
	wantCode(t, "copy of other bytes", err, "OperationAborted")
	if got := f.names(t, keep); f.get(t, keep, *key) != "one" || !slices.Equal(got, []string{"a/b.txt"}) {
		t.Errorf("stored: %q", got)
	}
}

// names returns all keys of a bucket.
func (f *front) names(t *testing.T, bucket string) []string {
	t.Helper()
	var names []string
	pages := awss3.NewListObjectsV2Paginator(f.Client, &awss3.ListObjectsV2Input{Bucket: &bucket})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range page.Contents {
			names = append(names, *object.Key)
		}
	}
	return names
}

// TestRefusedObjects: the checks are those of a form. What is refused is not stored.
func TestRefusedObjects(t *testing.T) {
	t.Parallel()
	f, down := newFront(t, all...), memory.New()
	down.Fail = func(string, string) error { return storagedrivers.ErrUnavailable }
	f.reload(t, func(c *media.Config) {
		c.Storages = append(c.Storages, media.Storage{Name: "down", Driver: down, SubFolderFormat: "/"})
		c.FileAliases["broken"] = &media.FileAlias{AliasOptions: testservice.On("down")}
	})
	for name, tt := range map[string]struct{ bucket, key, text, want string }{
		"sanitized":         {"file-content", "A B.txt", "x", "InvalidRequest"},
		"too long":          {docs, strings.Repeat("x", 1025), "x", "InvalidRequest"},
		"storage down":      {"file-broken", "a.txt", "x", "SlowDown"},
		"no bucket":         {"file-nothing", "a.txt", "x", "NoSuchBucket"},
		"no kind":           {"nothing", "a.txt", "x", "NoSuchBucket"},
		"folder with bytes": {docs, "a/", "x", "InvalidRequest"},
	} {
		_, err := f.PutObject(t.Context(), &awss3.PutObjectInput{Bucket: &tt.bucket, Key: &tt.key, Body: strings.NewReader(tt.text)})
		wantCode(t, name, err, tt.want)
	}
	if left := f.site.Keys(t, ""); len(left) > 0 {
		t.Errorf("stored: %q", left)
	}
}

func TestLists(t *testing.T) {
	t.Parallel()
	f, ctx := newFront(t, all...), t.Context()
	keys := []string{"a.txt", "a/1.txt", "a/2.txt", "a/b/3.txt", "b-c/4.txt", "b/5.txt", "b.txt", "ü.txt"}
	for _, key := range keys {
		f.put(t, docs, key, key)
	}
	slices.Sort(keys)
	for name, tt := range map[string]struct {
		in   awss3.ListObjectsV2Input
		want []string
	}{
		"everything":         {awss3.ListObjectsV2Input{}, keys},
		"levels":             {awss3.ListObjectsV2Input{Delimiter: aws.String("/")}, []string{"a.txt", "a/", "b-c/", "b.txt", "b/", "ü.txt"}},
		"a folder":           {awss3.ListObjectsV2Input{Prefix: aws.String("a/"), Delimiter: aws.String("/")}, []string{"a/1.txt", "a/2.txt", "a/b/"}},
		"a beginning":        {awss3.ListObjectsV2Input{Prefix: aws.String("b")}, []string{"b-c/4.txt", "b.txt", "b/5.txt"}},
		"another delimiter":  {awss3.ListObjectsV2Input{Delimiter: aws.String(".")}, []string{"a.", "a/1.", "a/2.", "a/b/3.", "b-c/4.", "b.", "b/5.", "ü."}},
		"after a key":        {awss3.ListObjectsV2Input{StartAfter: aws.String("a/2.txt")}, []string{"a/b/3.txt", "b-c/4.txt", "b.txt", "b/5.txt", "ü.txt"}},
		"after a prefix":     {awss3.ListObjectsV2Input{StartAfter: aws.String("a/"), Delimiter: aws.String("/")}, []string{"b-c/", "b.txt", "b/", "ü.txt"}},
		"within a prefix":    {awss3.ListObjectsV2Input{StartAfter: aws.String("a/1.txt"), Delimiter: aws.String("/")}, []string{"a/", "b-c/", "b.txt", "b/", "ü.txt"}},
		"at its end":         {awss3.ListObjectsV2Input{StartAfter: aws.String("a/b/3.txt"), Delimiter: aws.String("/")}, []string{"b-c/", "b.txt", "b/", "ü.txt"}},
		"within another":     {awss3.ListObjectsV2Input{StartAfter: aws.String("a/1.txt"), Delimiter: aws.String("txt")}, []string{"a/2.txt", "a/b/3.txt", "b-c/4.txt", "b.txt", "b/5.txt", "ü.txt"}},
		"within a beginning": {awss3.ListObjectsV2Input{StartAfter: aws.String("a/1.txt"), Delimiter: aws.String("a")}, []string{"a", "b-c/4.txt", "b.txt", "b/5.txt", "ü.txt"}},
		"nothing":            {awss3.ListObjectsV2Input{Prefix: aws.String("x")}, nil},
		"what cannot be":     {awss3.ListObjectsV2Input{Prefix: aws.String("a//")}, nil},
	} {
		for _, most := range []int32{1, 2, 3, 1000} {
			tt.in.Bucket, tt.in.MaxKeys = aws.String(docs), &most
			var got []string
			pages := awss3.NewListObjectsV2Paginator(f.Client, &tt.in)
			for pages.HasMorePages() {
				page, err := pages.NextPage(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if n := len(page.Contents) + len(page.CommonPrefixes); n > int(most) || int(*page.KeyCount) != n {
					t.Errorf("%s: %d entries of %d, count %d", name, n, most, *page.KeyCount)
				}
				got = append(got, entriesOf(page.Contents, page.CommonPrefixes)...)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("%s, %d at once: %q, want %q", name, most, got, tt.want)
			}
			var old []string
			in := awss3.ListObjectsInput{Bucket: tt.in.Bucket, Prefix: tt.in.Prefix, Delimiter: tt.in.Delimiter, MaxKeys: &most, Marker: tt.in.StartAfter}
			for {
				page, err := f.ListObjects(ctx, &in)
				if err != nil {
					t.Fatal(err)
				}
				old = append(old, entriesOf(page.Contents, page.CommonPrefixes)...)
				if in.Marker = page.NextMarker; !*page.IsTruncated {
					break
				}
			}
			if !slices.Equal(old, tt.want) {
				t.Errorf("%s by markers, %d at once: %q, want %q", name, most, old, tt.want)
			}
		}
	}
	first, err := f.ListObjectsV2(ctx, &awss3.ListObjectsV2Input{Bucket: aws.String(docs), ContinuationToken: aws.String("")})
	if err != nil || len(first.Contents) != len(keys) {
		t.Errorf("an empty token: %+v, %v", first, err)
	}
	_, err = f.ListObjectsV2(ctx, &awss3.ListObjectsV2Input{Bucket: aws.String(docs), ContinuationToken: aws.String("x")})
	wantCode(t, "a wrong token", err, "InvalidArgument")
}

func entriesOf(objects []types.Object, prefixes []types.CommonPrefix) []string {
	names := make([]string, 0, len(objects)+len(prefixes))
	for _, object := range objects {
		names = append(names, *object.Key)
	}
	for _, prefix := range prefixes {
		names = append(names, *prefix.Prefix)
	}
	slices.Sort(names)
	return names
}

func TestCopies(t *testing.T) {
	t.Parallel()
	f, ctx := newFront(t, all...), t.Context()
	tag := f.put(t, docs, "a/ü b.txt", "one")
	for name, tt := range map[string]struct {
		in   awss3.CopyObjectInput
		want string
	}{
		"in the bucket":     {awss3.CopyObjectInput{Bucket: aws.String(docs), Key: aws.String("c.txt"), CopySource: aws.String(docs + "/a/%C3%BC%20b.txt")}, ""},
		"to another bucket": {awss3.CopyObjectInput{Bucket: aws.String(keep), Key: aws.String("c.txt"), CopySource: aws.String("/" + docs + "/a/ü b.txt")}, ""},
		"onto itself": {awss3.CopyObjectInput{
			Bucket: aws.String(docs), Key: aws.String("a/ü b.txt"), CopySource: aws.String(docs + "/a/ü b.txt"), MetadataDirective: types.MetadataDirectiveReplace,
		}, ""},
		"of the tag":       {awss3.CopyObjectInput{Bucket: aws.String(docs), Key: aws.String("d.txt"), CopySource: aws.String(docs + "/a/ü b.txt"), CopySourceIfMatch: &tag}, ""},
		"of another tag":   {awss3.CopyObjectInput{Bucket: aws.String(docs), Key: aws.String("e.txt"), CopySource: aws.String(docs + "/a/ü b.txt"), CopySourceIfMatch: aws.String("x")}, "PreconditionFailed"},
		"but not this tag": {awss3.CopyObjectInput{Bucket: aws.String(docs), Key: aws.String("e.txt"), CopySource: aws.String(docs + "/a/ü b.txt"), CopySourceIfNoneMatch: &tag}, "PreconditionFailed"},
		"of nothing":       {awss3.CopyObjectInput{Bucket: aws.String(docs), Key: aws.String("e.txt"), CopySource: aws.String(docs + "/nothing.txt")}, "NoSuchKey"},
		"of no bucket":     {awss3.CopyObjectInput{Bucket: aws.String(docs), Key: aws.String("e.txt"), CopySource: aws.String("file-nothing/a.txt")}, "NoSuchBucket"},
		"to a refused key": {awss3.CopyObjectInput{Bucket: aws.String(docs), Key: aws.String("e.php"), CopySource: aws.String(docs + "/a/ü b.txt")}, "InvalidRequest"},
		"without a source": {awss3.CopyObjectInput{Bucket: aws.String(docs), Key: aws.String("e.txt"), CopySource: aws.String(docs)}, "InvalidArgument"},
	} {
		out, err := f.CopyObject(ctx, &tt.in)
		wantCode(t, name, err, tt.want)
		if err != nil {
			continue
		}
		if got := f.get(t, *tt.in.Bucket, *tt.in.Key); got != "one" {
			t.Errorf("%s: %q", name, got)
		}
		head, err := f.HeadObject(ctx, &awss3.HeadObjectInput{Bucket: tt.in.Bucket, Key: tt.in.Key})
		if err != nil || *head.ETag != *out.CopyObjectResult.ETag {
			t.Errorf("%s: tags %v and %s, %v", name, out.CopyObjectResult.ETag, *head.ETag, err)
		}
	}
	if got := f.names(t, docs); !slices.Equal(got, []string{"a/ü b.txt", "c.txt", "d.txt"}) {
		t.Errorf("stored: %q", got)
	}
}

func TestDeleteMany(t *testing.T) {
	t.Parallel()
	f, ctx := newFront(t, all...), t.Context()
	objects := make([]types.ObjectIdentifier, 0, 32)
	for i := range 30 {
		key := fmt.Sprintf("a/%d.txt", i)
		f.put(t, docs, key, key)
		objects = append(objects, types.ObjectIdentifier{Key: &key})
	}
	objects = append(objects, types.ObjectIdentifier{Key: aws.String("missing.txt")}, types.ObjectIdentifier{Key: aws.String("a//b")})
	objects[0].ETag = aws.String(`"x"`)
	out, err := f.DeleteObjects(ctx, &awss3.DeleteObjectsInput{Bucket: aws.String(docs), Delete: &types.Delete{Objects: objects}})
	if err != nil || len(out.Deleted) != len(objects)-1 || len(out.Errors) != 1 || *out.Errors[0].Code != "PreconditionFailed" {
		t.Errorf("deleted %d of %d, errors %+v, %v", len(out.Deleted), len(objects), out.Errors, err)
	}
	if got := f.names(t, docs); !slices.Equal(got, []string{"a/0.txt"}) {
		t.Errorf("left: %q", got)
	}
	objects[0].ETag = nil
	out, err = f.DeleteObjects(ctx, &awss3.DeleteObjectsInput{Bucket: aws.String(docs), Delete: &types.Delete{Objects: objects[:1], Quiet: aws.Bool(true)}})
	if err != nil || len(out.Deleted)+len(out.Errors) != 0 || f.names(t, docs) != nil {
		t.Errorf("quiet: %+v, %v", out, err)
	}
	_, err = f.DeleteObjects(ctx, &awss3.DeleteObjectsInput{Bucket: aws.String(docs), Delete: &types.Delete{Objects: slices.Repeat(objects, 40)}})
	wantCode(t, "more than 1,000", err, "MalformedXML")
}

// TestCanned are answers that clients ask for.
func TestCanned(t *testing.T) {
	t.Parallel()
	f, ctx := newFront(t, all...), t.Context()
	bucket, key := aws.String(docs), aws.String("a.txt")
	f.put(t, docs, *key, "x")
	buckets, err := f.ListBuckets(ctx, &awss3.ListBucketsInput{})
	if err != nil || !slices.ContainsFunc(buckets.Buckets, func(b types.Bucket) bool { return *b.Name == pics && b.CreationDate != nil }) {
		t.Errorf("buckets: %+v, %v", buckets, err)
	}
	location, err := f.GetBucketLocation(ctx, &awss3.GetBucketLocationInput{Bucket: bucket})
	if err != nil || location.LocationConstraint != "" {
		t.Errorf("location: %+v, %v", location, err)
	}
	versioning, err := f.GetBucketVersioning(ctx, &awss3.GetBucketVersioningInput{Bucket: bucket})
	if err != nil || versioning.Status != "" {
		t.Errorf("versioning: %+v, %v", versioning, err)
	}
	for name, get := range map[string]func() ([]types.Grant, error){
		"bucket": func() ([]types.Grant, error) {
			out, err := f.GetBucketAcl(ctx, &awss3.GetBucketAclInput{Bucket: bucket})
			return out.Grants, err
		},
		"object": func() ([]types.Grant, error) {
			out, err := f.GetObjectAcl(ctx, &awss3.GetObjectAclInput{Bucket: bucket, Key: key})
			return out.Grants, err
		},
	} {
		grants, err := get()
		if err != nil || len(grants) != 2 || grants[0].Permission != types.PermissionFullControl || grants[1].Permission != types.PermissionRead {
			t.Errorf("access of the %s: %+v, %v", name, grants, err)
		}
	}
	_, err = f.PutObjectAcl(ctx, &awss3.PutObjectAclInput{Bucket: bucket, Key: key, ACL: types.ObjectCannedACLPublicRead})
	wantCode(t, "setting the access", err, "")
	tags, err := f.GetObjectTagging(ctx, &awss3.GetObjectTaggingInput{Bucket: bucket, Key: key})
	if err != nil || len(tags.TagSet) != 0 {
		t.Errorf("tags: %+v, %v", tags, err)
	}
	_, err = f.CreateBucket(ctx, &awss3.CreateBucketInput{Bucket: bucket})
	wantCode(t, "creating a bucket", err, "BucketAlreadyOwnedByYou")
	_, err = f.CreateBucket(ctx, &awss3.CreateBucketInput{Bucket: aws.String("file-nothing")})
	wantCode(t, "creating a bucket that is no alias", err, "NoSuchBucket")
	_, err = f.GetBucketPolicy(ctx, &awss3.GetBucketPolicyInput{Bucket: bucket})
	wantCode(t, "policy", err, "NoSuchBucketPolicy")
	_, err = f.GetBucketCors(ctx, &awss3.GetBucketCorsInput{Bucket: bucket})
	wantCode(t, "cors", err, "NoSuchCORSConfiguration")
	_, err = f.PutBucketVersioning(ctx, &awss3.PutBucketVersioningInput{Bucket: bucket, VersioningConfiguration: &types.VersioningConfiguration{Status: "Enabled"}})
	wantCode(t, "setting versioning", err, "NotImplemented")
	_, err = f.HeadObject(ctx, &awss3.HeadObjectInput{Bucket: bucket, Key: key, VersionId: aws.String("1")})
	wantCode(t, "a version", err, "NotFound")
	_, err = f.HeadObject(ctx, &awss3.HeadObjectInput{Bucket: bucket, Key: aws.String("a/")})
	wantCode(t, "an empty folder", err, "NotFound")
	f.put(t, docs, "a/b.txt", "x")
	folder, err := f.HeadObject(ctx, &awss3.HeadObjectInput{Bucket: bucket, Key: aws.String("a/")})
	if err != nil || *folder.ContentLength != 0 {
		t.Errorf("a folder: %+v, %v", folder, err)
	}
}

// TestExpectedContinue: a client that awaits 100 Continue before a body without bytes gets it, also
// if it is refused. boto3 would take the next answer of the connection for that of this request.
func TestExpectedContinue(t *testing.T) {
	t.Parallel()
	f := newFront(t, all...)
	for length, want := range map[int]int{0: 1, 1: 0} { // a refused body is not asked for
		continued := 0
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(code int, _ textproto.MIMEHeader) error {
			if code == http.StatusContinue {
				continued++
			}
			return nil
		}})
		req, err := http.NewRequestWithContext(ctx, http.MethodPut, f.address+"/"+docs+"/a.txt", strings.NewReader("x"[:length]))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Expect", "100-continue")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if continued != want || resp.StatusCode != http.StatusForbidden {
			t.Errorf("%d bytes: continued %d times, want %d; %s", length, continued, want, resp.Status)
		}
	}
}

// TestStrangers: without the right secret nothing is answered, and too many tries are slowed down.
func TestStrangers(t *testing.T) {
	t.Parallel()
	f := newFront(t, all...)
	f.put(t, docs, "a.txt", "x")
	for name, c := range map[string]*awss3.Client{
		"a wrong secret":              client(f.address, testservice.SomeKey, secret+"x"),
		"an unknown key":              client(f.address, "nobody", secret),
		"an account without S3":       client(f.address, testservice.OtherKey, testservice.Password),
		"an account without, guessed": client(f.address, testservice.OtherKey, "x"),
	} {
		_, err := c.GetObject(t.Context(), &awss3.GetObjectInput{Bucket: aws.String(docs), Key: aws.String("a.txt")})
		wantCode(t, name, err, "SignatureDoesNotMatch")
	}
	resp, err := http.Get(f.address + "/" + docs + "/a.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusForbidden || !bytes.Contains(b, []byte("<Code>AccessDenied</Code>")) {
		t.Errorf("without a signature: %s, %s", resp.Status, b)
	}
	for target, want := range map[string]int{"//" + docs + "/a.txt": http.StatusBadRequest, "/" + docs + "/a.txt?a=%zz": http.StatusBadRequest, "/" + docs + "/a.txt?x=a;b": http.StatusBadRequest} {
		resp, err := http.Get(f.address + target)
		if err != nil {
			t.Fatal(err)
		}
		if resp.Body.Close(); resp.StatusCode != want {
			t.Errorf("%s: %s, want %d", target, resp.Status, want)
		}
	}
	if got := f.get(t, docs, "a.txt"); got != "x" {
		t.Errorf("the right secret: %q", got)
	}
}
