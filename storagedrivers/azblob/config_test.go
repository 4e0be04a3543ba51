package azblob

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
	"github.com/caddymedia/media/storagedrivers/internal/test"
	"github.com/caddymedia/media/storagedrivers/options"
)

func TestComplete(t *testing.T) {
	t.Parallel()
	complete := func(c Config) *Config {
		t.Helper()
		test.Must(t, c.Complete())
		_, err := c.NewDriver(slog.New(slog.DiscardHandler))
		test.Must(t, err)
		return &c
	}
	key := complete(Config{Account: "media", Key: "a2V5", Container: "pictures", Prefix: "/a/b/", Timeout: options.Duration(time.Minute)})
	if key.Limits().Timeout != time.Minute || key.folder() != "a/b/" {
		t.Errorf("limits %+v, folder %q", key.Limits(), key.folder())
	}
	test.Equal(t, key.serviceURL(), "https://media.blob.core.windows.net", "the service is at")
	complete(Config{Account: "media", Container: "pictures"}) // default credentials
	complete(Config{ConnectionString: "AccountName=media;AccountKey=a2V5;", Container: "$web"})
	complete(Config{ConnectionString: "BlobEndpoint=https://media.example;SharedAccessSignature=sv=1&sig=x", Container: "pictures"})
	complete(Config{Endpoint: "https://media.example/", Container: "pictures"})
}

func TestWrongOptions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		options Config
		want    string
	}{
		{Config{Account: "media"}, "container is missing"},
		{Config{Account: "media", Container: "a_b"}, "container:"},
		{Config{Account: "media", Container: "ab"}, "container:"},
		{Config{Account: "media", Container: "a--b"}, "container:"},
		{Config{Account: "media", Container: strings.Repeat("a", 64)}, "container:"},
		{Config{Container: "pictures"}, "without an account"},
		{Config{Container: "pictures", Key: "a2V5"}, "key: without the account"},
		{Config{Container: "pictures", Account: "media", Key: "not base64!"}, "key:"},
		{Config{Container: "pictures", Account: "media", Prefix: "../x"}, "prefix:"},
		{Config{Container: "pictures", Account: "media", Endpoint: "media.example"}, "endpoint is an address"},
		{Config{Container: "pictures", Account: "media", Endpoint: "ftp://media.example"}, "endpoint is an address"},
		{Config{Container: "pictures", Account: "media", Endpoint: "https://media.example?sig=x"}, "endpoint is an address"},
		{Config{Container: "pictures", Account: "media", Endpoint: "http://media.example"}, "only sent over https"},
		{Config{Container: "pictures", ConnectionString: "AccountName=a;AccountKey=a2V5", Account: "a"}, "stands alone"},
		{Config{Container: "pictures", ConnectionString: "AccountName=a;AccountKey=a2V5", Key: "a2V5"}, "stands alone"},
		{Config{Container: "pictures", ConnectionString: "AccountName=a;AccountKey=a2V5", Endpoint: "https://x"}, "stands alone"},
		{Config{Container: "pictures", ConnectionString: "nonsense"}, "connection_string:"},
		{Config{Container: "pictures", ConnectionString: "AccountName=a"}, "connection_string:"},
	} {
		err := tt.options.Complete()
		if err == nil {
			_, err = tt.options.NewDriver(slog.New(slog.DiscardHandler))
		}
		test.Says(t, err, tt.want, tt.options)
	}
}

// newConfig returns a complete configuration with options in JSON.
var newConfig = drivertest.NewConfig[Config]

