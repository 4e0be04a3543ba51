package sftp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/network"
)

// trust is the set of keys by which the host is recognised.
type trust struct {
	check ssh.HostKeyCallback
	// algorithms are the groups of key algorithms to request from the host, one after the other.
	// The host presents one key only, so it must be of a known type. A nil group means the host's
	// preferred one.
	algorithms [][]string
}

// hostKeyError is the error of a host that presents an unexpected key.
type hostKeyError struct {
	host string
	key  ssh.PublicKey
	err  error
}

func (e *hostKeyError) Error() string {
	return fmt.Sprintf("the host key of %s (%s %s) is not trusted: %v",
		e.host, e.key.Type(), ssh.FingerprintSHA256(e.key), e.err)
}

func (e *hostKeyError) Unwrap() error { return e.err }

// trusted returns the trust that the options configure.
func trusted(config Config) (trust, error) {
	known, err := fromFiles(config)
	if err != nil {
		return trust{}, err
	}
	pinned, err := parsePins(config.HostKeys)
	if err != nil {
		return trust{}, err
	}
	switch {
	case known.check == nil && pinned.check == nil && config.InsecureSkipHostKey:
		return trust{check: ssh.InsecureIgnoreHostKey(), algorithms: [][]string{nil}}, nil //nolint:gosec // asked for
	case known.check == nil && pinned.check == nil:
		return trust{}, errors.New("host_key is required to recognise the host, unless known_hosts or insecure_skip_host_key is set")
	case config.InsecureSkipHostKey:
		return trust{}, errors.New("insecure_skip_host_key contradicts known_hosts and host_key")
	}
	return trust{
		check: func(host string, remote net.Addr, key ssh.PublicKey) error {
			var errs []error
			for _, check := range []ssh.HostKeyCallback{pinned.check, known.check} {
				if check == nil {
					continue
				}
				err := check(host, remote, key)
				if err == nil {
					return nil
				}
				errs = append(errs, err)
			}
			return &hostKeyError{host, key, errors.Join(errs...)}
		},
		algorithms: append(pinned.algorithms, known.algorithms...),
	}, nil
}

// fromFiles returns the trust of the known_hosts files.
func fromFiles(config Config) (trust, error) {
	if len(config.KnownHosts) == 0 {
		return trust{}, nil
	}
	check, err := knownhosts.New(config.KnownHosts...)
	if err != nil {
		return trust{}, fmt.Errorf("known_hosts: %w", err)
	}
	// The error for a key that matches none lists the known keys.
	var types []string
	err = check(config.Address, &net.TCPAddr{}, unknownKey{})
	if unknown, ok := errors.AsType[*knownhosts.KeyError](err); ok {
		for _, want := range unknown.Want {
			types = append(types, want.Key.Type())
		}
	}
	groups := [][]string{algorithmsOf(types)}
	if slices.ContainsFunc(config.KnownHosts, func(file string) bool {
		content, err := os.ReadFile(file)
		return err == nil && strings.Contains(string(content), "@cert-authority")
	}) {
		groups = append(groups, certificates)
	}
	return trust{check, groups}, nil
}

// certificates are the algorithms of host keys that are signed by an authority.
var certificates = []string{
	ssh.CertAlgoED25519v01, ssh.CertAlgoECDSA256v01, ssh.CertAlgoECDSA384v01, ssh.CertAlgoECDSA521v01,
	ssh.CertAlgoRSASHA512v01, ssh.CertAlgoRSASHA256v01,
}

// unknownKey is a public key that equals no other.
type unknownKey struct{ ssh.PublicKey }

func (unknownKey) Type() string { return "unknown" }

func (unknownKey) Marshal() []byte { return nil }

// parsePins returns the trust of the keys and fingerprints of the configuration.
func parsePins(pins []string) (trust, error) {
	if len(pins) == 0 {
		return trust{}, nil
	}
	var prints, types []string
	anyType := false
	for _, pin := range pins {
		if strings.HasPrefix(pin, "SHA256:") {
			prints, anyType = append(prints, strings.TrimRight(pin, "=")), true
			continue
		}
		key, err := parsePublicKey(pin)
		if err != nil {
			return trust{}, fmt.Errorf("host_key %q: neither a public key nor a SHA256 fingerprint: %w", pin, err)
		}
		prints, types = append(prints, ssh.FingerprintSHA256(key)), append(types, key.Type())
	}
	groups := [][]string{algorithmsOf(types)}
	if anyType {
		groups = [][]string{
			{ssh.KeyAlgoED25519},
			{ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521},
			algorithmsOf([]string{ssh.KeyAlgoRSA}),
		}
	}
	return trust{func(_ string, _ net.Addr, key ssh.PublicKey) error {
		if !slices.Contains(prints, ssh.FingerprintSHA256(key)) {
			return errors.New("it is none of host_key")
		}
		return nil
	}, groups}, nil
}

func parsePublicKey(line string) (ssh.PublicKey, error) {
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line)) //nolint:dogsled // comment and options mean nothing here
	return key, err
}

// algorithmsOf returns the algorithms of keys of these types. For no types it returns nil, which
// means all algorithms.
func algorithmsOf(types []string) []string {
	var algorithms []string
	for _, t := range types {
		if t == ssh.KeyAlgoRSA { // ssh-rsa itself signs with SHA-1
			algorithms = append(algorithms, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
		} else {
			algorithms = append(algorithms, t)
		}
	}
	return algorithms
}

var errKeyPresented = errors.New("the host has presented its key")

// HostKey connects to the host at the address, without logging in, and returns the key that it
// presents: its ed25519 key if it has one.
func (c *Config) HostKey(ctx context.Context) (storagedrivers.HostKey, error) {
	asked := &Config{Address: c.Address, User: "nobody", Timeout: c.Timeout}
	if err := schema.Check(asked); err != nil {
		return storagedrivers.HostKey{}, err
	}
	timeout := cmp.Or(asked.timeout(), network.DefaultTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errSilent)
	defer cancel()
	var key ssh.PublicKey
	_, err := handshake(ctx, withPort(asked.Address), timeout, &ssh.ClientConfig{ // it always fails
		HostKeyAlgorithms: algorithmsOf([]string{
			ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521, ssh.KeyAlgoRSA,
		}),
		HostKeyCallback: func(_ string, _ net.Addr, presented ssh.PublicKey) error {
			key = presented
			return errKeyPresented
		},
	})
	if key == nil {
		return storagedrivers.HostKey{}, storagedrivers.WithCause(fmt.Errorf("asking the host for its key: %w", err), causeOf(err))
	}
	line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
	return storagedrivers.HostKey{Key: line, Fingerprint: ssh.FingerprintSHA256(key)}, nil
}
