package s3api

import (
	"errors"
	"net/http"

	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
)

// Error is an error in the form of S3.
type Error struct {
	Status  int
	Code    string
	Message string
}

// Error returns the code and the message.
func (e *Error) Error() string { return e.Code + ": " + e.Message }

// errorKind is a code of S3 with its status,
// https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html.
type errorKind struct {
	status int
	code   string
}

var (
	accessDenied          = errorKind{http.StatusForbidden, "AccessDenied"}
	badDigest             = errorKind{http.StatusBadRequest, "BadDigest"}
	contentMismatch       = errorKind{http.StatusBadRequest, "XAmzContentSHA256Mismatch"}
	incompleteBody        = errorKind{http.StatusBadRequest, "IncompleteBody"}
	invalidDigest         = errorKind{http.StatusBadRequest, "InvalidDigest"}
	invalidRequest        = errorKind{http.StatusBadRequest, "InvalidRequest"}
	entityTooLarge        = errorKind{http.StatusBadRequest, "EntityTooLarge"}
	internalError         = errorKind{http.StatusInternalServerError, "InternalError"}
	invalidArgument       = errorKind{http.StatusBadRequest, "InvalidArgument"}
	invalidRange          = errorKind{http.StatusRequestedRangeNotSatisfiable, "InvalidRange"}
	invalidPart           = errorKind{http.StatusBadRequest, "InvalidPart"}
	malformedXML          = errorKind{http.StatusBadRequest, "MalformedXML"}
	noSpace               = errorKind{http.StatusInsufficientStorage, "InsufficientStorage"}
	noSuchBucket          = errorKind{http.StatusNotFound, "NoSuchBucket"}
	noSuchKey             = errorKind{http.StatusNotFound, "NoSuchKey"}
	notImplemented        = errorKind{http.StatusNotImplemented, "NotImplemented"}
	operationAborted      = errorKind{http.StatusConflict, "OperationAborted"}
	preconditionFailed    = errorKind{http.StatusPreconditionFailed, "PreconditionFailed"}
	slowDown              = errorKind{http.StatusServiceUnavailable, "SlowDown"}
	malformedHeader       = errorKind{http.StatusBadRequest, "AuthorizationHeaderMalformed"}
	malformedQuery        = errorKind{http.StatusBadRequest, "AuthorizationQueryParametersError"}
	requestTimeTooSkewed  = errorKind{http.StatusForbidden, "RequestTimeTooSkewed"}
	signatureDoesNotMatch = errorKind{http.StatusForbidden, "SignatureDoesNotMatch"}
)

func errorOf(kind errorKind, message string) *Error { return &Error{kind.status, kind.code, message} }

func malformed(header string) *Error {
	return errorOf(malformedHeader, "the header "+header+" is not of the form of "+algorithm)
}

func badQuery(name string) *Error {
	return errorOf(malformedQuery, "the parameter "+name+" is missing, sent twice or wrong")
}

// errorAnswer is the body of an error.
type errorAnswer struct {
	Code      string
	Message   string
	Resource  string
	RequestId string //nolint:revive // the name of the element
}

// storageError returns the error for one of a storage. doing is what failed, as in "the storage
// could not list the objects".
func storageError(doing string, err error) *Error {
	switch failure := item.OperationFailure(doing, err); failure.Reason {
	case item.Missing:
		return errorOf(noSuchKey, "there is no such object")
	case item.Changed:
		return errorOf(preconditionFailed, "a condition does not hold for the object")
	case item.Conflict:
		return errorOf(operationAborted, "the object is being replaced, try again later")
	case item.BadRequest:
		return errorOf(incompleteBody, failure.Message)
	case item.Unavailable, item.NoSpace:
		return errorOf(kindOf(failure.Reason), failure.Message)
	default:
		return errorOf(internalError, failure.Message)
	}
}

// statusError returns the error for the status of an item that is served.
func statusError(status int) *Error {
	switch status {
	case http.StatusNotFound:
		return errorOf(noSuchKey, "there is no such object")
	case http.StatusPreconditionFailed:
		return errorOf(preconditionFailed, "a condition does not hold for the object")
	case http.StatusRequestedRangeNotSatisfiable:
		return errorOf(invalidRange, "the object has no such range")
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		return errorOf(slowDown, "try again later")
	}
	return errorOf(internalError, "the object could not be read")
}

// kinds are the codes of refused uploads.
var kinds = map[item.Reason]errorKind{
	item.BadRequest: invalidRequest, item.BadContent: invalidRequest, item.Forbidden: accessDenied, item.Unauthorized: accessDenied,
	item.Conflict: operationAborted, item.TooLarge: entityTooLarge, item.Unavailable: slowDown, item.Busy: slowDown,
	item.NoSpace: noSpace, item.Missing: noSuchKey, item.Changed: preconditionFailed,
}

// kindOf returns the code of a reason.
func kindOf(reason item.Reason) errorKind {
	if kind, known := kinds[reason]; known {
		return kind
	}
	return internalError
}

// failureError returns the error for a failure.
func failureError(failure *item.Failure) *Error {
	if failed, ok := errors.AsType[*Error](failure.Err); ok {
		return failed
	}
	return errorOf(kindOf(failure.Reason), failure.Message)
}

// failure returns the error for the failures of an upload, and logs those that are not the caller's
// fault, and why a check has refused the object. It counts what is refused for good on a presigned
// address.
func (q *request) failure(failures item.Failures) *Error {
	q.running.CountRefused(q.ctx, q.permit.Ticket, failures)
	failed := failureError(failures[0])
	switch cause := failures[0].Err; {
	case failed.Status >= http.StatusInternalServerError:
		q.Log.Error(failed.Message, "status", failed.Status, "error", cause)
	case failures[0].Reason == item.BadContent && cause != nil:
		q.Log.Warn(failed.Message, "status", failed.Status, "error", cause)
	}
	return failed
}
