package sftp

import (
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	pkgsftp "github.com/pkg/sftp"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
	"github.com/caddymedia/media/storagedrivers/internal/test"
)

func TestLeftovers(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	old := time.Now().Add(-24*time.Hour - time.Minute)
	make := func(name string, when time.Time) {
		path := filepath.Join(h.folder, name)
		if err := errors.Join(
			os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o600), os.Chtimes(path, when, when),
		); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{".up-a.part", "f/g/.up-b.part"} {
		make(name, old)
	}
	kept := []string{".hidden", ".up-c.part", "f/.up-d", "f/object"}
	for _, name := range kept {
		when := old
		if strings.HasSuffix(name, ".part") {
			when = time.Now()
		}
		make(name, when)
	}
	d := h.driver(t, ".")
	test.Is(t, d.Check(t.Context()), nil)
	test.Eventually(t, "old leftovers to go", func() bool { return slices.Equal(test.Files(t, h.folder), kept) })

	make("f/.up-e.part", old) // the next listing finds it
	page, err := d.List(t.Context(), storagedrivers.ListOptions{})
	if err != nil || len(page.Objects) != 1 || page.Objects[0].Key != "f/object" {
		t.Errorf("listed %+v, error %v", page.Objects, err)
	}
	test.Same(t, test.Files(t, h.folder), kept, "the folder has")
}

// TestLinks: links to files are objects; links to folders are not followed.
func TestLinks(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	d := h.driver(t, ".")
	put(t, d, "f/object", []byte("content"), create)
	for name, target := range map[string]string{"link": "f/object", "folder": "f", "nowhere": "missing", "f/round": ".."} {
		test.Must(t, os.Symlink(target, filepath.Join(h.folder, name)))
	}
	page, err := d.List(t.Context(), storagedrivers.ListOptions{})
	keys := make([]string, 0, len(page.Objects))
	for _, info := range page.Objects {
		keys = append(keys, info.Key)
	}
	if want := []string{"f/object", "link"}; err != nil || !slices.Equal(keys, want) {
		t.Errorf("listed %q, want %q, error %v", keys, want, err)
	}
	has(t, d, "link", []byte("content"))
	test.Is(t, d.Delete(t.Context(), "link", storagedrivers.DeleteOptions{}), nil)
	test.Is(t, d.Delete(t.Context(), "folder", storagedrivers.DeleteOptions{}), fs.ErrNotExist)
	has(t, d, "f/object", []byte("content"))
	_, err = d.Put(t.Context(), "nowhere", strings.NewReader("content"), create)
	test.Is(t, err, fs.ErrExist)
}

func TestCheckOfRoot(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	d := h.driver(t, "new/deep")
	test.Is(t, d.Check(t.Context()), nil)
	if stat, err := os.Stat(filepath.Join(h.folder, "new/deep")); err != nil || !stat.IsDir() {
		t.Errorf("the root was not made: %v", err)
	}
	test.Must(t, os.WriteFile(filepath.Join(h.folder, "file"), nil, 0o600))
	d = h.driver(t, "file")
	if err := d.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "is no folder") {
		t.Errorf("a file as root: error %v", err)
	} else {
		drivertest.Cause(t, err, storagedrivers.NotAFolder)
	}
}

// TestReadOnly: a read-only backend passes the check, and uploads fail with a permission error.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can take the folder away from the server")
	}
	server := servers.ProFTPDOverSSH(t)
	if err := errors.Join(
		os.Chown(server.Folder, 0, 0), os.WriteFile(filepath.Join(server.Folder, "object"), []byte("content"), 0o644),
	); err != nil {
		t.Fatal(err)
	}
	d := hostOf(t, server).driver(t, ".")
	test.Is(t, d.Check(t.Context()), nil)
	test.Equal(t, d.Features(), (storagedrivers.Features{Seek: true, Streams: true, ListTimes: true, EmptyFolders: true}), "features")
	has(t, d, "object", []byte("content"))
	for _, key := range []string{"new", "folder/new"} {
		_, err := d.Put(t.Context(), key, strings.NewReader("content"), create)
		test.Is(t, err, fs.ErrPermission)
		test.IsNot(t, err, storagedrivers.ErrUnavailable)
	}
	test.Is(t, d.Delete(t.Context(), "object", storagedrivers.DeleteOptions{}), fs.ErrPermission)
}

// TestOpenSSH tests behaviour of the driver that the suite does not test.
func TestOpenSSH(t *testing.T) {
	t.Parallel()
	server := servers.OpenSSH(t)
	h := hostOf(t, server)
	d := h.driver(t, "objects")
	test.Is(t, d.Check(t.Context()), nil)
	test.Equal(t, *d.known.Load(), (abilities{true, true, true, true}), "found out")
	content := test.Random(5<<20 + 1)
	put(t, d, "object", content, create)
	has(t, d, "object", content)

	config := h.config // any of its keys will do
	for _, key := range []string{server.HostKey, server.RSAHostKey} {
		config.HostKeys = []string{fingerprint(t, key)}
		other, err := newDriver(config, slog.New(slog.DiscardHandler))
		test.Is(t, err, nil)
		test.Is(t, other.Check(t.Context()), nil)
		test.Is(t, other.Close(), nil)
	}
}

