package s3

import (
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
	"github.com/caddymedia/media/storagedrivers/internal/cloudtest"
	"github.com/caddymedia/media/storagedrivers/internal/lostreply"
	"github.com/caddymedia/media/storagedrivers/internal/test"
	"github.com/caddymedia/media/storagedrivers/options"
)

func TestMain(m *testing.M) {
	drivertest.Waiting()
	m.Run()
}

// service is an S3 service in which tests create buckets.
type service struct {
	config    Config
	inProcess bool
	secure    func(d *driver) // lets a driver trust the service
	buckets   sync.Map        // test name to the bucket it was given
	made      atomic.Int64
}

// fake returns a service in the process of the test.
func fake(t *testing.T) *service {
	t.Helper()
	server := httptest.NewUnstartedServer(gofakes3.New(s3mem.New(), gofakes3.WithLogger(gofakes3.DiscardLog())).Server())
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // it writes some answers' heads twice
	server.Start()
	t.Cleanup(server.Close)
	return &service{inProcess: true, config: Config{
		Endpoint: server.URL, AccessKeyID: "id", SecretAccessKey: "secret",
	}}
}

// real returns versitygw over http.
func real(t testing.TB) *service {
	t.Helper()
	server := servers.VersityGW(t)
	return &service{config: Config{
		Endpoint:    "http://" + server.Address,
		AccessKeyID: server.AccessKeyID, SecretAccessKey: server.SecretAccessKey,
	}}
}

// behind returns the service behind an HTTP proxy.
func (s *service) behind(t *testing.T, handle cloudtest.Handle) *service {
	t.Helper()
	config := s.config
	config.Endpoint = cloudtest.Between(t, s.config.Endpoint, handle)
	return &service{config: config}
}

// cloud returns the service as shared tests use it. known is what it makes of conditions.
func (s *service) cloud(known conditions) cloudtest.Service {
	return cloudtest.Service{
		Endpoint: s.config.Endpoint, Commits: commits, Part: partSize,
		Bucket: func(t *testing.T) string { return s.fresh(t).Bucket },
		Open: func(t *testing.T, endpoint, bucket, prefix string) storagedrivers.Driver {
			c := s.config
			c.Endpoint, c.Bucket, c.Prefix = endpoint, bucket, prefix
			d := s.driver(t, c)
			t.Cleanup(func() { d.Close() })
			d.conditions.Store(&known)
			return d
		},
		Store: func(t *testing.T, d storagedrivers.Driver, name string) error {
			_, err := d.(*driver).client.PutObject(t.Context(), &awss3.PutObjectInput{Bucket: &d.(*driver).bucket, Key: &name})
			return err
		},
		Head: func(t *testing.T, d storagedrivers.Driver, key string) storagedrivers.PutOptions {
			in := &awss3.HeadObjectInput{Bucket: &d.(*driver).bucket, Key: d.(*driver).name(key)}
			head, err := d.(*driver).client.HeadObject(t.Context(), in)
			test.Must(t, err)
			return storagedrivers.PutOptions{
				ID: head.Metadata[lostreply.Key], ContentType: aws.ToString(head.ContentType), CacheControl: aws.ToString(head.CacheControl),
			}
		},
		Names: func(t *testing.T, d storagedrivers.Driver) []string { return leftovers(t, d.(*driver)) },
	}
}

// driver returns a driver as configured.
func (s *service) driver(t testing.TB, c Config) *driver {
	t.Helper()
	d, err := newDriver(c, slog.New(slog.DiscardHandler))
	test.Must(t, err)
	if s.secure != nil {
		s.secure(d)
	}
	return d
}

// at returns a driver of a bucket at an endpoint until the end of the test.
func at(t *testing.T, endpoint string) *driver {
	t.Helper()
	config := Config{Bucket: "bucket", Endpoint: endpoint, AccessKeyID: "id", SecretAccessKey: "secret"}
	d := (&service{}).driver(t, config)
	t.Cleanup(func() { d.Close() })
	return d
}

// fresh returns the configuration of a new bucket.
func (s *service) fresh(t testing.TB) Config {
	t.Helper()
	c := s.config
	c.Bucket = fmt.Sprintf("bucket-%d", s.made.Add(1))
	d := s.driver(t, c)
	defer d.Close()
	_, err := d.client.CreateBucket(t.Context(), &awss3.CreateBucketInput{Bucket: &c.Bucket})
	test.Must(t, err, "making a bucket")
	return c
}

func (s *service) harness() drivertest.Harness {
	config := func(t *testing.T) Config {
		c, ok := s.buckets.Load(t.Name())
		if !ok {
			t.Fatal("no bucket was made yet")
		}
		return c.(Config)
	}
	scheme, address, _ := strings.Cut(s.config.Endpoint, "://")
	return drivertest.Harness{
		New: func(t *testing.T) storagedrivers.Driver {
			c := s.fresh(t)
			s.buckets.Store(t.Name(), c)
			return s.driver(t, c)
		},
		Another: func(t *testing.T) storagedrivers.Driver { return s.driver(t, config(t)) },
		Address: address,
		Through: func(t *testing.T, address string, timeout time.Duration) storagedrivers.Driver {
			c := config(t)
			c.Endpoint, c.Timeout = scheme+"://"+address, options.Duration(timeout)
			return s.driver(t, c)
		},
		Later: func(t *testing.T) storagedrivers.Driver { return later(s.driver(t, config(t))) },
		Leftovers: func(t *testing.T) []string {
			d := s.driver(t, config(t))
			defer d.Close()
			return leftovers(t, d)
		},
	}
}

