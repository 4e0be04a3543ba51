package site

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// RemoteDriver is a driver with a real server.
type RemoteDriver struct {
	Name string
	// start starts a server with an empty backend, which ends with the test.
	Start func(t testing.TB) Backend
}

// Backend is a backend on a real server.
type Backend struct {
	// Address is the host and port of the server.
	Address string
	// Driver returns the driver's part of a Caddyfile: for the server as seen at address, with all
	// keys below folder, and with the lines of more among its options.
	Driver func(address, folder, more string) string
	// signs says whether the backend can sign addresses.
	Signs signing
	// Example are replacements, old and new text in turn, which adapt the documented example to
	// this backend. env are the environment variables that the example uses ("NAME=value").
	Example, Env []string
	// Rclone are the environment variables for rclone, which finds the backend as "bench:"+folder.
	Rclone []string
	Folder string
	// Objects is the folder of the server with all objects, if it stores them as files under their
	// names.
	Objects string
	// Apart reports that data connections go directly to the server, even if the driver reaches it
	// through a proxy.
	Apart bool
	// Keys returns all keys of the backend; nil if it has no such function.
	Keys func(t testing.TB) []string
}

// signing says whether a backend can sign addresses.
type signing int

// How a backend signs.
const (
	NeverSigns signing = iota // like every backend of its type
	CannotSign                // for lack of a key
	signsForReal
)

// Media returns the lines inside the global option media for a site on the backend at address. The
// files of its alias content keep their names, and those of over are replaced. Images have variants
// and renditions, and near is on the disk.
func (p Backend) Media(address, more string) string {
	return "tokens memory\n" + Account + fmt.Sprintf(`
storage keep {
	%s
}
storage replace {
	%s
	overwrite_strategy overwrite
}
storage near {
	driver local $ROOT
}
image_alias content {
	storage keep
	webp
}
file_alias content {
	storage keep
	extensions bin
}
image_alias over {
	storage replace
	webp
	negotiate on
	rendition soon 20x20 cover {
		eager on
	}
	rendition later {
		width 30
		format webp
	}
}
file_alias over {
	storage replace
	extensions bin
}
file_alias near {
	storage near
	extensions bin
}
`, p.Driver(address, "keep", more), p.Driver(address, "replace", more))
}

// EachRemote runs a test with every driver, all of them at once: each has its own server and its
// own Caddy, and they wait for each other most of the time.
func EachRemote(t *testing.T, test func(t *testing.T, p Backend)) {
	for _, kind := range RemoteDrivers {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			test(t, kind.Start(t))
		})
	}
}

// StartOn starts a Caddy whose storages are on the backend, and logs in.
func StartOn(t *testing.T, p Backend) (c *Child, client *Client, token string) {
	t.Helper()
	c = NewChild(t)
	c.Start(p.Media(p.Address, ""))
	client = c.HTTP1()
	return c, client, client.MustLogin(t)
}

// FetchURL fetches an address of this service, or another one, without following redirects.
func (c *Client) FetchURL(t *testing.T, address string, headers ...string) *Reply {
	t.Helper()
	if strings.HasPrefix(address, "/") {
		address = c.Base + address
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	plain := *c.Client
	plain.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	answer, err := plain.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatalf("reading the answer: %v", err)
	}
	return &Reply{answer.StatusCode, answer.Proto, answer.Header, string(body)}
}

// RemoteDrivers are the drivers of storages on other hosts.
var RemoteDrivers = []RemoteDriver{
	{"s3", StartS3},
	{"azblob", StartAzblob},
	{"gcs", StartGCS},
	{"sftp", StartSFTP},
	{"ftp", startFTP},
}

const bucket = "media-test"

