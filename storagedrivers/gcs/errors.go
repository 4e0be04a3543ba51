package gcs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"

	"cloud.google.com/go/auth"
	gcsdk "cloud.google.com/go/storage"
	"google.golang.org/api/googleapi"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/network"
)

// mapError returns the contract's error for one of the SDK.
func mapError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	err = storagedrivers.WithCause(err, causeOf(err))
	if end := ctx.Err(); end != nil {
		if errors.Is(err, end) {
			return err
		}
		return fmt.Errorf("%w: %w", end, err)
	}
	if known := sentinelOf(err); known != nil && !errors.Is(err, known) {
		return fmt.Errorf("%w: %w", known, err)
	}
	return err
}

func sentinelOf(err error) error {
	var answer *googleapi.Error
	var refused *auth.Error
	switch {
	case errors.Is(err, gcsdk.ErrObjectNotExist), errors.Is(err, gcsdk.ErrBucketNotExist):
		return fs.ErrNotExist
	case errors.As(err, &answer):
		return sentinelOfStatus(answer)
	case errors.As(err, &refused) && refused.Response != nil:
		if refused.Temporary() || refused.Response.StatusCode >= http.StatusInternalServerError {
			return storagedrivers.ErrUnavailable
		}
		return fs.ErrPermission
	case network.Unreachable(err):
		return storagedrivers.ErrUnavailable
	}
	return nil
}

func sentinelOfStatus(answer *googleapi.Error) error {
	switch answer.Code {
	case http.StatusNotFound:
		return fs.ErrNotExist
	case http.StatusPreconditionFailed:
		return fs.ErrExist
	case http.StatusRequestedRangeNotSatisfiable:
		return storagedrivers.ErrInvalidRange
	case http.StatusInsufficientStorage:
		return storagedrivers.ErrNoSpace
	case http.StatusUnauthorized, http.StatusForbidden:
		if throttled(answer) {
			return storagedrivers.ErrUnavailable
		}
		return fs.ErrPermission
	case http.StatusGone: // of an upload that the service has forgotten
		return storagedrivers.ErrUnavailable
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		return storagedrivers.ErrUnavailable
	}
	if answer.Code >= http.StatusInternalServerError {
		return storagedrivers.ErrUnavailable
	}
	return nil
}

// throttled reports whether a refusal is for too many requests.
func throttled(answer *googleapi.Error) bool {
	for _, item := range answer.Errors {
		switch item.Reason {
		case "rateLimitExceeded", "userRateLimitExceeded", "quotaExceeded":
			return true
		}
	}
	return false
}

const noCredentials storagedrivers.Cause = "No credentials were found on this machine. Set credentials_file to the key file of a service account."

// causeOf returns the cause of an error of the service.
func causeOf(err error) storagedrivers.Cause {
	if errors.Is(err, gcsdk.ErrBucketNotExist) {
		return storagedrivers.Missing("bucket")
	}
	return ""
}
