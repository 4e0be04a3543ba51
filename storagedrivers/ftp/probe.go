package ftp

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/caddymedia/media/storagedrivers"
)

// probe tests whether the server renames over an existing file, as most do, and warns if locks do
// not work. It does nothing if the root is read-only.
//
// A server that refuses to rename over a file still does not create names atomically: proftpd with
// AllowOverwrite off first checks and then renames, so two renames at the same moment may both
// succeed.
func (d *Driver) probe(ctx context.Context, c *conn) error {
	root := path.Join("/", c.base)
	p := &probe{conn: c, from: tempName(root), onto: tempName(root)}
	if *d.config.Lock {
		p.lock = newName(root, lockPrefix)
	}
	err := c.run(ctx, func() error {
		features, err := p.run()
		if err == nil {
			d.features.Store(&features)
		}
		if err == nil && p.lock != "" {
			err = p.makeTwice()
		}
		if err == nil && p.shared {
			d.log.WarnContext(ctx, "the server makes a folder that exists once more, so that lock folders are in vain: "+
				"let only one process write there")
		}
		if refused(err) {
			d.log.DebugContext(ctx, "cannot try out what renaming does", "error", err)
			return nil
		}
		return err
	})
	cleaned := d.cleanUp(ctx, c, p.remove)
	if err == nil {
		err = cleaned
	}
	return err
}

// probe contains the names of two temporary files and of a lock folder.
type probe struct {
	conn       *conn
	from, onto string
	lock       string // empty without locks
	shared     bool   // two processes can hold one lock
}

func (p *probe) run() (storagedrivers.Features, error) {
	for _, name := range []string{p.from, p.onto} {
		if err := p.conn.store(name, strings.NewReader("probe")); err != nil {
			return storagedrivers.Features{}, err
		}
	}
	if err := p.conn.move(p.from, p.onto); refused(err) {
		return storagedrivers.Features{}, nil
	} else if err != nil {
		return storagedrivers.Features{}, err
	}
	_, err := p.conn.look(p.from)
	if errors.Is(err, fs.ErrNotExist) {
		return storagedrivers.Features{Replace: storagedrivers.Atomic}, nil
	}
	return storagedrivers.Features{}, err
}

// makeTwice creates the lock folder, and tests whether it can be created again.
func (p *probe) makeTwice() error {
	if err := p.conn.makeFolder(p.lock); err != nil {
		return err
	}
	err := p.conn.makeFolder(p.lock)
	p.shared = err == nil
	if refused(err) {
		return nil
	}
	return err
}

// remove removes all names of the probe, whatever happened before.
func (p *probe) remove() error {
	for _, name := range []string{p.from, p.onto} {
		if err := p.conn.remove(name); err != nil && !refused(err) {
			return err
		}
	}
	if p.lock == "" {
		return nil
	}
	if err := p.conn.removeFolder(p.lock); err != nil && !refused(err) {
		return err
	}
	return nil
}
