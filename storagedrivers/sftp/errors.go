package sftp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	pkgsftp "github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/network"
)

// Status codes for which the library has no names. OpenSSH sends only those of protocol 3, other
// hosts also some of later versions.
const (
	codeNoSuchPath   = 10
	codeExists       = 11
	codeWriteProtect = 12
	codeNoSpace      = 14
	codeQuota        = 15
	codeInvalidName  = 20
)

// mapError returns the contract's error for one of the library or of the network. Errors about
// missing and forbidden files already match those of io/fs.
func mapError(err error) error {
	var status *pkgsftp.StatusError
	var hostKey *hostKeyError
	var sentinel error
	switch {
	case err == nil, errors.As(err, &hostKey): // the second can be neither retried nor granted
		return err
	case errors.As(err, &status):
		sentinel = statusSentinel(status)
	case errors.Is(err, pkgsftp.ErrSSHFxConnectionLost), network.Unreachable(err):
		sentinel = storagedrivers.ErrUnavailable
	case strings.Contains(err.Error(), notAuthenticated):
		sentinel = fs.ErrPermission
	case errors.Is(err, syscall.ENOTDIR): // the library's, on the way to a folder
		sentinel = storagedrivers.ErrInvalidKey
	}
	if sentinel == nil || errors.Is(err, sentinel) {
		return err
	}
	return fmt.Errorf("%w: %w", sentinel, err)
}

// statusSentinel returns the sentinel of a status, or nil.
func statusSentinel(status *pkgsftp.StatusError) error {
	switch status.Code {
	case uint32(pkgsftp.ErrSSHFxFailure):
		// The protocol has no status for a full disk. Hosts put names before the reason, so only the
		// part after the last colon counts.
		text := strings.ToLower(status.Error())
		text = text[strings.LastIndex(text, ": ")+1:]
		if slices.ContainsFunc(fullDisk, func(words string) bool { return strings.Contains(text, words) }) {
			return storagedrivers.ErrNoSpace
		}
	case uint32(pkgsftp.ErrSSHFxNoConnection), uint32(pkgsftp.ErrSSHFxConnectionLost):
		return storagedrivers.ErrUnavailable
	case uint32(pkgsftp.ErrSSHFxBadMessage), codeInvalidName: // OpenSSH says the first to long names
		return storagedrivers.ErrInvalidKey
	case codeNoSuchPath:
		return fs.ErrNotExist
	case codeExists:
		return fs.ErrExist
	case codeWriteProtect:
		return fs.ErrPermission
	case codeNoSpace, codeQuota:
		return storagedrivers.ErrNoSpace
	}
	return nil
}

// fullDisk are the words of hosts for a full disk, in lower case.
var fullDisk = []string{"no space", "disk full", "not enough space", "quota exceeded"}

// unavailable reports whether the host did not reply.
func unavailable(err error) bool { return errors.Is(mapError(err), storagedrivers.ErrUnavailable) }

// failed reports whether the host replied SSH_FX_FAILURE, the status for everything without its own
// status: the name exists, a folder is a file, the disk is full.
func failed(err error) bool {
	var status *pkgsftp.StatusError
	return errors.As(err, &status) && status.Code == uint32(pkgsftp.ErrSSHFxFailure)
}

// unsupported reports whether the host does not support the operation.
func unsupported(err error) bool {
	var status *pkgsftp.StatusError
	return errors.As(err, &status) && status.Code == uint32(pkgsftp.ErrSSHFxOpUnsupported)
}

// contextError returns the error of a ctx that has ended, with its cause if that is another error.
func contextError(ctx context.Context) error {
	if cause := context.Cause(ctx); !errors.Is(cause, ctx.Err()) {
		return fmt.Errorf("%w: %w", ctx.Err(), cause)
	}
	return ctx.Err()
}

func notAnObject(key string) error {
	return fmt.Errorf("%q is no regular file: %w", key, fs.ErrNotExist)
}

// errSilent means that the host did not reply within the time-out.
var errSilent = fmt.Errorf("%w: the host does not answer: %w", storagedrivers.ErrUnavailable, os.ErrDeadlineExceeded)

const (
	wrongHostKey storagedrivers.Cause = "The host presents a key that is not the expected one. If the host has a new key, compare it at " +
		"the host itself and put it into host_key or known_hosts. Otherwise another host may be answering."
	noHostKey storagedrivers.Cause = "The host has no key of the type that host_key or known_hosts expects. " +
		"Look up the keys of the host, and put one of them there."
	wrongMethod storagedrivers.Cause = "The host does not accept this way of logging in. Use one that it accepts, " +
		"such as a private key instead of a password."
	wrongLogin storagedrivers.Cause = "The host refused the login: the user or the password is wrong, or the key is not authorized there."
	notSSH     storagedrivers.Cause = "No SSH server answers at this address, but another server. Check the address and the port."
	noAgent    storagedrivers.Cause = "The SSH agent of this machine does not answer. Start it, or log in with a password or a private key."
)

// notAuthenticated is the beginning of the library's error for a refused login, for which it has no
// error value.
const notAuthenticated = "ssh: unable to authenticate"

// noVersion is the library's error for a server that does not say its version of SSH.
const noVersion = "ssh: overflow reading version string"

// causeOf returns the cause of an error of connecting.
func causeOf(err error) storagedrivers.Cause {
	var mismatch *hostKeyError
	var common *ssh.AlgorithmNegotiationError
	switch {
	case errors.As(err, &mismatch):
		return wrongHostKey
	case errors.As(err, &common) && common.What == "host key":
		return noHostKey
	case errors.Is(err, errNotSSH), strings.Contains(err.Error(), noVersion):
		return notSSH
	case strings.Contains(err.Error(), notAuthenticated+", attempted methods [none]"):
		return wrongMethod
	case strings.Contains(err.Error(), notAuthenticated):
		return wrongLogin
	}
	return ""
}

// causeOfRoot returns the cause of a root that cannot be used. Hosts report a file in its path only
// as text.
func causeOfRoot(err error) storagedrivers.Cause {
	if err != nil && strings.Contains(strings.ToLower(err.Error()), "not a directory") {
		return storagedrivers.NotAFolder
	}
	return ""
}
