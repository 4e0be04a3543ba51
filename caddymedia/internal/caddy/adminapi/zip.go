package adminapi

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"go.uber.org/zap"

	"github.com/caddymedia/media/caddymedia/internal/front/items"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/guard"
)

const (
	// The maximum number of items of a zip.
	maxZipItems = 1000
	// Simultaneous downloads of all users, and of one.
	maxZips     = 16
	maxUserZips = 4
	// Items that are looked up at once.
	zipStats = 8
)

// zips counts the downloads that run by user, of all handlers, because each change in the panel is
// a reload.
var zips downloads

type downloads struct {
	mu     sync.Mutex
	all    int
	byUser map[string]int
}

// begin counts a download of a user until the caller calls ended. It returns false if there are too
// many.
func (d *downloads) begin(user string) (ended func(), ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.all >= maxZips || d.byUser[user] >= maxUserZips {
		return nil, false
	}
	if d.byUser == nil {
		d.byUser = map[string]int{}
	}
	d.all++
	d.byUser[user]++
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.all--
		if d.byUser[user]--; d.byUser[user] == 0 {
			delete(d.byUser, user)
		}
	}, true
}

// zipItem is an item of a zip, as it was when the zip began.
type zipItem struct {
	name     string // in the zip
	filename string // relative to the alias
	info     storagedrivers.Info
}

// zip sends the items of a form as one file. The page that has posted the form can read a refusal
// in its frame.
func (c *call) zip() error {
	c.w.Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'self'")
	alias, err := c.alias()
	if err != nil {
		return err
	}
	ended, ok := zips.begin(c.actor().Owner())
	if !ok {
		c.w.Header().Set("Retry-After", "30")
		return failf(http.StatusTooManyRequests, "Other zips are being downloaded already. Try again when one of them has ended.")
	}
	defer ended()
	form, status, message := items.SetForm.Read(c.w, c.r, c.handler.now)
	if message != "" {
		return failf(status, "The form cannot be read: %s.", message)
	}
	filenames := form["filename"]
	if n := len(filenames); n == 0 || n > maxZipItems {
		return failf(http.StatusBadRequest, "A zip has 1 to %d items, not %d.", maxZipItems, n)
	}
	ctx, cancel := c.bounded()
	defer cancel()
	items, missing, err := zipItems(ctx, alias, filenames)
	if err != nil {
		return storageFailed(c.app.Driver(alias.Storage.Name()).Describe(), err)
	}
	if len(missing) > 0 {
		return failf(http.StatusNotFound, "Some items are not stored any more, such as %q. Load the list again.", missing[0])
	}
	c.sendZip(alias, items)
	return nil
}

