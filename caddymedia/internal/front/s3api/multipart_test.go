package s3api_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/caddymedia/media/caddymedia/internal/front/s3api"
	"github.com/caddymedia/media/caddymedia/internal/test/testservice"
	"github.com/caddymedia/media/caddymedia/media"
)

// multipart is a multipart upload under way.
type multipart struct {
	*front
	bucket, key, id string
	parts           []types.CompletedPart
}

func (f *front) begin(t *testing.T, bucket, key string) *multipart {
	t.Helper()
	out, err := f.CreateMultipartUpload(t.Context(), &awss3.CreateMultipartUploadInput{Bucket: &bucket, Key: &key})
	if err != nil {
		t.Fatal(err)
	}
	return &multipart{front: f, bucket: bucket, key: key, id: *out.UploadId}
}

// send sends a part, and takes it for the object if it is stored.
func (m *multipart) send(t *testing.T, number int32, part []byte) error {
	t.Helper()
	out, err := m.UploadPart(t.Context(), &awss3.UploadPartInput{
		Bucket: &m.bucket, Key: &m.key, UploadId: &m.id, PartNumber: &number, Body: bytes.NewReader(part),
	})
	if err == nil {
		m.parts = slices.DeleteFunc(m.parts, func(p types.CompletedPart) bool { return *p.PartNumber == number })
		m.parts = append(m.parts, types.CompletedPart{PartNumber: &number, ETag: out.ETag})
		slices.SortFunc(m.parts, func(a, b types.CompletedPart) int { return int(*a.PartNumber - *b.PartNumber) })
	}
	return err
}

func (m *multipart) mustSend(t *testing.T, number int32, part []byte) {
	t.Helper()
	if err := m.send(t, number, part); err != nil {
		t.Fatal(err)
	}
}

// complete completes the upload with parts, and returns the entity tag of the object.
func (m *multipart) complete(t *testing.T, parts ...types.CompletedPart) (string, error) {
	t.Helper()
	out, err := m.CompleteMultipartUpload(t.Context(), &awss3.CompleteMultipartUploadInput{
		Bucket: &m.bucket, Key: &m.key, UploadId: &m.id, MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
	})
	if err != nil {
		return "", err
	}
	return *out.ETag, nil
}

// randomBytes are too random for a part to be mistaken for another one.
func randomBytes(size int) []byte {
	b := make([]byte, size)
	_, _ = rand.Read(b) // it never fails
	return b
}

const least = 5 << 20

func TestMultipart(t *testing.T) {
	t.Parallel()
	f, ctx := newFront(t, all...), t.Context()
	m := f.begin(t, docs, "a/big.bin")
	first, second, third := randomBytes(least), randomBytes(least+1), randomBytes(10)
	m.mustSend(t, 3, third)
	m.mustSend(t, 1, second)
	replaced := m.parts[0]
	m.mustSend(t, 1, first) // again, with other bytes
	m.mustSend(t, 2, second)
	m.mustSend(t, 7, third) // not part of the object
	listed, err := f.ListParts(ctx, &awss3.ListPartsInput{Bucket: &m.bucket, Key: &m.key, UploadId: &m.id, MaxParts: aws.Int32(3)})
	if err != nil || len(listed.Parts) != 3 || *listed.Parts[0].Size != least || *listed.Parts[2].PartNumber != 3 || !*listed.IsTruncated {
		t.Errorf("parts: %+v, %v", listed, err)
	}
	rest, err := f.ListParts(ctx, &awss3.ListPartsInput{Bucket: &m.bucket, Key: &m.key, UploadId: &m.id, PartNumberMarker: listed.NextPartNumberMarker})
	if err != nil || len(rest.Parts) != 1 || *rest.Parts[0].PartNumber != 7 || *rest.IsTruncated {
		t.Errorf("other parts: %+v, %v", rest, err)
	}
	open, err := f.ListMultipartUploads(ctx, &awss3.ListMultipartUploadsInput{Bucket: &m.bucket})
	if err != nil || len(open.Uploads) != 1 || *open.Uploads[0].Key != m.key || *open.Uploads[0].UploadId != m.id {
		t.Errorf("uploads: %+v, %v", open, err)
	}
	if names := f.names(t, docs); names != nil {
		t.Errorf("stored before its completion: %q", names)
	}
	_, err = m.complete(t, replaced, m.parts[1], m.parts[2])
	wantCode(t, "completion with the part that was sent again", err, "InvalidPart")
	tag, err := m.complete(t, m.parts[:3]...)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := m.complete(t, m.parts[:3]...); again != tag || err != nil {
		t.Errorf("completed again: %s, %v, want %s", again, err, tag)
	}
	head, err := f.HeadObject(ctx, &awss3.HeadObjectInput{Bucket: &m.bucket, Key: &m.key})
	if err != nil || *head.ETag != tag || f.get(t, docs, m.key) != string(slices.Concat(first, second, third)) {
		t.Errorf("the object: %+v, %v", head, err)
	}
	wantCode(t, "a part after the completion", m.send(t, 4, third), "NoSuchUpload")
	m.wantNothingLeft(t)
}

