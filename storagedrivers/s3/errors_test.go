package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest"
	"github.com/caddymedia/media/storagedrivers/internal/test"
)

var sentinels = []error{
	fs.ErrNotExist, fs.ErrExist, fs.ErrPermission, storagedrivers.ErrInvalidKey,
	storagedrivers.ErrInvalidRange, storagedrivers.ErrNoSpace, storagedrivers.ErrUnavailable,
}

// answering returns a driver of a service that always returns the same response.
func answering(t *testing.T, status int, code string, header http.Header) *driver {
	t.Helper()
	return at(t, startAnswering(t, status, code, header))
}

// startAnswering starts a service that always returns the same response, and returns its address.
func startAnswering(t *testing.T, status int, code string, header http.Header) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		maps.Copy(w.Header(), header)
		w.WriteHeader(status)
		if code != "" && r.Method != http.MethodHead {
			fmt.Fprintf(w, "<Error><Code>%s</Code><Message>no</Message></Error>", code)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status    int
		code      string
		put, open error
	}{
		{http.StatusNotFound, "NoSuchKey", fs.ErrNotExist, fs.ErrNotExist},
		{http.StatusNotFound, "NoSuchBucket", nil, nil},
		{http.StatusNotFound, "XAdminUserNotFound", fs.ErrPermission, fs.ErrPermission},
		{http.StatusNotFound, "", fs.ErrNotExist, fs.ErrNotExist},
		{http.StatusNotFound, "NoSuchEndpoint", nil, nil},
		{http.StatusNotFound, "NoSuchUpload", storagedrivers.ErrUnavailable, storagedrivers.ErrUnavailable},
		{http.StatusPreconditionFailed, "PreconditionFailed", fs.ErrExist, fs.ErrExist},
		{http.StatusPreconditionFailed, "", fs.ErrExist, fs.ErrExist},
		{http.StatusConflict, "ConditionalRequestConflict", storagedrivers.ErrUnavailable, storagedrivers.ErrUnavailable},
		{http.StatusConflict, "OperationAborted", storagedrivers.ErrUnavailable, storagedrivers.ErrUnavailable},
		{http.StatusConflict, "ObjectParentIsFile", storagedrivers.ErrInvalidKey, fs.ErrNotExist},
		{http.StatusBadRequest, "XMinioParentIsObject", storagedrivers.ErrInvalidKey, fs.ErrNotExist},
		{http.StatusBadRequest, "KeyTooLongError", storagedrivers.ErrInvalidKey, fs.ErrNotExist},
		{http.StatusBadRequest, "InvalidArgument", nil, nil},
		{http.StatusBadRequest, "ExpiredToken", fs.ErrPermission, fs.ErrPermission},
		{http.StatusBadRequest, "RequestTimeout", storagedrivers.ErrUnavailable, storagedrivers.ErrUnavailable},
		{http.StatusUnauthorized, "", fs.ErrPermission, fs.ErrPermission},
		{http.StatusForbidden, "", fs.ErrPermission, fs.ErrPermission},
		{http.StatusForbidden, "AccessDenied", fs.ErrPermission, fs.ErrPermission},
		{http.StatusForbidden, "SignatureDoesNotMatch", fs.ErrPermission, fs.ErrPermission},
		{http.StatusForbidden, "QuotaExceeded", storagedrivers.ErrNoSpace, storagedrivers.ErrNoSpace},
		{http.StatusRequestedRangeNotSatisfiable, "InvalidRange", storagedrivers.ErrInvalidRange, storagedrivers.ErrInvalidRange},
		{http.StatusTooManyRequests, "", storagedrivers.ErrUnavailable, storagedrivers.ErrUnavailable},
		{http.StatusInternalServerError, "InternalError", storagedrivers.ErrUnavailable, storagedrivers.ErrUnavailable},
		{http.StatusServiceUnavailable, "SlowDown", storagedrivers.ErrUnavailable, storagedrivers.ErrUnavailable},
		{http.StatusInsufficientStorage, "XMinioStorageFull", storagedrivers.ErrNoSpace, storagedrivers.ErrNoSpace},
		{http.StatusNotImplemented, "NotImplemented", nil, nil},
	} {
		t.Run(fmt.Sprint(tt.status, " ", tt.code), func(t *testing.T) {
			t.Parallel()
			d := answering(t, tt.status, tt.code, nil)
			overwrite := storagedrivers.PutOptions{Mode: storagedrivers.Overwrite}
			_, err := d.Put(t.Context(), "object", strings.NewReader("content"), overwrite)
			matches(t, "put", err, tt.put)
			_, _, err = d.Open(t.Context(), "object", storagedrivers.Range{})
			matches(t, "open", err, tt.open)
			matches(t, "delete", d.Delete(t.Context(), "object", storagedrivers.DeleteOptions{}), tt.open)
			_, err = d.List(t.Context(), storagedrivers.ListOptions{})
			matches(t, "list", err, tt.put)
		})
	}
}

