package local

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/caddymedia/media/storagedrivers"
)

// openUnnamed opens a file without a name on the file system of a folder. The error is
// errors.ErrUnsupported if that has no such files.
func openUnnamed(dir *os.File) (*os.File, error) {
	const flags = unix.O_TMPFILE | unix.O_RDWR | unix.O_CLOEXEC
	fd, err := unix.Openat(int(dir.Fd()), ".", flags, filePerm)
	for errors.Is(err, unix.EINTR) { // some network file systems
		fd, err = unix.Openat(int(dir.Fd()), ".", flags, filePerm)
	}
	// A kernel or file system without O_TMPFILE treats the call as opening the folder for writing.
	for _, lacking := range []error{unix.EOPNOTSUPP, unix.EISDIR, unix.EINVAL, unix.ENOENT} {
		if errors.Is(err, lacking) {
			return nil, fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
		}
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "unnamed file"), nil
}

// canLink reports whether linkUnnamed works here, as far as this can be known before.
func canLink() bool {
	_, err := os.Stat("/proc/self/fd")
	return err == nil
}

// openBeneath opens a folder below another one in one step, openat2(2); [os.Root] needs one for
// each segment of the name. It also refuses links that lead out. It returns nil on failure. os.Root
// then returns the reason, or works on an old kernel.
func openBeneath(dir *os.File, name string) *os.File {
	fd, err := openat2(dir, name, unix.O_DIRECTORY)
	if err != nil {
		return nil
	}
	return os.NewFile(uintptr(fd), name)
}

// openFileBeneath is openBeneath for a file. It does not wait for the writer of a named pipe.
func openFileBeneath(dir *os.File, name string) (readFile, bool) {
	fd, err := openat2(dir, name, openNonblock)
	if err != nil {
		return nil, false
	}
	return &rawFile{fd: fd, name: name}, true
}

func openat2(dir *os.File, name string, flags uint64) (fd int, err error) {
	return unix.Openat2(int(dir.Fd()), name, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_CLOEXEC | flags,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS,
	})
}

// statBeneath describes a name below a folder in three steps; [os.Root] needs some for each segment
// of the name. With follow it is what a link leads to.
func statBeneath(dir *os.File, key string, follow bool) (storagedrivers.Info, fs.FileMode, error) {
	flags := uint64(unix.O_PATH)
	if !follow {
		flags |= unix.O_NOFOLLOW
	}
	fd, err := openat2(dir, key, flags)
	if err != nil {
		return storagedrivers.Info{}, 0, err
	}
	defer unix.Close(fd)
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return storagedrivers.Info{}, 0, err
	}
	mode := fs.ModeIrregular
	switch stat.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		mode = 0
	case unix.S_IFDIR:
		mode = fs.ModeDir
	}
	return infoFrom(key, &stat), mode, nil
}

// rename renames a file in an open folder to a name in another one.
func rename(from *os.File, name string, to *os.File, target string) error {
	return unix.Renameat(int(from.Fd()), name, int(to.Fd()), target)
}

// rawFile is a file without what [os.File] does for files that may block, and without its cleanup:
// two system calls fewer for each small object.
type rawFile struct {
	mu     sync.RWMutex // a descriptor that is closed may be another file at once
	fd     int
	name   string
	closed bool
	file   *os.File // owns the descriptor; nil until it is asked for
}

func (f *rawFile) ReadAt(p []byte, offset int64) (n int, err error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.closed {
		return 0, fs.ErrClosed
	}
	for n < len(p) {
		read, err := unix.Pread(f.fd, p[n:], offset+int64(n))
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return n, &fs.PathError{Op: "read", Path: f.name, Err: err}
		case read == 0:
			return n, io.EOF
		default:
			n += read
		}
	}
	return n, nil
}

func (f *rawFile) info(key string) (storagedrivers.Info, error) {
	var stat unix.Stat_t
	err := unix.Fstat(f.fd, &stat)
	for errors.Is(err, unix.EINTR) { // some network file systems
		err = unix.Fstat(f.fd, &stat)
	}
	if err != nil {
		return storagedrivers.Info{}, mapError(&fs.PathError{Op: "stat", Path: f.name, Err: err})
	}
	info, ok := regular(key, &stat)
	if !ok {
		return info, notAnObject(key)
	}
	return info, nil
}

// regular returns the Info of a regular file, and false for others.
func regular(key string, stat *unix.Stat_t) (storagedrivers.Info, bool) {
	if stat.Mode&unix.S_IFMT != unix.S_IFREG {
		return storagedrivers.Info{}, false
	}
	return infoFrom(key, stat), true
}

