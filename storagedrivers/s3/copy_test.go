package s3

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/lostreply"
)

// TestCopy: a copy within the service has the headers of its own options.
func TestCopy(t *testing.T) {
	t.Parallel()
	s := real(t)
	for _, checksums := range []string{whenSupported, whenRequired} {
		c := s.fresh(t)
		c.Prefix, c.Checksums = "some folder+", checksums
		d := s.driver(t, c)
		defer d.Close()
		for _, size := range []int{100, 9 << 20} {
			source := put(t, d, "a b/ü+?%2F.txt", content('a', size), storagedrivers.PutOptions{
				Mode: storagedrivers.Overwrite, ContentType: "text/plain", CacheControl: "no-store",
			})
			opts := storagedrivers.PutOptions{Mode: storagedrivers.Overwrite, ID: "OWN", ContentType: "image/png", Source: &source}
			info, err := d.Put(t.Context(), "b.png", nil, opts)
			test.Must(t, err)
			has(t, d, "b.png", 'a', size)
			if stat, err := d.Stat(t.Context(), "b.png"); err != nil || !stat.Same(info) {
				t.Errorf("copied %+v, found %+v, error %v", info, stat, err)
			}
			head, err := d.client.HeadObject(t.Context(), &awss3.HeadObjectInput{Bucket: &d.bucket, Key: d.name("b.png")})
			if err != nil || aws.ToString(head.ContentType) != "image/png" || aws.ToString(head.CacheControl) != "" ||
				head.Metadata[lostreply.Key] != "OWN" {
				t.Errorf("%+v, error %v", head, err)
			}
		}
	}
}

// emptyParts returns a service that ignores the source of a part.
func emptyParts(t *testing.T) *service {
	t.Helper()
	return fake(t).behind(t, func(inner http.Handler) *httptest.Server {
		return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Amz-Copy-Source") == "" {
				inner.ServeHTTP(w, r)
				return
			}
			w.Header().Set("ETag", `"d41d8cd98f00b204e9800998ecf8427e"`)
		}))
	}, nil)
}

// TestCopyUnsupported: a service that does not copy parts is left as it is.
func TestCopyUnsupported(t *testing.T) {
	t.Parallel()
	copies := func(r *http.Request) bool { return r.Header.Get("X-Amz-Copy-Source") != "" }
	for name, s := range map[string]*service{
		"needs a body":    fake(t),
		"not implemented": fake(t).refusing(t, http.StatusNotImplemented, "NotImplemented", copies),
		"not allowed":     fake(t).refusing(t, http.StatusMethodNotAllowed, "MethodNotAllowed", copies),
		"empty part":      emptyParts(t),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := s.driver(t, s.fresh(t))
			defer d.Close()
			source := put(t, d, "a.txt", content('a', 100), storagedrivers.PutOptions{})
			put(t, d, "b.txt", content('b', 100), storagedrivers.PutOptions{})
			for key, mode := range map[string]storagedrivers.Mode{"b.txt": storagedrivers.Overwrite, "c.txt": storagedrivers.CreateOnly} {
				_, err := d.Put(t.Context(), key, nil, storagedrivers.PutOptions{Mode: mode, Source: &source})
				test.Is(t, err, errors.ErrUnsupported, "copying")
			}
			has(t, d, "b.txt", 'b', 100)
			holds(t, d, []string{"a.txt", "b.txt"})
		})
	}
}

// TestCopyCondition: a copy of another generation fails, although the service ignores the condition of
// parts. A service that refuses the right one does not copy.
func TestCopyCondition(t *testing.T) {
	t.Parallel()
	copies := func(r *http.Request) bool { return r.Header.Get("X-Amz-Copy-Source") != "" }
	ignoring := real(t).behind(t, func(inner http.Handler) *httptest.Server {
		return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if copies(r) {
				w.Header().Set("Content-Type", "application/xml")
				_, _ = w.Write([]byte(`<CopyPartResult><ETag>"part"</ETag></CopyPartResult>`))
				return
			}
			inner.ServeHTTP(w, r)
		}))
	}, nil)
	refusing := real(t).refusing(t, http.StatusPreconditionFailed, "PreconditionFailed", copies)
	range400 := real(t).refusing(t, http.StatusBadRequest, "InvalidArgument", copies)
	range416 := real(t).refusing(t, http.StatusRequestedRangeNotSatisfiable, "InvalidRange", copies)
	for name, tt := range map[string]struct {
		s    *service
		left string // the content of the source
		want error
	}{
		"ignored, replaced": {ignoring, "b", storagedrivers.ErrChanged},
		"ignored, removed":  {ignoring, "", storagedrivers.ErrChanged},
		"refused":           {refusing, "a", errors.ErrUnsupported},
		"refused, replaced": {refusing, "b", storagedrivers.ErrChanged},
		"refused, removed":  {refusing, "", storagedrivers.ErrChanged},
		"shorter":           {real(t), "short", storagedrivers.ErrChanged},
		"range, refused":    {range400, "a", errors.ErrUnsupported},
		"range, replaced":   {range400, "b", storagedrivers.ErrChanged},
		"no range":          {range416, "b", storagedrivers.ErrChanged},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := tt.s.driver(t, tt.s.fresh(t))
			defer d.Close()
			source := put(t, d, "a.txt", content('a', 100), storagedrivers.PutOptions{})
			left := []string{"a.txt"}
			switch tt.left {
			case "":
				test.Must(t, d.Delete(t.Context(), "a.txt", storagedrivers.DeleteOptions{}))
				left = nil
			case "short":
				put(t, d, "a.txt", content('b', 50), storagedrivers.PutOptions{Mode: storagedrivers.Overwrite})
			case "b":
				put(t, d, "a.txt", content('b', 100), storagedrivers.PutOptions{Mode: storagedrivers.Overwrite})
			}
			_, err := d.Put(t.Context(), "b.txt", nil, storagedrivers.PutOptions{Source: &source})
			test.Is(t, err, tt.want, "copying")
			holds(t, d, left)
		})
	}
}
