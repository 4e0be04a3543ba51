package gcs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"cloud.google.com/go/auth"
	gcsdk "cloud.google.com/go/storage"
	"google.golang.org/api/googleapi"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest"
	"github.com/caddymedia/media/storagedrivers/internal/test"
)

func TestMapError(t *testing.T) {
	t.Parallel()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	answer := func(status int, reasons ...string) error {
		err := &googleapi.Error{Code: status}
		for _, reason := range reasons {
			err.Errors = append(err.Errors, googleapi.ErrorItem{Reason: reason})
		}
		return err
	}
	token := func(status int) error {
		return &url.Error{Op: "Get", URL: "x", Err: &auth.Error{Response: &http.Response{StatusCode: status}}}
	}
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	for name, tt := range map[string]struct {
		ctx  context.Context //nolint:containedctx // the case is about it
		err  error
		want error // nil: the error as it is
	}{
		"no object":            {t.Context(), gcsdk.ErrObjectNotExist, fs.ErrNotExist},
		"no bucket":            {t.Context(), fmt.Errorf("x: %w", gcsdk.ErrBucketNotExist), fs.ErrNotExist},
		"404":                  {t.Context(), answer(404), fs.ErrNotExist},
		"401":                  {t.Context(), answer(401, "authError"), fs.ErrPermission},
		"403":                  {t.Context(), answer(403, "forbidden"), fs.ErrPermission},
		"403 of a quota":       {t.Context(), answer(403, "rateLimitExceeded"), storagedrivers.ErrUnavailable},
		"408":                  {t.Context(), answer(408), storagedrivers.ErrUnavailable},
		"410":                  {t.Context(), answer(410), storagedrivers.ErrUnavailable},
		"412":                  {t.Context(), answer(412, "conditionNotMet"), fs.ErrExist},
		"416":                  {t.Context(), answer(416), storagedrivers.ErrInvalidRange},
		"429":                  {t.Context(), answer(429), storagedrivers.ErrUnavailable},
		"500":                  {t.Context(), answer(500), storagedrivers.ErrUnavailable},
		"503":                  {t.Context(), fmt.Errorf("x: %w", answer(503)), storagedrivers.ErrUnavailable},
		"507":                  {t.Context(), answer(507), storagedrivers.ErrNoSpace},
		"400":                  {t.Context(), answer(400), nil},
		"refused token":        {t.Context(), token(400), fs.ErrPermission},
		"failed token":         {t.Context(), token(503), storagedrivers.ErrUnavailable},
		"bad gateway of token": {t.Context(), token(502), storagedrivers.ErrUnavailable},
		"refused connection":   {t.Context(), &url.Error{Op: "Get", URL: "x", Err: refused}, storagedrivers.ErrUnavailable},
		"silence":              {t.Context(), os.ErrDeadlineExceeded, storagedrivers.ErrUnavailable},
		"too many requests":    {t.Context(), &url.Error{Op: "Get", URL: "x", Err: errBreaksOff}, storagedrivers.ErrUnavailable},
		"anything else":        {t.Context(), errors.New("x"), nil},
		"caller left":          {gone, gcsdk.ErrObjectNotExist, context.Canceled},
		"caller left early":    {gone, context.Canceled, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := mapError(tt.ctx, tt.err)
			if !errors.Is(got, tt.err) {
				t.Errorf("%v is no longer %v", got, tt.err)
			}
			if tt.want != nil && !errors.Is(got, tt.want) {
				t.Errorf("%v is not %v", got, tt.want)
			}
			if tt.want == nil && sentinelOf(got) != nil {
				t.Errorf("%v has a meaning", got)
			}
		})
	}
	test.Is(t, mapError(gone, nil), nil, "success is")
}

// TestAnswers: every method maps the errors of the service.
func TestAnswers(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]error{
		http.StatusUnauthorized:        fs.ErrPermission,
		http.StatusForbidden:           fs.ErrPermission,
		http.StatusNotFound:            fs.ErrNotExist,
		http.StatusTooManyRequests:     storagedrivers.ErrUnavailable,
		http.StatusServiceUnavailable:  storagedrivers.ErrUnavailable,
		http.StatusInsufficientStorage: storagedrivers.ErrNoSpace,
	} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(status)
			}))
			defer server.Close()
			d := opened(t, Config{Bucket: "b", Endpoint: server.URL})
			for op, err := range everyMethod(t.Context(), d) {
				test.Is(t, err, want, op)
			}
		})
	}
}

