package cache

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/azblob"
	"github.com/caddymedia/media/storagedrivers/drivertest"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
	"github.com/caddymedia/media/storagedrivers/ftp"
	"github.com/caddymedia/media/storagedrivers/gcs"
	"github.com/caddymedia/media/storagedrivers/internal/test"
	"github.com/caddymedia/media/storagedrivers/s3"
	"github.com/caddymedia/media/storagedrivers/sftp"
)

// config is the configuration of a driver.
type config interface {
	Complete() error
	NewDriver(log *slog.Logger) (storagedrivers.Driver, error)
}

// remotes start a server, and return the configurations of drivers with folders of their own on it.
var remotes = map[string]func(t *testing.T) func(folder string) config{
	"s3": func(t *testing.T) func(string) config {
		t.Helper()
		s := servers.VersityGW(t)
		client := awss3.New(awss3.Options{
			BaseEndpoint: aws.String("http://" + s.Address), Region: "us-east-1", UsePathStyle: true,
			Credentials: credentials.NewStaticCredentialsProvider(s.AccessKeyID, s.SecretAccessKey, ""),
		})
		_, err := client.CreateBucket(t.Context(), &awss3.CreateBucketInput{Bucket: aws.String("bucket")})
		test.Is(t, err, nil)
		return func(folder string) config {
			return &s3.Config{
				Bucket: "bucket", Endpoint: "http://" + s.Address, AccessKeyID: s.AccessKeyID, SecretAccessKey: s.SecretAccessKey, Prefix: folder,
			}
		}
	},
	"azblob": func(t *testing.T) func(string) config {
		t.Helper()
		s := servers.Azurite(t)
		key, err := container.NewSharedKeyCredential(servers.AzuriteAccount, servers.AzuriteKey)
		test.Is(t, err, nil)
		client, err := container.NewClientWithSharedKeyCredential(s.Endpoint+"/container", key, nil)
		test.Is(t, err, nil)
		_, err = client.Create(t.Context(), nil)
		test.Is(t, err, nil)
		return func(folder string) config {
			return &azblob.Config{
				Container: "container", Account: servers.AzuriteAccount, Key: servers.AzuriteKey, Endpoint: s.Endpoint, Prefix: folder,
			}
		}
	},
	"gcs": func(t *testing.T) func(string) config {
		t.Helper()
		_, s := servers.FakeGCS(t)
		s = s.WithRewrites(t)
		s.Bucket(t, "bucket")
		return func(folder string) config { return &gcs.Config{Bucket: "bucket", Endpoint: s.Endpoint, Prefix: folder} }
	},
	"sftp": func(t *testing.T) func(string) config {
		t.Helper()
		s := servers.OpenSSH(t)
		return func(folder string) config {
			return &sftp.Config{
				Address: s.Address, User: s.User, PrivateKey: s.KeyFile, HostKeys: []string{s.HostKey}, Root: s.Root + "/" + folder, Connections: 4,
			}
		}
	},
	"ftp": func(t *testing.T) func(string) config {
		t.Helper()
		s := servers.ProFTPD(t, servers.FTPSettings{})
		return func(folder string) config {
			return &ftp.Config{Address: s.Address, User: s.User, Password: s.Password, TLS: "none", Connections: 4, Root: folder}
		}
	},
}

// remote returns the driver of a configuration.
func remote(t *testing.T, c config) storagedrivers.Driver {
	t.Helper()
	test.Is(t, c.Complete(), nil)
	d, err := c.NewDriver(slog.New(slog.DiscardHandler))
	test.Is(t, err, nil)
	return d
}

// TestConformanceRemote: the suite of drivers passes in front of each remote one.
func TestConformanceRemote(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	for name, start := range remotes {
		t.Run(name, func(t *testing.T) {
			on := start(t)
			var folders sync.Map // by test
			another := func(t *testing.T) storagedrivers.Driver {
				folder, _ := folders.LoadOrStore(t, rand.Text())
				return New(remote(t, on(folder.(string))), open(t, t.TempDir(), 0), "backend", Policy{FillOnUpload: true})
			}
			drivertest.Run(t, drivertest.Harness{
				New: another, Another: another, OtherSetting: true, OtherServer: true,
				EarlierTags: name == "s3", IgnoresConditions: name == "gcs", // as without a cache
			})
		})
	}
}

// TestImmutableSFTP: objects that are never replaced are read through blocks, by readers that
// share few connections.
func TestImmutableSFTP(t *testing.T) {
	t.Parallel()
	c := remotes["sftp"](t)("objects").(*sftp.Config)
	c.Connections = 1
	store := open(t, t.TempDir(), 0)
	d := New(remote(t, c), store, "backend", Policy{Immutable: true, Block: 256 * kib})
	content := random(1, 5*mib)
	put(t, d, "object", content)
	readers(t, 20, func(i int) {
		offset := int64(i) * 200 * kib
		has(t, d, "object", storagedrivers.Range{Offset: offset}, content[offset:])
	})
	misses := store.Stats().Misses
	has(t, d, "object", all, content)
	if stats := store.Stats(); stats.Misses != misses || stats.Hits == 0 {
		t.Errorf("%+v after %d misses", stats, misses)
	}
	test.Is(t, d.Close(), nil)
}

// childFolder is the environment variable of a child process, with the folder that it writes to.
const childFolder = "MEDIA_TEST_CACHE_FOLDER"

const childMaxSize = 16 * mib

// storeForever stores records and prints the number of each. The size of a record is [sizeOf].
func storeForever(folder string) {
	s := NewStore(Options{Folder: folder, MaxSize: childMaxSize})
	for i := 0; s.put(id(i), random(uint64(i), sizeOf(i))); i++ {
		fmt.Println(i)
	}
}

func sizeOf(i int) int { return 1 + i*7919%(300*kib) }

// TestKilled: a store whose process is killed while it writes is there for the next one, within its
// bound, and each record in it is right.
func TestKilled(t *testing.T) {
	t.Parallel()
	rounds := 20
	if testing.Short() {
		rounds = 3
	}
	program, err := os.Executable()
	test.Is(t, err, nil)
	folder := t.TempDir()
	for round := range rounds {
		child := exec.CommandContext(t.Context(), program)
		child.Env = append(os.Environ(), childFolder+"="+folder)
		out, err := child.StdoutPipe()
		test.Is(t, err, nil)
		test.Is(t, child.Start(), nil)
		time.AfterFunc(time.Duration(mathrand.IntN(200))*time.Millisecond, func() { _ = child.Process.Kill() })
		last := -1
		for lines := bufio.NewScanner(out); lines.Scan(); {
			last, err = strconv.Atoi(lines.Text())
			test.Is(t, err, nil)
		}
		_ = child.Wait() // it was killed

		s := NewStore(Options{Folder: folder, MaxSize: childMaxSize})
		if !s.ready() {
			t.Fatal("the folder of the killed process is not usable")
		}
		found := 0
		for i := range last + 1 {
			if got, ok := s.payload(id(i), sizeOf(i)); ok {
				found++
				if !bytes.Equal(got, random(uint64(i), sizeOf(i))) {
					t.Fatalf("round %d: record %d has other bytes", round, i)
				}
			}
		}
		if stats := s.Stats(); last >= 0 && found == 0 || size(t, folder) > childMaxSize || stats.Damaged > 1 {
			t.Errorf("round %d: %d of %d records, %+v", round, found, last+1, stats)
		}
		test.Is(t, s.Close(), nil)
	}
}
