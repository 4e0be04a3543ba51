package op_test

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/azblob"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
	"github.com/caddymedia/media/storagedrivers/ftp"
	"github.com/caddymedia/media/storagedrivers/gcs"
	"github.com/caddymedia/media/storagedrivers/options"
	"github.com/caddymedia/media/storagedrivers/s3"
	"github.com/caddymedia/media/storagedrivers/sftp"
)

const serverBucket = "media-test"

// configure returns the configuration of a driver in a folder or bucket of its own.
type configure func(t *testing.T, name string) storagedrivers.Config

// realServers start a server of each kind.
var realServers = map[string]func(t *testing.T) configure{
	"s3": func(t *testing.T) configure {
		server := servers.VersityGW(t)
		client := awss3.New(awss3.Options{
			BaseEndpoint: aws.String("http://" + server.Address), Region: "us-east-1", UsePathStyle: true,
			Credentials: credentials.NewStaticCredentialsProvider(server.AccessKeyID, server.SecretAccessKey, ""),
		})
		if _, err := client.CreateBucket(t.Context(), &awss3.CreateBucketInput{Bucket: aws.String(serverBucket)}); err != nil {
			t.Fatal(err)
		}
		return func(_ *testing.T, name string) storagedrivers.Config {
			return &s3.Config{
				Bucket: serverBucket, Endpoint: "http://" + server.Address, AccessKeyID: server.AccessKeyID,
				SecretAccessKey: server.SecretAccessKey, Prefix: name, Timeout: options.Duration(longTimeout),
			}
		}
	},
	"azblob": func(t *testing.T) configure {
		server := servers.Azurite(t)
		credential, err := container.NewSharedKeyCredential(servers.AzuriteAccount, servers.AzuriteKey)
		if err != nil {
			t.Fatal(err)
		}
		return func(t *testing.T, name string) storagedrivers.Config {
			client, err := container.NewClientWithSharedKeyCredential(server.Endpoint+"/"+name, credential, nil)
			if err == nil {
				_, err = client.Create(t.Context(), nil)
			}
			if err != nil {
				t.Fatal(err)
			}
			return &azblob.Config{
				Container: name, Account: servers.AzuriteAccount, Key: servers.AzuriteKey, Endpoint: server.Endpoint, Timeout: options.Duration(longTimeout),
			}
		}
	},
	"gcs": func(t *testing.T) configure {
		_, server := servers.FakeGCS(t)
		server = server.WithRewrites(t)
		return func(t *testing.T, name string) storagedrivers.Config {
			server.Bucket(t, name)
			return &gcs.Config{Bucket: name, Endpoint: server.Endpoint, Timeout: options.Duration(longTimeout)}
		}
	},
	"sftp": func(t *testing.T) configure {
		server := servers.OpenSSH(t)
		return func(_ *testing.T, name string) storagedrivers.Config {
			return &sftp.Config{
				Address: server.Address, User: server.User, PrivateKey: server.KeyFile, HostKeys: []string{server.HostKey},
				Root: server.Root + "/" + name, Connections: 1, Timeout: options.Duration(longTimeout),
			}
		}
	},
	"ftp": func(t *testing.T) configure {
		server := servers.VSFTPD(t, servers.FTPSettings{})
		return func(_ *testing.T, name string) storagedrivers.Config {
			return &ftp.Config{
				Address: server.Address, User: server.User, Password: server.Password, Root: "store/" + name, Connections: 4, Timeout: options.Duration(longTimeout),
			}
		}
	},
}

// TestRestorePastServers is [TestRestorePast] on real servers, most of which have times in whole
// seconds. The histories run side by side, because they wait most of the time.
func TestRestorePastServers(t *testing.T) {
	t.Parallel()
	const few, atOnce = 40, 40
	number, changes, moments := histories(t, few), 3, 1
	if number > few {
		changes, moments = 6, 4
	}
	for kind, start := range realServers {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			configured := start(t)
			var running sync.WaitGroup
			var done atomic.Int64
			slots := make(chan struct{}, atOnce)
			for seed := range number {
				slots <- struct{}{}
				running.Go(func() {
					defer func() { <-slots }()
					t.Run(fmt.Sprint(seed), func(t *testing.T) {
						driver, err := configured(t, fmt.Sprint("history-", seed)).NewDriver(slog.New(slog.DiscardHandler))
						if err != nil {
							t.Fatal(err)
						}
						h := newHistory(t, driver, seed)
						h.pause, h.isFolder = 4200*time.Millisecond, kind != "azblob" && kind != "gcs"
						if kind == "gcs" { // whose times are exact
							h.pause = 400 * time.Millisecond
						}
						h.play(t, changes)
						h.check(t, moments)
						done.Add(int64(h.done))
					})
				})
			}
			running.Wait()
			if t.Log(done.Load(), "steps"); done.Load() == 0 {
				t.Error("no moment differs")
			}
		})
	}
}