// TestMultipartFolders: uploads behind a delimiter are one entry of the list, on pages of any size.
func TestMultipartFolders(t *testing.T) {
	t.Parallel()
	f := newFront(t, all...)
	for _, key := range []string{"a.bin", "a/1.bin", "a/2.bin", "a/b/3.bin", "b.bin", "b.bin", "c/4.bin"} {
		f.begin(t, docs, key)
	}
	for _, tt := range []struct {
		prefix, delimiter string
		want              []string
	}{
		{"", "", []string{"a.bin", "a/1.bin", "a/2.bin", "a/b/3.bin", "b.bin", "b.bin", "c/4.bin"}},
		{"", "/", []string{"a.bin", "a/", "b.bin", "b.bin", "c/"}},
		{"a/", "/", []string{"a/1.bin", "a/2.bin", "a/b/"}},
	} {
		for _, most := range []int32{1, 2, 1000} {
			var got []string
			in := awss3.ListMultipartUploadsInput{Bucket: aws.String(docs), Prefix: &tt.prefix, Delimiter: &tt.delimiter, MaxUploads: &most}
			for more := true; more && len(got) < 20; {
				page, err := f.ListMultipartUploads(t.Context(), &in)
				if err != nil || len(page.Uploads)+len(page.CommonPrefixes) > int(most) {
					t.Fatalf("%+v, %v", page, err)
				}
				for _, u := range page.Uploads {
					got = append(got, *u.Key)
				}
				for _, p := range page.CommonPrefixes {
					got = append(got, *p.Prefix)
				}
				in.KeyMarker, in.UploadIdMarker, more = page.NextKeyMarker, page.NextUploadIdMarker, *page.IsTruncated
			}
			if slices.Sort(got); !slices.Equal(got, tt.want) {
				t.Errorf("%q by %q, %d at once: %q, want %q", tt.prefix, tt.delimiter, most, got, tt.want)
			}
		}
	}
}

// wantNothingLeft asserts that no part of any upload is stored.
func (m *multipart) wantNothingLeft(t *testing.T) {
	t.Helper()
	for _, key := range m.site.Keys(t, "@uploads/") {
		if !strings.HasPrefix(key, "@uploads/done/") {
			t.Errorf("left: %s", key)
		}
	}
}