// StartS3 runs an S3 server.
func StartS3(t testing.TB) Backend {
	t.Helper()
	server := servers.VersityGW(t)
	client := awss3.New(awss3.Options{
		BaseEndpoint: aws.String("http://" + server.Address), Region: "us-east-1", UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(server.AccessKeyID, server.SecretAccessKey, ""),
	})
	if _, err := client.CreateBucket(t.Context(), &awss3.CreateBucketInput{Bucket: aws.String(bucket)}); err != nil {
		t.Fatal(err)
	}
	return Backend{
		Address: server.Address, Signs: signsForReal,
		Example: []string{"my-bucket", bucket, "region eu-central-1", "endpoint http://" + server.Address},
		Env:     []string{"S3_ACCESS_KEY_ID=" + server.AccessKeyID, "S3_SECRET_ACCESS_KEY=" + server.SecretAccessKey},
		Folder:  bucket,
		Keys: func(t testing.TB) (keys []string) {
			t.Helper()
			pages := awss3.NewListObjectsV2Paginator(client, &awss3.ListObjectsV2Input{Bucket: aws.String(bucket)})
			for pages.HasMorePages() {
				page, err := pages.NextPage(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for _, object := range page.Contents {
					keys = append(keys, *object.Key)
				}
			}
			return keys
		},
		Objects: filepath.Join(server.Objects, bucket),
		Rclone: []string{
			"TYPE=s3", "PROVIDER=Other", "NO_CHECK_BUCKET=true", "ENDPOINT=http://" + server.Address,
			"ACCESS_KEY_ID=" + server.AccessKeyID, "SECRET_ACCESS_KEY=" + server.SecretAccessKey,
		},
		Driver: func(address, folder, more string) string {
			return fmt.Sprintf(`driver s3 %s {
				endpoint http://%s
				access_key_id %s
				secret_access_key %s
				prefix %s
				%s
			}`, bucket, address, server.AccessKeyID, server.SecretAccessKey, folder, more)
		},
	}
}

// StartAzblob runs an Azure Blob server.
func StartAzblob(t testing.TB) Backend {
	t.Helper()
	server := servers.Azurite(t)
	credential, err := container.NewSharedKeyCredential(servers.AzuriteAccount, servers.AzuriteKey)
	if err != nil {
		t.Fatal(err)
	}
	client, err := container.NewClientWithSharedKeyCredential(server.Endpoint+"/"+bucket, credential, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Create(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return Backend{
		Address: server.Address, Signs: signsForReal,
		Example: []string{"my-container", bucket, "my-account", servers.AzuriteAccount + "\nendpoint " + server.Endpoint},
		Env:     []string{"AZURE_STORAGE_KEY=" + servers.AzuriteKey},
		Driver: func(address, folder, more string) string {
			return fmt.Sprintf(`driver azblob %s {
				account %s
				key %s
				endpoint http://%s/%s
				prefix %s
				%s
			}`, bucket, servers.AzuriteAccount, servers.AzuriteKey, address, servers.AzuriteAccount, folder, more)
		},
	}
}

// StartGCS runs a Google Cloud Storage server.
func StartGCS(t testing.TB) Backend {
	t.Helper()
	process, server := servers.FakeGCS(t)
	server.Bucket(t, bucket)
	return Backend{
		Address: process.Address, Signs: CannotSign,
		Example: []string{"my-bucket", bucket, "credentials_file /etc/caddy/media-gcs.json", "endpoint " + server.Endpoint},
		Driver: func(address, folder, more string) string {
			return fmt.Sprintf(`driver gcs %s {
				endpoint http://%s
				prefix %s
				%s
			}`, bucket, address, folder, more)
		},
	}
}

// StartSFTP runs an SFTP server.
func StartSFTP(t testing.TB) Backend {
	t.Helper()
	server := servers.OpenSSH(t)
	host, port, err := net.SplitHostPort(server.Address)
	if err != nil {
		t.Fatal(err)
	}
	return Backend{
		Address: server.Address,
		Example: []string{
			"files.example.com", server.Address, "user media", "user " + server.User,
			"/etc/caddy/media_ed25519", server.KeyFile,
			"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPUBLICKEY", server.HostKey, "uploads", server.Root + "/uploads",
		},
		Folder: server.Root,
		Rclone: []string{"TYPE=sftp", "HOST=" + host, "PORT=" + port, "USER=" + server.User, "KEY_FILE=" + server.KeyFile},
		Driver: func(address, folder, more string) string {
			return fmt.Sprintf(`driver sftp %s {
				user %s
				private_key %s
				host_key %s
				root %s/%s
				%s
			}`, address, server.User, server.KeyFile, server.HostKey, server.Root, folder, more)
		},
	}
}

func startFTP(t testing.TB) Backend {
	t.Helper()
	server := servers.ProFTPD(t, servers.FTPSettings{TLS: "explicit"})
	trust := "ca " + server.CA + "\nserver_name localhost\n"
	return Backend{
		Address: server.Address, Apart: true,
		Example: []string{
			"files.example.com", server.Address, "user media", "user " + server.User, "root ", trust + "root ",
		},
		Env: []string{"FTP_PASSWORD=" + server.Password},
		Driver: func(address, folder, more string) string {
			return fmt.Sprintf(`driver ftp %s {
				user %s
				password %s
				tls explicit
				%s
				root %s
				%s
			}`, address, server.User, server.Password, trust, folder, more)
		},
	}
}
