package sftp

import (
	"io"
	"io/fs"
	"strings"
	"testing"
	"testing/iotest"

	pkgsftp "github.com/pkg/sftp"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
)

// TestExperiment: the announcements of hosts do not count. Each host creates and replaces. The handles
// of these are resolved by their paths.
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
