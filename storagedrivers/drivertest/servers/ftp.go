package servers

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	_ "embed"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers/internal/test"
)

// FTPSettings are the settings of an FTP server.
type FTPSettings struct {
	// TLS is "explicit", "implicit" or empty. With it the server refuses plain connections, and
	// data connections that do not resume the session of their control connection.
	TLS string
	// KeepFiles makes the server refuse to rename onto an existing file (proftpd).
	KeepFiles bool
	// Without are commands that the server does not support (pyftpdlib).
	Without []string
	// DOS makes it list folders like a server on Windows (pyftpdlib).
	DOS bool
}

// FTP is a running FTP server.
type FTP struct {
	*Process
	// User and Password are a login with all rights below Root.
	User, Password string
	// Root is the login folder on this machine.
	Root string
	// CA is the PEM file of the certificate, which is for "localhost".
	CA string
}

const ftpStorePerm = 0o755

// ftpAsRoot skips a test whose server must be started by root.
func ftpAsRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() == 0 {
		return
	}
	if os.Getenv(mustRun) != "" {
		t.Fatal("not root, but all tests must run")
	}
	t.Skip("not root")
}

// ProFTPD starts proftpd.
func ProFTPD(t testing.TB, settings FTPSettings) *FTP {
	t.Helper()
	ftpAsRoot(t)
	program, ftpasswd := Program(t, "proftpd"), Program(t, "ftpasswd")
	folder := Folder(t)
	nobody, gid := ftpAccount(t, "nobody")
	f := &FTP{User: "u", Password: "p", Root: ftpFolder(t, folder, nobody), CA: filepath.Join(folder, "cert")}
	passwords := filepath.Join(folder, "passwords")
	command := exec.CommandContext(t.Context(), ftpasswd, "--passwd", "--file", passwords, "--name", f.User,
		"--uid", strconv.Itoa(nobody), "--gid", strconv.Itoa(gid), "--home", f.Root, "--shell", "/bin/false", "--stdin")
	command.Stdin = strings.NewReader(f.Password + "\n")
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("ftpasswd: %v: %s", err, output)
	}
	test.Must(t, os.Chmod(passwords, 0o600))
	port := FreePort(t)
	config := fmt.Sprintf(`ServerType standalone
UseIPv6 off
DefaultAddress 127.0.0.1
SocketBindTight on
Port %d
PidFile %[2]s/pid
ScoreboardFile %[2]s/scoreboard
DelayEngine off
User nobody
Group nogroup
AuthOrder mod_auth_file.c
AuthUserFile %[2]s/passwords
RequireValidShell off
DefaultRoot ~
SystemLog %[2]s/log
TransferLog none
WtmpLog off
UseReverseDNS off
MaxInstances none
AllowOverwrite %[3]s
AllowStoreRestart on
`, port, folder, map[bool]string{false: "on", true: "off"}[settings.KeepFiles])
	if settings.TLS != "" {
		key := Certificate(t, folder)
		config += fmt.Sprintf(`ModulePath %s
LoadModule mod_tls.c
TLSEngine on
TLSRequired on
TLSRSACertificateFile %s
TLSRSACertificateKeyFile %s
`, proftpdModules(program), f.CA, key)
	}
	path := writeFile(t, filepath.Join(folder, "config"), "%s", config)
	f.Process = Start(t, ftpAddress(port), func() *exec.Cmd {
		return exec.CommandContext(t.Context(), program, "-n", "-q", "-c", path)
	})
	return f
}

// proftpdModules returns the folder of loadable modules.
func proftpdModules(program string) string {
	return filepath.Join(filepath.Dir(filepath.Dir(program)), "lib", "proftpd")
}

// VSFTPD starts vsftpd.
func VSFTPD(t testing.TB, settings FTPSettings) *FTP {
	t.Helper()
	ftpAsRoot(t)
	program := Program(t, "vsftpd")
	folder := Folder(t)
	// Without PAM there is only the anonymous login, which needs an account with an existing home
	// folder.
	const name = "games"
	games, _ := ftpAccount(t, name)
	root := filepath.Join(folder, "root")
	store := ftpFolder(t, root, games)
	empty := filepath.Join(folder, "empty")
	test.Must(t, os.Mkdir(empty, ftpStorePerm))
	f := &FTP{User: "anonymous", Password: "p", Root: store, CA: filepath.Join(folder, "cert")}
	port := FreePort(t)
	config := fmt.Sprintf(`listen=YES
listen_address=127.0.0.1
listen_port=%d
background=NO
anonymous_enable=YES
no_anon_password=YES
ftp_username=%s
anon_root=%s
secure_chroot_dir=%s
write_enable=YES
anon_upload_enable=YES
anon_mkdir_write_enable=YES
anon_other_write_enable=YES
anon_world_readable_only=NO
anon_umask=022
seccomp_sandbox=NO
utf8_filesystem=YES
max_clients=0
max_per_ip=0
`, port, name, root, empty)
	if settings.TLS != "" {
		config += fmt.Sprintf(`ssl_enable=YES
allow_anon_ssl=YES
force_anon_logins_ssl=YES
force_anon_data_ssl=YES
require_ssl_reuse=YES
ssl_ciphers=HIGH
implicit_ssl=%s
rsa_cert_file=%s
rsa_private_key_file=%s
`, map[bool]string{false: "NO", true: "YES"}[settings.TLS == "implicit"], f.CA, Certificate(t, folder))
	}
	path := writeFile(t, filepath.Join(folder, "config"), "%s", config)
	f.Process = Start(t, ftpAddress(port), func() *exec.Cmd { return exec.CommandContext(t.Context(), program, path) })
	return f
}