// matches asserts that an error matches want and no other sentinel; nil is no sentinel at all.
func matches(t *testing.T, what string, err, want error) {
	t.Helper()
	test.Fails(t, err, what)
	for _, sentinel := range sentinels {
		if errors.Is(err, sentinel) != (sentinel == want) { //nolint:errorlint // the very value is meant
			t.Errorf("%s: error %v, want %v", what, err, want)
		}
	}
}

func TestErrorsOfTheCallerAndTheSourceStay(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	d := answering(t, http.StatusServiceUnavailable, "SlowDown", nil)
	_, err := d.Stat(ended, "object")
	matches(t, "stat after the deadline", err, nil)
	test.Is(t, err, context.DeadlineExceeded, "stat after the deadline")
	_, err = d.Stat(t.Context(), "object")
	if err = mapError(ended, err); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an answer after the deadline: %v", err)
	}
	short := &lyingSource{Reader: strings.NewReader("short"), size: 100}
	_, err = d.Put(t.Context(), "object", short, storagedrivers.PutOptions{Mode: storagedrivers.Overwrite})
	matches(t, "a source that ends early", err, nil)
	test.Is(t, err, io.ErrUnexpectedEOF, "a source that ends early")
}

// lyingSource is a source that reports a larger size than it has.
type lyingSource struct {
	*strings.Reader
	size int64
}

func (s *lyingSource) Seek(offset int64, whence int) (int64, error) {
	if whence == io.SeekEnd {
		return s.size + offset, nil
	}
	return s.Reader.Seek(offset, whence)
}

func TestCheckNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status int
		code   string
		header http.Header
		want   string
		is     error
	}{
		{http.StatusNotFound, "NoSuchBucket", nil, `there is no bucket "bucket"`, fs.ErrNotExist},
		{http.StatusMovedPermanently, "PermanentRedirect", http.Header{"X-Amz-Bucket-Region": {"eu-west-1"}}, `is in the region "eu-west-1"`, nil},
		{http.StatusForbidden, "InvalidAccessKeyId", nil, "InvalidAccessKeyId", fs.ErrPermission},
	} {
		err := answering(t, tt.status, tt.code, tt.header).Check(t.Context())
		matches(t, tt.code, err, tt.is)
		test.Says(t, err, tt.want, tt.code)
	}
}

// TestBrokenAnswer: the status 200 of a response with a truncated body is not a success. The
// service may have carried out the request.
func TestBrokenAnswer(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Length", "1000")
		io.WriteString(w, "<CompleteMultipartUploadResult>")
	}))
	t.Cleanup(server.Close)
	d := at(t, server.URL)
	_, err := d.List(t.Context(), storagedrivers.ListOptions{})
	matches(t, "list", err, storagedrivers.ErrUnavailable)
	_, err = d.client.CompleteMultipartUpload(t.Context(), &awss3.CompleteMultipartUploadInput{
		Bucket: &d.bucket, Key: d.name("key"), UploadId: &d.bucket,
	})
	matches(t, "complete", mapError(t.Context(), err), storagedrivers.ErrUnavailable)
	if !doubtful(err) {
		t.Errorf("%v leaves no doubt", err)
	}
}

