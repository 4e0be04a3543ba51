package mediahttp_test

import (
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/caddymedia/mediahttp"
	"github.com/caddymedia/media/caddymedia/tokens"
	tokenmemory "github.com/caddymedia/media/caddymedia/tokens/memory"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// A program serves its items to the SDK of AWS, without Caddy.
func ExampleNewS3() {
	service, err := media.New(media.Config{
		Storages:    []media.Storage{{Name: "default", Driver: memory.New(), OverwriteStrategy: "overwrite", SubFolderFormat: "/"}},
		FileAliases: map[string]*media.FileAlias{"docs": {Extensions: []string{"txt"}}},
		Accounts: map[string]*media.Account{
			"shop": {PasswordHash: "unused", S3Secret: "sixteen bytes or more", May: []string{"upload", "replace", "list"}},
		},
		Comparer: tokens.CompareFunc(func(_, _ []byte) (bool, error) { return false, nil }), // no login succeeds
		Tokens:   tokenmemory.New(nil),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer service.Close()
	server := httptest.NewServer(mediahttp.NewS3(service, mediahttp.Options{}, mediahttp.S3Options{}))
	defer server.Close()

	client := awss3.New(awss3.Options{
		BaseEndpoint: &server.URL, UsePathStyle: true, Region: "us-east-1",
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "shop", SecretAccessKey: "sixteen bytes or more"}, nil
		}),
	})
	ctx, bucket, key := context.Background(), aws.String("file-docs"), aws.String("2026/report.txt")
	if _, err := client.PutObject(ctx, &awss3.PutObjectInput{Bucket: bucket, Key: key, Body: strings.NewReader("all is well")}); err != nil {
		fmt.Println(err)
		return
	}
	got, err := client.GetObject(ctx, &awss3.GetObjectInput{Bucket: bucket, Key: key})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	fmt.Println(string(text), err)
	head, err := client.HeadBucket(ctx, &awss3.HeadBucketInput{Bucket: bucket})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(aws.ToString(head.BucketRegion))
	// Output:
	// all is well <nil>
	// us-east-1
}
