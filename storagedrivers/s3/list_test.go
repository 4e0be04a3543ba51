package s3

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
)

func TestForeignNames(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		service *service
		foreign []string
	}{
		"gofakes3":  {fake(t), []string{"mine/", "mine/a//b", "mine/x/", "mine", "mine2", "other/x"}},
		"versitygw": {real(t), []string{"mine/.hidden", "mine/a/.up-1", "mine/end.", "mine/x/", "mine2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := tt.service.fresh(t)
			c.Prefix = "mine"
			d := tt.service.driver(t, c)
			defer d.Close()
			for _, name := range tt.foreign {
				_, err := d.client.PutObject(t.Context(), &awss3.PutObjectInput{Bucket: &d.bucket, Key: &name})
				test.Must(t, err, "storing", name)
			}
			put(t, d, "a/b", content('a', 1), create)
			put(t, d, "z+ %41", content('a', 1), create)
			var got []string
			opts := storagedrivers.ListOptions{Limit: 2}
			for {
				page, err := d.List(t.Context(), opts)
				test.Must(t, err)
				for _, info := range page.Objects {
					got = append(got, info.Key)
				}
				if opts.Cursor = page.Next; opts.Cursor == "" {
					break
				}
			}
			test.Same(t, got, []string{"a/b", "z+ %41"}, "listed")
		})
	}
}

// TestLevelOfForeignNames: a folder that cannot begin a valid key is not listed.
func TestLevelOfForeignNames(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		service *service
		foreign []string
	}{
		"gofakes3":  {fake(t), []string{"mine/.hidden/x", "mine//x", "mine/end./x", "mine/", "mine2/x"}},
		"versitygw": {real(t), []string{"mine/.hidden/x", "mine/end./x", "mine/", "mine2/x"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := tt.service.fresh(t)
			c.Prefix = "mine"
			d := tt.service.driver(t, c)
			defer d.Close()
			for _, name := range tt.foreign {
				_, err := d.client.PutObject(t.Context(), &awss3.PutObjectInput{Bucket: &d.bucket, Key: &name})
				test.Must(t, err, "storing", name)
			}
			put(t, d, "a/b", content('a', 1), create)
			put(t, d, "a/c", content('a', 1), create)
			put(t, d, "z+ %41/c", content('a', 1), create)
			for _, limit := range []int{1, 2, 10} {
				var got []string
				opts := storagedrivers.ListOptions{Limit: limit, Shallow: true}
				for {
					page, err := d.List(t.Context(), opts)
					if err != nil || len(page.Objects) > 0 {
						t.Fatalf("objects %+v, error %v", page.Objects, err)
					}
					got = append(got, page.Folders...)
					if opts.Cursor = page.Next; opts.Cursor == "" {
						break
					}
				}
				test.Same(t, got, []string{"a/", "z+ %41/"}, "by", limit, "listed")
			}
		})
	}
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
