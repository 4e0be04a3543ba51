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
	create  creation
	replace bool // posix-rename replaces a file
	handles handling
	dates   bool // a file keeps the time that is set for it
}

// creation is the way to commit under a free name.
type creation int

const (
	// locked: the driver checks the name first, for one upload of a name at a time. A refusal of the
	// protocol's own rename would not be better: most hosts first check and then rename, so two
	// processes may both succeed.
	locked creation = iota
	// claimed: creating a file exclusively refuses an existing name; the host's file system decides
	// it. The empty file is visible until it is replaced, and stays if the reply to its creation is
	// lost.
	claimed
	// linked: a hard link refuses an existing name; the host's file system decides it.
	linked
)

// handling is which file a handle refers to after its path was given to another file.
type handling int

const (
	// unknown: not tested.
	unknown handling = iota
	// shaky: the handle may read the other file.
	shaky
	// steady: the handle reads the file that it was opened on, but Stat may describe the other
	// file.
	steady
	// exact: the handle reads the file that it was opened on, and Stat describes that file.
	exact
)

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
	if a.create == locked {
		d.log.Warn("the host's file system does not refuse a name that is taken: " +
			"two servers that store one name at the same moment could overwrite each other")
	}
	if !a.replace {
		d.log.Warn("the host cannot replace a file in one step: an object is missing while it is overwritten")
	}
	if a.handles == shaky {
		d.log.Warn("the host's file handles follow their paths: reading a large object fails when it is overwritten meanwhile")
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
	if t.do(c.Link(from, free)) && t.exists(from) && !t.do(c.Link(from, taken)) {
		a.create = linked
	}
	t.write(taken, "")
	t.write(free, "")
	a.replace = t.do(c.PosixRename(taken, free)) && !t.exists(taken) && t.exists(free)
	if a.create != linked && a.replace {
		t.write(taken, "")
		file, err := c.OpenFile(taken, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
		if t.do(err) {
			t.do(file.Close())
		} else {
			a.create = claimed
		}
	}
	a.dates = t.dates(from)
	a.handles = t.handling(from, taken)
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

// handling opens a file, renames another to its path, and returns the file that the handle reads.
func (t *trial) handling(path, other string) handling {
	const before, after = "before", "afterwards"
	if !t.write(path, before) || !t.write(other, after) {
		return shaky
	}
	file, err := t.c.Open(path)
	if !t.do(err) {
		return shaky
	}
	defer func() { t.do(file.Close()) }()
	if !t.do(t.c.PosixRename(other, path)) {
		t.do(t.c.Remove(path))
		if !t.do(t.c.Rename(other, path)) {
			return shaky
		}
	}
	stat, err := file.Stat()
	described := t.do(err) && stat.Size() == int64(len(before))
	text := make([]byte, len(before)+1)
	n, err := file.ReadAt(text, 0)
	if !errors.Is(err, io.EOF) {
		t.do(err)
	}
	switch {
	case string(text[:n]) != before:
		return shaky
	case !described:
		return steady
	}
	return exact
}