func TestDescription(t *testing.T) {
	t.Parallel()
	failing := func(key, address string) string {
		return `{"container": "media", "account": "` + servers.AzuriteAccount + `", "key": "` + key + `", "endpoint": "` + address + `"}`
	}
	drivertest.Describe(t, drivertest.Description{
		New:         newConfig,
		Options:     `{"container": "media", "account": "name"}`,
		Where:       "media (name)",
		Refused:     failing("d3Jvbmc=", startAnswering(t, http.StatusForbidden, "AuthenticationFailed")),
		Missing:     failing(servers.AzuriteKey, startAnswering(t, http.StatusNotFound, "ContainerNotFound")),
		Unreachable: failing(servers.AzuriteKey, "http://127.0.0.1:1/"+servers.AzuriteAccount),
		Same: []string{
			`{"container": "media", "account": "name", "key": "a2V5", "timeout": "5s"}`,
			`{"container": "media", "endpoint": "https://name.blob.core.windows.net/"}`,
			`{"container": "media", "connection_string": "AccountName=name;AccountKey=a2V5"}`,
			`{"container": "media", "connection_string": "DefaultEndpointsProtocol=http;AccountName=Name;AccountKey=b3RoZXI="}`,
			`{"container": "media", "connection_string": "BlobEndpoint=https://name.blob.core.windows.net;SharedAccessSignature=sv=1&sig=x"}`,
		},
		Below: []string{
			`{"container": "media", "account": "name", "prefix": "below/it/"}`,
			`{"container": "media", "connection_string": "AccountName=name;AccountKey=a2V5", "prefix": "/below/it"}`,
		},
		Apart: []string{
			`{"container": "other", "account": "name"}`,
			`{"container": "media", "account": "other"}`,
			`{"container": "media", "connection_string": "AccountName=other;AccountKey=a2V5"}`,
			`{"container": "media", "connection_string": "AccountName=name;AccountKey=a2V5;EndpointSuffix=core.chinacloudapi.cn"}`,
			`{"container": "media", "account": "name", "endpoint": "https://127.0.0.1:10000/name"}`,
		},
	})
}

// replied returns the SDK's error for a response of the service.
func replied(status int, code string) error {
	header := http.Header{}
	if code != "" {
		header.Set("x-ms-error-code", code)
	}
	return runtime.NewResponseError(&http.Response{
		StatusCode: status, Status: http.StatusText(status), Header: header, Body: http.NoBody,
		Request: &http.Request{Method: http.MethodGet, URL: &url.URL{Scheme: "https", Host: "a", RawQuery: "sig=secret"}},
	})
}

func dialed(err error) error {
	return &url.Error{Op: "Put", URL: "https://a/c/k?sig=secret", Err: &net.OpError{Op: "dial", Net: "tcp", Err: err}}
}

// login returns the error of a request for a token with the given status.
func login(status int) error {
	return &azidentity.AuthenticationFailedError{RawResponse: &http.Response{StatusCode: status, Body: http.NoBody}}
}

