package integration

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

// remoteDrivers are the drivers of storages on other hosts.
var remoteDrivers = []remoteDriver{
	{"s3", startS3},
	{"azblob", startAzblob},
	{"gcs", startGCS},
	{"sftp", startSFTP},
	{"ftp", startFTP},
}

const bucket = "media-test"

func startS3(t testing.TB) remoteBackend {
	t.Helper()
	server := servers.VersityGW(t)
	client := awss3.New(awss3.Options{
		BaseEndpoint: aws.String("http://" + server.Address), Region: "us-east-1", UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(server.AccessKeyID, server.SecretAccessKey, ""),
	})
	if _, err := client.CreateBucket(t.Context(), &awss3.CreateBucketInput{Bucket: aws.String(bucket)}); err != nil {
		t.Fatal(err)
	}
	return remoteBackend{
		address: server.Address, signs: signsForReal,
		example: []string{"my-bucket", bucket, "region            eu-central-1", "endpoint http://" + server.Address},
		env:     []string{"S3_ACCESS_KEY_ID=" + server.AccessKeyID, "S3_SECRET_ACCESS_KEY=" + server.SecretAccessKey},
		folder:  bucket,
		rclone: []string{
			"TYPE=s3", "PROVIDER=Other", "NO_CHECK_BUCKET=true", "ENDPOINT=http://" + server.Address,
			"ACCESS_KEY_ID=" + server.AccessKeyID, "SECRET_ACCESS_KEY=" + server.SecretAccessKey,
		},
		driver: func(address, folder, more string) string {
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

func startAzblob(t testing.TB) remoteBackend {
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
	return remoteBackend{
		address: server.Address, signs: signsForReal,
		example: []string{"my-container", bucket, "my-account", servers.AzuriteAccount + "\nendpoint " + server.Endpoint},
		env:     []string{"AZURE_STORAGE_KEY=" + servers.AzuriteKey},
		driver: func(address, folder, more string) string {
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

func startGCS(t testing.TB) remoteBackend {
	t.Helper()
	process, server := servers.FakeGCS(t)
	server.Bucket(t, bucket)
	return remoteBackend{
		address: process.Address, signs: cannotSign,
		example: []string{"my-bucket", bucket, "credentials_file /etc/caddy/media-gcs.json", "endpoint " + server.Endpoint},
		driver: func(address, folder, more string) string {
			return fmt.Sprintf(`driver gcs %s {
				endpoint http://%s
				prefix %s
				%s
			}`, bucket, address, folder, more)
		},
	}
}

func startSFTP(t testing.TB) remoteBackend {
	t.Helper()
	server := servers.OpenSSH(t)
	host, port, err := net.SplitHostPort(server.Address)
	if err != nil {
		t.Fatal(err)
	}
	return remoteBackend{
		address: server.Address,
		example: []string{
			"files.example.com", server.Address, "user        media", "user " + server.User,
			"/etc/caddy/media_ed25519", server.KeyFile,
			"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPUBLICKEY", server.HostKey, "uploads", server.Root + "/uploads",
		},
		folder: server.Root,
		rclone: []string{"TYPE=sftp", "HOST=" + host, "PORT=" + port, "USER=" + server.User, "KEY_FILE=" + server.KeyFile},
		driver: func(address, folder, more string) string {
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

func startFTP(t testing.TB) remoteBackend {
	t.Helper()
	server := servers.ProFTPD(t, servers.FTPSettings{TLS: "explicit"})
	trust := "ca " + server.CA + "\nserver_name localhost\n"
	return remoteBackend{
		address: server.Address, apart: true,
		example: []string{
			"files.example.com", server.Address, "user     media", "user " + server.User, "root ", trust + "root ",
		},
		env: []string{"FTP_PASSWORD=" + server.Password},
		driver: func(address, folder, more string) string {
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
