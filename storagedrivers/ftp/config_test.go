package ftp

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/textproto"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest"
	"github.com/caddymedia/media/storagedrivers/internal/test"
	"github.com/caddymedia/media/storagedrivers/options"
)

func TestComplete(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"host": "host:21", "host:2121": "host:2121", "::1": "[::1]:21", "[::1]": "[::1]:21", "[::1]:22": "[::1]:22",
	} {
		f := &Config{Address: address, User: "u"}
		test.Must(t, f.Complete())
		test.Equal(t, f.Address, want, address, "became", f)
	}
	f := &Config{Address: "host", User: "u", TLS: tlsImplicit, Timeout: options.Duration(time.Second)}
	test.Must(t, f.Complete())
	if f.Address != "host:990" || f.ServerName != "host" || f.timeout() != time.Second {
		t.Errorf("implicit TLS became %+v", f)
	}
}

func TestWrongOptions(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty.pem")
	test.Must(t, os.WriteFile(empty, nil, 0o600))
	for want, f := range map[string]*Config{
		"address is missing":                     {User: "u"},
		"user is missing":                        {Address: "a"},
		"user has a line break":                  {Address: "a", User: "u\r\nDELE x"},
		"tls is one of none, explicit, implicit": {Address: "a", User: "u", TLS: "some"},
		"connections is a number above zero":     {Address: "a", User: "u", Connections: -1},
		"timeout is a duration above zero":       {Address: "a", User: "u", Timeout: -1},
		"need tls explicit or implicit":          {Address: "a", User: "u", ServerName: "b"},
		"contradict each other":                  {Address: "a", User: "u", TLS: tlsExplicit, CA: "x", InsecureSkipVerify: true},
		"address: ":                              {Address: "a:b:c", User: "u"},
		"is not host or host:port":               {Address: ":21", User: "u"},
		"ca: open":                               {Address: "a", User: "u", TLS: tlsExplicit, CA: empty + ".not"},
		"ca: no certificate in " + empty + "":    {Address: "a", User: "u", TLS: tlsExplicit, CA: empty},
	} {
		test.Says(t, f.Complete(), want)
	}
	for _, address := range []string{"user:secret@host", "ftp://user:secret@host:21/", "user:secret@host:21", "secret@host"} {
		err := (&Config{Address: address, User: "u"}).Complete()
		if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "host:port") {
			t.Errorf("error %v, which must not have the password", err)
		}
	}
}

func TestNewDriver(t *testing.T) {
	t.Parallel()
	server := (&fake{facts: true, tls: secured}).start(t)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: secured.Certificates[0].Certificate[0]}
	test.Must(t, os.WriteFile(ca, pem.EncodeToMemory(block), 0o600))
	f := &Config{Address: server.address, User: "u", Password: "secret", TLS: tlsExplicit, CA: ca, ServerName: "example.com"}
	test.Must(t, f.Complete())
	d, err := f.NewDriver(slog.New(slog.DiscardHandler))
	test.Must(t, err)
	defer d.Close()
	test.Is(t, d.Check(t.Context()), nil)
}

func TestWrongLogin(t *testing.T) {
	t.Parallel()
	f := (&fake{tls: secured}).start(t)
	config := f.config()
	config.Password = "wrong"
	err := open(t, config).Check(t.Context())
	test.Is(t, err, fs.ErrPermission)
	drivertest.Cause(t, err, wrongLogin)

	config = f.config()
	config.ServerName = "example.org"
	err = open(t, config).Check(t.Context())
	if err == nil || errors.Is(err, storagedrivers.ErrUnavailable) {
		t.Errorf("another's certificate: error %v, which must not be tried again", err)
	}
	config = f.config()
	config.TLS, config.ServerName = tlsNone, ""
	test.Is(t, open(t, config).Check(t.Context()), fs.ErrPermission)

	without := (&fake{tls: secured, lacks: "AUTH"}).start(t)
	drivertest.Cause(t, open(t, without.config()).Check(t.Context()), storagedrivers.NoTLS)
}

