package s3

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	smithy "github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/network"
)

// codes are the error codes of services that have a meaning for callers, with any status. The
// status of a missing object alone has no meaning: a missing bucket or user, or another server at
// the endpoint, has the same.
var codes = map[string]error{
	"NoSuchKey": fs.ErrNotExist,
	"NotFound":  fs.ErrNotExist, // the SDK's own, for HEAD

	"PreconditionFailed": fs.ErrExist,

	"AccessDenied":          fs.ErrPermission,
	"ExpiredToken":          fs.ErrPermission,
	"InvalidAccessKeyId":    fs.ErrPermission,
	"InvalidToken":          fs.ErrPermission,
	"SignatureDoesNotMatch": fs.ErrPermission,
	"XAdminUserNotFound":    fs.ErrPermission,

	"ExistingObjectIsDirectory":      storagedrivers.ErrInvalidKey,
	"KeyTooLongError":                storagedrivers.ErrInvalidKey,
	"ObjectParentIsFile":             storagedrivers.ErrInvalidKey,
	"XMinioInvalidObjectName":        storagedrivers.ErrInvalidKey,
	"XMinioObjectExistsAsDirectory":  storagedrivers.ErrInvalidKey,
	"XMinioParentIsObject":           storagedrivers.ErrInvalidKey,
	"InvalidRange":                   storagedrivers.ErrInvalidRange,
	"InsufficientStorage":            storagedrivers.ErrNoSpace,
	"QuotaExceeded":                  storagedrivers.ErrNoSpace,
	"XMinioAdminBucketQuotaExceeded": storagedrivers.ErrNoSpace,
	"XMinioStorageFull":              storagedrivers.ErrNoSpace,

	// An upload in parts that was removed meanwhile can only be started again.
	"ConditionalRequestConflict": storagedrivers.ErrUnavailable,
	"NoSuchUpload":               storagedrivers.ErrUnavailable,
	"OperationAborted":           storagedrivers.ErrUnavailable,
	"RequestTimeout":             storagedrivers.ErrUnavailable,
	"SlowDown":                   storagedrivers.ErrUnavailable,
}

// statuses are for responses without a known code.
var statuses = map[int]error{
	http.StatusUnauthorized:                 fs.ErrPermission,
	http.StatusForbidden:                    fs.ErrPermission,
	http.StatusRequestTimeout:               storagedrivers.ErrUnavailable,
	http.StatusPreconditionFailed:           fs.ErrExist,
	http.StatusRequestedRangeNotSatisfiable: storagedrivers.ErrInvalidRange,
	http.StatusTooManyRequests:              storagedrivers.ErrUnavailable,
	http.StatusInternalServerError:          storagedrivers.ErrUnavailable,
	http.StatusBadGateway:                   storagedrivers.ErrUnavailable,
	http.StatusServiceUnavailable:           storagedrivers.ErrUnavailable,
	http.StatusGatewayTimeout:               storagedrivers.ErrUnavailable,
	http.StatusInsufficientStorage:          storagedrivers.ErrNoSpace,
}

// mapError returns the contract's error for one of the SDK. It must not be called with errors of
// the source, which look like the network's.
func mapError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ended := ctx.Err(); ended != nil {
		if errors.Is(err, ended) {
			return err
		}
		return fmt.Errorf("%w: %w", ended, brief(err))
	}
	if sentinel := sentinelOf(err); sentinel != nil {
		return fmt.Errorf("%w: %w", sentinel, brief(err))
	}
	return brief(err)
}

// plain is an error of the SDK whose text begins with the cause.
type plain struct {
	text string
	error
}

func (p *plain) Error() string { return p.text }

func (p *plain) Unwrap() error { return p.error }

