package gcs

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fsouza/fake-gcs-server/fakestorage"
	"go.uber.org/goleak"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
	"github.com/caddymedia/media/storagedrivers/options"
)

func TestMain(m *testing.M) {
	drivertest.Waiting()
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"))
}

// inProcess starts a server within the process of the test.
func inProcess(t testing.TB) servers.GCS {
	t.Helper()
	server, err := fakestorage.NewServerWithOptions(fakestorage.Options{Scheme: "http", PublicHost: "127.0.0.1"})
	test.Must(t, err)
	t.Cleanup(server.Stop)
	return servers.GCS{Endpoint: server.URL()}
}

var buckets atomic.Int64

// newBucket creates an empty bucket and returns its name.
func newBucket(t testing.TB, server servers.GCS) string {
	t.Helper()
	name := fmt.Sprintf("media-test-%d", buckets.Add(1))
	server.Bucket(t, name)
	return name
}

// open returns a driver.
func open(t testing.TB, c Config) *driver {
	t.Helper()
	d, err := newDriver(c)
	test.Must(t, err)
	return d
}

// opened is open, but the driver is closed at the end of the test.
func opened(t testing.TB, c Config) *driver {
	t.Helper()
	d := open(t, c)
	t.Cleanup(func() {
		test.Is(t, d.Close(), nil, "closing")
	})
	return d
}

// harness returns a harness with a new bucket for each test.
func harness(server servers.GCS, prefix string) drivertest.Harness {
	bucketName := func(t *testing.T) string {
		return "b" + strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
				return r
			}
			return '-'
		}, strings.ToLower(t.Name())) + "b"
	}
	driver := func(t *testing.T) storagedrivers.Driver {
		return open(t, Config{Bucket: bucketName(t), Endpoint: server.Endpoint, Prefix: prefix})
	}
	return drivertest.Harness{
		New: func(t *testing.T) storagedrivers.Driver {
			server.Bucket(t, bucketName(t))
			return driver(t)
		},
		Another: driver,
		Leftovers: func(t *testing.T) []string {
			names := server.Objects(t, bucketName(t))
			for i, name := range names {
				names[i] = strings.TrimPrefix(name, prefix+"/")
			}
			return names
		},
		IgnoresConditions: true,
		Address:           strings.TrimPrefix(server.Endpoint, "http://"),
		Through: func(t *testing.T, address string, timeout time.Duration) storagedrivers.Driver {
			return open(t, Config{
				Bucket: bucketName(t), Endpoint: "http://" + address, Prefix: prefix, Timeout: options.Duration(timeout),
			})
		},
	}
}

func TestConformance(t *testing.T) {
	h := harness(inProcess(t).WithRewrites(t), "")
	h.NoMemoryTest = true
	drivertest.Run(t, h)
}

// TestConformanceFakeGCSServer also runs with a prefix.
func TestConformanceFakeGCSServer(t *testing.T) {
	_, server := servers.FakeGCS(t)
	h := harness(server.WithRewrites(t), "some/folder")
	h.OtherServer = true
	drivertest.Run(t, h)
}
