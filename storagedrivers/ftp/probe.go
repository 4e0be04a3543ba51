package ftp

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/caddymedia/media/storagedrivers"
)

// probe finds out whether the server renames over a file that exists, as most do. Where
// nothing can be written there is nothing to find out.
//
// One that refuses to is still no judge of who creates a name: proftpd with AllowOverwrite
// off looks first and renames then, and lets two through at the same moment.
func (d *Driver) probe(ctx context.Context, c *conn) error {
	root := path.Join("/", c.base)
	p := &probe{c, tempName(root), tempName(root)}
	err := c.run(ctx, func() error {
		features, err := p.run()
		if err == nil {
			d.features.Store(&features)
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

// probe has the names of two temporary files.
type probe struct {
	conn       *conn
	from, onto string
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

// remove leaves nothing behind, whatever happened.
func (p *probe) remove() error {
	for _, name := range []string{p.from, p.onto} {
		if err := p.conn.remove(name); err != nil && !refused(err) {
			return err
		}
	}
	return nil
}
