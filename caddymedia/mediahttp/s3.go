package mediahttp

import (
	"cmp"
	"net/http"

	"github.com/caddymedia/media/caddymedia/internal/front/caller"
	"github.com/caddymedia/media/caddymedia/internal/front/s3api"
)

// S3Options of a handler for programs that know S3.
type S3Options struct {
	// Region is the answer to programs that ask for the region of a bucket. They may sign with any.
	// Default: us-east-1.
	Region string
	// Domain is the host name below which buckets are host names too, as in file-docs.s3.example.com.
	// Default: none, buckets are in the path only.
	Domain string
}

// NewS3 returns a handler that serves the items of the service of a source to programs that know
// S3. Buckets are the aliases, image-<alias> and file-<alias>, and the access key and the secret
// are the API key and the S3Secret of an account. It answers all paths, so it needs a host or a
// prefix of its own, and the Host header as the client has sent it.
func NewS3(source Source, options Options, s3 S3Options) http.Handler {
	return s3api.New(caller.New(source, caller.Options(options)), s3api.Options{Region: cmp.Or(s3.Region, "us-east-1"), Domain: s3.Domain})
}
