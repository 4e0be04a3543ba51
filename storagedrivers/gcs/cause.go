package gcs

import (
	"errors"

	gcsdk "cloud.google.com/go/storage"

	"github.com/caddymedia/media/storagedrivers"
)

const noCredentials storagedrivers.Cause = "No credentials were found on this machine. Set credentials_file to the key file of a service account."

// causeOf returns the cause of an error of the service.
func causeOf(err error) storagedrivers.Cause {
	if errors.Is(err, gcsdk.ErrBucketNotExist) {
		return storagedrivers.Missing("bucket")
	}
	return ""
}
