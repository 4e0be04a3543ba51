package sftp

import (
	"errors"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/caddymedia/media/storagedrivers"
)

const (
	wrongHostKey storagedrivers.Cause = "The host presents a key that is not the expected one. If the host has a new key, compare it at " +
		"the host itself and put it into host_key or known_hosts. Otherwise another host may be answering."
	noHostKey storagedrivers.Cause = "The host has no key of the type that host_key or known_hosts expects. " +
		"Look up the keys of the host, and put one of them there."
	wrongMethod storagedrivers.Cause = "The host does not accept this way of logging in. Use one that it accepts, " +
		"such as a private key instead of a password."
	wrongLogin storagedrivers.Cause = "The host refused the login: the user or the password is wrong, or the key is not authorized there."
	noAgent    storagedrivers.Cause = "The SSH agent of this machine does not answer. Start it, or log in with a password or a private key."
)

// notAuthenticated is the beginning of the library's error for a refused login, for which it has no
// error value.
const notAuthenticated = "ssh: unable to authenticate"

// causeOf returns the cause of an error of connecting.
func causeOf(err error) storagedrivers.Cause {
	var mismatch *hostKeyError
	var common *ssh.AlgorithmNegotiationError
	switch {
	case errors.As(err, &mismatch):
		return wrongHostKey
	case errors.As(err, &common) && common.What == "host key":
		return noHostKey
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
