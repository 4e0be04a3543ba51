package s3

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/cloudtest"
	"github.com/caddymedia/media/storagedrivers/internal/test"
)

// refusing returns the service behind a proxy that refuses some requests.
func (s *service) refusing(t *testing.T, status int, code string, refuse func(*http.Request) bool) *service {
	t.Helper()
	return s.behind(t, func(w http.ResponseWriter, r *http.Request, service http.Handler) {
		if !refuse(r) {
			service.ServeHTTP(w, r)
			return
		}
		io.Copy(io.Discard, r.Body)
		w.WriteHeader(status)
		io.WriteString(w, "<Error><Code>"+code+"</Code></Error>")
	})
}

// after selects requests behind the first n.
func after(n int64, selects func(*http.Request) bool) func(*http.Request) bool {
	var seen atomic.Int64
	return func(r *http.Request) bool { return selects(r) && seen.Add(1) > n }
}

// once selects the first request.
func once(selects func(*http.Request) bool) func(*http.Request) bool {
	var seen atomic.Int64
	return func(r *http.Request) bool { return selects(r) && seen.Add(1) == 1 }
}

func TestWhatTheServiceMakesOfConditions(t *testing.T) {
	t.Parallel()
	conditional := func(r *http.Request) bool { return r.Header.Get("If-None-Match") != "" }
	writes := func(r *http.Request) bool {
		return r.Method != http.MethodGet && strings.Count(strings.Trim(r.URL.Path, "/"), "/") > 0 // an object's
	}
	for name, tt := range map[string]struct {
		service *service
		want    conditions
		err     error
	}{
		"keeps them":      {real(t), conditions{accepted: true, kept: true, compared: true}, nil},
		"ignores some":    {fake(t), conditions{accepted: true}, nil},
		"does not know":   {fake(t).refusing(t, http.StatusNotImplemented, "NotImplemented", conditional), conditions{}, nil},
		"finds it wrong":  {fake(t).refusing(t, http.StatusBadRequest, "InvalidArgument", conditional), conditions{}, nil},
		"forbids":         {fake(t).refusing(t, http.StatusForbidden, "AccessDenied", conditional), conditions{}, nil},
		"wrong signature": {fake(t).refusing(t, http.StatusForbidden, "SignatureDoesNotMatch", conditional), conditions{}, nil},
		"no such method":  {fake(t).refusing(t, http.StatusMethodNotAllowed, "MethodNotAllowed", conditional), conditions{}, nil},
		"fails":           {fake(t).refusing(t, http.StatusInternalServerError, "InternalError", conditional), conditions{}, nil},
		"exists, 409":     {real(t).refusing(t, http.StatusConflict, "ObjectAlreadyExists", after(1, conditional)), conditions{}, nil},
		"exists, 304":     {real(t).refusing(t, http.StatusNotModified, "", after(1, conditional)), conditions{}, nil},
		"refuses parts":   {real(t).refusing(t, http.StatusNotImplemented, "NotImplemented", after(2, conditional)), conditions{}, nil},
		"fails once":      {real(t).refusing(t, http.StatusInternalServerError, "InternalError", once(conditional)), conditions{true, true, true}, nil},
		"conflicts once":  {real(t).refusing(t, http.StatusConflict, "ConditionalRequestConflict", once(conditional)), conditions{true, true, true}, nil},
		"may not write":   {fake(t).refusing(t, http.StatusForbidden, "AccessDenied", writes), conditions{accepted: true}, nil},
		"is out of order": {fake(t).refusing(t, http.StatusServiceUnavailable, "SlowDown", conditional), conditions{}, storagedrivers.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := tt.service.driver(t, tt.service.fresh(t))
			defer d.Close()
			test.Equal(t, d.Features().Create, storagedrivers.BestEffort, "before the experiment")
			if err := d.Check(t.Context()); !errors.Is(err, tt.err) {
				t.Fatalf("checking: %v, want %v", err, tt.err)
			}
			if tt.err != nil {
				return
			}
			test.Equal(t, *d.conditions.Load(), tt.want, "found")
			test.Equal(t, d.Features().Create == storagedrivers.Atomic, tt.want.kept, "atomic is")
			if got := leftovers(t, d); len(got) > 0 {
				t.Errorf("the bucket has %q", got)
			}
		})
	}
}

// TestWithoutConditions: only this process prevents a second creation.
func TestWithoutConditions(t *testing.T) {
	t.Parallel()
	s := fake(t).refusing(t, http.StatusNotImplemented, "NotImplemented", func(r *http.Request) bool {
		return r.Header.Get("If-None-Match") != ""
	})
	d := s.driver(t, s.fresh(t))
	defer d.Close()
	for name, size := range sizes {
		put(t, d, name, content('a', size), create)
		_, err := d.Put(t.Context(), name, content('b', size), create)
		test.Is(t, err, fs.ErrExist, "creating", name, "again")
		has(t, d, name, 'a', size)
	}
	holds(t, d, []string{"whole", "parts"})
}

func TestCheckOfWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := real(t)
	for name, tt := range map[string]struct {
		change func(c *Config)
		is     error
		want   string
	}{
		"bucket": {func(c *Config) { c.Bucket = "missing" }, fs.ErrNotExist, `there is no bucket "missing"`},
		"key":    {func(c *Config) { c.AccessKeyID = "nobody" }, fs.ErrPermission, "UserNotFound"},
		"secret": {func(c *Config) { c.SecretAccessKey = "wrong" }, fs.ErrPermission, "SignatureDoesNotMatch"},
	} {
		c := s.fresh(t)
		tt.change(&c)
		d := s.driver(t, c)
		defer d.Close()
		err := d.Check(t.Context())
		if !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("wrong %s: error %v, want %q", name, err, tt.want)
		}
		_, err = d.Put(t.Context(), "object", content('a', 10), overwrite)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("storing with a wrong %s: error %v", name, err)
		}
	}
}

// TestReplacedAtOnce: the result of an upload is its own object, even if another writer replaces or
// deletes it at once.
func TestReplacedAtOnce(t *testing.T) {
	t.Parallel()
	s := real(t)
	c := s.fresh(t)
	direct := s.driver(t, c)
	for what, do := range map[string]func(key string) error{
		"replaced": func(key string) error {
			_, err := direct.Put(t.Context(), key, content('b', 50), overwrite)
			return err
		},
		"deleted": func(key string) error { return direct.Delete(t.Context(), key, storagedrivers.DeleteOptions{}) },
	} {
		hurried := s.behind(t, func(w http.ResponseWriter, r *http.Request, service http.Handler) {
			service.ServeHTTP(w, r)
			if commits(r) {
				test.Is(t, do(strings.TrimPrefix(r.URL.Path, "/"+c.Bucket+"/")), nil)
			}
		})
		c.Endpoint = hurried.config.Endpoint
		d := hurried.driver(t, c)
		defer d.Close()
		d.conditions.Store(&conditions{accepted: true})
		for name, size := range sizes {
			undisturbed := put(t, direct, "other "+name, content('a', size), overwrite)
			info := put(t, d, name, content('a', size), overwrite)
			if info.Size != int64(size) || info.ETag != undisturbed.ETag || time.Since(info.ModTime) > time.Minute {
				t.Errorf("%s at once: %+v, want %d bytes and the etag %s", what, info, size, undisturbed.ETag)
			}
		}
	}
}

func TestPresign(t *testing.T) {
	t.Parallel()
	s := real(t)
	for _, checksums := range []string{whenSupported, whenRequired} {
		c := s.fresh(t)
		c.Prefix, c.Checksums = "some folder", checksums
		d := s.driver(t, c)
		defer d.Close()
		put(t, d, "a b/ü+.png", content('a', 100), storagedrivers.PutOptions{ContentType: "image/png", CacheControl: "no-store"})
		for _, opts := range []storagedrivers.PresignOptions{
			{Lifetime: time.Minute},
			{
				Lifetime: 7 * 24 * time.Hour, ContentType: "image/x-test", CacheControl: "max-age=60",
				Disposition: `attachment; filename="x y.png"`,
			},
		} {
			address, err := d.Presign(t.Context(), "a b/ü+.png", opts)
			test.Must(t, err)
			answer, err := http.Get(address)
			test.Must(t, err)
			defer answer.Body.Close()
			body, err := io.ReadAll(answer.Body)
			if err != nil || answer.StatusCode != http.StatusOK || string(body) != strings.Repeat("a", 100) {
				t.Errorf("status %d, %d bytes, error %v", answer.StatusCode, len(body), err)
			}
			if opts.ContentType == "" {
				opts.ContentType, opts.CacheControl = "image/png", "no-store"
			}
			for name, want := range map[string]string{
				"Content-Type": opts.ContentType, "Cache-Control": opts.CacheControl, "Content-Disposition": opts.Disposition,
			} {
				test.Equal(t, answer.Header.Get(name), want, name)
			}
		}
	}
}

// TestRangeIgnored: a response with the whole object is cut to the requested range.
func TestRangeIgnored(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", "tag without quotes")
		io.WriteString(w, "0123456789")
	}))
	t.Cleanup(server.Close)
	d := at(t, server.URL)
	for _, tt := range []struct {
		rng  storagedrivers.Range
		want string
		err  error
	}{
		{storagedrivers.Range{}, "0123456789", nil},
		{storagedrivers.Range{Offset: 3}, "3456789", nil},
		{storagedrivers.Range{Offset: 3, Length: 2}, "34", nil},
		{storagedrivers.Range{Length: 2}, "01", nil},
		{storagedrivers.Range{Length: 20}, "0123456789", nil},
		{storagedrivers.Range{Offset: 10}, "", storagedrivers.ErrInvalidRange},
	} {
		body, info, err := d.Open(t.Context(), "object", tt.rng)
		test.Is(t, err, tt.err, tt.rng)
		if err != nil {
			continue
		}
		got, err := io.ReadAll(body)
		if err = errors.Join(err, body.Close()); err != nil || string(got) != tt.want {
			t.Errorf("%+v: %q, error %v, want %q", tt.rng, got, err, tt.want)
		}
		if info.Size != 10 || info.ETag != `"tag without quotes"` {
			t.Errorf("%+v: %+v", tt.rng, info)
		}
	}
}

