package azblob

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
	"github.com/caddymedia/media/storagedrivers/internal/cloudtest"
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
