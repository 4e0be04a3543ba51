package ftp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	pathpkg "path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	jftp "github.com/jlaffaye/ftp"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/guard"
	"github.com/caddymedia/media/storagedrivers/queue"
)

// conn is a connection to the server, for one operation at a time. It is for one goroutine, except
// for cut.
type conn struct {
	ftp           *jftp.ServerConn
	base          string // the root's path without a slash at its end; empty is "/"
	connect       func(ctx context.Context) (*conn, error)
	cut           context.CancelFunc // closes everything, so that reads and writes end
	control       *control
	broken        bool // cut, or out of step
	withoutHidden bool // LIST -a shows nothing
	withoutTimes  bool // there is no MDTM
	withoutRest   bool // there is no REST

	slot, download *queue.Slot // of the pool; download is nil but for downloads
	idleSince      time.Time
	expiry         *time.Timer // closes it in the pool
}

// run calls f, which uses the server, and cuts the connection if ctx ends before f returns. It
// replaces a connection that broke earlier.
func (c *conn) run(ctx context.Context, f func() error) error {
	if err := ctx.Err(); err != nil {
		return operationError(ctx, err)
	}
	if c.broken {
		fresh, err := c.connect(ctx)
		if err != nil {
			return err
		}
		fresh.slot, fresh.download = c.slot, c.download
		*c = *fresh
	}
	stop := context.AfterFunc(ctx, c.cut)
	err := guard.Call(f)
	if !stop() {
		c.broken = true
	}
	if errors.Is(err, guard.ErrPanic) { // replies may be left
		c.broken = true
		c.cut()
	}
	return operationError(ctx, err)
}

// checkReply returns the error of a command. After anything but a single reply, it is unknown to
// which command the next reply belongs. The connection is then cut.
func (c *conn) checkReply(err error) error {
	if err != nil && !isSingleReply(err) {
		c.broken = true
		c.cut()
	}
	return err
}

// longName is the length of a path that, with a command before it, may exceed a server's line.
const longName = 240

// checkPathReply is checkReply for a command with a path. A server that does not understand a long
// line cannot hold the key, and may interpret the rest of the line as more commands.
func (c *conn) checkPathReply(path string, err error) error {
	err = c.checkReply(err)
	if len(path) > longName && hasCode(err, jftp.StatusBadCommand, jftp.StatusBadArguments) {
		c.broken = true
		c.cut()
		return fmt.Errorf("%w: %w", storagedrivers.ErrInvalidKey, err)
	}
	return err
}

// path returns the path of a key's file.
func (c *conn) path(key string) string { return c.base + "/" + key }

// entry is a file or a folder.
type entry struct {
	name    string
	size    int64
	modTime time.Time // zero where the server does not know it
	folder  bool
	link    bool
	changed bool // it is to be looked up
}

func newEntry(e *jftp.Entry) entry {
	return entry{
		name: strings.TrimSuffix(e.Name, "/"), // of a folder, on some servers
		size: int64(e.Size), modTime: e.Time.UTC(),
		folder: e.Type == jftp.EntryTypeFolder, link: e.Type == jftp.EntryTypeLink,
	}
}

// hasFacts reports whether the server has MLST and MLSD (RFC 3659), which return all facts about a
// name at once.
func (c *conn) hasFacts() bool { return c.ftp.IsTimePreciseInList() }

// stat returns the size and time of a file. If the path is not a file, the error is fs.ErrNotExist.
func (c *conn) stat(path string) (entry, error) {
	if c.hasFacts() {
		return c.look(path)
	}
	size, err := c.size(path)
	if err != nil {
		return entry{}, err
	}
	modTime, err := c.time(path)
	if err != nil {
		return entry{}, err
	}
	return entry{size: size, modTime: modTime}, nil
}