// comparing is a service that answers conditions of If-Match with a status. The object is missing,
// but not those of experiments.
func comparing(t *testing.T, status func(*http.Request) int) (d *driver, sent func() []string) {
	t.Helper()
	var mu sync.Mutex
	var all []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("X-Amz-Request-Id", "1")
		switch match := r.Header.Get("If-Match"); {
		case match != "":
			mu.Lock()
			all = append(all, r.Method+" "+match)
			mu.Unlock()
			w.WriteHeader(status(r))
			if r.Method == http.MethodPost {
				_, _ = w.Write([]byte(`<CompleteMultipartUploadResult></CompleteMultipartUploadResult>`))
			}
		case r.Header.Get("If-None-Match") != "":
			mu.Lock()
			defer mu.Unlock()
			if all = append(all, r.Method); len(all) > 1 {
				w.WriteHeader(http.StatusPreconditionFailed)
			}
		case r.Method == http.MethodPost && r.URL.Query().Has("uploads"):
			_, _ = w.Write([]byte(`<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>`))
		case r.Method == http.MethodHead && strings.Contains(r.URL.Path, probePrefix):
			w.Header().Set("ETag", `"own"`)
			w.Header().Set("Content-Length", "0")
		case r.Method == http.MethodHead:
			w.WriteHeader(http.StatusNotFound)
		default:
			w.Header().Set("ETag", `"part"`)
		}
	}))
	t.Cleanup(server.Close)
	d = at(t, server.URL)
	return d, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

// TestConditionsAreSent: the service gets the ETag, and its refusal means that the object has
// changed. It also gets the condition that there is no object yet.
func TestConditionsAreSent(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusPreconditionFailed, http.StatusNotFound} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			d, sent := comparing(t, func(*http.Request) int { return status })
			d.conditions.Store(&conditions{accepted: true, kept: true, compared: true})
			opts := storagedrivers.PutOptions{Mode: storagedrivers.Overwrite, IfMatch: `"tag"`}
			for _, size := range []int{100, partSize + 1} {
				_, err := d.Put(t.Context(), "key", content('a', size), opts)
				test.Is(t, err, storagedrivers.ErrChanged, size, "bytes")
			}
			test.Fails(t, d.Delete(t.Context(), "key", storagedrivers.DeleteOptions{IfMatch: opts.IfMatch}), "it is deleted")
			for _, size := range []int{100, partSize + 1} {
				_, err := d.Put(t.Context(), "key", content('a', size), create)
				test.Is(t, err, fs.ErrExist, "creating it with", size, "bytes")
			}
			test.Same(t, sent(), []string{`PUT "tag"`, `POST "tag"`, `DELETE "tag"`, "PUT", "POST"}, "sent")
		})
	}
}

// TestServiceThatComparesPartly: a service compares if it refuses another ETag of an object, of one
// in parts, and of a deletion, and accepts the own one. Before it is known, a deletion finds out.
func TestServiceThatComparesPartly(t *testing.T) {
	t.Parallel()
	for _, ignoring := range []string{"", http.MethodPut, http.MethodPost, http.MethodDelete, "refuses all"} {
		t.Run(ignoring, func(t *testing.T) {
			t.Parallel()
			d, _ := comparing(t, func(r *http.Request) int {
				if r.Method == ignoring || r.Header.Get("If-Match") == `"own"` && ignoring != "refuses all" {
					return http.StatusOK
				}
				return http.StatusPreconditionFailed
			})
			want := errors.ErrUnsupported
			if ignoring == "" {
				want = storagedrivers.ErrChanged
			}
			test.Is(t, d.Delete(t.Context(), "key", storagedrivers.DeleteOptions{IfMatch: `"other"`}), want, "deleting")
			known, err := d.knownConditions(t.Context())
			if err != nil || known.compared != (ignoring == "") {
				t.Errorf("%+v, error %v", known, err)
			}
			if exact := d.Features().Compare == storagedrivers.Atomic; exact != (ignoring == "") {
				t.Errorf("exact: %v", exact)
			}
		})
	}
}

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

// TestCopyCondition: a copy of another generation fails, although the service ignores the condition
// of parts. A service that refuses the right one does not copy.
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
