package servers

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	pkgsftp "github.com/pkg/sftp"
)

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
