package s3

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/cloudtest"
)

func TestForeignNames(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *service) {
		never := []string{"in", "in//x", "in/b//x"} // folders are real ones
		if s.inProcess {
			never = []string{"in/g/"}
		}
		cloudtest.Names(t, s.cloud(conditions{accepted: true}), never...)
	})
}

// TestListDecodesNames: names with the encoding url are decoded, because XML cannot contain every
// name.
func TestListDecodesNames(t *testing.T) {
	t.Parallel()
	const encoded, plain = "<EncodingType>url</EncodingType>", ""
	for _, encoding := range []string{encoded, plain} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "<ListBucketResult>"+encoding)
			for _, name := range []string{"c%01d", "a%2Bb+c"} {
				io.WriteString(w, "<Contents><Key>"+name+"</Key></Contents>")
				io.WriteString(w, "<CommonPrefixes><Prefix>"+name+"/</Prefix></CommonPrefixes>")
			}
			io.WriteString(w, "</ListBucketResult>")
		}))
		defer server.Close()
		s := &service{config: Config{Bucket: "bucket", Endpoint: server.URL, AccessKeyID: "i", SecretAccessKey: "s"}}
		d := s.driver(t, s.config)
		defer d.Close()
		page, err := d.List(t.Context(), storagedrivers.ListOptions{Shallow: true})
		got := page.Folders
		for _, info := range page.Objects {
			got = append(got, info.Key)
		}
		want := []string{"c%01d/", "a%2Bb+c/", "c%01d", "a%2Bb+c"}
		if encoding == encoded {
			want = []string{"a+b c/", "a+b c"}
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("listed %q, error %v, want %q", got, err, want)
		}
	}
}

// TestListUndecodable: the error contains a name that is not encoded as the service says.
func TestListUndecodable(t *testing.T) {
	t.Parallel()
	for _, found := range []string{
		"<Contents><Key>100% wool</Key></Contents>",
		"<CommonPrefixes><Prefix>100% wool</Prefix></CommonPrefixes>",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "<ListBucketResult><EncodingType>url</EncodingType>"+found+"</ListBucketResult>")
		}))
		defer server.Close()
		s := &service{config: Config{Bucket: "bucket", Endpoint: server.URL, AccessKeyID: "i", SecretAccessKey: "s"}}
		d := s.driver(t, s.config)
		defer d.Close()
		_, err := d.List(t.Context(), storagedrivers.ListOptions{Shallow: true})
		test.Says(t, err, `"100% wool"`)
	}
}
