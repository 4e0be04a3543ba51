package ftp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/textproto"
	"slices"
	"strings"

	jftp "github.com/jlaffaye/ftp"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/network"
)

// mapError returns the contract's error for a server's reply or an error of the network. It does
// not change an error that already matches one, or a refusal without a clear reason; see
// [isRefusal].
func mapError(err error) error {
	if err == nil || slices.ContainsFunc(sentinels, func(s error) bool { return errors.Is(err, s) }) {
		return err
	}
	var sentinel error
	if reply, ok := errors.AsType[*textproto.Error](err); ok {
		sentinel = replySentinel(reply)
	} else if network.Unreachable(err) {
		sentinel = storagedrivers.ErrUnavailable
	}
	if sentinel == nil {
		return err
	}
	return fmt.Errorf("%w: %w", sentinel, err)
}

var sentinels = []error{
	fs.ErrNotExist, fs.ErrExist, fs.ErrPermission, storagedrivers.ErrInvalidKey, storagedrivers.ErrInvalidRange,
	storagedrivers.ErrNoSpace, storagedrivers.ErrUnavailable, storagedrivers.ErrClosed, context.Canceled,
}

// operationError is mapError for an operation with ctx. After the end of ctx the error is that of
// ctx.
func operationError(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return mapError(err)
	}
	if cause := context.Cause(ctx); !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	if !errors.Is(err, ctx.Err()) {
		err = fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	return err
}

// replySentinel returns the sentinel of a reply. The code alone is ambiguous: 550 is "not found"
// and "permission denied", and 451 may be a full disk.
func replySentinel(reply *textproto.Error) error {
	byText := textSentinel(reply.Msg)
	switch reply.Code {
	case jftp.StatusNotAvailable, jftp.StatusCanNotOpenDataConnection:
		return storagedrivers.ErrUnavailable
	case jftp.StatusFileActionIgnored, jftp.StatusActionAborted, jftp.StatusTransfertAborted:
		if byText == nil {
			return storagedrivers.ErrUnavailable
		}
		return byText
	case jftp.Status452, jftp.StatusExceededStorage:
		return storagedrivers.ErrNoSpace
	case jftp.StatusInvalidCredentials, jftp.StatusNotLoggedIn, jftp.StatusStorNeedAccount:
		if errors.Is(byText, storagedrivers.ErrUnavailable) {
			return byText // all logins are taken
		}
		return fs.ErrPermission
	case jftp.StatusFileUnavailable, jftp.StatusPageTypeUnknown, jftp.StatusBadFileName:
		return byText
	}
	return nil
}

// texts are words in server replies, in lower case. Some servers report a full disk only as a
// failed write, and pyftpdlib not even that.
var texts = []struct {
	sentinel error
	words    []string
}{
	{storagedrivers.ErrNoSpace, []string{
		"no space", "quota", "disk full", "disk is full", "insufficient storage", "insufficient disk", "insufficient space",
		"not enough space", "not enough disk", "not enough storage", "not enough free",
		"error during write", "failure writing to local file", "error writing to file", "none; transfer aborted",
	}},
	{storagedrivers.ErrUnavailable, []string{"too many", "maximum number", "try again", "temporarily"}},
	{fs.ErrNotExist, []string{"no such file", "not found", "not exist", "cannot find", "can't find"}},
	{fs.ErrPermission, []string{
		"permission", "denied", "not permitted", "not allowed", "forbidden", "read-only", "prohibited", "privilege",
	}},
	{storagedrivers.ErrInvalidKey, []string{"too long", "invalid", "illegal"}},
}

// textSentinel returns the sentinel for the text of a reply, or nil. Servers put names before the
// reason ("a/no such file.txt: Permission denied"), so only the part after the last colon counts.
func textSentinel(text string) error {
	text = strings.ToLower(text[strings.LastIndex(text, ": ")+1:])
	for _, t := range texts {
		if slices.ContainsFunc(t.words, func(word string) bool { return strings.Contains(text, word) }) {
			return t.sentinel
		}
	}
	return nil
}

// hasCode reports whether err is a reply of the server with one of the codes.
func hasCode(err error, codes ...int) bool {
	reply, ok := errors.AsType[*textproto.Error](err)
	return ok && slices.Contains(codes, reply.Code)
}

// isRefusal reports whether err is a server's reply that refuses an operation on a name, for any
// reason.
func isRefusal(err error) bool {
	return !errors.Is(err, storagedrivers.ErrInvalidKey) && hasCode(err,
		jftp.StatusFileUnavailable, jftp.StatusPageTypeUnknown, jftp.StatusBadFileName,
		jftp.StatusFileActionIgnored, jftp.StatusActionAborted, jftp.StatusBadArguments, statusFolderExists)
}

// statusFolderExists is the reply of some servers to MKD of an existing folder, by RFC 959.
const statusFolderExists = 521

// ignoreRefusal returns nil for a refusal, and any other error as it is.
func ignoreRefusal(err error) error {
	if isRefusal(err) {
		return nil
	}
	return err
}

// ignoreMissing returns nil for fs.ErrNotExist, and any other error as it is.
func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// accept returns nil for a server's reply with a code of success that the library does not expect.
func accept(code int, err error) error {
	if isSingleReply(err) && hasCode(err, code) {
		return nil
	}
	return err
}

// isUnknownCommand reports whether the server does not implement or understand a command.
func isUnknownCommand(err error) bool {
	return !errors.Is(err, storagedrivers.ErrInvalidKey) && hasCode(err,
		jftp.StatusBadCommand, jftp.StatusNotImplemented, jftp.StatusNotImplementedParameter)
}

// lookupError is mapError for looking up a name. A refusal without a reason means that the name
// does not exist.
func lookupError(err error) error {
	mapped := mapError(err)
	if mapped == err && isRefusal(err) { //nolint:errorlint // whether anything was added
		return fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	return mapped
}

// refusalReason returns the reason of a refusal, or sentinel if the reply contains none.
func refusalReason(refusal, sentinel error) error {
	mapped := mapError(refusal)
	if mapped == refusal || errors.Is(mapped, fs.ErrNotExist) { //nolint:errorlint // whether anything was added
		return fmt.Errorf("%w: %w", sentinel, refusal)
	}
	return mapped
}

// isSingleReply reports whether err is exactly one reply of the server, so that the next reply will
// belong to the next command.
func isSingleReply(err error) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return !slices.ContainsFunc(joined.Unwrap(), func(e error) bool { return !isSingleReply(e) })
	}
	reply, ok := err.(*textproto.Error) //nolint:errorlint // a wrapped reply is not a single one
	return ok && reply.Code != jftp.StatusNotAvailable
}

const (
	wrongLogin    storagedrivers.Cause = "The host refused the login: the user or the password is wrong."
	notFTP        storagedrivers.Cause = "No FTP server answers at this address, but another server. Check the address, the port, and the driver."
	unknownFormat storagedrivers.Cause = "The server lists files in an unknown format. " +
		"Let it list them like ls -l, or use a server with MLSD."
)

// causeOfRoot returns the cause of a root that cannot be entered. Servers report it only as text.
func causeOfRoot(err error) storagedrivers.Cause {
	if err != nil && strings.Contains(strings.ToLower(err.Error()), "not a directory") {
		return storagedrivers.NotAFolder
	}
	return ""
}
