package s3

import (
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/cloudtest"
)

func TestHeaders(t *testing.T) {
	t.Parallel()
	s := real(t)
	for _, checksums := range []string{whenSupported, whenRequired} {
		s.config.Checksums = checksums
		cloudtest.Headers(t, s.cloud(conditions{accepted: true}))
	}
}

// answering answers some requests with nothing but an ETag, instead of the service.
func (s *service) answering(t *testing.T, which func(*http.Request) bool, body string) *service {
	t.Helper()
	return s.behind(t, func(w http.ResponseWriter, r *http.Request, service http.Handler) {
		if !which(r) {
			service.ServeHTTP(w, r)
			return
		}
		w.Header().Set("ETag", `"d41d8cd98f00b204e9800998ecf8427e"`)
		w.Header().Set("Content-Type", "application/xml")
		io.WriteString(w, body)
	})
}

// TestCopyUnsupported: a service that does not copy parts is left as it is.
func TestCopyUnsupported(t *testing.T) {
	t.Parallel()
	copies := func(r *http.Request) bool { return r.Header.Get("X-Amz-Copy-Source") != "" }
	for name, s := range map[string]*service{
		"needs a body":    fake(t),
		"not implemented": fake(t).refusing(t, http.StatusNotImplemented, "NotImplemented", copies),
		"not allowed":     fake(t).refusing(t, http.StatusMethodNotAllowed, "MethodNotAllowed", copies),
		"empty part":      fake(t).answering(t, copies, ""),
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
	ignoring := real(t).answering(t, copies, `<CopyPartResult><ETag>"part"</ETag></CopyPartResult>`)
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
