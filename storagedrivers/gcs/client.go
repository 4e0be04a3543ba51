package gcs

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"cloud.google.com/go/auth"
	"cloud.google.com/go/auth/credentials"
	"cloud.google.com/go/auth/httptransport"
	gcsdk "cloud.google.com/go/storage"
	"google.golang.org/api/option"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/network"
)

// client is the SDK's client, with the signer of addresses.
type client struct {
	sdk    *gcsdk.Client
	bucket *gcsdk.BucketHandle
	signer signer
}

// signer is the part of a service account's key that signs addresses. It is empty for other
// credentials.
type signer struct {
	Email      string `json:"client_email"`
	PrivateKey string `json:"private_key"`
}

// connect returns the client. It is created at the first use, because looking for credentials may
// need the network, and again after a failure.
func (d *driver) connect(ctx context.Context) (*client, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.client != nil {
		return d.client, nil
	}
	c := &client{}
	checked := cloudStorage.Transport(d.http)
	web := &http.Client{Transport: checked}
	if d.config.key != "" || !strings.HasPrefix(d.config.Endpoint, "http://") {
		creds, err := d.credentials(&http.Client{Transport: d.http})
		if err == nil {
			web, err = authenticated(creds, checked)
		}
		if err != nil {
			// The error is not wrapped: a missing file of credentials is not a missing object.
			err = fmt.Errorf("%w: finding credentials: %s", fs.ErrPermission, err.Error())
			return nil, storagedrivers.WithCause(err, noCredentials)
		}
		_ = json.Unmarshal(creds.JSON(), &c.signer) // others than keys are no JSON, or another
	}
	// The HTTP client already authenticates the requests.
	sdk, err := gcsdk.NewClient(context.WithoutCancel(ctx), option.WithHTTPClient(web),
		option.WithoutAuthentication(), option.WithEndpoint(d.config.Endpoint+"/storage/v1/"))
	if err != nil {
		return nil, fmt.Errorf("making the client: %w", err)
	}
	sdk.SetRetry(gcsdk.WithPolicy(gcsdk.RetryNever)) // Storage repeats whole operations
	c.sdk, c.bucket = sdk, sdk.Bucket(d.config.Bucket)
	d.client = c
	return c, nil
}

// credentials returns the credentials of the configuration, or else of the environment.
func (d *driver) credentials(web *http.Client) (*auth.Credentials, error) {
	if d.config.key != "" {
		return serviceAccount(d.config.key, web)
	}
	return credentials.DetectDefault(detect(web))
}

// serviceAccount returns the credentials of a service account from its JSON key. Tokens are
// requested through web.
func serviceAccount(key string, web *http.Client) (*auth.Credentials, error) {
	return credentials.NewCredentialsFromJSON(credentials.ServiceAccount, []byte(key), detect(web))
}

func detect(web *http.Client) *credentials.DetectOptions {
	return &credentials.DetectOptions{Scopes: []string{gcsdk.ScopeReadWrite}, Client: web}
}

// authenticated returns a client that adds a token to every request.
func authenticated(creds *auth.Credentials, base http.RoundTripper) (*http.Client, error) {
	return httptransport.NewClient(&httptransport.Options{
		Credentials:      creds,
		BaseRoundTripper: base,
		DisableTelemetry: true,
	})
}

// transport is the network's transport, with a limit on the requests of the SDK's readers. A reader
// would otherwise repeat a request as long as the service responds and breaks off.
type transport struct{ *http.Transport }

func newTransport(timeout time.Duration) *transport { return &transport{network.Transport(timeout)} }

// maxRequests is the most requests of one reader.
const maxRequests = 4

var errBreaksOff = fmt.Errorf("%w: it breaks off every download", storagedrivers.ErrUnavailable)

// budgetKey is the context key of a reader's number of remaining requests.
type budgetKey struct{}

func withBudget(ctx context.Context) context.Context {
	left := new(atomic.Int64)
	left.Store(maxRequests)
	return context.WithValue(ctx, budgetKey{}, left)
}

// RoundTrip sends a request, unless the reader has used its budget. A request that selects fields
// gets the kind of the reply as well, without which an empty listing has nothing of the service.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	left, ok := request.Context().Value(budgetKey{}).(*atomic.Int64)
	if ok && left.Add(-1) < 0 {
		return nil, errBreaksOff
	}
	if query := request.URL.Query(); query.Has("fields") {
		query.Set("fields", "kind,"+query.Get("fields"))
		request = request.Clone(request.Context())
		request.URL.RawQuery = query.Encode()
	}
	return t.Transport.RoundTrip(request)
}
