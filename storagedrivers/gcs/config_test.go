package gcs

import (
	"cmp"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest"
	"github.com/caddymedia/media/storagedrivers/internal/network"
	"github.com/caddymedia/media/storagedrivers/internal/test"
	"github.com/caddymedia/media/storagedrivers/options"
)

func TestComplete(t *testing.T) {
	t.Parallel()
	key := filepath.Join(t.TempDir(), "key.json")
	test.Must(t, os.WriteFile(key, []byte(serviceAccountKey(t, "http://127.0.0.1:1/token")), 0o600))
	other := filepath.Join(t.TempDir(), "other.json")
	test.Must(t, os.WriteFile(other, []byte(`{"type":"authorized_user"}`), 0o600))
	for name, tt := range map[string]struct {
		config Config
		want   Config
		err    string
	}{
		"bucket": {config: Config{Bucket: "my-media"}, want: Config{Bucket: "my-media"}},
		"slashes": {
			config: Config{Bucket: "b", Endpoint: "http://localhost:4443/", Prefix: "/a/b/", Timeout: 5},
			want:   Config{Bucket: "b", Endpoint: "http://localhost:4443", Prefix: "a/b", Timeout: 5},
		},
		"no bucket":        {err: "bucket is missing"},
		"address":          {config: Config{Bucket: "gs://my-media"}, err: "bucket is a name"},
		"hidden prefix":    {config: Config{Bucket: "b", Prefix: ".a"}, err: "prefix: "},
		"no scheme":        {config: Config{Bucket: "b", Endpoint: "localhost:4443"}, err: "endpoint is an address"},
		"path":             {config: Config{Bucket: "b", Endpoint: "http://localhost/storage"}, err: "endpoint is an address without a path"},
		"no address":       {config: Config{Bucket: "b", Endpoint: "http://\x00"}, err: "endpoint is an address"},
		"negative timeout": {config: Config{Bucket: "b", Timeout: -1}, err: "timeout is a duration above zero, not -1ns"},
		"no key":           {config: Config{Bucket: "b", CredentialsFile: key + ".none"}, err: "credentials_file: "},
		"other key":        {config: Config{Bucket: "b", CredentialsFile: other}, err: "not the key of a service account"},
		"key":              {config: Config{Bucket: "b", CredentialsFile: key}, want: Config{Bucket: "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := tt.config
			err := g.Complete()
			if tt.err != "" {
				test.Says(t, err, tt.err)
				return
			}
			test.Must(t, err)
			if (g.key != "") != (g.CredentialsFile != "") {
				t.Errorf("key %q of file %q", g.key, g.CredentialsFile)
			}
			tt.want.CredentialsFile = tt.config.CredentialsFile
			tt.want.Endpoint = cmp.Or(tt.want.Endpoint, google)
			tt.want.Timeout = cmp.Or(tt.want.Timeout, options.Duration(network.DefaultTimeout))
			if g.key = ""; g != tt.want {
				t.Errorf("got %+v, want %+v", g, tt.want)
			}
		})
	}
}

// newConfig returns a complete configuration with options in JSON.
var newConfig = drivertest.NewConfig[Config]

func TestDescription(t *testing.T) {
	t.Parallel()
	drivertest.Describe(t, drivertest.Description{
		New:         newConfig,
		Options:     `{"bucket": "media"}`,
		Where:       "media",
		Missing:     `{"bucket": "nowhere", "endpoint": "` + inProcess(t).Endpoint + `"}`,
		Unreachable: `{"bucket": "media", "endpoint": "http://127.0.0.1:1"}`,
		Same: []string{
			`{"bucket": "media", "timeout": "5s", "prefix": "/"}`,
			`{"bucket": "media", "endpoint": "https://storage.europe-west3.rep.googleapis.com"}`,
		},
		Below: []string{`{"bucket": "media", "prefix": "below/it"}`},
		Apart: []string{
			`{"bucket": "other"}`,
			`{"bucket": "media", "endpoint": "http://127.0.0.1:4443"}`,
		},
	})
}

