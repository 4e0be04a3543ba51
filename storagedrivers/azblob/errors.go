package azblob

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/network"
)

// mapError returns the contract's error for one of the SDK.
func mapError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	sentinel := sentinelOf(err)
	err = brief(err)
	if ended := ctx.Err(); ended != nil {
		if errors.Is(err, ended) {
			return err
		}
		return fmt.Errorf("%w: %w", ended, err)
	}
	if sentinel != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", sentinel, err)
	}
	return err
}

// brief returns err without addresses, which may contain a signature, and without the body of a
// response.
func brief(err error) error {
	if replied, ok := errors.AsType[*azcore.ResponseError](err); ok {
		return storagedrivers.WithCause(&answer{replied}, causes[bloberror.Code(replied.ErrorCode)])
	}
	if request, ok := errors.AsType[*url.Error](err); ok {
		return request.Err
	}
	return err
}

// answer is an error of the service in one line.
type answer struct{ *azcore.ResponseError }

func (a *answer) Error() string { return fmt.Sprintf("status %d %s", a.StatusCode, a.ErrorCode) }

func (a *answer) Unwrap() error { return a.ResponseError }

var sentinels = map[bloberror.Code]error{
	bloberror.BlobNotFound:             fs.ErrNotExist,
	bloberror.BlobAlreadyExists:        fs.ErrExist,
	bloberror.BlobImmutableDueToPolicy: fs.ErrPermission,
	bloberror.LeaseIDMissing:           fs.ErrPermission,
	bloberror.InvalidRange:             storagedrivers.ErrInvalidRange,
	bloberror.InvalidResourceName:      storagedrivers.ErrInvalidKey,
	bloberror.InvalidURI:               storagedrivers.ErrInvalidKey,
	bloberror.OutOfRangeInput:          storagedrivers.ErrInvalidKey,
	// Other writers of the key have discarded the blocks of this upload repeatedly.
	bloberror.InvalidBlockList: storagedrivers.ErrUnavailable,
}

func sentinelOf(err error) error {
	if replied, ok := errors.AsType[*azcore.ResponseError](err); ok {
		if sentinel, ok := sentinels[bloberror.Code(replied.ErrorCode)]; ok {
			return sentinel
		}
		return sentinelOfStatus(replied.StatusCode)
	}
	if login, ok := errors.AsType[*azidentity.AuthenticationFailedError](err); ok {
		return sentinelOfLogin(login)
	}
	if network.Unreachable(err) {
		return storagedrivers.ErrUnavailable
	}
	return nil
}

// sentinelOfLogin returns the sentinel of a failed request for a token. Without a response it was
// an error of the network, of which the SDK keeps only the text.
func sentinelOfLogin(err *azidentity.AuthenticationFailedError) error {
	switch {
	case err.RawResponse == nil:
		return storagedrivers.ErrUnavailable
	case err.RawResponse.StatusCode == http.StatusBadRequest: // the answer to a wrong secret
		return fs.ErrPermission
	}
	return sentinelOfStatus(err.RawResponse.StatusCode)
}

func sentinelOfStatus(status int) error {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fs.ErrPermission
	case http.StatusInsufficientStorage:
		return storagedrivers.ErrNoSpace
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return storagedrivers.ErrUnavailable
	}
	return nil
}

// taken are the error codes for an existing key. The last one is for a signature that may create
// but not overwrite.
var taken = []bloberror.Code{
	bloberror.BlobAlreadyExists, bloberror.ConditionNotMet, bloberror.UnauthorizedBlobOverwrite,
}

// doubtful reports whether a failed request may have been carried out: there was no response, the
// service reported trouble, or a proxy on the way may have repeated the request.
func doubtful(err error) bool {
	if replied, ok := errors.AsType[*azcore.ResponseError](err); ok {
		return replied.StatusCode >= http.StatusInternalServerError || bloberror.HasCode(err, taken...)
	}
	unsent, ok := errors.AsType[*net.OpError](err)
	return !ok || unsent.Op != "dial"
}

// causes of the errors of the service, by their codes.
var causes = map[bloberror.Code]storagedrivers.Cause{
	bloberror.AuthenticationFailed: "The service refused the login: the account or its key is wrong.",
	bloberror.ContainerNotFound:    storagedrivers.Missing("container"),
}