// TestCheck: Check tests whether the server sets times, if it can. There are no other guarantees.
func TestCheck(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		server  *fake
		refuses string // of the commands that change anything
		want    storagedrivers.Features
	}{
		"facts and times": {&fake{facts: true, mfmt: true}, "", storagedrivers.Features{ListTimes: true, EmptyFolders: true, Dated: true}},
		"lists":           {&fake{mfmt: true}, "", storagedrivers.Features{EmptyFolders: true, Dated: true}},
		"no times":        {&fake{facts: true}, "", storagedrivers.Features{ListTimes: true, EmptyFolders: true}},
		"times refused":   {&fake{mfmt: true}, "MFMT", storagedrivers.Features{EmptyFolders: true}},
		"read-only":       {&fake{mfmt: true}, "STOR MKD DELE RNFR RNTO RMD", storagedrivers.Features{EmptyFolders: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := tt.server
			f.refuse(func(command, _ string) bool { return strings.Contains(tt.refuses, command) }, "550 Permission denied.")
			f.start(t)
			d := open(t, f.config())
			for range 2 {
				test.Is(t, d.Check(t.Context()), nil)
			}
			test.Equal(t, d.Features(), tt.want, "features")
			f.has(t)
		})
	}
	missing := (&fake{}).start(t)
	config := missing.config()
	config.Root = "/a/b"
	d := open(t, config)
	test.Is(t, errors.Join(d.Check(context.WithoutCancel(t.Context())), put(t, d, "c/key", "x", create)), nil)
	missing.has(t, "a/b/c/key")
}

// newConfig returns a complete configuration with options in JSON.
var newConfig = drivertest.NewConfig[Config]

func TestDescription(t *testing.T) {
	t.Parallel()
	const login = `"user": "media", "password": "a"`
	f := (&fake{}).start(t)
	f.refuse(func(command, _ string) bool { return command == "MKD" }, "550 /root: Not a directory")
	failing := func(address, password string) string {
		return `{"address": "` + address + `", "user": "u", "password": "` + password + `", "tls": "none", "root": "root"}`
	}
	drivertest.Describe(t, drivertest.Description{
		New:         newConfig,
		Options:     `{"address": "files.example.com", ` + login + `}`,
		Where:       "media@files.example.com",
		Refused:     failing(f.address, "wrong"),
		Missing:     failing(f.address, "secret"),
		Unreachable: failing("127.0.0.1:1", "secret"),
		Same: []string{
			`{"address": "files.example.com:21", "user": "media", "password": "b", "tls": "explicit", "timeout": "5s"}`,
			`{"address": "Files.example.com", ` + login + `, "tls": "implicit", "connections": 2, "root": "."}`,
		},
		Below: []string{`{"address": "files.example.com", ` + login + `, "root": "below/it/"}`},
		Apart: []string{
			`{"address": "files.example.com", "user": "other", "password": "a"}`,
			`{"address": "files.example.com", ` + login + `, "root": "/srv"}`,
			`{"address": "files.example.com:2121", ` + login + `}`,
		},
	})
	drivertest.Describe(t, drivertest.Description{
		New:     newConfig,
		Options: `{"address": "files.example.com", ` + login + `, "root": "/srv"}`,
		Where:   "media@files.example.com /srv",
		Same:    []string{`{"address": "files.example.com", "user": "other", "root": "/srv/"}`},
		Below:   []string{`{"address": "files.example.com", "user": "other", "root": "/srv/below/it"}`},
		Apart:   []string{`{"address": "files.example.com", ` + login + `, "root": "/media"}`},
	})
}

// TestParallel: copying an object within a server needs two connections.
func TestParallel(t *testing.T) {
	t.Parallel()
	for options, want := range map[string]int{
		`{"address": "a", "user": "u"}`:                   4,
		`{"address": "a", "user": "u", "connections": 5}`: 2,
		`{"address": "a", "user": "u", "connections": 1}`: 1,
	} {
		test.Equal(t, newConfig(t, options).(storagedrivers.Limited).Limits().Parallel, want, options)
	}
}