// throwAway is a private key without any access.
var throwAway = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

const account = "media@test.iam.gserviceaccount.com"

// serviceAccountKey returns the JSON key of a service account whose tokens come from tokenURI.
func serviceAccountKey(t testing.TB, tokenURI string) string {
	t.Helper()
	key, err := throwAway()
	test.Must(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	test.Must(t, err)
	text, err := json.Marshal(map[string]string{
		"type": "service_account", "project_id": "test", "private_key_id": "1", "client_email": account,
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
		"token_uri":   tokenURI,
	})
	test.Must(t, err)
	return string(text)
}

// TestToken: every request has the service account's token, which is requested once.
func TestToken(t *testing.T) {
	t.Parallel()
	var status, asked atomic.Int64
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if status := int(status.Load()); status != http.StatusOK {
			w.WriteHeader(status)
			return
		}
		giveToken(w, r)
	}))
	defer tokens.Close()
	outside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if r.Method == http.MethodDelete {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind":"storage#objects"}`)
	}))
	defer outside.Close()
	d := opened(t, Config{Bucket: "b", Endpoint: outside.URL, key: serviceAccountKey(t, tokens.URL)})
	for _, tt := range []struct {
		status int
		want   error
	}{
		{http.StatusBadRequest, fs.ErrPermission},
		{http.StatusUnauthorized, fs.ErrPermission},
		{http.StatusBadGateway, storagedrivers.ErrUnavailable},
		{http.StatusOK, nil},
		{http.StatusBadRequest, nil}, // there is one already
	} {
		status.Store(int64(tt.status))
		test.Is(t, d.Check(t.Context()), tt.want, "tokens answered with", tt.status)
	}
	before := asked.Load()
	if err := d.Delete(t.Context(), "key", storagedrivers.DeleteOptions{}); err != nil || asked.Load() != before {
		t.Errorf("asked for %d more tokens, error %v", asked.Load()-before, err)
	}
}

// TestDefaultCredentials: after a failure the environment is searched again.
func TestDefaultCredentials(t *testing.T) {
	file := t.TempDir() + "/key.json"
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
	d := opened(t, Config{Bucket: "b"})
	_, err := d.Stat(t.Context(), "key")
	if !errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without credentials: error %v", err)
	}
	drivertest.Cause(t, err, noCredentials)
	test.Must(t, os.WriteFile(file, []byte(serviceAccountKey(t, "http://127.0.0.1:1/token")), 0o600))
	_, err = d.Presign(t.Context(), "key", storagedrivers.PresignOptions{Lifetime: time.Hour})
	test.Is(t, err, nil, "with credentials")
}

func TestPresign(t *testing.T) {
	t.Parallel()
	key := serviceAccountKey(t, "http://127.0.0.1:1/token")
	for name, tt := range map[string]struct {
		config Config
		opts   storagedrivers.PresignOptions
		start  string
		query  map[string]string
	}{
		"google": {
			Config{Bucket: "my-media", key: key},
			storagedrivers.PresignOptions{Lifetime: time.Hour},
			"https://storage.googleapis.com/my-media/a%20b/%C3%A9.png?",
			map[string]string{"response-content-type": ""},
		},
		"headers": {
			Config{Bucket: "my-media", key: key, Endpoint: "https://storage.example.com", Prefix: "in"},
			storagedrivers.PresignOptions{
				Lifetime: 7 * 24 * time.Hour, ContentType: "image/png", CacheControl: "max-age=60",
				Disposition: `attachment; filename="x y.png"`,
			},
			"https://storage.example.com/my-media/in/a%20b/%C3%A9.png?",
			map[string]string{
				"response-content-type": "image/png", "response-cache-control": "max-age=60",
				"response-content-disposition": `attachment; filename="x y.png"`,
			},
		},
		"emulator": {
			Config{Bucket: "my-media", key: key, Endpoint: "http://emulator"},
			storagedrivers.PresignOptions{Lifetime: time.Hour},
			"http://emulator/my-media/a%20b/%C3%A9.png?", nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := opened(t, tt.config)
			signed, err := d.Presign(t.Context(), "a b/é.png", tt.opts)
			test.Must(t, err)
			if !strings.HasPrefix(signed, tt.start) {
				t.Errorf("got %s, want %s...", signed, tt.start)
			}
			address, err := url.Parse(signed)
			test.Must(t, err)
			query := address.Query()
			seconds, err := strconv.Atoi(query.Get("X-Goog-Expires"))
			if left := tt.opts.Lifetime - time.Duration(seconds)*time.Second; err != nil || left < 0 || left > time.Minute {
				t.Errorf("expires after %d s, want %s, error %v", seconds, tt.opts.Lifetime, err)
			}
			for parameter, want := range tt.query {
				test.Equal(t, query.Get(parameter), want, parameter)
			}
			verify(t, address)
		})
	}
}

