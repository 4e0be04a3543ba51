package azblob

import (
	"context"
	"crypto/rand"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
	"github.com/caddymedia/media/storagedrivers/internal/test"
	"github.com/caddymedia/media/storagedrivers/options"
)

func TestMain(m *testing.M) {
	drivertest.Waiting()
	m.Run()
}

// account is a blob service in which every test has its own container.
type account struct {
	endpoint   string
	containers sync.Map // test name to container
}

// address returns the host and port of the service.
func (a *account) address() string {
	host, _, _ := strings.Cut(strings.TrimPrefix(a.endpoint, "http://"), "/")
	return host
}

// at returns the account at another address.
func (a *account) at(address string) *account {
	return &account{endpoint: strings.Replace(a.endpoint, a.address(), address, 1)}
}

// open returns a driver on a container.
func (a *account) open(t *testing.T, container string) *driver {
	t.Helper()
	d, err := newDriver(a.config(container))
	test.Must(t, err)
	return d
}

func (a *account) config(container string) Config {
	return Config{
		Account: servers.AzuriteAccount, Key: servers.AzuriteKey, Endpoint: a.endpoint, Container: container,
		Timeout: options.Duration(20 * time.Second),
	}
}

// first returns the first driver of a test, on a new container.
func (a *account) first(t *testing.T) storagedrivers.Driver {
	t.Helper()
	name := "c" + strings.ToLower(rand.Text())
	a.containers.Store(t.Name(), name)
	d := a.open(t, name)
	_, err := d.container.Create(t.Context(), nil)
	test.Must(t, err, "making a container")
	t.Cleanup(func() {
		admin := a.open(t, name)
		_, _ = admin.container.Delete(context.Background(), nil) // to save memory
		_ = admin.Close()
	})
	return d
}

func (a *account) another(t *testing.T) storagedrivers.Driver {
	t.Helper()
	name, ok := a.containers.Load(t.Name())
	if !ok {
		t.Fatal("no container was made yet")
	}
	return a.open(t, name.(string))
}

// objects returns the names in the container, listed by the SDK.
func (a *account) objects(t *testing.T) []string {
	t.Helper()
	d := a.another(t).(*driver)
	defer d.Close()
	return blobs(t, d)
}

// blobs returns the names in the container of d.
func blobs(t *testing.T, d *driver) []string {
	t.Helper()
	var names []string
	for pager := d.container.NewListBlobsFlatPager(nil); pager.More(); {
		page, err := pager.NextPage(t.Context())
		test.Must(t, err)
		for _, item := range page.Segment.BlobItems {
			names = append(names, *item.Name)
		}
	}
	return names
}

func (a *account) harness() drivertest.Harness {
	return drivertest.Harness{
		New: a.first, Another: a.another, Leftovers: a.objects, Address: a.address(),
		Through: func(t *testing.T, address string, timeout time.Duration) storagedrivers.Driver {
			name, _ := a.containers.Load(t.Name())
			c := a.at(address).config(name.(string))
			c.Timeout = options.Duration(timeout)
			d, err := newDriver(c)
			test.Must(t, err)
			return d
		},
	}
}

func TestConformance(t *testing.T) {
	h := (&account{endpoint: startFake(t)}).harness()
	h.NoMemoryTest = true
	drivertest.Run(t, h)
}

func TestConformanceAzurite(t *testing.T) {
	h := (&account{endpoint: servers.Azurite(t).Endpoint}).harness()
	h.OtherServer = true
	drivertest.Run(t, h)
}