func TestMultipartRefusals(t *testing.T) {
	t.Parallel()
	f := newFront(t, all...)
	for key, want := range map[string]string{"a.php": "InvalidRequest", "a//b": "InvalidRequest", "a.txt": ""} {
		_, err := f.CreateMultipartUpload(t.Context(), &awss3.CreateMultipartUploadInput{Bucket: aws.String(docs), Key: &key})
		wantCode(t, key, err, want)
	}
	m := f.begin(t, docs, "a.bin")
	m.mustSend(t, 1, randomBytes(100))
	m.mustSend(t, 2, randomBytes(100))
	other := f.begin(t, docs, "b.bin")
	other.mustSend(t, 1, randomBytes(100))
	for name, tt := range map[string]struct {
		parts []types.CompletedPart
		want  string
	}{
		"a small part":          {m.parts, "EntityTooSmall"},
		"no part":               {nil, "MalformedXML"},
		"another order":         {[]types.CompletedPart{m.parts[1], m.parts[0]}, "InvalidPartOrder"},
		"twice":                 {[]types.CompletedPart{m.parts[0], m.parts[0]}, "InvalidPartOrder"},
		"of another upload":     {other.parts, "InvalidPart"},
		"under another number":  {[]types.CompletedPart{{PartNumber: aws.Int32(3), ETag: m.parts[0].ETag}}, "InvalidPart"},
		"of no tag":             {[]types.CompletedPart{{PartNumber: aws.Int32(1), ETag: aws.String(`"x"`)}}, "InvalidPart"},
		"of a tag that is none": {[]types.CompletedPart{{PartNumber: aws.Int32(1), ETag: aws.String(strings.Replace(*m.parts[0].ETag, "2", "3", 3))}}, "InvalidPart"},
	} {
		_, err := m.complete(t, tt.parts...)
		wantCode(t, name, err, tt.want)
	}
	wantCode(t, "number 0", m.send(t, 0, nil), "InvalidArgument")
	wantCode(t, "number 10,001", m.send(t, 10_001, nil), "InvalidArgument")
	for name, change := range map[string]func(*multipart){
		"another key":    func(m *multipart) { m.key = "c.bin" },
		"another bucket": func(m *multipart) { m.bucket = keep },
		"no upload":      func(m *multipart) { m.id = "x" },
		"a part":         func(m *multipart) { m.id = strings.TrimSuffix(strings.Trim(*m.parts[0].ETag, `"`), "-1") },
	} {
		changed := *m
		change(&changed)
		wantCode(t, name, changed.send(t, 1, randomBytes(100)), "NoSuchUpload")
	}
	elsewhere := *m
	elsewhere.key = "c.bin"
	_, err := elsewhere.complete(t, m.parts[0])
	wantCode(t, "completion under another key", err, "NoSuchUpload")
	if _, err := m.complete(t, m.parts[0]); err != nil { // a refused completion ends nothing
		t.Error(err)
	}
	_, err = elsewhere.complete(t, m.parts[0])
	wantCode(t, "completion under another key, again", err, "NoSuchUpload")
	if got := f.names(t, docs); !slices.Equal(got, []string{"a.bin"}) {
		t.Errorf("stored: %q", got)
	}
	small := f.begin(t, "file-small", "a.txt")
	wantCode(t, "a part that is larger than an item may be", small.send(t, 1, randomBytes(100)), "EntityTooLarge")
	image := f.begin(t, pics, "a.png")
	image.mustSend(t, 1, randomBytes(100))
	_, err = image.complete(t, image.parts...)
	wantCode(t, "no image", err, "InvalidRequest")
}

