package s3

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/caddymedia/media/storagedrivers"
)

const (
	wrongKey      storagedrivers.Cause = "The service refused the login: the access key or its secret is wrong."
	wrongRegion   storagedrivers.Cause = "The bucket is in another region. Set the option region to the one in the details."
	expired       storagedrivers.Cause = "The service refused the login: the session token has expired."
	noCredentials storagedrivers.Cause = "No credentials were found on this machine. Set access_key_id and secret_access_key."
)

// causes of the errors of the services, by their codes.
var causes = map[string]storagedrivers.Cause{
	"ExpiredToken":          expired,
	"InvalidAccessKeyId":    wrongKey,
	"InvalidToken":          wrongKey,
	"NoSuchBucket":          storagedrivers.Missing("bucket"),
	"SignatureDoesNotMatch": wrongKey,
	"XAdminUserNotFound":    wrongKey,
}

// ambient are the credentials that the SDK finds by itself.
type ambient struct{ aws.CredentialsProvider }

// Retrieve returns the credentials.
func (a ambient) Retrieve(ctx context.Context) (aws.Credentials, error) {
	c, err := a.CredentialsProvider.Retrieve(ctx)
	if ctx.Err() != nil {
		return c, err
	}
	return c, storagedrivers.WithCause(err, noCredentials)
}
