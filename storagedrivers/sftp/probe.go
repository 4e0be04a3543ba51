package sftp

import (
	"context"
	"os"
)

// abilities are what a host was seen to do. What it announces says little: there are
// hosts that refuse the links they announce, and rename over what exists.
type abilities struct {
	create  creation
	replace bool // posix-rename puts one file in the place of another
}

// creation is how a name is given that must be free.
type creation int

const (
	// locked: the host does not refuse a name that is taken, so that we look first, one
	// upload at a time.
	locked creation = iota
	// linked: a hard link refuses it.
	linked
	// renamed: the protocol's own rename refuses it.
	renamed
	// claimed: making a file exclusively refuses it. The empty file shows until it is
	// replaced, and stays where the host's answer to its making is lost.
	claimed
)

// learn finds out what the host can, the first time.
func (d *Driver) learn(ctx context.Context, c *connection, folder string) (abilities, error) {
	if a := d.known.Load(); a != nil {
		return *a, nil
	}
	d.learning.Lock()
	defer d.learning.Unlock()
	if a := d.known.Load(); a != nil { // somebody else was first
		return *a, nil
	}
	a, err := d.experiment(ctx, c, folder)
	if err != nil {
		return abilities{}, err
	}
	if a.create == locked {
		d.log.Warn("the host does not refuse a name that is taken: " +
			"two servers that store one name at the same moment could overwrite each other")
	}
	if !a.replace {
		d.log.Warn("the host cannot replace a file in one step: an object is missing while it is overwritten")
	}
	d.known.Store(&a)
	return a, nil
}

// experiment tries with three temporary names what the host does.
func (d *Driver) experiment(ctx context.Context, c *connection, folder string) (a abilities, err error) {
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
	a.create = t.creation(from, taken, free)
	t.touch(taken)
	t.touch(free)
	a.replace = t.do(c.PosixRename(taken, free)) && !t.exists(taken) && t.exists(free)
	if a.create == claimed && !a.replace {
		a.create = locked
	}
	return a, t.err
}

// trial goes on after refusals, and remembers an answer that did not come.
type trial struct {
	c   *connection
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

// touch makes a file that may be there.
func (t *trial) touch(path string) {
	file, err := t.c.OpenFile(path, os.O_WRONLY|os.O_CREATE)
	if t.do(err) {
		t.do(file.Close())
	}
}

// creation finds the best way of giving the name free to from, which must not work with
// the name taken.
func (t *trial) creation(from, taken, free string) creation {
	switch c := t.c; {
	case t.do(c.Link(from, free)) && t.exists(from) && !t.do(c.Link(from, taken)):
		return linked
	case !t.do(c.Rename(from, taken)) && t.exists(from) && t.do(c.Rename(from, free)) && !t.exists(from):
		return renamed
	}
	file, err := t.c.OpenFile(taken, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if t.do(err) {
		t.do(file.Close())
		return locked
	}
	return claimed
}
