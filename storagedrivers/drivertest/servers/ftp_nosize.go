package servers

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

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
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := os.ReadFile(filepath.Join(folder, "cert"))
	if err != nil {
		t.Fatal(err)
	}
	return writeFile(t, filepath.Join(folder, "both"), "%s%s", key, certificate)
}