// brief returns an error of the SDK whose text begins with the service's code and message, before
// the IDs of the request. It removes the wrappers of an error of the network.
func brief(err error) error {
	if _, done := errors.AsType[*plain](err); done {
		return err
	}
	if errors.Is(err, http.ErrSchemeMismatch) {
		return storagedrivers.WithCause(&plain{"the endpoint speaks http, not https", err}, wrongScheme)
	}
	if answer, ok := errors.AsType[smithy.APIError](err); ok {
		text := fmt.Sprintf("status %d %s: %s", status(err), answer.ErrorCode(), answer.ErrorMessage())
		if response, ok := errors.AsType[*awshttp.ResponseError](err); ok && response.RequestID != "" {
			text += " (request " + response.RequestID + ")"
		}
		cause := causes[answer.ErrorCode()]
		if cause == redirected && regionOf(err) != "" { // Amazon redirects to the region of the bucket
			cause = wrongRegion
		}
		return storagedrivers.WithCause(&plain{text, err}, cause)
	}
	if sent, ok := errors.AsType[*url.Error](err); ok {
		return &plain{sent.Err.Error(), err}
	}
	return err
}

// mapReadError is mapError for looking up an object. A key that the service cannot hold counts as
// missing.
func mapReadError(ctx context.Context, err error) error {
	if errors.Is(sentinelOf(err), storagedrivers.ErrInvalidKey) {
		return fmt.Errorf("%w: %w", fs.ErrNotExist, brief(err))
	}
	return mapError(ctx, err)
}

func sentinelOf(err error) error {
	if sentinel, ok := codes[code(err)]; ok {
		return sentinel
	}
	// The status of a response with a broken body does not describe the failure.
	if status := status(err); status >= http.StatusBadRequest {
		return statuses[status]
	}
	if network.Unreachable(err) {
		return storagedrivers.ErrUnavailable
	}
	return nil
}

// code returns the code of an error of the service, or "".
func code(err error) string {
	if answer, ok := errors.AsType[smithy.APIError](err); ok {
		return answer.ErrorCode()
	}
	return ""
}

// status returns the HTTP status of an error, or of a response whose body could not be read. It is
// 0 without a response.
func status(err error) int {
	if answer, ok := errors.AsType[*smithyhttp.ResponseError](err); ok && answer.Response != nil {
		return answer.HTTPStatusCode()
	}
	return 0
}

// regionOf returns the region of the bucket if an error reports another one.
func regionOf(err error) string {
	if answer, ok := errors.AsType[*smithyhttp.ResponseError](err); ok && answer.Response != nil {
		return answer.Response.Header.Get("X-Amz-Bucket-Region")
	}
	return ""
}

// doubtful reports whether a failed request may have been carried out: there was no response, the
// service reported trouble, or a proxy on the way may have repeated the request. A service that
// refuses an object while it is being sent may close the connection before its response is read.
func doubtful(err error) bool {
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
		return false
	}
	switch status := status(err); status {
	case http.StatusNotFound, http.StatusConflict, http.StatusPreconditionFailed:
		return true
	default:
		return status < http.StatusMultipleChoices || status >= http.StatusInternalServerError
	}
}

const (
	wrongKey      storagedrivers.Cause = "The service refused the login: the access key or its secret is wrong."
	wrongRegion   storagedrivers.Cause = "The region is wrong or missing. Set the option region to the one in the details."
	wrongScheme   storagedrivers.Cause = "The endpoint speaks http, not https. The option endpoint must begin with http://."
	redirected    storagedrivers.Cause = "The endpoint redirects to another address. Set the option endpoint to that one, which often begins with https://."
	expired       storagedrivers.Cause = "The service refused the login: the session token has expired."
	noCredentials storagedrivers.Cause = "No credentials were found on this machine. Set access_key_id and secret_access_key."
)

// causes of the errors of the services, by their codes.
var causes = map[string]storagedrivers.Cause{
	"AuthorizationHeaderMalformed": wrongRegion, // the signature has the region
	"ExpiredToken":                 expired,
	"Found":                        redirected,
	"InvalidAccessKeyId":           wrongKey,
	"InvalidToken":                 wrongKey,
	"MovedPermanently":             redirected,
	"NoSuchBucket":                 storagedrivers.Missing("bucket"),
	"PermanentRedirect":            redirected,
	"SignatureDoesNotMatch":        wrongKey,
	"TemporaryRedirect":            redirected,
	"XAdminUserNotFound":           wrongKey,
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
