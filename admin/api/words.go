package api

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/textproto"
	"os"
	"strings"
	"syscall"

	"github.com/caddymedia/media/storagedrivers"
)

// explain says in one or two sentences what an error of a storage means, and what to do. step is
// that of a probe.
func explain(driver storagedrivers.Description, step string, err error) string {
	for _, c := range causes {
		if c.is(err) {
			return strings.ReplaceAll(c.text, "{noun}", driver.Noun)
		}
	}
	switch {
	case step == stepCheck && noFolder(err):
		return "The root is not a folder, or a part of its path is a file. Name a folder."
	case errors.Is(err, fs.ErrPermission):
		return denied(driver, step)
	case step == stepCheck && errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf("The %s does not exist, and cannot be made from here. Make it, or correct its name.", driver.Noun)
	case errors.Is(err, storagedrivers.ErrUnavailable):
		return "The storage cannot be reached, or is too busy now. Try again in a moment; if it stays so, look at its own log."
	}
	return "The storage answered with an error that is not a usual one. The details have its own words."
}

// cause is something that an error can come from.
type cause struct {
	is   func(error) bool
	text string
}

// causes in the order in which they are looked for: an error may be of several.
var causes = []cause{
	{isAny(storagedrivers.ErrClosed), "The configuration was changed meanwhile. Try again."},
	{says("creating what exists was not refused"), "A second upload of the same name was not refused as it has to be: two uploads of one name could overwrite each other."},
	{says("the root is gone"), "The folder was there and is gone. Mount its disk, or make it again; it is then used without a restart."},
	{says("empty folder of another file system"), "An empty folder of another file system stands where the folder was. Mount its disk; or, if this folder is meant, put any file into it or restart Caddy."},
	{says("what was read differs from what was stored"), "What was stored came back changed. Something on the way, a cache for instance, gives old or other content."},
	{says("the stored object is not listed"), "A file that was stored is not in the listing. The panel, copies and sweeps would not find what is there."},
	{says("the deleted object is still there"), "What was deleted is still there. Something on the way, a cache for instance, gives old content."},
	{says("the host key of "), "The host shows a key that is not the expected one. If the host got a new key, put it into " +
		"host_key or known_hosts after comparing it at the host itself; otherwise somebody else may be answering in its place."},
	{says("no common algorithm for host key"), "The host has no key of the kind that host_key or known_hosts expects. " +
		"Look up which keys it has, and put one of them there."},
	{says("attempted methods [none]"), "The host does not take this way of logging in. Ask for one that it takes, a private key instead of a password for instance."},
	{says("ssh: unable to authenticate"), "The host refused the login: the user or the password is wrong, or the key is not allowed there."},
	{login, "The host refused the login: the user or the password is wrong."},
	{
		code("InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "XAdminUserNotFound"),
		"The service refused the login: the access key or its secret is wrong.",
	},
	{code("ExpiredToken"), "The service refused the login: the session token has expired."},
	{says("AuthenticationFailed"), "The service refused the login: the account or its key is wrong."},
	{says("finding credentials"), "No credentials were found on this machine. Name a file with the key of a service account."},
	{says("failed to refresh cached credentials"), "No credentials were found on this machine. Give access_key_id and secret_access_key."},
	{says("ssh agent: "), "The SSH agent of this machine does not answer. Start it, or log in with a password or a key."},
	{says("no bucket ", "bucket doesn't exist", "ContainerNotFound"), "There is no such {noun}. Make it first, or correct its name."},
	{says("is in the region "), "The {noun} is in another region. Give the region that the details name."},
	{isA[*net.DNSError], "The name of the host is unknown. Check the address for a spelling mistake, and that this machine can look up names."},
	{isAny(syscall.ECONNREFUSED), "The host refused the connection: nothing listens there. Check the address and the port, and that the service is running."},
	{isAny(syscall.EHOSTUNREACH, syscall.ENETUNREACH), "There is no way to the host from here. Check the address, the network and the firewalls."},
	{certificate, "The certificate of the host is not trusted. Check the name in the address, and name the authority that the certificate comes from if it is one of your own."},
	{noTLS, "The host does not speak TLS on this port. Check the port, and whether the connection is to be secured."},
	{isAny(storagedrivers.ErrNoSpace), "The storage is full, or over its quota. Make space or raise the quota."},
	{says("not tried, it has failed"), "The storage has failed several times in a row and is left alone for some seconds. Try again then."},
	{isAny(storagedrivers.ErrSizeMismatch), "What was stored is not as long as what was sent. Something on the way cuts it off."},
	{silent, "The host does not answer. Check the address and the port, and that no firewall swallows the connection."},
	{isAny(context.Canceled), "It was broken off."},
	{isAny(io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE), "The host ended the connection. Check that the port is the " +
		"one for this kind of storage, and that the host does not refuse this machine."},
}

func isAny(wanted ...error) func(error) bool {
	return func(err error) bool {
		for _, want := range wanted {
			if errors.Is(err, want) {
				return true
			}
		}
		return false
	}
}

func isA[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}

// says is for errors that the libraries have no value for.
func says(words ...string) func(error) bool {
	return func(err error) bool {
		for _, word := range words {
			if strings.Contains(err.Error(), word) {
				return true
			}
		}
		return false
	}
}

// code is for services that give their errors a word.
func code(codes ...string) func(error) bool {
	return func(err error) bool {
		answer, ok := errors.AsType[interface {
			error
			ErrorCode() string
		}](err)
		if !ok {
			return false
		}
		for _, code := range codes {
			if answer.ErrorCode() == code {
				return true
			}
		}
		return false
	}
}

// login is the reply of an FTP server, or the status of a service, that knows nobody of
// this name and password.
func login(err error) bool {
	reply, ok := errors.AsType[*textproto.Error](err)
	return ok && strings.Contains(err.Error(), "logging in as") && errors.Is(err, fs.ErrPermission) && reply.Code >= 300
}

// noTLS tells of a host that answers without TLS, or an FTP server that knows no AUTH TLS.
func noTLS(err error) bool {
	reply, ok := errors.AsType[*textproto.Error](err)
	refused := ok && strings.Contains(err.Error(), "connecting to ") && (reply.Code == 500 || reply.Code == 502 || reply.Code == 504)
	return refused || isA[tls.RecordHeaderError](err)
}

func certificate(err error) bool {
	return isA[*tls.CertificateVerificationError](err) || isA[x509.UnknownAuthorityError](err) ||
		isA[x509.HostnameError](err) || isA[x509.CertificateInvalidError](err)
}

// silent tells of a host that did not answer in time. Some drivers then close the
// connection under what waits for it.
func silent(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return isAny(os.ErrDeadlineExceeded, context.DeadlineExceeded, syscall.ETIMEDOUT, net.ErrClosed)(err) || ok && timeout.Timeout()
}

// noFolder tells of a root that is none. Not every library has a value for it.
func noFolder(err error) bool {
	return isAny(storagedrivers.ErrInvalidKey, syscall.ENOTDIR)(err) || says(" is no folder", "not a directory", "Not a directory")(err)
}