// TestLevel: hidden folders and links to folders are not listed, empty folders are.
func TestLevel(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	for _, folder := range []string{".hidden", "a/.hidden", "a/empty", "a/end.", "a/in/deep", "b"} {
		test.Must(t, os.MkdirAll(filepath.Join(h.folder, folder), 0o755))
	}
	test.Must(t, os.Symlink("../b", filepath.Join(h.folder, "a/link")))
	d := h.driver(t, ".")
	for prefix, want := range map[string][]string{"": {"a/", "b/"}, "a/": {"a/empty/", "a/in/"}, "a/e": {"a/empty/"}} {
		page, err := d.List(t.Context(), storagedrivers.ListOptions{Prefix: prefix, Shallow: true})
		if err != nil || !slices.Equal(page.Folders, want) || len(page.Objects) > 0 {
			t.Errorf("level %q: %+v, want the folders %q, error %v", prefix, page, want, err)
		}
	}
}

// TestExperiment: the announcements of hosts do not count. Each host creates and replaces. The
// handles of these are resolved by their paths.
func TestExperiment(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		cmd  rules
		want abilities
	}{
		"links":                    {rules{}, abilities{links: true, replace: true}},
		"refuses links":            {rules{noLink: true}, abilities{replace: true}},
		"only refuses to rename":   {rules{noLink: true, noPosix: true}, abilities{}},
		"renames over what exists": {rules{noLink: true, renameOver: true}, abilities{replace: true}},
		"links, but replaces none": {rules{noPosix: true}, abilities{links: true}},
		"renames over, no posix":   {rules{noLink: true, renameOver: true, noPosix: true}, abilities{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			handlers := pkgsftp.InMemHandler()
			tt.cmd.Handlers = handlers
			handlers.FileCmd = tt.cmd
			s := startServerOf(t, func(channel io.ReadWriteCloser) error {
				return pkgsftp.NewRequestServer(channel, handlers).Serve()
			})
			h := s.host("", 1)
			d := h.driver(t, "objects")
			test.Is(t, d.Check(t.Context()), nil)
			if got := d.known.Load(); *got != tt.want {
				t.Errorf("found out %+v, want %+v", *got, tt.want)
			}
			features := d.Features()
			if (features.Create == storagedrivers.Atomic) != tt.want.links || features.Replace == storagedrivers.Atomic {
				t.Errorf("features %+v", features)
			}
			put(t, d, "a/b", []byte("old"), create)
			_, err := d.Put(t.Context(), "a/b", strings.NewReader("again"), create)
			test.Is(t, err, fs.ErrExist)
			has(t, d, "a/b", []byte("old"))
			put(t, d, "a/c", []byte("first"), overwrite)
			has(t, d, "a/c", []byte("first"))
			test.Is(t, d.Delete(t.Context(), "a/c", storagedrivers.DeleteOptions{}), nil)
			broken := struct {
				io.Reader
				io.Seeker
			}{iotest.ErrReader(io.ErrNoProgress), strings.NewReader("new")}
			_, err = d.Put(t.Context(), "a/b", broken, overwrite)
			test.Is(t, err, io.ErrNoProgress)
			has(t, d, "a/b", []byte("old"))
			_, err = d.Put(t.Context(), "a/b", strings.NewReader("new"), overwrite)
			test.Is(t, err, nil)
			has(t, d, "a/b", []byte("new"))
			for _, folder := range []string{"objects", "objects/a"} {
				test.Equal(t, entries(t, d, folder), 1, folder, "entries")
			}
		})
	}
}

// entries returns the number of names in a folder of the host.
func entries(t *testing.T, d *driver, folder string) int {
	t.Helper()
	n, err := do(t.Context(), d.pool, func(c *conn) (int, error) {
		list, err := c.ReadDir(folder)
		return len(list), err
	})
	test.Is(t, err, nil)
	return n
}

// rules restrict the abilities of a host in memory.
type rules struct {
	pkgsftp.Handlers
	noLink, noPosix, renameOver bool
}

func (r rules) Filecmd(request *pkgsftp.Request) error {
	switch {
	case request.Method == "Link" && r.noLink:
		return pkgsftp.ErrSSHFxOpUnsupported
	case request.Method == "Rename" && r.renameOver:
		return r.FileCmd.(pkgsftp.PosixRenameFileCmder).PosixRename(request)
	}
	return r.FileCmd.Filecmd(request)
}

func (r rules) PosixRename(request *pkgsftp.Request) error {
	if r.noPosix {
		return pkgsftp.ErrSSHFxOpUnsupported
	}
	return r.FileCmd.(pkgsftp.PosixRenameFileCmder).PosixRename(request)
}

// TestSpaceUnknown: a host is not asked for the space by an extension that it has not announced.
// One that closes the connection for it would break the other operations of the connection.
func TestSpaceUnknown(t *testing.T) {
	t.Parallel()
	s := startServerOf(t, func(channel io.ReadWriteCloser) error {
		var packet [9]byte // the client's version
		if _, err := io.ReadFull(channel, packet[:]); err != nil {
			return err
		}
		if _, err := channel.Write([]byte{0, 0, 0, 5, 2, 0, 0, 0, 3}); err != nil { // version 3, no extensions
			return err
		}
		_, err := channel.Read(packet[:])
		return err
	})
	space, err := s.host("", 1).driver(t, ".").Space(t.Context())
	test.Is(t, err, errors.ErrUnsupported)
	test.IsNot(t, err, storagedrivers.ErrUnavailable)
	test.Equal(t, space, (storagedrivers.Space{}), "space")
}
