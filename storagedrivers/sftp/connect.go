package sftp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync/atomic"
	"time"

	pkgsftp "github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/network"
)

// dialer opens authenticated connections.
type dialer struct {
	config  Config
	signers []ssh.Signer // of the private key
	group   atomic.Int32 // of the host's key algorithms that worked
}

const agentSocket = "SSH_AUTH_SOCK"

// dial opens a connection. If only fingerprints of the host key are known, it requests the host's
// other keys until one matches. received counts the bytes from the file server.
func (d *dialer) dial(ctx context.Context, received *atomic.Int64) (*ssh.Client, *pkgsftp.Client, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, d.config.timeout(), errSilent)
	defer cancel()
	trust, err := trusted(d.config) // anew, since the files may have changed
	if err != nil {
		return nil, nil, err
	}
	first := int(d.group.Load())
	var errs []error
	for i := range trust.algorithms {
		group := (first + i) % len(trust.algorithms)
		shell, client, err := d.login(ctx, trust.algorithms[group], trust.check, received)
		if err == nil {
			d.group.Store(int32(group))
			return shell, client, nil
		}
		errs = append(errs, err)
		var mismatch *hostKeyError
		var common *ssh.AlgorithmNegotiationError
		if !errors.As(err, &mismatch) && !errors.As(err, &common) {
			break
		}
	}
	err = errors.Join(errs...)
	return nil, nil, storagedrivers.WithCause(err, causeOf(err))
}

// login opens a connection to a host that must present a key of one of algorithms.
func (d *dialer) login(
	ctx context.Context, algorithms []string, check ssh.HostKeyCallback, received *atomic.Int64,
) (*ssh.Client, *pkgsftp.Client, error) {
	auth, done, err := d.auth(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer done()
	shell, err := handshake(ctx, d.config.Address, d.config.timeout(), &ssh.ClientConfig{
		User: d.config.User, Auth: auth, HostKeyAlgorithms: algorithms, HostKeyCallback: check,
	})
	if err != nil {
		return nil, nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = shell.Close() })
	client, err := start(shell, received)
	if !stop() { // the time was up, and the connection is closed or will be
		err = errors.Join(context.Cause(ctx), err)
	}
	if err != nil {
		_ = shell.Close() // the first error is the one to report
		return nil, nil, fmt.Errorf("starting sftp: %w", err)
	}
	return shell, client, nil
}

// handshake opens an SSH connection. ctx bounds only the opening.
func handshake(
	ctx context.Context, address string, timeout time.Duration, config *ssh.ClientConfig,
) (*ssh.Client, error) {
	raw, err := network.Dialer{Timeout: timeout}.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	conn, channels, requests, err := ssh.NewClientConn(&greetingCheck{Conn: raw}, address, config)
	inTime := stop()
	if err != nil {
		_ = raw.Close() // it may be closed already
		if !inTime {
			err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		return nil, err
	}
	return ssh.NewClient(conn, channels, requests), nil
}

// greetingCheck is a connection that fails if the host's greeting is that of another protocol. The
// library skips lines before the version of SSH, and would wait for it.
type greetingCheck struct {
	net.Conn
	greeting []byte // its first bytes
}

func (g *greetingCheck) Read(p []byte) (int, error) {
	n, err := g.Conn.Read(p)
	if missing := network.GreetingSize - len(g.greeting); missing > 0 {
		g.greeting = append(g.greeting, p[:min(n, missing)]...)
		if server := network.Greeter(g.greeting); server != "" && !g.isSSH() {
			return 0, fmt.Errorf("%w: it is %s", errNotSSH, server)
		}
	}
	if errors.Is(err, io.EOF) && len(g.greeting) > 0 && !g.isSSH() {
		return n, fmt.Errorf("%w: it begins with %q", errNotSSH, g.greeting)
	}
	return n, err
}

func (g *greetingCheck) isSSH() bool { return string(g.greeting) == "SSH-" }

// errNotSSH means that a server of another protocol has answered.
var errNotSSH = errors.New("no SSH server answers at this address")

// start starts the file server, like the library's NewClient.
func start(shell *ssh.Client, received *atomic.Int64) (*pkgsftp.Client, error) {
	session, err := shell.NewSession()
	if err != nil {
		return nil, err
	}
	in, inErr := session.StdinPipe()
	out, outErr := session.StdoutPipe()
	complaints, err := session.StderrPipe()
	if err = errors.Join(inErr, outErr, err); err != nil {
		return nil, err
	}
	if err := session.RequestSubsystem("sftp"); err != nil {
		return nil, err
	}
	go io.Copy(io.Discard, complaints) //nolint:errcheck // it ends with the connection
	client, err := pkgsftp.NewClientPipe(counter{out, received}, in, pkgsftp.MaxConcurrentRequestsPerFile(maxRequests))
	if err != nil {
		return nil, err
	}
	if _, ok := client.HasExtension("limits@openssh.com"); ok { // only OpenSSH has it
		err = pkgsftp.MaxPacketUnchecked(largePacket)(client)
	}
	return client, err
}

// counter counts the bytes that are read.
type counter struct {
	io.Reader
	bytes *atomic.Int64
}

func (c counter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.bytes.Add(int64(n))
	return n, err
}

// largePacket is the size of the requests for writing to OpenSSH, which accepts 255 KiB. The
// library's 32 KiB, which every host accepts, take a third more processor time.
const largePacket = 128 << 10

// auth returns the authentication methods. All keys are one method, because the library tries each
// method only once.
func (d *dialer) auth(ctx context.Context) ([]ssh.AuthMethod, func(), error) {
	var methods []ssh.AuthMethod
	signers, done := d.signers, func() {}
	if d.config.Agent {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", os.Getenv(agentSocket))
		if err != nil {
			return nil, nil, storagedrivers.WithCause(fmt.Errorf("ssh agent: %w", err), noAgent)
		}
		theirs, err := agent.NewClient(conn).Signers()
		if err != nil {
			_ = conn.Close() // the first error is the one to report
			return nil, nil, storagedrivers.WithCause(fmt.Errorf("ssh agent: %w", err), noAgent)
		}
		signers = append(slices.Clip(signers), theirs...)
		done = func() { _ = conn.Close() }
	}
	if len(signers) > 0 {
		methods = append(methods, ssh.PublicKeys(signers...))
	}
	if password := d.config.Password; password != "" {
		methods = append(methods, ssh.Password(password), ssh.KeyboardInteractive(
			func(_, _ string, questions []string, _ []bool) ([]string, error) {
				answers := make([]string, len(questions))
				for i := range answers {
					answers[i] = password
				}
				return answers, nil
			}))
	}
	return methods, done, nil
}
