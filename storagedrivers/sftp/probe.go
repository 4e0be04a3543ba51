package sftp

import (
	"context"
	"errors"
	"io"
	"os"
	"time"
)

// abilities are the results of the experiment. Announcements of hosts do not count: some refuse the
// links that they announce, and rename over existing files.
type abilities struct {
	// links: a hard link refuses an existing name; the host's file system decides it. Without links
	// the driver checks a name before it renames, for one upload of a name at a time in this process.
	// A refusal of the protocol's own rename would not be better: most hosts first check and then
	// rename, so two processes may both succeed.
	links   bool
	replace bool // posix-rename replaces a file
	exact   bool // a handle reads and describes the file that it was opened on, whatever has its path
	dates   bool // a file keeps the time that is set for it
}

// abilities returns the abilities of the host as far as they are known.
func (d *driver) abilities() abilities {
	if a := d.known.Load(); a != nil {
		return *a
	}
	return abilities{}
}

// findAbilities returns the abilities of the host. The first call runs the experiment.
func (d *driver) findAbilities(ctx context.Context, c *conn, folder string) (abilities, error) {
	if a := d.known.Load(); a != nil {
		return *a, nil
	}
	d.probing.Lock()
	defer d.probing.Unlock()
	if a := d.known.Load(); a != nil { // another caller was first
		return *a, nil
	}
	a, err := d.experiment(ctx, c, folder)
	if err != nil {
		return abilities{}, err
	}
	if !a.links {
		d.log.Warn("the host has no hard links: let only one process write there, " +
			"because two that store one name at the same moment could overwrite each other")
	}
	if !a.replace {
		d.log.Warn("the host cannot replace a file in one step: an object is missing while it is overwritten")
	}
	d.known.Store(&a)
	return a, nil
}

// experiment tests the abilities of the host with three temporary names.
func (d *driver) experiment(ctx context.Context, c *conn, folder string) (a abilities, err error) {
	var names [3]string
	for i := range names {
		file, name, err := d.makeTemp(ctx, c, folder)
		if err != nil {
			return a, d.spaceError(c, folder, err)
		}
		defer d.discard(ctx, c, name)
		names[i] = name
		if err := file.Close(); err != nil {
			return a, err
		}
	}
	t := trial{c: c}
	from, taken, free := names[0], names[1], names[2]
	t.do(c.Remove(free))
	a.links = t.do(c.Link(from, free)) && t.exists(from) && !t.do(c.Link(from, taken))
	t.write(taken, "")
	t.write(free, "")
	a.replace = t.do(c.PosixRename(taken, free)) && !t.exists(taken) && t.exists(free)
	a.dates = t.dates(from)
	a.exact = t.exact(from, taken)
	return a, t.err
}

// trial continues after refusals, and records a missing reply.
type trial struct {
	c   *conn
	err error
}

func (t *trial) do(err error) bool {
	if unavailable(err) && t.err == nil {
		t.err = err
	}
	return err == nil
}

func (t *trial) exists(path string) bool {
	_, err := t.c.Lstat(path)
	return t.do(err)
}

// write writes a file that may exist.
func (t *trial) write(path, text string) bool {
	file, err := t.c.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if !t.do(err) {
		return false
	}
	_, err = file.Write([]byte(text))
	return t.do(errors.Join(err, file.Close()))
}

// dates sets an odd time for a file, and reports whether the file has it.
func (t *trial) dates(path string) bool {
	odd := time.Unix(1_000_000_001, 0)
	if !t.do(t.c.Chtimes(path, odd, odd)) {
		return false
	}
	stat, err := t.c.Lstat(path)
	return t.do(err) && stat.ModTime().Equal(odd)
}

// exact opens a file, renames another to its path, and reports whether the handle still reads and
// describes the first one.
func (t *trial) exact(path, other string) bool {
	const before, after = "before", "afterwards"
	if !t.write(path, before) || !t.write(other, after) {
		return false
	}
	file, err := t.c.Open(path)
	if !t.do(err) {
		return false
	}
	defer func() { t.do(file.Close()) }()
	if !t.do(t.c.PosixRename(other, path)) {
		t.do(t.c.Remove(path))
		if !t.do(t.c.Rename(other, path)) {
			return false
		}
	}
	stat, err := file.Stat()
	if !t.do(err) || stat.Size() != int64(len(before)) {
		return false
	}
	text := make([]byte, len(before)+1)
	n, err := file.ReadAt(text, 0)
	if !errors.Is(err, io.EOF) {
		t.do(err)
	}
	return string(text[:n]) == before
}
