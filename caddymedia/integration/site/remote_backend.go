package site

import (
	"fmt"
	"net"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// RemoteDrivers are the drivers of storages on other hosts.
var RemoteDrivers = []RemoteDriver{
	{"s3", StartS3},
	{"azblob", startAzblob},
	{"gcs", startGCS},
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

func startAzblob(t testing.TB) Backend {
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

func startGCS(t testing.TB) Backend {
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
