package azblob

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
	"github.com/caddymedia/media/storagedrivers/internal/cloudtest"
	"github.com/caddymedia/media/storagedrivers/internal/test"
)

// TestService tests the behaviour of a service in addition to the suite.
func TestService(t *testing.T) {
	t.Parallel()
	testService(t, &account{endpoint: startFake(t)})
}

// TestServiceAzurite is TestService for a service that also checks signatures.
func TestServiceAzurite(t *testing.T) {
	t.Parallel()
	a := &account{endpoint: servers.Azurite(t).Endpoint}
	testService(t, a)
	for name, run := range map[string]func(*testing.T, *account){
		"permission": testPermission, "shared access signature": testSharedAccessSignature,
		"presign": testPresign, "presign by connection string": testPresignByConnectionString,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, a)
		})
	}
}

func testService(t *testing.T, a *account) {
	for name, run := range map[string]func(*testing.T, *account){
		"large overwriters": testLargeOverwriters, "left blocks": testLeftBlocks,
		"missing container": testMissingContainer,
		"headers":           func(t *testing.T, a *account) { cloudtest.Headers(t, a.cloud()) },
		"names":             func(t *testing.T, a *account) { cloudtest.Names(t, a.cloud(), "in/g/") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, a)
		})
	}
}

// testLargeOverwriters: a commit discards the blocks of other uploads, which are then sent again.
func testLargeOverwriters(t *testing.T, a *account) {
	d := a.first(t)
	defer d.Close()
	var wg sync.WaitGroup
	for i := range 3 {
		wg.Go(func() {
			s := storagedrivers.New("test", d, storagedrivers.Options{Close: func() error { return nil }})
			_, err := s.Put(t.Context(), "hot", bytes.NewReader(test.Random(9<<20+i)), overwrite)
			test.Is(t, err, nil, "overwriting at once with others")
		})
	}
	wg.Wait()
	info, err := d.Stat(t.Context(), "hot")
	test.Must(t, err)
	holds(t, d, "hot", test.Random(int(info.Size)), info)
}

// testLeftBlocks: the blocks of an aborted upload are not an object.
func testLeftBlocks(t *testing.T, a *account) {
	d := a.first(t).(*driver)
	defer d.Close()
	for i, size := range []int{0, 100, 9 << 20} {
		key := fmt.Sprint(i)
		u := d.newUpload(key, 100, storagedrivers.PutOptions{ID: "left"})
		_, err := u.stageAll(t.Context(), bytes.NewReader(test.Random(100)))
		test.Must(t, err)
		missing(t, d, key)
		info, err := d.Put(t.Context(), key, bytes.NewReader(test.Random(size)), create)
		test.Must(t, err, "creating", size, "bytes")
		holds(t, d, key, test.Random(size), info)
		_, err = d.Put(t.Context(), key, bytes.NewReader(test.Random(size)), create)
		test.Is(t, err, fs.ErrExist, "creating", size, "bytes again")
	}
}

func testMissingContainer(t *testing.T, a *account) {
	d := a.open(t, "no-such-container")
	defer d.Close()
	err := d.Check(t.Context())
	test.Says(t, err, `the container "no-such-container" does not exist`, "check")
	_, err = d.Stat(t.Context(), "key")
	_, putErr := d.Put(t.Context(), "key", strings.NewReader("x"), create)
	_, largeErr := d.Put(t.Context(), "key", bytes.NewReader(test.Random(9<<20)), create)
	for _, err := range []error{err, putErr, largeErr, d.Delete(t.Context(), "key", storagedrivers.DeleteOptions{})} {
		if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) {
			t.Errorf("error %v, want one that says nothing of the key", err)
		}
	}
}

