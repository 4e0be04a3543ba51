package servers

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	pkgsftp "github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"github.com/caddymedia/media/storagedrivers/internal/test"
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
	test.Must(t, os.Mkdir(s.Folder, 0o755))
	me, err := user.Current()
	test.Must(t, err)
	s.User = me.Username
	pam := "yes" // without it an account without a password is locked
	if os.Geteuid() == 0 {
		pam = "no"
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // required by sshd
			t.Fatal(err)
		}
	}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	test.Must(t, err)
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
	test.Must(t, os.Mkdir(s.Folder, 0o755))
	uid, gid, worker := os.Getuid(), os.Getgid(), ""
	if uid == 0 { // proftpd drops its rights
		uid, gid, worker = 65534, 65534, "User nobody\nGroup nogroup"
		test.Must(t, os.Chown(s.Folder, uid, gid))
	}
	users := filepath.Join(dir, "passwd")
	add := exec.Command(passwd, "--passwd", "--file", users, "--name", s.User, "--uid", strconv.Itoa(uid),
		"--gid", strconv.Itoa(gid), "--home", s.Folder, "--shell", "/bin/false", "--stdin")
	add.Stdin = strings.NewReader(s.Password + "\n")
	if output, err := add.CombinedOutput(); err != nil {
		t.Fatalf("adding a user: %v: %s", err, output)
	}
	test.Must(t, os.Chmod(users, 0o600))
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
	test.Must(t, err)
	second, err := rsa.GenerateKey(rand.Reader, 2048)
	test.Must(t, err)
	s.HostKey = keyFile(t, first, filepath.Join(dir, "host_ed25519"))
	s.RSAHostKey = keyFile(t, second, filepath.Join(dir, "host_rsa"))
}

// keyFile writes a private key to path, and returns its public key.
func keyFile(t testing.TB, key any, path string) string {
	t.Helper()
	block, err := ssh.MarshalPrivateKey(key, "")
	test.Must(t, err)
	signer, err := ssh.NewSignerFromKey(key)
	test.Must(t, err)
	writeFile(t, path, "%s", pem.EncodeToMemory(block))
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey())))
}

// RequestFiles serves the files of a folder by pkg/sftp's RequestServer, like SFTPGo and most other
// servers in Go. Such a server implements FSTAT by the path of the handle, and has no links.
type RequestFiles struct {
	Folder string
	// RefuseTaken makes a rename refuse an existing name, which it checks first.
	RefuseTaken bool
	// NoPosixRename omits the extension.
	NoPosixRename bool
	// Late opens a file at the first read, like rclone's server.
	Late bool
	// Before, if set, is called before each operation on a path. Its error is the response.
	Before func(method, path string) error
}

// Serve serves one session until it ends.
func (f RequestFiles) Serve(session io.ReadWriteCloser) error {
	handlers := pkgsftp.Handlers{FileGet: f, FilePut: f, FileCmd: f, FileList: f}
	if !f.NoPosixRename {
		handlers.FileCmd = posixRenamer{f}
	}
	return pkgsftp.NewRequestServer(session, handlers).Serve()
}

func (f RequestFiles) path(p string) string { return filepath.Join(f.Folder, filepath.Clean("/"+p)) }

func (f RequestFiles) before(r *pkgsftp.Request) error {
	if f.Before == nil {
		return nil
	}
	return f.Before(r.Method, r.Filepath)
}

// Fileread opens a file for reading.
func (f RequestFiles) Fileread(r *pkgsftp.Request) (io.ReaderAt, error) {
	if err := f.before(r); err != nil {
		return nil, err
	}
	open := sync.OnceValues(func() (*os.File, error) { return os.Open(f.path(r.Filepath)) })
	if !f.Late {
		return open()
	}
	if _, err := os.Stat(f.path(r.Filepath)); err != nil {
		return nil, err
	}
	return lateFile(open), nil
}

// lateFile is a file that is opened when it is read.
type lateFile func() (*os.File, error)

func (open lateFile) ReadAt(p []byte, offset int64) (int, error) {
	file, err := open()
	if err != nil {
		return 0, err
	}
	return file.ReadAt(p, offset)
}

func (open lateFile) Close() error {
	file, err := open()
	if err != nil {
		return nil //nolint:nilerr // it was never open
	}
	return file.Close()
}

// Filewrite opens a file for writing.
func (f RequestFiles) Filewrite(r *pkgsftp.Request) (io.WriterAt, error) {
	if err := f.before(r); err != nil {
		return nil, err
	}
	wanted, flags := r.Pflags(), os.O_WRONLY
	for _, flag := range []struct {
		set  bool
		flag int
	}{{wanted.Creat, os.O_CREATE}, {wanted.Trunc, os.O_TRUNC}, {wanted.Excl, os.O_EXCL}} {
		if flag.set {
			flags |= flag.flag
		}
	}
	return os.OpenFile(f.path(r.Filepath), flags, 0o644)
}

// Filecmd changes names and attributes.
func (f RequestFiles) Filecmd(r *pkgsftp.Request) error {
	if err := f.before(r); err != nil {
		return err
	}
	path := f.path(r.Filepath)
	switch r.Method {
	case "Setstat":
		if !r.AttrFlags().Acmodtime {
			return nil
		}
		return os.Chtimes(path, r.Attributes().AccessTime(), r.Attributes().ModTime())
	case "Rename":
		if f.RefuseTaken {
			if _, err := os.Lstat(f.path(r.Target)); err == nil {
				return pkgsftp.ErrSSHFxFailure
			}
		}
		return os.Rename(path, f.path(r.Target))
	case "Remove":
		return syscall.Unlink(path) // not an empty folder
	case "Rmdir":
		return os.Remove(path)
	case "Mkdir":
		return os.Mkdir(path, 0o755)
	}
	return pkgsftp.ErrSSHFxOpUnsupported
}

// Filelist lists a folder or describes a file.
func (f RequestFiles) Filelist(r *pkgsftp.Request) (pkgsftp.ListerAt, error) {
	if err := f.before(r); err != nil {
		return nil, err
	}
	if r.Method != "List" {
		stat, err := os.Stat(f.path(r.Filepath))
		return fileList{stat}, err
	}
	entries, err := os.ReadDir(f.path(r.Filepath))
	if err != nil {
		return nil, err
	}
	var list fileList
	for _, entry := range entries {
		if stat, err := entry.Info(); err == nil { // otherwise it is gone
			list = append(list, stat)
		}
	}
	return list, nil
}

// fileList is a listing that a client requests in parts.
type fileList []fs.FileInfo

func (l fileList) ListAt(to []fs.FileInfo, at int64) (int, error) {
	if at >= int64(len(l)) {
		return 0, io.EOF
	}
	n := copy(to, l[at:])
	if n < len(to) {
		return n, io.EOF
	}
	return n, nil
}

// posixRenamer adds the extension for a rename that replaces a file.
type posixRenamer struct{ RequestFiles }

// PosixRename renames over a file.
func (p posixRenamer) PosixRename(r *pkgsftp.Request) error {
	if err := p.before(r); err != nil {
		return err
	}
	return os.Rename(p.path(r.Filepath), p.path(r.Target))
}