// verify checks a V4 signature like the service.
func verify(t *testing.T, address *url.URL) {
	t.Helper()
	query := address.Query()
	signature, err := hex.DecodeString(query.Get("X-Goog-Signature"))
	test.Must(t, err)
	scope, ok := strings.CutPrefix(query.Get("X-Goog-Credential"), account+"/")
	if !ok || query.Get("X-Goog-SignedHeaders") != "host" {
		t.Errorf("credential %q, headers %q", query.Get("X-Goog-Credential"), query.Get("X-Goog-SignedHeaders"))
	}
	query.Del("X-Goog-Signature")
	canonical := strings.Join([]string{
		http.MethodGet, address.EscapedPath(), strings.ReplaceAll(query.Encode(), "+", "%20"),
		"host:" + address.Host, "", "host", "UNSIGNED-PAYLOAD",
	}, "\n")
	hash := sha256.Sum256([]byte(canonical))
	toSign := strings.Join([]string{
		"GOOG4-RSA-SHA256", query.Get("X-Goog-Date"), scope, hex.EncodeToString(hash[:]),
	}, "\n")
	digest := sha256.Sum256([]byte(toSign))
	key, err := throwAway()
	test.Must(t, err)
	if err := rsa.VerifyPKCS1v15(&key.PublicKey, crypto.SHA256, digest[:], signature); err != nil {
		t.Errorf("%v of\n%s", err, canonical)
	}
}

// TestPresignServes: the address is that of the object. The emulator needs no signature.
func TestPresignServes(t *testing.T) {
	t.Parallel()
	server := inProcess(t)
	d := opened(t, Config{
		Bucket: newBucket(t, server), Endpoint: server.Endpoint, Prefix: "in",
		key: serviceAccountKey(t, tokenServer(t).URL),
	})
	_, err := d.Put(t.Context(), "a b/é.png", strings.NewReader("text"), create)
	test.Must(t, err)
	signed, err := d.Presign(t.Context(), "a b/é.png", storagedrivers.PresignOptions{Lifetime: time.Hour})
	test.Must(t, err)
	for method, want := range map[string]string{http.MethodGet: "text", http.MethodHead: ""} {
		request, err := http.NewRequestWithContext(t.Context(), method, signed, nil)
		test.Must(t, err)
		answer, err := d.http.RoundTrip(request)
		test.Must(t, err)
		got, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusOK || string(got) != want {
			t.Errorf("%s: %s, %q, error %v", method, answer.Status, got, err)
		}
		answer.Body.Close()
	}
}

// tokenServer returns a server that issues a token to every caller.
func tokenServer(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(giveToken))
	t.Cleanup(server.Close)
	return server
}

func giveToken(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, `{"access_token":"secret","token_type":"Bearer","expires_in":3600}`)
}

func TestPresignUnsupported(t *testing.T) {
	t.Parallel()
	d := opened(t, Config{Bucket: "b", Endpoint: "http://127.0.0.1:1"})
	_, err := d.Presign(t.Context(), "key", storagedrivers.PresignOptions{Lifetime: time.Hour})
	test.Is(t, err, errors.ErrUnsupported)
}
