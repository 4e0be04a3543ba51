package ftp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/textproto"
	"path"
	"regexp"
	"strconv"
	"time"

	jftp "github.com/jlaffaye/ftp"

	"github.com/caddymedia/media/storagedrivers/internal/network"
)

// conn is a connection to the server, which does one thing at a time. It is for one
// goroutine, but for cut.
type conn struct {
	ftp       *jftp.ServerConn
	base      string // the root's path without a slash at its end; empty is "/"
	connect   func(ctx context.Context) (*conn, error)
	cut       context.CancelFunc // closes everything, so that whoever waits is let go
	broken    bool               // cut, or out of step
	plainList bool               // LIST -a shows nothing
	heardLast *tail
}

// run calls f, which talks to the server, and cuts the connection when ctx ends before f
// does. A connection that broke before is made anew.
func (c *conn) run(ctx context.Context, f func() error) error {
	if err := ctx.Err(); err != nil {
		return ended(ctx, err)
	}
	if c.broken {
		fresh, err := c.connect(ctx)
		if err != nil {
			return err
		}
		*c = *fresh
	}
	stop := context.AfterFunc(ctx, c.cut)
	err := f()
	if !stop() {
		c.broken = true
	}
	return ended(ctx, err)
}

// heard takes note of how a command ended: after anything but a clean reply nobody knows
// what the next reply is to.
func (c *conn) heard(err error) error {
	if err != nil && !clean(err) {
		c.broken = true
		c.cut()
	}
	return err
}

// path gives the path of a key's file.
func (c *conn) path(key string) string { return c.base + "/" + key }

// entry is a file or a folder.
type entry struct {
	name    string
	size    int64
	modTime time.Time // to the second; zero where the server does not tell
	folder  bool
	link    bool
}

func newEntry(e *jftp.Entry) entry {
	return entry{
		name: e.Name, size: int64(e.Size), modTime: e.Time.UTC().Truncate(time.Second),
		folder: e.Type == jftp.EntryTypeFolder, link: e.Type == jftp.EntryTypeLink,
	}
}

// hasFacts tells whether the server has MLST and MLSD (RFC 3659), which tell all of a name
// at once.
func (c *conn) hasFacts() bool { return c.ftp.IsTimePreciseInList() }

// facts is what MLST tells of a file or folder.
func (c *conn) facts(path string) (entry, error) {
	e, err := c.ftp.GetEntry(path)
	if err = c.heard(err); err != nil {
		return entry{}, missing(err)
	}
	return newEntry(e), nil
}

// look gives the size and time of a file. Anything else is fs.ErrNotExist.
func (c *conn) look(path string) (entry, error) {
	if c.hasFacts() {
		e, err := c.facts(path)
		if err == nil && e.folder {
			return entry{}, fmt.Errorf("%w: a folder", fs.ErrNotExist)
		}
		return e, err
	}
	size, err := c.ftp.FileSize(path)
	if err = c.heard(err); err != nil {
		return entry{}, missing(err)
	}
	e := entry{size: size}
	if c.ftp.IsGetTimeSupported() {
		modTime, err := c.ftp.GetTime(path)
		if err = c.heard(err); err != nil {
			return entry{}, missing(err)
		}
		e.modTime = modTime.Truncate(time.Second)
	}
	return e, nil
}

// list gives what is in a folder, hidden names included where the server shows them.
func (c *conn) list(folder string) ([]entry, error) {
	list, argument := c.ftp.List, folder
	if !c.hasFacts() {
		// Servers take the argument of LIST for a pattern: go there instead.
		if err := c.enter(folder); err != nil {
			return nil, missing(err)
		}
		if argument = "-a"; c.plainList {
			argument = ""
		}
	}
	found, err := list(argument)
	if err = c.heard(err); err != nil {
		return nil, missing(err)
	}
	if argument == "-a" && !hasItself(found) {
		c.plainList = true // it was taken for a name
		return c.list(folder)
	}
	entries := make([]entry, len(found))
	for i, e := range found {
		entries[i] = newEntry(e)
	}
	return entries, nil
}

// hasItself tells whether a listing shows hidden names: every folder has ".".
func hasItself(entries []*jftp.Entry) bool {
	for _, e := range entries {
		if e.Name == "." {
			return true
		}
	}
	return false
}

// store sends r to the file at path.
func (c *conn) store(path string, r io.Reader) error { return c.heard(c.ftp.Stor(path, r)) }

// retrieve begins to send the file at path from offset on. size is how long the server
// says that it is, or what is left of it; -1 where it does not say.
func (c *conn) retrieve(path string, offset int64) (response *jftp.Response, size int64, err error) {
	c.heardLast.reset()
	response, err = c.ftp.RetrFrom(path, uint64(offset))
	return response, c.heardLast.opened(), c.heard(err)
}

// abort ends a transfer that was not read to its end. Servers differ in what they say to
// that and how often, so it makes sure that the next reply will be the right one.
func (c *conn) abort(response *jftp.Response) {
	if err := response.Close(); err != nil && c.heard(err) != nil && c.broken {
		return
	}
	if c.ping() != nil {
		c.broken = true
		c.cut()
	}
}

// finish ends a transfer that was read to its end; only now the server tells whether it
// was whole.
func (c *conn) finish(response *jftp.Response) error { return c.heard(response.Close()) }

func (c *conn) ping() error                    { return c.heard(c.ftp.NoOp()) }
func (c *conn) move(from, to string) error     { return c.heard(c.ftp.Rename(from, to)) }
func (c *conn) remove(path string) error       { return c.heard(c.ftp.Delete(path)) }
func (c *conn) makeFolder(path string) error   { return c.heard(c.ftp.MakeDir(path)) }
func (c *conn) removeFolder(path string) error { return c.heard(c.ftp.RemoveDir(path)) }

// enter goes into a folder, which is how to tell that it is one. Nothing depends on where
// a connection stands.
func (c *conn) enter(folder string) error {
	return c.heard(c.ftp.ChangeDir(path.Join("/", folder)))
}

// tail keeps what was said last on a control connection, for what the library does not
// hand on.
type tail struct{ said []byte }

const tailBytes = 8 << 10

// Write takes what was said.
func (t *tail) Write(p []byte) (int, error) {
	t.said = append(t.said, p...)
	if extra := len(t.said) - tailBytes; extra > 0 {
		t.said = append(t.said[:0], t.said[extra:]...)
	}
	return len(p), nil
}

func (t *tail) reset() {
	clear(t.said)
	t.said = t.said[:0]
}

// refusalLine is a reply that says no.
var refusalLine = regexp.MustCompile(`(?m)^([45]\d\d) ?(.*?)\r?$`)

// reply gives the error err with the code that the library has left out.
func (t *tail) reply(err error) error {
	matches := refusalLine.FindAllSubmatch(t.said, -1)
	if _, ok := errors.AsType[*textproto.Error](err); ok || len(matches) == 0 || network.Unreachable(err) {
		return err
	}
	last := matches[len(matches)-1]
	code, _ := strconv.Atoi(string(last[1])) // three digits
	return &textproto.Error{Code: code, Msg: string(last[2])}
}

// opening is what most servers say to RETR: "150 Opening BINARY mode data connection for
// name (1234 bytes)."
var opening = regexp.MustCompile(`(?m)^1[25][05][ -].*\((\d+) bytes\)`)

// opened is the size of the file that was opened last, or -1.
func (t *tail) opened() int64 {
	match := opening.FindSubmatch(t.said)
	if match == nil {
		return -1
	}
	size, err := strconv.ParseInt(string(match[1]), 10, 64)
	if err != nil {
		return -1
	}
	return size
}