// zipItems looks up items of an alias. It returns those that are stored, each once and in the order
// of filenames, and the names of the others.
func zipItems(ctx context.Context, alias *item.Alias, filenames []string) (items []zipItem, missing []string, err error) {
	infos := make([]storagedrivers.Info, len(filenames)) // without a key if there is no item
	group, ctx := guard.WithContext(ctx, zipStats)
	for i, filename := range filenames {
		if !alias.MayBeItem(filename) {
			continue
		}
		group.Go(func() error {
			info, err := alias.Storage.Stat(ctx, alias.Key(filename))
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, storagedrivers.ErrInvalidKey) {
				return nil
			}
			infos[i] = info
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, nil, err
	}
	missing = []string{}
	selected, names := map[string]bool{}, map[string]bool{}
	for i, filename := range filenames {
		switch {
		case selected[filename]:
		case infos[i].Key == "":
			missing = append(missing, filename)
		default:
			items = append(items, zipItem{name: zipName(filename, names), filename: filename, info: infos[i]})
		}
		selected[filename] = true
	}
	return items, missing, nil
}

// zipName returns the name of an item in a zip and adds it to taken. It is safe to unpack:
// [storagedrivers.ValidKey] excludes absolute names, "..", backslashes and control characters. A
// colon is replaced, because Windows would read it as a drive or as a stream of a file.
func zipName(filename string, taken map[string]bool) string {
	name := strings.ReplaceAll(filename, ":", "_")
	for taken[name] {
		name = "_" + name
	}
	taken[name] = true
	return name
}

// header returns the header of an item, whose bytes are stored as they are.
func (i zipItem) header() *zip.FileHeader {
	return &zip.FileHeader{Name: i.name, Method: zip.Store, Modified: i.info.ModTime.UTC()}
}

// Sizes of the parts of a zip in bytes, as zip.Writer writes it (APPNOTE 6.3 of PKWARE). The
// checksum of an item is known only after its bytes, and so it is in a descriptor behind them.
const (
	zipLocalHeader  = 30
	zipDescriptor   = 16
	zipDescriptor64 = 24
	zipDirectory    = 46 // of an item
	zipTime         = 9  // in both headers of an item
	zipDirectory64  = 28 // of an item, in addition
	zipEnd          = 22
	zipEnd64        = 56 + 20 // in addition
	// The first size, offset or number of items that needs ZIP64.
	zip64From      = 1<<32 - 1
	zip64FromItems = 1<<16 - 1
)

// zipSize returns the size of the zip of items in bytes.
func zipSize(items []zipItem) int64 {
	var offset, directory int64
	for _, item := range items {
		named := int64(len(item.name))
		if !item.info.ModTime.IsZero() {
			named += zipTime
		}
		directory += zipDirectory + named
		if item.info.Size >= zip64From || offset >= zip64From {
			directory += zipDirectory64
		}
		offset += zipLocalHeader + named + item.info.Size + zipDescriptor
		if item.info.Size >= zip64From {
			offset += zipDescriptor64 - zipDescriptor
		}
	}
	size := offset + directory + zipEnd
	if len(items) >= zip64FromItems || offset >= zip64From || directory >= zip64From {
		size += zipEnd64
	}
	return size
}

// sendZip sends the zip of items. It breaks the connection if an item cannot be read to its end.
func (c *call) sendZip(alias *item.Alias, items []zipItem) {
	size := zipSize(items)
	header := c.w.Header()
	header.Set("Content-Type", "application/zip")
	header.Set("Content-Disposition", "attachment; filename="+alias.Name+".zip") // names need no quotes
	header.Set("Content-Length", strconv.FormatInt(size, 10))
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	c.w.WriteHeader(http.StatusOK)
	to := &countingWriter{to: c.w}
	err := writeZip(c.r.Context(), to, alias, items)
	if err == nil && to.sent != size {
		err = errors.New("its length is wrong")
	}
	if err == nil {
		return
	}
	level := zap.ErrorLevel
	if to.err != nil || c.r.Context().Err() != nil { // the client is gone
		level = zap.DebugLevel
	}
	c.handler.log.Log(level, "sending a zip", zap.String("alias", alias.Name), zap.String("kind", string(alias.Kind)),
		zap.Int64("sent", to.sent), zap.Int64("promised", size), zap.String("error", c.redacted(err.Error())))
	panic(http.ErrAbortHandler)
}

// writeZip writes the zip of items. It returns an error that wraps [storagedrivers.ErrChanged] if
// an item was replaced since.
func writeZip(ctx context.Context, to io.Writer, alias *item.Alias, items []zipItem) error {
	w := zip.NewWriter(to)
	for _, item := range items {
		entry, err := w.CreateHeader(item.header())
		if err != nil {
			return err
		}
		if err := copyItem(ctx, entry, alias, item); err != nil {
			return err
		}
	}
	return w.Close()
}

// copyItem writes the bytes of an item.
func copyItem(ctx context.Context, to io.Writer, alias *item.Alias, item zipItem) error {
	object, err := alias.Storage.OpenSeeker(ctx, alias.Key(item.filename))
	if err != nil {
		return err
	}
	defer object.Close()
	if !object.Info.Same(item.info) {
		return fmt.Errorf("item %q: %w", item.filename, storagedrivers.ErrChanged)
	}
	_, err = io.CopyN(to, object, item.info.Size)
	if errors.Is(err, io.EOF) { // a file was cut
		err = storagedrivers.ErrChanged
	}
	if err != nil {
		return fmt.Errorf("item %q: %w", item.filename, err)
	}
	return nil
}

// countingWriter counts the bytes that a client has accepted.
type countingWriter struct {
	to   io.Writer
	sent int64
	err  error // the first of writing
}

func (w *countingWriter) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	w.sent += int64(n)
	if w.err == nil {
		w.err = err
	}
	return n, err
}