func testPermission(t *testing.T, a *account) {
	c := a.config(a.first(t).(*driver).name)
	c.Key = "d3Jvbmc="
	d, err := newDriver(c)
	test.Must(t, err)
	defer d.Close()
	_, err = d.Stat(t.Context(), "key")
	_, putErr := d.Put(t.Context(), "key", strings.NewReader("x"), create)
	_, largeErr := d.Put(t.Context(), "key", bytes.NewReader(test.Random(9<<20)), overwrite)
	for _, err := range []error{err, putErr, largeErr, d.Check(t.Context())} {
		test.Is(t, err, fs.ErrPermission)
	}
}

func testSharedAccessSignature(t *testing.T, a *account) {
	owner := a.first(t).(*driver)
	defer owner.Close()
	signature, err := owner.container.GetSASURL(
		sas.ContainerPermissions{Read: true, Write: true, Create: true, Delete: true, List: true}, time.Now().Add(time.Hour), nil)
	test.Must(t, err)
	_, query, _ := strings.Cut(signature, "?")
	d, err := newDriver(Config{
		ConnectionString: "BlobEndpoint=" + a.endpoint + ";SharedAccessSignature=" + query, Container: owner.name,
	})
	test.Must(t, err)
	defer d.Close()
	for key, size := range map[string]int{"small": 100, "large": 9 << 20} {
		info, err := d.Put(t.Context(), key, bytes.NewReader(test.Random(size)), create)
		test.Must(t, err)
		holds(t, d, key, test.Random(size), info)
		_, err = d.Put(t.Context(), key, bytes.NewReader(test.Random(size)), create)
		test.Is(t, err, fs.ErrExist, "creating again")
		test.Is(t, d.Delete(t.Context(), key, storagedrivers.DeleteOptions{}), nil)
	}
	test.Is(t, d.Check(t.Context()), nil)
	_, err = d.Presign(t.Context(), "small", storagedrivers.PresignOptions{})
	test.Is(t, err, errors.ErrUnsupported, "signing")
}

const signedKey = "folder/odd #?%&+é name.png"

// fetch returns the status, headers and body of the response to a request without credentials.
func fetch(t *testing.T, method, address string) (int, http.Header, []byte) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, address, nil)
	test.Must(t, err)
	answer, err := (&http.Client{}).Do(request)
	test.Must(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	test.Must(t, err)
	return answer.StatusCode, answer.Header, body
}

func testPresign(t *testing.T, a *account) { presigns(t, a.first(t).(*driver)) }

func testPresignByConnectionString(t *testing.T, a *account) {
	d, err := newDriver(Config{
		ConnectionString: fmt.Sprintf("DefaultEndpointsProtocol=http;AccountName=%s;AccountKey=%s;BlobEndpoint=%s;",
			servers.AzuriteAccount, servers.AzuriteKey, a.endpoint),
		Container: a.first(t).(*driver).name,
		Prefix:    "a folder",
	})
	test.Must(t, err)
	presigns(t, d)
}