// look returns a file as MLST or the listing of its parent folder describes it. A folder is
// fs.ErrNotExist.
func (c *conn) look(path string) (e entry, err error) {
	if c.hasFacts() {
		found, err := c.ftp.GetEntry(path)
		if err = c.checkPathReply(path, err); err != nil {
			return entry{}, lookupError(err)
		}
		e = newEntry(found)
	} else {
		entries, err := c.list(pathpkg.Dir(path))
		if err != nil {
			return entry{}, err
		}
		i := slices.IndexFunc(entries, func(e entry) bool { return e.name == pathpkg.Base(path) })
		if i < 0 {
			return entry{}, fs.ErrNotExist
		}
		e = entries[i]
	}
	if e.folder {
		return entry{}, fmt.Errorf("%w: a folder", fs.ErrNotExist)
	}
	return e, nil
}

// size returns the size of a file. Some servers do not know the command, or do not reply with a
// number for an empty file; then the size comes from the listing.
func (c *conn) size(path string) (int64, error) {
	text, err := c.query("SIZE", path)
	if err == nil {
		if size, err := strconv.ParseInt(text, 10, 64); err == nil && size >= 0 {
			return size, nil
		}
	} else if !isUnknownCommand(err) {
		return 0, lookupError(err)
	}
	e, err := c.look(path)
	return e.size, err
}

// time returns the time of a file, or zero if the server does not know it. It tries the command
// once even if the server does not announce it.
func (c *conn) time(path string) (time.Time, error) {
	if c.withoutTimes {
		return time.Time{}, nil
	}
	text, err := c.query("MDTM", path)
	if isUnknownCommand(err) {
		c.withoutTimes = true
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, lookupError(err)
	}
	modTime, err := time.Parse("20060102150405", text) // it takes fractions, too
	if err != nil {
		c.withoutTimes = true
		return time.Time{}, nil //nolint:nilerr // an unreadable time counts as none
	}
	return modTime, nil
}

// query sends a command about a file and returns the text of a reply 213.
func (c *conn) query(command, path string) (string, error) {
	text, err := c.control.command(jftp.StatusFile, command+" "+path)
	return strings.TrimSpace(text), c.checkPathReply(path, err)
}

var (
	// entryLine matches the beginning of a line for a file, a folder or a link: of LIST for Unix or
	// DOS, or of MLSD.
	entryLine = regexp.MustCompile(`(?m)^([-dl][-rwxsStT]{9}|\d\d-\d\d-\d\d|[\w.-]+=[^ ;]*;)`)
	// otherLine matches a line of LIST for a device or the like, or with the size of the folder.
	otherLine = regexp.MustCompile(`(?m)(^[bcps][-rwxsStT]{9}.*|\A\pL+:? \d+\s*)$`)
)

// unreadable returns an error if a listing has entries that the library has left out; it has found
// the others.
func unreadable(listing []byte, found int) error {
	lines := len(entryLine.FindAllIndex(listing, -1))
	if found == 0 && lines == 0 && len(bytes.TrimSpace(otherLine.ReplaceAll(listing, nil))) > 0 {
		lines = 1 // at least
	}
	if lines <= found {
		return nil
	}
	err := fmt.Errorf("%d of %d lines of the listing are in an unknown format", lines-found, lines)
	return storagedrivers.WithCause(err, unknownFormat)
}

// list returns the entries of a folder, with hidden names if the server shows them.
func (c *conn) list(folder string) ([]entry, error) {
	list, argument := c.ftp.List, folder
	if !c.hasFacts() {
		// Servers treat the argument of LIST as a pattern, so change to the folder instead.
		if err := c.changeDir(folder); err != nil {
			return nil, lookupError(err)
		}
		if argument = "-a"; c.withoutHidden {
			argument = ""
		}
	}
	var listing listingLog
	c.control.listing = &listing
	found, err := list(argument)
	c.control.listing = nil
	if listing.begun {
		err = accept(jftp.StatusRequestedFileActionOK, err)
	}
	if err = c.checkReply(err); err != nil {
		return nil, lookupError(err)
	}
	if !c.hasFacts() { // the library takes a short line of text for an entry of DOS without a time
		found = slices.DeleteFunc(found, func(e *jftp.Entry) bool { return e.Time.IsZero() })
	}
	if argument == "-a" && !slices.ContainsFunc(found, func(e *jftp.Entry) bool { return e.Name == "." }) {
		c.withoutHidden = true // the argument was taken for a name: hidden names include "."
		return c.list(folder)
	}
	if err := unreadable(listing.Bytes(), len(found)); err != nil {
		return nil, err
	}
	entries := make([]entry, len(found))
	for i, e := range found {
		entries[i] = newEntry(e)
	}
	return entries, nil
}