func TestMapError(t *testing.T) {
	t.Parallel()
	reply := func(code int, text string) error { return &textproto.Error{Code: code, Msg: text} }
	reset := &net.OpError{Op: "write", Err: os.NewSyscallError("write", syscall.ECONNRESET)}
	for _, tt := range []struct {
		err  error
		want error // nil: as it was
	}{
		{reply(421, "Timeout."), storagedrivers.ErrUnavailable},
		{reply(421, "There are too many connected users, please try later."), storagedrivers.ErrUnavailable},
		{reply(425, "Unable to build data connection: Operation not permitted"), storagedrivers.ErrUnavailable},
		{reply(426, "Failure reading network stream."), storagedrivers.ErrUnavailable},
		{reply(450, "/a: Resource temporarily unavailable"), storagedrivers.ErrUnavailable},
		{reply(450, "/a: No such file or directory"), fs.ErrNotExist},
		{reply(451, "Failure writing to local file."), storagedrivers.ErrNoSpace},
		{errors.Join(reset, reply(451, "Error during write to file")), storagedrivers.ErrNoSpace},
		{reply(426, "No space left on device; transfer aborted."), storagedrivers.ErrNoSpace},
		{reply(426, "None; transfer aborted."), storagedrivers.ErrNoSpace},
		{reply(426, "Internal error; transfer aborted."), storagedrivers.ErrUnavailable},
		{reply(451, "Requested action aborted: local error in processing"), storagedrivers.ErrUnavailable},
		{reply(451, "/a: No space left on device"), storagedrivers.ErrNoSpace},
		{reply(451, "/a: Disk quota exceeded"), storagedrivers.ErrNoSpace},
		{reply(452, "no"), storagedrivers.ErrNoSpace},
		{reply(552, "no"), storagedrivers.ErrNoSpace},
		{errors.Join(reset, reply(552, "no")), storagedrivers.ErrNoSpace},
		{reply(530, "Login incorrect."), fs.ErrPermission},
		{reply(530, "Sorry, the maximum number of clients (3) are already connected."), storagedrivers.ErrUnavailable},
		{reply(550, "/a/b: No such file or directory"), fs.ErrNotExist},
		{reply(550, "The system cannot find the file specified. "), fs.ErrNotExist},
		{reply(550, "/no such file: Permission denied"), fs.ErrPermission},
		{reply(550, "/permission denied: No such file or directory"), fs.ErrNotExist},
		{reply(550, "Permission denied."), fs.ErrPermission},
		{reply(550, "/a: Read-only file system"), fs.ErrPermission},
		{reply(550, "Not enough privileges."), fs.ErrPermission},
		{reply(550, "Insufficient privileges"), fs.ErrPermission},
		{reply(550, "Not enough space"), storagedrivers.ErrNoSpace},
		{reply(550, "/a: File name too long"), storagedrivers.ErrInvalidKey},
		{reply(550, "/permission denied/key: Failed"), nil},
		{reply(550, "Failed to open file."), nil},
		{reply(553, "Could not create file."), nil},
		{reply(500, "Unknown command."), nil},
		{reset, storagedrivers.ErrUnavailable},
		{io.EOF, storagedrivers.ErrUnavailable},
		{io.ErrUnexpectedEOF, storagedrivers.ErrUnavailable},
		{os.ErrDeadlineExceeded, storagedrivers.ErrUnavailable},
		{textproto.ProtocolError("short response"), nil},
		{context.Canceled, nil},
		{fmt.Errorf("%w: %w", fs.ErrExist, reply(550, "Permission denied.")), nil},
	} {
		got := mapError(tt.err)
		if !errors.Is(got, tt.err) {
			t.Errorf("%v became %v", tt.err, got)
		}
		if tt.want == nil && got != tt.err { //nolint:errorlint // not even wrapped
			t.Errorf("%v became %v, want it as it was", tt.err, got)
		}
		for _, sentinel := range sentinels {
			if tt.want != nil && errors.Is(got, sentinel) != errors.Is(tt.want, sentinel) {
				t.Errorf("%v became %v, want %v", tt.err, got, tt.want)
			}
		}
	}
	if mapError(nil) != nil {
		t.Error("nothing became an error")
	}
}

func TestOperationError(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(storagedrivers.ErrUnavailable)
	err := operationError(ctx, io.EOF)
	for _, want := range []error{context.Canceled, storagedrivers.ErrUnavailable, io.EOF} {
		test.Is(t, err, want)
	}
	plain, stop := context.WithCancel(t.Context())
	stop()
	err = operationError(plain, io.EOF)
	test.Is(t, err, context.Canceled)
	if errors.Is(err, storagedrivers.ErrUnavailable) {
		t.Errorf("error %v blames the server", err)
	}
	if operationError(plain, nil) != nil {
		t.Error("success became an error")
	}
}

func TestIsSingleReply(t *testing.T) {
	t.Parallel()
	reply := &textproto.Error{Code: 550, Msg: "no"}
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{reply, true},
		{errors.Join(reply), true},
		{errors.Join(reply, reply), true},
		{errors.Join(io.EOF, reply), false},
		{io.EOF, false},
		{&textproto.Error{Code: 421, Msg: "bye"}, false},
		{textproto.ProtocolError("what?"), false},
	} {
		test.Equal(t, isSingleReply(tt.err), tt.want, "isSingleReply(", tt.err, ") is")
	}
}