func presigns(t *testing.T, d *driver) {
	defer d.Close()
	data := test.Random(1000)
	stored := storagedrivers.PutOptions{ContentType: "image/png", CacheControl: "no-cache"}
	_, err := d.Put(t.Context(), signedKey, bytes.NewReader(data), stored)
	test.Must(t, err)
	for name, tt := range map[string]struct{ opts, want storagedrivers.PresignOptions }{
		"as stored": {
			storagedrivers.PresignOptions{Lifetime: time.Minute},
			storagedrivers.PresignOptions{ContentType: "image/png", CacheControl: "no-cache"},
		},
		"overridden": {
			storagedrivers.PresignOptions{
				Lifetime: 7 * 24 * time.Hour, ContentType: "text/plain; charset=utf-8", CacheControl: "private, max-age=5",
				Disposition: `attachment; filename="odd #?%&+ name.png"`,
			},
			storagedrivers.PresignOptions{
				ContentType: "text/plain; charset=utf-8", CacheControl: "private, max-age=5",
				Disposition: `attachment; filename="odd #?%&+ name.png"`,
			},
		},
	} {
		address, err := d.Presign(t.Context(), signedKey, tt.opts)
		test.Must(t, err)
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			status, header, body := fetch(t, method, address)
			got := storagedrivers.PresignOptions{
				ContentType: header.Get("Content-Type"), CacheControl: header.Get("Cache-Control"),
				Disposition: header.Get("Content-Disposition"),
			}
			if status != http.StatusOK || got != tt.want {
				t.Errorf("%s %s: %d with %+v, want %+v", method, name, status, got, tt.want)
			}
			if method == http.MethodGet && !bytes.Equal(body, data) {
				t.Errorf("%s: %d bytes, want %d", name, len(body), len(data))
			}
		}
		for what, forged := range map[string]string{
			"another key": strings.Replace(address, "odd", "other", 1),
			"no query":    address[:strings.IndexByte(address, '?')],
		} {
			if status, _, _ := fetch(t, http.MethodGet, forged); status < 400 {
				t.Errorf("%s, %s: %d", name, what, status)
			}
		}
		if status, _, _ := fetch(t, http.MethodDelete, address); status < 400 {
			t.Errorf("%s: deleted with %d", name, status)
		}
	}
	late, err := d.Presign(t.Context(), signedKey, storagedrivers.PresignOptions{Lifetime: -time.Minute})
	test.Must(t, err)
	if status, _, _ := fetch(t, http.MethodGet, late); status != http.StatusForbidden {
		t.Errorf("when its life is over: %d", status)
	}
}

type token struct{}

func (token) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: "token", ExpiresOn: time.Now().Add(time.Hour)}, nil
}

// TestDelegation: one key is requested for all addresses that end before it.
func TestDelegation(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	lent := 0
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("comp") != "userdelegationkey" || r.Header.Get("Authorization") != "Bearer token" {
			refuse(w, http.StatusForbidden, "AuthorizationPermissionMismatch")
			return
		}
		lent++
		var info struct{ Start, Expiry time.Time }
		test.Is(t, xml.NewDecoder(r.Body).Decode(&info), nil)
		// The service refuses keys that end later, by its own clock.
		if info.Expiry.After(now.Add(-clockSkew+keyLifetime)) || info.Expiry.Sub(info.Start) > keyLifetime {
			t.Errorf("asked for a key from %s to %s", info.Start, info.Expiry)
		}
		w.Header().Set("Content-Type", "application/xml")
		fmt.Fprintf(w, `<UserDelegationKey><SignedOid>oid</SignedOid><SignedTid>tid</SignedTid>`+
			`<SignedStart>%s</SignedStart><SignedExpiry>%s</SignedExpiry><SignedService>b</SignedService>`+
			`<SignedVersion>2020-02-10</SignedVersion><Value>a2V5</Value></UserDelegationKey>`,
			now.Format(time.RFC3339), now.Add(keyLifetime).Format(time.RFC3339))
	}))
	defer server.Close()
	options := service.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: server.Client()}}
	account, err := service.NewClient(server.URL, token{}, &options)
	test.Must(t, err)
	clock := func() time.Time { return now }
	keys := &delegation{account: account, now: clock}
	d := &driver{name: "pictures", container: account.NewContainerClient("pictures"), sign: keys.sign, now: clock}
	sign := func(lifetime time.Duration) {
		t.Helper()
		address, err := d.Presign(t.Context(), "a/b.png", storagedrivers.PresignOptions{Lifetime: lifetime})
		test.Must(t, err)
		u, err := url.Parse(address)
		test.Must(t, err)
		query := u.Query()
		if query.Get("skoid") != "oid" || query.Get("spr") != "https" || query.Get("sp") != "r" ||
			query.Get("se") != now.Add(lifetime).Format(time.RFC3339) || query.Get("sig") == "" {
			t.Errorf("signed %v", query)
		}
	}
	sign(time.Hour)
	sign(keyLifetime - clockSkew)
	test.Equal(t, lent, 1, "keys were lent")
	now = now.Add(time.Hour)
	sign(time.Hour)
	sign(keyLifetime - clockSkew)
	test.Equal(t, lent, 2, "keys were lent")
}