func infoFrom(key string, stat *unix.Stat_t) storagedrivers.Info {
	return infoOf(key, stat.Ino, time.Unix(stat.Mtim.Unix()), stat.Size)
}

func (f *rawFile) osFile() (*os.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, fs.ErrClosed
	}
	if f.file == nil {
		f.file = os.NewFile(uintptr(f.fd), f.name)
	}
	return f.file, nil
}

func (f *rawFile) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return fs.ErrClosed
	}
	f.closed = true
	if f.file != nil {
		return f.file.Close()
	}
	return unix.Close(f.fd)
}

// infoIn returns the Info of a regular file in a folder, in one step; [os.Root] needs one for each
// segment of the key.
func infoIn(dir *os.File, name, key string) (storagedrivers.Info, bool) {
	var stat unix.Stat_t
	if unix.Fstatat(int(dir.Fd()), name, &stat, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return storagedrivers.Info{}, false
	}
	return regular(key, &stat)
}

// changed returns the time of the last change of a folder. It is zero if names may change without
// it, as on a file system in user space.
func changed(dir *os.File) time.Time {
	var (
		stat   unix.Stat_t
		system unix.Statfs_t
	)
	if unix.Fstat(int(dir.Fd()), &stat) != nil || unix.Fstatfs(int(dir.Fd()), &system) != nil ||
		uint32(system.Type) == unix.FUSE_SUPER_MAGIC {
		return time.Time{}
	}
	return time.Unix(stat.Ctim.Unix())
}

// linkUnnamed names an unnamed file; the name must be free. It uses /proc because AT_EMPTY_PATH
// needs a privilege, linkat(2).
func linkUnnamed(file, dir *os.File, name string) error {
	return unix.Linkat(unix.AT_FDCWD, procPath(file), int(dir.Fd()), name, unix.AT_SYMLINK_FOLLOW)
}

// stampDescriptor sets the times of an open file without the way through /proc of futimes, in half
// the time; utimensat(2) knows no empty path before Linux 5.8.
func stampDescriptor(file *os.File, now time.Time) error {
	at := unix.NsecToTimespec(now.UnixNano())
	return unix.UtimesNanoAt(int(file.Fd()), "", []unix.Timespec{at, at}, unix.AT_EMPTY_PATH)
}

// allocate allocates room for a part of a file, which keeps its size, fallocate(2).
func allocate(file *os.File, offset, length int64) error {
	return unix.Fallocate(int(file.Fd()), unix.FALLOC_FL_KEEP_SIZE, offset, length)
}

// beginWriting asks the disk to start writing a part of a file, without waiting for it. It is a
// hint: errors appear when the file is synced.
func beginWriting(file *os.File, offset, length int64) {
	_ = unix.SyncFileRange(int(file.Fd()), offset, length, unix.SYNC_FILE_RANGE_WRITE)
}

// syncData syncs the bytes of a file, but not its times.
func syncData(file *os.File) error { return unix.Fdatasync(int(file.Fd())) }

// canShare reports whether syncAll makes the file system of dir durable and returns every error.
// This is true since Linux 5.8, syncfs(2), on local file systems. Others may leave the writing to a
// server.
func canShare(dir *os.File) bool {
	var (
		kernel       unix.Utsname
		system       unix.Statfs_t
		major, minor int
	)
	if unix.Uname(&kernel) != nil || unix.Fstatfs(int(dir.Fd()), &system) != nil {
		return false
	}
	release := unix.ByteSliceToString(kernel.Release[:])
	if _, err := fmt.Sscanf(release, "%d.%d", &major, &minor); err != nil || major < 5 || major == 5 && minor < 8 {
		return false
	}
	switch uint32(system.Type) {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC: // ext4's is that of ext2 too
		return true
	}
	return false
}

// syncAll syncs the whole file system of dir. It returns the failures since the last call with this
// handle, or since the handle was opened.
func syncAll(dir *os.File) error { return unix.Syncfs(int(dir.Fd())) }

// spaceOf returns the space of the file system of dir, statfs(2).
func spaceOf(dir *os.File) (storagedrivers.Space, error) {
	var system unix.Statfs_t
	err := unix.Fstatfs(int(dir.Fd()), &system)
	for errors.Is(err, unix.EINTR) {
		err = unix.Fstatfs(int(dir.Fd()), &system)
	}
	if err != nil {
		return storagedrivers.Space{}, err
	}
	return storagedrivers.SpaceOf(uint64(system.Frsize), system.Bavail, system.Blocks)
}

func procPath(file *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(file.Fd())) }