// store sends r to the file at path. A transfer may end with 250 in place of 226 (RFC 959, section
// 5.4).
func (c *conn) store(path string, r io.Reader) error {
	err := c.ftp.Stor(path, r)
	if sent := c.control.upload; sent != nil {
		sent.end()
		c.control.upload = nil
		err = accept(jftp.StatusRequestedFileActionOK, err)
	}
	return c.checkPathReply(path, err)
}

// retrieve starts a download of the file at path, from offset on. Without REST the download starts
// at 0, and skip is offset.
func (c *conn) retrieve(path string, offset int64) (response *jftp.Response, skip int64, err error) {
	if c.withoutRest {
		offset, skip = 0, offset
	}
	response, err = c.ftp.RetrFrom(path, uint64(offset))
	err = c.checkPathReply(path, err)
	if offset > 0 && isUnknownCommand(err) && !c.broken {
		c.withoutRest = true
		return c.retrieve(path, offset)
	}
	return response, skip, err
}

// maxAbort bounds the wait for the replies to an aborted transfer. A new connection is cheaper than
// a longer wait.
const maxAbort = time.Second

// abort ends a transfer that was not read to its end. The number and text of the replies differ
// between servers, so abort ensures that the next reply belongs to the next command.
func (c *conn) abort(response *jftp.Response) {
	patience := time.AfterFunc(maxAbort, c.cut)
	defer func() {
		if !patience.Stop() {
			c.broken = true
		}
	}()
	if err := response.Close(); err != nil && c.checkReply(err) != nil && c.broken {
		return
	}
	if c.ping() != nil {
		c.broken = true
		c.cut()
	}
}

func (c *conn) ping() error { return c.checkReply(c.ftp.NoOp()) }

// rename renames a file within its folder.
func (c *conn) rename(from, to string) error { return c.checkPathReply(from, c.ftp.Rename(from, to)) }

// remove removes a file. Some servers reply with 200.
func (c *conn) remove(path string) error {
	return c.checkPathReply(path, accept(jftp.StatusCommandOK, c.ftp.Delete(path)))
}

// changeDir changes to a folder, which verifies that it is one. No command depends on the current
// folder.
func (c *conn) changeDir(folder string) error {
	return c.checkPathReply(folder, c.ftp.ChangeDir(pathpkg.Join("/", folder)))
}

// ensureFolder creates a folder and its parents if they are missing. Another client may create one
// first. The driver remembers existing folders, so that not every upload has to check all of them.
func (d *driver) ensureFolder(c *conn, folder string) error {
	if d.folders.Contains(folder) {
		return nil
	}
	err := c.changeDir(folder)
	if isRefusal(err) && folder != "/" {
		if err = d.ensureFolder(c, pathpkg.Dir(folder)); err == nil {
			err = c.createFolder(folder)
		}
	}
	if err == nil {
		d.folders.Add(folder, struct{}{})
	}
	return err
}

// createFolder creates a folder whose parent exists, unless it exists by now. Some servers reply
// with 250.
func (c *conn) createFolder(folder string) error {
	err := c.checkPathReply(folder, accept(jftp.StatusRequestedFileActionOK, c.ftp.MakeDir(folder)))
	if !isRefusal(err) {
		return err
	}
	if entered := c.changeDir(folder); !isRefusal(entered) {
		return entered
	}
	if _, looked := c.stat(folder); looked == nil {
		return fmt.Errorf("%w: a file stands where a folder is needed: %w", storagedrivers.ErrInvalidKey, err)
	}
	return fmt.Errorf("making the folder %q: %w", folder, refusalReason(err, fs.ErrPermission))
}
