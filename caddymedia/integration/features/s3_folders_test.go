package features_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// TestFoldersOfClients: on the real server of each driver, a folder that a client of S3 has made
// stays without items, and another one is in no list without them.
func TestFoldersOfClients(t *testing.T) {
	t.Parallel()
	site.EachRemote(t, func(t *testing.T, p site.Backend) {
		const key, secret, bucket = "shop", "a secret of the test", "file-docs"
		c, address := site.NewChild(t), servers.FreeAddress(t)
		c.Sites = "http://" + address + " {\n\tmedia_s3\n}\n"
		c.Start("tokens memory\naccount " + key + " " + site.CheapHash + " {\nmay upload list delete\ns3_secret \"" + secret + "\"\n}\n" +
			"storage default {\n" + p.Driver(p.Address, "folders", "") + "\nsub_folder_format /\noverwrite_strategy overwrite\nsanitize off\n}\n" +
			"file_alias docs {\nextensions *\n}\n")
		client := awss3.New(awss3.Options{
			BaseEndpoint: aws.String("http://" + address), Region: "us-east-1", UsePathStyle: true,
			Credentials: credentials.NewStaticCredentialsProvider(key, secret, ""),
		})
		for _, name := range []string{"stays.txt", "made/", "made/1.txt", "made/in/", "other/in/2.txt", "other/3.txt"} {
			if _, err := client.PutObject(t.Context(), &awss3.PutObjectInput{Bucket: aws.String(bucket), Key: &name, Body: strings.NewReader("")}); err != nil {
				t.Errorf("put %s: %v", name, err)
			}
		}
		want := func(prefix, delimiter string, names ...string) {
			t.Helper()
			page, err := client.ListObjectsV2(t.Context(), &awss3.ListObjectsV2Input{Bucket: aws.String(bucket), Prefix: &prefix, Delimiter: &delimiter})
			if err != nil {
				t.Fatal(err)
			}
			got := make([]string, 0, len(page.Contents)+len(page.CommonPrefixes))
			for _, object := range page.Contents {
				got = append(got, *object.Key)
			}
			for _, folder := range page.CommonPrefixes {
				got = append(got, *folder.Prefix)
			}
			if slices.Sort(got); !slices.Equal(got, names) {
				t.Errorf("%q by %q: %q, want %q", prefix, delimiter, got, names)
			}
		}
		remove := func(names ...string) {
			t.Helper()
			for _, name := range names {
				if _, err := client.DeleteObject(t.Context(), &awss3.DeleteObjectInput{Bucket: aws.String(bucket), Key: &name}); err != nil {
					t.Errorf("delete %s: %v", name, err)
				}
			}
		}
		want("", "", "made/", "made/1.txt", "made/in/", "other/3.txt", "other/in/2.txt", "stays.txt")
		want("made/", "/", "made/", "made/1.txt", "made/in/")
		remove("made/1.txt", "other/in/2.txt")
		want("other/", "/", "other/3.txt")
		remove("other/3.txt", "made/in/")
		want("made/", "/", "made/")
		want("", "/", "made/", "stays.txt")
		remove("made/")
		want("", "/", "stays.txt")
		if _, err := client.HeadObject(t.Context(), &awss3.HeadObjectInput{Bucket: aws.String(bucket), Key: aws.String("made/")}); err == nil {
			t.Error("a deleted folder is there")
		}
	})
}
