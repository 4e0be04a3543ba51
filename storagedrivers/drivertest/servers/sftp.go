package servers

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

// SSH is an SFTP server with one user.
type SSH struct {
	*Process

	User string
	// Password, or the path of the private key, is the user's credential.
	Password string
	KeyFile  string
	// HostKey is the server's ed25519 key, RSAHostKey its other one, as in authorized_keys.
	HostKey    string
	RSAHostKey string
	// Folder is the folder for objects; Root is its path for the user.
	Folder string
	Root   string
}

// OpenSSH starts sshd for the user of the test, with a login by key and access to the whole
// machine.
func OpenSSH(t testing.TB) *SSH {
	t.Helper()
	program := Program(t, "sshd")
	dir := Folder(t)
	s := &SSH{Folder: filepath.Join(dir, "objects"), KeyFile: filepath.Join(dir, "user")}
	s.Root = s.Folder
	if err := os.Mkdir(s.Folder, 0o755); err != nil {
		t.Fatal(err)
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	s.User = me.Username
	pam := "yes" // without it an account without a password is locked
	if os.Geteuid() == 0 {
		pam = "no"
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // required by sshd
			t.Fatal(err)
		}
	}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	keys := writeFile(t, filepath.Join(dir, "keys"), "%s\n", keyFile(t, private, s.KeyFile))
	s.makeHostKeys(t, dir)
	address := FreeAddress(t)
	config := writeFile(t, filepath.Join(dir, "sshd_config"), `
Port %s
ListenAddress 127.0.0.1
HostKey %s
HostKey %s
AuthorizedKeysFile %s
PidFile none
StrictModes no
UsePAM %s
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
MaxStartups 200
Subsystem sftp internal-sftp
`, address[strings.LastIndexByte(address, ':')+1:],
		filepath.Join(dir, "host_ed25519"), filepath.Join(dir, "host_rsa"), keys, pam)
	s.Process = Start(t, address, func() *exec.Cmd { return exec.Command(program, "-D", "-e", "-f", config) })
	return s
}

// ProFTPDOverSSH starts proftpd with mod_sftp, for a user with a password and access only to the
// folder of the objects.
func ProFTPDOverSSH(t testing.TB) *SSH {
	t.Helper()
	program, passwd := Program(t, "proftpd"), Program(t, "ftpasswd")
	dir := Folder(t)
	s := &SSH{User: "somebody", Password: "a secret", Folder: filepath.Join(dir, "objects"), Root: "."}
	if err := os.Mkdir(s.Folder, 0o755); err != nil {
		t.Fatal(err)
	}
	uid, gid, worker := os.Getuid(), os.Getgid(), ""
	if uid == 0 { // proftpd drops its rights
		uid, gid, worker = 65534, 65534, "User nobody\nGroup nogroup"
		if err := os.Chown(s.Folder, uid, gid); err != nil {
			t.Fatal(err)
		}
	}
	users := filepath.Join(dir, "passwd")
	add := exec.Command(passwd, "--passwd", "--file", users, "--name", s.User, "--uid", strconv.Itoa(uid),
		"--gid", strconv.Itoa(gid), "--home", s.Folder, "--shell", "/bin/false", "--stdin")
	add.Stdin = strings.NewReader(s.Password + "\n")
	if output, err := add.CombinedOutput(); err != nil {
		t.Fatalf("adding a user: %v: %s", err, output)
	}
	if err := os.Chmod(users, 0o600); err != nil {
		t.Fatal(err)
	}
	s.makeHostKeys(t, dir)
	address := FreeAddress(t)
	config := writeFile(t, filepath.Join(dir, "proftpd.conf"), `
ServerType standalone
UseIPv6 off
ModulePath /usr/lib/proftpd
LoadModule mod_sftp.c
DefaultAddress 127.0.0.1
SocketBindTight on
Port %s
PidFile %[2]s/pid
ScoreboardFile %[2]s/scoreboard
DelayEngine off
%s
AuthOrder mod_auth_file.c
AuthUserFile %s
RequireValidShell off
DefaultRoot ~
SystemLog %[2]s/log
TransferLog none
WtmpLog off
UseReverseDNS off
MaxInstances 200
AllowOverwrite on
AllowStoreRestart on
SFTPEngine on
SFTPHostKey %[2]s/host_rsa
SFTPHostKey %[2]s/host_ed25519
SFTPAuthMethods password
`, address[strings.LastIndexByte(address, ':')+1:], dir, worker, users)
	s.Process = Start(t, address, func() *exec.Cmd { return exec.Command(program, "-n", "-c", config) })
	return s
}

// makeHostKeys creates the server's keys in dir.
func (s *SSH) makeHostKeys(t testing.TB, dir string) {
	t.Helper()
	_, first, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	second, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	s.HostKey = keyFile(t, first, filepath.Join(dir, "host_ed25519"))
	s.RSAHostKey = keyFile(t, second, filepath.Join(dir, "host_rsa"))
}

// keyFile writes a private key to path, and returns its public key.
func keyFile(t testing.TB, key any, path string) string {
	t.Helper()
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, path, "%s", pem.EncodeToMemory(block))
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey())))
}