// TestErrorWords: the text of an error begins with its cause, without long IDs before it.
func TestErrorWords(t *testing.T) {
	t.Parallel()
	header := http.Header{"X-Amz-Request-Id": {"4442587FB7D0A2F9"}, "X-Amz-Id-2": {strings.Repeat("h", 80)}}
	refused := answering(t, http.StatusForbidden, "SignatureDoesNotMatch", header).Check(t.Context())
	plainHTTP := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plainHTTP.Close)
	for name, tt := range map[string]struct {
		endpoint string
		err      error
		want     string
	}{
		"answer":     {err: refused, want: "permission denied: status 403 SignatureDoesNotMatch: no (request 4442587FB7D0A2F9)"},
		"https":      {endpoint: "https" + strings.TrimPrefix(plainHTTP.URL, "http"), want: "the endpoint speaks http, not https"},
		"nobody":     {endpoint: "http://127.0.0.1:1", want: "storage unavailable: dial tcp 127.0.0.1:1: "},
		"other site": {endpoint: plainHTTP.URL, want: "file does not exist: status 404 "},
	} {
		if tt.endpoint != "" {
			d := at(t, tt.endpoint)
			tt.err = d.Check(t.Context())
			d.Close()
		}
		if tt.err == nil || !strings.HasPrefix(tt.err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, tt.err, tt.want)
		}
	}
}

func TestCauses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status int
		code   string
		header http.Header
		want   storagedrivers.Cause
	}{
		{http.StatusNotFound, "NoSuchBucket", nil, "The bucket does not exist. Create it, or correct its name."},
		{http.StatusMovedPermanently, "PermanentRedirect", http.Header{"X-Amz-Bucket-Region": {"eu-west-1"}}, wrongRegion},
		{http.StatusBadRequest, "AuthorizationHeaderMalformed", nil, wrongRegion},
		{http.StatusForbidden, "InvalidAccessKeyId", nil, wrongKey},
		{http.StatusForbidden, "SignatureDoesNotMatch", nil, wrongKey},
		{http.StatusBadRequest, "ExpiredToken", nil, expired},
		{http.StatusForbidden, "AccessDenied", nil, ""},
		{http.StatusInternalServerError, "InternalError", nil, ""},
	} {
		drivertest.Cause(t, answering(t, tt.status, tt.code, tt.header).Check(t.Context()), tt.want)
	}
}

// TestWrongScheme: the endpoint of a service without TLS is written with https, or one that
// redirects to https without.
func TestWrongScheme(t *testing.T) {
	t.Parallel()
	plainHTTP := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, _ := strconv.Atoi(strings.Trim(r.URL.Path, "/")) // the bucket
		http.Redirect(w, r, "https://s3.example.com"+r.URL.Path, status)
	}))
	t.Cleanup(plainHTTP.Close)
	check := func(endpoint, bucket string, want storagedrivers.Cause) {
		d, err := newDriver(Config{Bucket: bucket, Endpoint: endpoint, AccessKeyID: "i", SecretAccessKey: "s"}, slog.New(slog.DiscardHandler))
		test.Must(t, err)
		defer d.Close()
		drivertest.Cause(t, d.Check(t.Context()), want)
	}
	check("https"+strings.TrimPrefix(plainHTTP.URL, "http"), "bucket", wrongScheme)
	for _, status := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		check(plainHTTP.URL, strconv.Itoa(status), redirected)
	}
}

// TestWrongRegion: a service that is not Amazon names the right region.
func TestWrongRegion(t *testing.T) {
	t.Parallel()
	config := real(t).config
	config.Bucket, config.Region = "bucket", "eu-central-1"
	d, err := newDriver(config, slog.New(slog.DiscardHandler))
	test.Must(t, err)
	defer d.Close()
	err = d.Check(t.Context())
	drivertest.Cause(t, err, wrongRegion)
	if !strings.Contains(err.Error(), "us-east-1") {
		t.Errorf("%v does not name the region", err)
	}
}

// TestNoCredentials: the SDK finds no credentials in the environment and in its files.
func TestNoCredentials(t *testing.T) {
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "", "AWS_PROFILE": "", "AWS_CONFIG_FILE": t.TempDir() + "/none", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_SHARED_CREDENTIALS_FILE": t.TempDir() + "/none", "AWS_WEB_IDENTITY_TOKEN_FILE": "",
		"AWS_CONTAINER_CREDENTIALS_FULL_URI": "", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "",
	} {
		t.Setenv(name, value)
	}
	d, err := newDriver(Config{Bucket: "b", Endpoint: "http://127.0.0.1:1"}, slog.New(slog.DiscardHandler))
	test.Must(t, err)
	defer d.Close()
	drivertest.Cause(t, d.Check(t.Context()), noCredentials)
}