func TestAbortedMultipart(t *testing.T) {
	t.Parallel()
	f, ctx := newFront(t, all...), t.Context()
	m := f.begin(t, docs, "a.bin")
	m.mustSend(t, 1, randomBytes(100))
	m.mustSend(t, 1, randomBytes(100))
	abort := func() error {
		_, err := f.AbortMultipartUpload(ctx, &awss3.AbortMultipartUploadInput{Bucket: &m.bucket, Key: &m.key, UploadId: &m.id})
		return err
	}
	wantCode(t, "abort", abort(), "")
	wantCode(t, "abort again", abort(), "NoSuchUpload")
	wantCode(t, "a part after it", m.send(t, 2, randomBytes(100)), "NoSuchUpload")
	_, err := m.complete(t, m.parts...)
	wantCode(t, "complete after it", err, "NoSuchUpload")
	if left := f.site.Keys(t, ""); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

func TestMultipartCopies(t *testing.T) {
	t.Parallel()
	f, ctx := newFront(t, all...), t.Context()
	source := randomBytes(2*least + 7)
	f.put(t, docs, "source.bin", string(source))
	m := f.begin(t, keep, "copy.bin")
	for i, part := range []string{"bytes=0-5242879", "bytes=5242880-10485766"} {
		out, err := f.UploadPartCopy(ctx, &awss3.UploadPartCopyInput{
			Bucket: &m.bucket, Key: &m.key, UploadId: &m.id, PartNumber: aws.Int32(int32(i + 1)), CopySource: aws.String(docs + "/source.bin"), CopySourceRange: &part,
		})
		if err != nil {
			t.Fatal(err)
		}
		m.parts = append(m.parts, types.CompletedPart{PartNumber: aws.Int32(int32(i + 1)), ETag: out.CopyPartResult.ETag})
	}
	if _, err := m.complete(t, m.parts...); err != nil || f.get(t, keep, m.key) != string(source) {
		t.Errorf("a copy in parts: %v", err)
	}
	for header, want := range map[string]string{"bytes=0-99999999": "InvalidRange", "0-2": "InvalidArgument", "bytes=2-1": "InvalidArgument", "bytes=0-": "InvalidArgument"} {
		_, err := f.UploadPartCopy(ctx, &awss3.UploadPartCopyInput{
			Bucket: &m.bucket, Key: &m.key, UploadId: &m.id, PartNumber: aws.Int32(1), CopySource: aws.String(docs + "/source.bin"), CopySourceRange: &header,
		})
		wantCode(t, header, err, want)
	}
}

// TestRefusedCompletion: a completion whose condition does not hold is never made up for without
// its client.
func TestRefusedCompletion(t *testing.T) {
	t.Parallel()
	f := newFront(t, all...)
	f.put(t, docs, "a.bin", "old")
	m := f.begin(t, docs, "a.bin")
	m.mustSend(t, 1, []byte("new"))
	before := f.site.Keys(t, "")
	_, err := f.CompleteMultipartUpload(t.Context(), &awss3.CompleteMultipartUploadInput{
		Bucket: &m.bucket, Key: &m.key, UploadId: &m.id, IfNoneMatch: aws.String("*"), MultipartUpload: &types.CompletedMultipartUpload{Parts: m.parts},
	})
	wantCode(t, "completion if there is none", err, "PreconditionFailed")
	if got := f.get(t, docs, "a.bin"); got != "old" {
		t.Errorf("stored: %q", got)
	}
	if after := f.site.Keys(t, ""); !slices.Equal(after, before) {
		t.Errorf("after the refusal: %q, want %q", after, before)
	}
	if _, err := m.complete(t, m.parts...); err != nil || f.get(t, docs, "a.bin") != "new" {
		t.Errorf("completed without the condition: %v, %q", err, f.get(t, docs, "a.bin"))
	}
}

// TestMultipartAtOnce completes one upload several times at once: one item is stored, and all get
// its tag.
func TestMultipartAtOnce(t *testing.T) {
	t.Parallel()
	f := newFront(t, all...)
	m := f.begin(t, keep, "a.bin")
	m.mustSend(t, 1, randomBytes(least))
	m.mustSend(t, 2, randomBytes(9))
	var group sync.WaitGroup
	tags := make([]string, 5)
	for i := range tags {
		group.Go(func() {
			var err error
			if tags[i], err = m.complete(t, m.parts...); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if slices.Sort(tags); len(slices.Compact(tags)) != 1 || !slices.Equal(f.names(t, keep), []string{"a.bin"}) {
		t.Errorf("tags %q, stored %q", tags, f.names(t, keep))
	}
	m.wantNothingLeft(t)
}

// TestMultipartCounts: an upload counts as one, however many parts it has.
func TestMultipartCounts(t *testing.T) {
	t.Parallel()
	f := newFront(t, all...)
	f.reload(t, func(c *media.Config) { c.Resumable = media.Resumable{MaxOpen: 2} })
	m, other := f.begin(t, docs, "a.bin"), f.begin(t, docs, "b.bin")
	for number := range int32(5) {
		m.mustSend(t, number+1, randomBytes(10))
	}
	other.mustSend(t, 1, randomBytes(10))
	_, err := f.CreateMultipartUpload(t.Context(), &awss3.CreateMultipartUploadInput{Bucket: aws.String(docs), Key: aws.String("c.bin")})
	wantCode(t, "a third upload", err, "SlowDown")
	if _, err := m.complete(t, m.parts[0]); err != nil { // although all are open
		t.Error(err)
	}
}

// TestOverTLS: there clients sign no bytes, and send checksums behind them.
func TestOverTLS(t *testing.T) {
	t.Parallel()
	plain := newFront(t, all...)
	server := httptest.NewTLSServer(s3api.New(plain.site.Gate, s3api.Options{}))
	t.Cleanup(server.Close)
	c := awss3.New(awss3.Options{
		BaseEndpoint: &server.URL, Region: "us-east-1", UsePathStyle: true, HTTPClient: server.Client(), RetryMaxAttempts: 1,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: testservice.SomeKey, SecretAccessKey: secret}, nil
		}),
	})
	f := &front{c, plain.site, server.URL, testservice.SomeKey}
	for name, algorithm := range map[string]types.ChecksumAlgorithm{"a.txt": "", "b.txt": "CRC32C", "c.txt": "CRC64NVME", "d.txt": "SHA1", "e.txt": "SHA256"} {
		_, err := f.PutObject(t.Context(), &awss3.PutObjectInput{
			Bucket: aws.String(docs), Key: &name, Body: io.MultiReader(strings.NewReader("a stream "), strings.NewReader(name)), ChecksumAlgorithm: algorithm,
			ContentLength: aws.Int64(int64(len("a stream " + name))),
		})
		if err != nil || f.get(t, docs, name) != "a stream "+name {
			t.Errorf("%s: %v, stored %q", algorithm, err, f.get(t, docs, name))
		}
	}
	large := string(randomBytes(16<<20 + 1)) // in one chunk
	if f.put(t, docs, "large.bin", large); f.get(t, docs, "large.bin") != large {
		t.Error("a large object is another one")
	}
	m := f.begin(t, docs, "big.bin")
	m.mustSend(t, 1, randomBytes(least))
	m.mustSend(t, 2, randomBytes(5))
	if _, err := m.complete(t, m.parts...); err != nil {
		t.Error(err)
	}
}

// TestPartDuringAbort: a part that arrives while its upload is aborted is not stored.
func TestPartDuringAbort(t *testing.T) {
	t.Parallel()
	f := newFront(t, all...)
	m := f.begin(t, docs, "a.bin")
	presigned, err := awss3.NewPresignClient(f.Client).PresignUploadPart(t.Context(), &awss3.UploadPartInput{
		Bucket: &m.bucket, Key: &m.key, UploadId: &m.id, PartNumber: aws.Int32(1),
	})
	if err != nil {
		t.Fatal(err)
	}
	aborted := make(chan error, 1) // the part may be refused before that is answered
	body := &reloading{Reader: strings.NewReader("hello"), reload: func() {
		_, err := f.AbortMultipartUpload(t.Context(), &awss3.AbortMultipartUploadInput{Bucket: &m.bucket, Key: &m.key, UploadId: &m.id})
		aborted <- err
	}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, presigned.URL, body)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := <-aborted; err != nil {
		t.Error(err)
	}
	if left := f.site.Keys(t, ""); resp.StatusCode != http.StatusNotFound || len(left) > 0 {
		t.Errorf("%s, left %q", resp.Status, left)
	}
}

// reloading is a body that ends after a change of the server.
type reloading struct {
	io.Reader
	reload func()
	once   sync.Once
}

func (r *reloading) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil {
		r.once.Do(r.reload)
	}
	return n, err
}