// everyMethod calls every method that sends requests, all at once, and returns the errors by name.
func everyMethod(ctx context.Context, d *driver) map[string]error {
	errs := map[string]error{}
	var mu sync.Mutex
	var calls sync.WaitGroup
	for name, call := range map[string]func() error{
		"open":   func() error { _, _, err := d.Open(ctx, "key", storagedrivers.Range{}); return err },
		"stat":   func() error { _, err := d.Stat(ctx, "key"); return err },
		"list":   func() error { _, err := d.List(ctx, storagedrivers.ListOptions{}); return err },
		"create": func() error { _, err := d.Put(ctx, "key", strings.NewReader("text"), create); return err },
		"large overwrite": func() error {
			_, err := d.Put(ctx, "key", zeros(chunkSize+1), overwrite)
			return err
		},
		"delete": func() error { return d.Delete(ctx, "key", storagedrivers.DeleteOptions{}) },
		"check":  func() error { return d.Check(ctx) },
	} {
		calls.Go(func() {
			err := call()
			mu.Lock()
			defer mu.Unlock()
			errs[name] = err
		})
	}
	calls.Wait()
	return errs
}

func TestMissingBucket(t *testing.T) {
	t.Parallel()
	d := opened(t, Config{Bucket: "nowhere", Endpoint: inProcess(t).Endpoint})
	err := d.Check(t.Context())
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), `bucket "nowhere"`) {
		t.Errorf("checking: error %v", err)
	}
	drivertest.Cause(t, err, "The bucket does not exist. Create it, or correct its name.")
	_, err = d.Put(t.Context(), "key", strings.NewReader("text"), storagedrivers.PutOptions{})
	test.Is(t, err, fs.ErrNotExist, "storing")
}

func TestKeyTooLong(t *testing.T) {
	t.Parallel()
	d := opened(t, Config{Bucket: "b", Endpoint: "http://127.0.0.1:1", Prefix: "prefix"})
	_, err := d.Stat(t.Context(), strings.Repeat("x/", 509)+"x")
	test.Is(t, err, storagedrivers.ErrInvalidKey)
}

// TestConditionsAreSent: the service gets the generation of an ETag, and its refusal means that the
// object has changed. fake-gcs-server ignores it in deletions. A new object has no generation
// before.
func TestConditionsAreSent(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var sent []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Method == http.MethodGet { // whether the object is that of an earlier attempt
			w.WriteHeader(http.StatusNotFound)
			return
		}
		mu.Lock()
		sent = append(sent, r.Method+" "+r.URL.Query().Get("ifGenerationMatch"))
		mu.Unlock()
		w.WriteHeader(http.StatusPreconditionFailed)
	}))
	defer server.Close()
	d := opened(t, Config{Bucket: "b", Endpoint: server.URL})
	opts := storagedrivers.PutOptions{Mode: storagedrivers.Overwrite, IfMatch: `"1234567890123456"`}
	_, small := d.Put(t.Context(), "key", strings.NewReader("text"), opts)
	_, large := d.Put(t.Context(), "key", zeros(chunkSize+1), opts)
	deleted := d.Delete(t.Context(), "key", storagedrivers.DeleteOptions{IfMatch: opts.IfMatch})
	for op, err := range map[string]error{"small": small, "large": large, "delete": deleted} {
		test.Is(t, err, storagedrivers.ErrChanged, op)
	}
	_, err := d.Put(t.Context(), "key", strings.NewReader("text"), storagedrivers.PutOptions{})
	test.Is(t, err, fs.ErrExist, "create")
	test.Equal(t, strings.Join(sent, ", "), "POST 1234567890123456, POST 1234567890123456, DELETE 1234567890123456, POST 0", "sent")
}

// TestOtherETags: no generation is that of an ETag of another service.
func TestOtherETags(t *testing.T) {
	t.Parallel()
	for _, etag := range []string{`"x"`, `""`, `"0"`, `"-5"`, `W/"5"`} {
		test.Equal(t, generationOf(etag), 1, etag)
	}
}