// leftovers returns the names in the bucket below the driver's prefix, including uploads in parts
// that are neither completed nor aborted.
func leftovers(t *testing.T, d *driver) []string {
	t.Helper()
	var names []string
	objects := awss3.NewListObjectsV2Paginator(d.client, &awss3.ListObjectsV2Input{Bucket: &d.bucket})
	for objects.HasMorePages() {
		page, err := objects.NextPage(t.Context())
		test.Must(t, err, "listing the bucket")
		for _, object := range page.Contents {
			if name := aws.ToString(object.Key); !strings.HasSuffix(name, "/") { // a folder
				names = append(names, strings.TrimPrefix(name, d.prefix))
			}
		}
	}
	uploads, err := d.client.ListMultipartUploads(t.Context(), &awss3.ListMultipartUploadsInput{Bucket: &d.bucket})
	if err != nil {
		if code(err) != "NoSuchUpload" { // gofakes3's word for none
			t.Fatalf("listing uploads: %v", err)
		}
		return names
	}
	for _, upload := range uploads.Uploads {
		names = append(names, "parts of "+aws.ToString(upload.Key))
	}
	return names
}

func TestConformance(t *testing.T) {
	h := fake(t).harness()
	h.NoMemoryTest = true // the service is in the process
	drivertest.Run(t, h)
}

func TestConformanceVersityGW(t *testing.T) {
	h := real(t).harness()
	h.OtherServer = true
	h.EarlierTags = true       // GetObject of version 1.8.0 reads the tag before it opens the file
	h.InexactConditions = true // and If-Match is compared some time before the change
	drivertest.Run(t, h)
}

// TestConformanceVersityGWWithTLS: over https contents are not signed, and checksums follow them.
func TestConformanceVersityGWWithTLS(t *testing.T) {
	s := real(t)
	server := httptest.NewTLSServer(cloudtest.Proxy(t, s.config.Endpoint, nil))
	t.Cleanup(server.Close)
	s.config.Endpoint = server.URL
	s.secure = func(d *driver) {
		transport := s.config.transport(aws.Config{})
		transport.TLSClientConfig = server.Client().Transport.(*http.Transport).TLSClientConfig
		d.http.Transport = s3Service.Transport(transport)
	}
	s.config.Prefix, s.config.Checksums = "some/folder", whenSupported
	h := s.harness()
	h.NoMemoryTest = true // the proxy is in the process
	h.OtherServer = true
	h.EarlierTags, h.InexactConditions = true, true // as without TLS
	drivertest.Run(t, h)
}

func TestForeignNames(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *service) {
		never := []string{"in", "in//x", "in/b//x", "ink"} // folders are real ones
		if s.inProcess {
			never = []string{"in/g/"}
		}
		cloudtest.Names(t, s.cloud(conditions{accepted: true}), never...)
	})
}

// TestListDecodesNames: names with the encoding url are decoded, because XML cannot contain every
// name.
func TestListDecodesNames(t *testing.T) {
	t.Parallel()
	const encoded, plain = "<EncodingType>url</EncodingType>", ""
	for _, encoding := range []string{encoded, plain} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "<ListBucketResult>"+encoding)
			for _, name := range []string{"c%01d", "a%2Bb+c"} {
				io.WriteString(w, "<Contents><Key>"+name+"</Key></Contents>")
				io.WriteString(w, "<CommonPrefixes><Prefix>"+name+"/</Prefix></CommonPrefixes>")
			}
			io.WriteString(w, "</ListBucketResult>")
		}))
		defer server.Close()
		d := at(t, server.URL)
		page, err := d.List(t.Context(), storagedrivers.ListOptions{Shallow: true})
		got := page.Folders
		for _, info := range page.Objects {
			got = append(got, info.Key)
		}
		want := []string{"c%01d/", "a%2Bb+c/", "c%01d", "a%2Bb+c"}
		if encoding == encoded {
			want = []string{"a+b c/", "a+b c"}
		}
		test.Is(t, err, nil)
		test.Same(t, got, want, "listed")
	}
}

// TestListUndecodable: the error contains a name that is not encoded as the service says.
func TestListUndecodable(t *testing.T) {
	t.Parallel()
	for _, found := range []string{
		"<Contents><Key>100% wool</Key></Contents>",
		"<CommonPrefixes><Prefix>100% wool</Prefix></CommonPrefixes>",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "<ListBucketResult><EncodingType>url</EncodingType>"+found+"</ListBucketResult>")
		}))
		defer server.Close()
		d := at(t, server.URL)
		_, err := d.List(t.Context(), storagedrivers.ListOptions{Shallow: true})
		test.Says(t, err, `"100% wool"`)
	}
}
