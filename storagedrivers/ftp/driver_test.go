package ftp

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest"
	"github.com/caddymedia/media/storagedrivers/options"
)

func parse(t *testing.T, text string) (*FTP, error) {
	t.Helper()
	f := new(FTP)
	err := f.UnmarshalCaddyfile(caddyfile.NewTestDispenser(text))
	return f, err
}

func TestCaddyfile(t *testing.T) {
	t.Parallel()
	f, err := parse(t, `ftp files.example.com {
		user u
		password {env.FTP_PASSWORD}
		root media
		tls explicit
		ca /etc/ca.pem
		server_name example.com
		insecure_skip_verify off
		connections 3
		lock off
		timeout 10s
	}`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"address":"files.example.com","user":"u","password":"{env.FTP_PASSWORD}","root":"media",` +
		`"tls":"explicit","ca":"/etc/ca.pem","server_name":"example.com","connections":3,"lock":false,` +
		`"timeout":10000000000}`
	if string(got) != want {
		t.Errorf("JSON %s, want %s", got, want)
	}
}

func TestWrongCaddyfile(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`ftp a b`:                          "wrong argument count",
		"ftp {\n nope x\n}":                `unknown option "nope" of an ftp storage`,
		"ftp a {\n address b\n}":           `unknown option "address"`,
		"ftp a {\n user u\n user u\n}":     "given twice",
		"ftp a {\n tls sometimes\n}":       "tls is one of none, explicit, implicit",
		"ftp a {\n connections 0\n}":       "connections is a number above zero",
		"ftp a {\n lock maybe\n}":          "lock is one of on, off",
		"ftp a {\n timeout soon\n}":        "timeout is a duration",
		"ftp a {\n user\n}":                "takes one value",
		"ftp a {\n insecure_skip_verify\n": "takes one value",
	} {
		if _, err := parse(t, text); err == nil || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(want)) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
}

func TestProvision(t *testing.T) {
	t.Setenv("FTP_TEST_PASSWORD", "secret {env.HOME}")
	for address, want := range map[string]string{
		"host": "host:21", "host:2121": "host:2121", "::1": "[::1]:21", "[::1]": "[::1]:21", "[::1]:22": "[::1]:22",
	} {
		f := &FTP{Config: Config{Address: address, User: "u", Password: "{env.FTP_TEST_PASSWORD}"}}
		if err := f.Provision(caddy.Context{}); err != nil {
			t.Fatal(err)
		}
		if f.config.Address != want || f.config.Password != "secret {env.HOME}" || !*f.config.Lock {
			t.Errorf("%q became %+v, want %q", address, f.config, want)
		}
		if f.Password != "{env.FTP_TEST_PASSWORD}" {
			t.Errorf("the raw password became %q", f.Password)
		}
	}
	f := &FTP{Config: Config{Address: "host", User: "u", TLS: TLSImplicit}, SilenceTimeout: options.Duration(time.Second)}
	if err := f.Provision(caddy.Context{}); err != nil {
		t.Fatal(err)
	}
	if f.config.Address != "host:990" || f.config.ServerName != "host" || f.Timeout() != time.Second {
		t.Errorf("implicit TLS became %+v", f.config)
	}
}

func TestWrongOptions(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, f := range map[string]*FTP{
		"address is missing":                     {Config: Config{User: "u"}},
		"user is missing":                        {Config: Config{Address: "a"}},
		"password: ":                             {Config: Config{Address: "a", User: "u", Password: "{env.NOT_SET_ANYWHERE}"}},
		"user has a line break":                  {Config: Config{Address: "a", User: "u\r\nDELE x"}},
		"tls is one of none, explicit, implicit": {Config: Config{Address: "a", User: "u", TLS: "some"}},
		"connections is a number above zero":     {Config: Config{Address: "a", User: "u", Connections: -1}},
		"timeout is a duration above zero":       {Config: Config{Address: "a", User: "u"}, SilenceTimeout: -1},
		"need tls explicit or implicit":          {Config: Config{Address: "a", User: "u", ServerName: "b"}},
		"contradict each other":                  {Config: Config{Address: "a", User: "u", TLS: TLSExplicit, CA: "x", InsecureSkipVerify: true}},
		"address: ":                              {Config: Config{Address: "a:b:c", User: "u"}},
		"is not host or host:port":               {Config: Config{Address: ":21", User: "u"}},
		"ca: open":                               {Config: Config{Address: "a", User: "u", TLS: TLSExplicit, CA: empty + ".not"}},
		"ca: no certificate in " + empty + "":    {Config: Config{Address: "a", User: "u", TLS: TLSExplicit, CA: empty}},
	} {
		if err := f.Provision(caddy.Context{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// TestAddressWithPassword: the error does not contain the password.
func TestAddressWithPassword(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"user:secret@host", "ftp://user:secret@host:21/", "user:secret@host:21", "secret@host"} {
		f := &FTP{Config: Config{Address: address, User: "u"}}
		err := f.Provision(caddy.Context{})
		if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "host:port") {
			t.Errorf("error %v", err)
		}
	}
}

func TestPoolKey(t *testing.T) {
	t.Parallel()
	off := false
	seen := map[string]bool{}
	for _, f := range []*FTP{
		{},
		{Config: Config{Address: "other"}},
		{Config: Config{User: "v"}},
		{Config: Config{Password: "p"}},
		{Config: Config{Root: "r"}},
		{Config: Config{TLS: TLSExplicit}},
		{Config: Config{TLS: TLSImplicit}},
		{Config: Config{TLS: TLSExplicit, ServerName: "s"}},
		{Config: Config{TLS: TLSExplicit, InsecureSkipVerify: true}},
		{Config: Config{Connections: 3}},
		{Config: Config{Lock: &off}},
		{SilenceTimeout: options.Duration(time.Second)},
	} {
		if f.Address == "" {
			f.Address = "host"
		}
		if f.User == "" {
			f.User = "u"
		}
		if err := f.Provision(caddy.Context{}); err != nil {
			t.Fatal(err)
		}
		if seen[f.PoolKey()] {
			t.Errorf("%+v shares the key of others", f)
		}
		seen[f.PoolKey()] = true
	}
}

// TestPoolKeyOfRenewedCertificates: certificates that were renewed under the same path are used
// after a reload.
func TestPoolKeyOfRenewedCertificates(t *testing.T) {
	t.Parallel()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: secured.Certificates[0].Certificate[0]}
	keys := make([]string, 0, 2)
	for _, before := range []string{"", "renewed\n"} {
		if err := os.WriteFile(ca, append([]byte(before), pem.EncodeToMemory(block)...), 0o600); err != nil {
			t.Fatal(err)
		}
		f := &FTP{Config: Config{Address: "host", User: "u", TLS: TLSExplicit, CA: ca}}
		if err := f.Provision(caddy.Context{}); err != nil {
			t.Fatal(err)
		}
		keys = append(keys, f.PoolKey())
	}
	if keys[0] == keys[1] {
		t.Error("one key for two sets of certificates")
	}
}

func TestModule(t *testing.T) {
	t.Parallel()
	server := (&fake{facts: true, tls: secured}).start(t)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: secured.Certificates[0].Certificate[0]}
	if err := os.WriteFile(ca, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	f := &FTP{Config: Config{Address: server.address, User: "u", Password: "secret", TLS: TLSExplicit, CA: ca, ServerName: "example.com"}}
	if err := f.Provision(caddy.Context{}); err != nil {
		t.Fatal(err)
	}
	d, err := f.NewDriver(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestWrongLogin(t *testing.T) {
	t.Parallel()
	f := (&fake{tls: secured}).start(t)
	config := f.config()
	config.Password = "wrong"
	err := open(t, config).Check(t.Context())
	fails(t, err, fs.ErrPermission)
	drivertest.Cause(t, err, wrongLogin)

	config = f.config()
	config.ServerName = "example.org"
	err = open(t, config).Check(t.Context())
	if err == nil || errors.Is(err, storagedrivers.ErrUnavailable) {
		t.Errorf("another's certificate: error %v, which must not be tried again", err)
	}
	config = f.config()
	config.TLS, config.ServerName = TLSNone, ""
	fails(t, open(t, config).Check(t.Context()), fs.ErrPermission)
}

// TestCheck: Check tests the abilities of the server if it can.
func TestCheck(t *testing.T) {
	t.Parallel()
	best, atomic := storagedrivers.BestEffort, storagedrivers.Atomic
	for name, tt := range map[string]struct {
		server   *fake
		refuses  string // of the commands that change anything
		replaces storagedrivers.Guarantee
	}{
		"replacing": {&fake{}, "", atomic},
		"keeping":   {&fake{keep: true}, "", best},
		"read-only": {&fake{}, "STOR MKD DELE RNFR RNTO RMD", best},
		"no rename": {&fake{}, "RNFR", best},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := tt.server
			f.refuse(func(command, _ string) bool { return strings.Contains(tt.refuses, command) }, "550 Permission denied.")
			f.start(t)
			d := open(t, f.config())
			for range 2 {
				if err := d.Check(t.Context()); err != nil {
					t.Error(err)
				}
			}
			want := storagedrivers.Features{Replace: tt.replaces}
			if got := d.Features(); got != want {
				t.Errorf("features %+v, want %+v", got, want)
			}
			f.has(t)
		})
	}
	missing := (&fake{}).start(t)
	config := missing.config()
	config.Root = "/a/b"
	d := open(t, config)
	if err := errors.Join(d.Check(context.WithoutCancel(t.Context())), put(t, d, "c/key", "x", create)); err != nil {
		t.Error(err)
	}
	missing.has(t, "a/b/c/key")
}
