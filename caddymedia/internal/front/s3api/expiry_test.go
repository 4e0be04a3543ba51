package s3api_test

import (
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// TestExpired: an object that has expired does not exist for S3, also as the source of a copy.
func TestExpired(t *testing.T) {
	t.Parallel()
	driver := memory.New()
	f := newFrontOn(t, driver, all...)
	f.reload(t, func(c *media.Config) { c.FileAliases["docs"].Expires = "1h" })
	driver.Now = f.site.Now
	for _, name := range []string{"old.txt", "young.txt"} {
		f.put(t, docs, name, name)
		f.site.Passed.Add(int64(30 * time.Minute))
	}
	if names := f.names(t, docs); !slices.Equal(names, []string{"young.txt"}) {
		t.Errorf("listed are %q", names)
	}
	if got := f.get(t, docs, "old.txt"); got != "NoSuchKey" {
		t.Errorf("GET: %q", got)
	}
	_, err := f.HeadObject(t.Context(), &awss3.HeadObjectInput{Bucket: aws.String(docs), Key: aws.String("old.txt")})
	wantCode(t, "HEAD", err, "NotFound")
	_, err = f.CopyObject(t.Context(), &awss3.CopyObjectInput{
		Bucket: aws.String(keep), Key: aws.String("copy.txt"), CopySource: aws.String(docs + "/old.txt"),
	})
	wantCode(t, "copy", err, "NoSuchKey")
	f.put(t, docs, "old.txt", "new")
	if got := f.get(t, docs, "old.txt"); got != "new" {
		t.Errorf("GET of a new object of the name: %q", got)
	}
}