func TestMapError(t *testing.T) {
	t.Parallel()
	foreseen := []error{
		fs.ErrNotExist, fs.ErrExist, fs.ErrPermission, storagedrivers.ErrInvalidKey, storagedrivers.ErrInvalidRange,
		storagedrivers.ErrNoSpace, storagedrivers.ErrUnavailable,
	}
	for _, tt := range []struct {
		err  error
		want error // nil: none of those foreseen
	}{
		{replied(404, "BlobNotFound"), fs.ErrNotExist},
		{replied(404, "ContainerNotFound"), nil},
		{replied(404, ""), nil},
		{replied(409, "BlobAlreadyExists"), fs.ErrExist},
		{replied(409, "SnapshotsPresent"), nil},
		{replied(412, "ConditionNotMet"), nil},
		{replied(409, "BlobImmutableDueToPolicy"), fs.ErrPermission},
		{replied(412, "LeaseIdMissing"), fs.ErrPermission},
		{replied(401, "NoAuthenticationInformation"), fs.ErrPermission},
		{replied(403, "AuthenticationFailed"), fs.ErrPermission},
		{replied(403, "AuthorizationPermissionMismatch"), fs.ErrPermission},
		{replied(403, ""), fs.ErrPermission},
		{replied(416, "InvalidRange"), storagedrivers.ErrInvalidRange},
		{replied(400, "InvalidResourceName"), storagedrivers.ErrInvalidKey},
		{replied(400, "InvalidUri"), storagedrivers.ErrInvalidKey},
		{replied(400, "OutOfRangeInput"), storagedrivers.ErrInvalidKey},
		{replied(400, "InvalidBlockList"), storagedrivers.ErrUnavailable},
		{replied(400, "InvalidHeaderValue"), nil},
		{replied(500, "InternalError"), storagedrivers.ErrUnavailable},
		{replied(500, "OperationTimedOut"), storagedrivers.ErrUnavailable},
		{replied(503, "ServerBusy"), storagedrivers.ErrUnavailable},
		{replied(429, ""), storagedrivers.ErrUnavailable},
		{replied(502, ""), storagedrivers.ErrUnavailable},
		{replied(507, ""), storagedrivers.ErrNoSpace},
		{dialed(syscall.ECONNREFUSED), storagedrivers.ErrUnavailable},
		{dialed(&net.DNSError{Name: "a"}), storagedrivers.ErrUnavailable},
		{&url.Error{Op: "Put", URL: "https://a/c/k?sig=secret", Err: io.EOF}, storagedrivers.ErrUnavailable},
		{&url.Error{Op: "Put", URL: "https://a/c/k?sig=secret", Err: os.ErrDeadlineExceeded}, storagedrivers.ErrUnavailable},
		{io.ErrUnexpectedEOF, storagedrivers.ErrUnavailable},
		{&azidentity.AuthenticationFailedError{}, storagedrivers.ErrUnavailable},
		{login(http.StatusBadRequest), fs.ErrPermission},
		{login(http.StatusUnauthorized), fs.ErrPermission},
		{login(http.StatusServiceUnavailable), storagedrivers.ErrUnavailable},
		{azidentity.NewCredentialUnavailableError("no credentials"), nil},
		{context.Canceled, nil},
		{context.DeadlineExceeded, nil},
		{&url.Error{Op: "Get", URL: "https://a/c/k?sig=secret", Err: context.Canceled}, nil},
		{&url.Error{Op: "Get", URL: "https://a/c/k?sig=secret", Err: context.DeadlineExceeded}, nil},
	} {
		got := mapError(t.Context(), tt.err)
		for _, sentinel := range foreseen {
			test.Equal(t, errors.Is(got, sentinel), errors.Is(tt.want, sentinel), got, "matches", sentinel)
		}
		if text := got.Error(); strings.Contains(text, "secret") || strings.Contains(text, "ERROR CODE") {
			t.Errorf("unfit for a log: %q", text)
		}
		if cause := errors.Unwrap(tt.err); cause != nil && !errors.Is(got, cause) {
			t.Errorf("%v does not match its cause %v", got, cause)
		}
	}
	if mapError(t.Context(), nil) != nil {
		t.Error("no error became one")
	}
}

func TestMapErrorAfterTheEnd(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range []error{replied(503, ""), dialed(syscall.ECONNREFUSED), context.Canceled} {
		if got := mapError(ctx, err); !errors.Is(got, context.Canceled) {
			t.Errorf("%v after the end of the context", got)
		}
	}
}

func TestDoubtful(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]bool{
		replied(409, "BlobAlreadyExists"): true, // something on the way may have repeated the request
		replied(409, "LeaseIdMissing"):    false,
		replied(400, "InvalidBlockList"):  false,
		replied(500, "OperationTimedOut"): true,
		dialed(syscall.ECONNREFUSED):      false,
		io.EOF:                            true,
		context.Canceled:                  true,
	} {
		test.Equal(t, doubtful(err), want, err, "is doubtful")
	}
}

func TestCauses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status int
		code   string
		want   storagedrivers.Cause
	}{
		{403, "AuthenticationFailed", "The service refused the login: the account or its key is wrong."},
		{404, "ContainerNotFound", "The container does not exist. Create it, or correct its name."},
		{403, "AuthorizationPermissionMismatch", ""},
		{404, "BlobNotFound", ""},
	} {
		drivertest.Cause(t, mapError(t.Context(), replied(tt.status, tt.code)), tt.want)
	}
}