// ftpFolder creates the folder "store" of a server in its folder, for one account.
func ftpFolder(t testing.TB, folder string, uid int) string {
	t.Helper()
	store := filepath.Join(folder, "store")
	test.Must(t, os.MkdirAll(store, ftpStorePerm))
	test.Must(t, os.Chown(store, uid, -1))
	return store
}

func ftpAccount(t testing.TB, name string) (uid, gid int) {
	t.Helper()
	found, err := user.Lookup(name)
	test.Must(t, err)
	uid, uidErr := strconv.Atoi(found.Uid)
	gid, gidErr := strconv.Atoi(found.Gid)
	if uidErr != nil || gidErr != nil {
		t.Fatalf("account %+v", found)
	}
	return uid, gid
}

func ftpAddress(port int) string { return "127.0.0.1:" + strconv.Itoa(port) }

// Certificate writes a certificate for "localhost" to the file "cert" of a folder, and
// returns the path of its key.
func Certificate(t testing.TB, folder string) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	test.Must(t, err)
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: "localhost"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		DNSNames: []string{"localhost"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	test.Must(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	test.Must(t, err)
	writeFile(t, filepath.Join(folder, "cert"), "%s",
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}))
	return writeFile(t, filepath.Join(folder, "key"), "%s",
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
}

// The servers of this file do not announce the size of files that they send.

//go:embed pyftpd.py
var pyftpd string

// PyFTPD starts pyftpdlib.
func PyFTPD(t testing.TB, settings FTPSettings) *FTP {
	t.Helper()
	modules := []string{"pyftpdlib"}
	if settings.TLS != "" {
		modules = append(modules, "OpenSSL")
	}
	python := pythonWith(t, modules...)
	folder := Folder(t)
	port := FreePort(t)
	f := &FTP{User: "u", Password: "p", Root: ftpFolder(t, folder, os.Geteuid()), CA: filepath.Join(folder, "cert")}
	args := []string{"-c", pyftpd, strconv.Itoa(port), f.Root, "without=" + strings.Join(settings.Without, ",")}
	if settings.DOS {
		args = append(args, "dos=1")
	}
	if settings.TLS != "" {
		args = append(args, "tls="+ftpCertificateWithKey(t, folder))
	}
	f.Process = Start(t, ftpAddress(port), func() *exec.Cmd { return exec.CommandContext(t.Context(), python, args...) })
	return f
}

// pythonWith returns the path of a Python with these modules: that of the system may be hidden
// behind another one.
func pythonWith(t testing.TB, modules ...string) string {
	t.Helper()
	imports := "import " + strings.Join(modules, ", ")
	for _, python := range []string{Program(t, "python3"), "/usr/bin/python3"} {
		if exec.CommandContext(t.Context(), python, "-c", imports).Run() == nil {
			return python
		}
	}
	if os.Getenv(mustRun) != "" {
		t.Fatalf("no Python has %v, but all tests must run", modules)
	}
	t.Skipf("no Python has %v", modules)
	return ""
}

// PureFTPD starts pure-ftpd.
func PureFTPD(t testing.TB, settings FTPSettings) *FTP {
	t.Helper()
	ftpAsRoot(t)
	program, purePW := Program(t, "pure-ftpd"), Program(t, "pure-pw")
	folder := Folder(t)
	nobody, gid := ftpAccount(t, "nobody")
	f := &FTP{User: "u", Password: "p", Root: ftpFolder(t, folder, nobody), CA: filepath.Join(folder, "cert")}
	// The hash of the password "p".
	const hash = "$6$media$p2itrG9zuRkJmoRtclaw.fpGa8XTNP3IEjhbrupSLxTuc.N6ycwqbTc1gsl0gUGJdj8vlIpOppBFMnMmz2blT."
	passwords := writeFile(t, filepath.Join(folder, "passwords"), "%s:%s:%d:%d::%s/./::::::::::::\n", f.User, hash, nobody, gid, f.Root)
	database := filepath.Join(folder, "database")
	command := exec.CommandContext(t.Context(), purePW, "mkdb", database, "-f", passwords)
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("pure-pw: %v: %s", err, output)
	}
	port := FreePort(t)
	args := []string{
		"-S", fmt.Sprintf("127.0.0.1,%d", port), "-l", "puredb:" + database, "-g", filepath.Join(folder, "pid"),
		"-E", "-H", "-A", "-u", "1", "-C", "100", "-c", "100",
	}
	if settings.TLS != "" {
		args = append(args, "-Y", "3", "-2", ftpCertificateWithKey(t, folder))
	}
	f.Process = Start(t, ftpAddress(port), func() *exec.Cmd { return exec.CommandContext(t.Context(), program, args...) })
	return f
}

// ftpCertificateWithKey is Certificate in one file.
func ftpCertificateWithKey(t testing.TB, folder string) string {
	t.Helper()
	key, err := os.ReadFile(Certificate(t, folder))
	test.Must(t, err)
	certificate, err := os.ReadFile(filepath.Join(folder, "cert"))
	test.Must(t, err)
	return writeFile(t, filepath.Join(folder, "both"), "%s%s", key, certificate)
}
