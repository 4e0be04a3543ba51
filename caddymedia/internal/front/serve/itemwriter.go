package serve

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sync/semaphore"

	"github.com/caddymedia/media/storagedrivers"
)

// itemWriter sends an object for http.ServeContent. It sends nothing before the first bytes of the
// object are read, so that an error of the storage still gets its own status.
//
// A small object is read completely and closed before it is sent, so that a slow client keeps no
// source open. A larger file is passed to the connection as *os.File, so that the kernel can send
// it: http.ServeContent wraps it in an io.LimitedReader and Caddy's writer wraps it again, which
// would hide the file.
//
// itemWriter also records whether all promised bytes were sent; http.ServeContent does not return
// that.
type itemWriter struct {
	http.ResponseWriter
	object   *storagedrivers.Object
	closed   func() // is called when the object was closed early
	small    int64  // the most that is read whole
	status   int    // of the answer; 0 before WriteHeader
	started  bool   // the header was sent
	promised int64
	sent     int64
	failed   error // the first of reading
	err      error // the first of reading or writing
}

func newItemWriter(w http.ResponseWriter, object *storagedrivers.Object, closed func()) *itemWriter {
	return &itemWriter{ResponseWriter: w, object: object, closed: closed, small: smallItem}
}

// WriteHeader stores the status until there is something to send. It also stores the length,
// because an outer writer may drop that header. Caches must not store a failure for the item.
func (w *itemWriter) WriteHeader(status int) {
	if status >= http.StatusBadRequest {
		w.Header().Set("Cache-Control", "no-store")
	}
	if n, err := strconv.ParseInt(w.Header().Get("Content-Length"), 10, 64); err == nil {
		w.promised = n
	}
	w.status = status
}

// start sends the header.
func (w *itemWriter) start() {
	if !w.started && w.status != 0 {
		w.ResponseWriter.WriteHeader(w.status)
	}
	w.started = true
}

// finish sends the header of a response without a body. If nothing was sent because the object
// could not be read, it returns the read error.
func (w *itemWriter) finish() error {
	if w.failed != nil && !w.started {
		return w.failed
	}
	w.start()
	return nil
}

// Write sends bytes that http.ServeContent holds in memory.
func (w *itemWriter) Write(p []byte) (int, error) {
	w.start()
	n, err := w.ResponseWriter.Write(p)
	w.sent += int64(n)
	w.note(err)
	return n, err
}

// ReadFrom sends the content of r, which is a part of the object up to a limit.
func (w *itemWriter) ReadFrom(r io.Reader) (int64, error) {
	limited, ok := r.(*io.LimitedReader)
	if !ok || limited.R != io.Reader(w.object) {
		return w.copy(r)
	}
	if limited.N <= w.small {
		if buffer, release, ok := small.take(limited.N); ok {
			defer release()
			return w.sendWhole(limited, buffer)
		}
	}
	if file := w.rest(limited.N); file != nil {
		n, err := w.sendFile(file)
		limited.N -= n
		return n, err
	}
	return w.copy(r)
}

// sendWhole reads all requested bytes of the object, and closes it before it writes.
func (w *itemWriter) sendWhole(limited *io.LimitedReader, buffer []byte) (int64, error) {
	n, err := io.ReadFull(limited, buffer)
	if err != nil && n == 0 {
		w.failedToRead(err)
		return 0, err
	}
	_ = w.object.Close() // all that is wanted of it is here
	w.closed()
	written, writeErr := w.Write(buffer[:n])
	if err != nil {
		w.failedToRead(err)
	}
	return int64(written), errors.Join(writeErr, err)
}

// sendFile passes the rest of a file to the connection.
func (w *itemWriter) sendFile(file *os.File) (int64, error) {
	to, ok := w.ResponseWriter.(io.ReaderFrom)
	if !ok {
		return w.copy(file)
	}
	w.start()
	n, err := to.ReadFrom(file)
	w.sent += n
	if _, ok := errors.AsType[*fs.PathError](err); ok || errors.Is(err, syscall.EIO) {
		w.failedToRead(err)
	}
	w.note(err)
	return n, err
}

// copy sends the content of r, one piece after the other.
func (w *itemWriter) copy(r io.Reader) (int64, error) {
	buffer, release := small.piece()
	defer release()
	var sent int64
	for {
		n, err := r.Read(buffer)
		if n > 0 {
			written, writeErr := w.Write(buffer[:n])
			sent += int64(written)
			if writeErr != nil {
				return sent, writeErr
			}
		}
		if errors.Is(err, io.EOF) {
			return sent, nil
		}
		if err != nil {
			w.failedToRead(err)
			return sent, err
		}
	}
}

// rest returns the file of the object, at the offset of the next read, if n bytes are left of it.
// Otherwise, and if the object is no file, it returns nil.
func (w *itemWriter) rest(n int64) *os.File {
	reader, ok := w.object.Underlying().(interface{ File() (*os.File, error) })
	if !ok {
		return nil
	}
	at, err := w.object.Seek(0, io.SeekCurrent)
	if err != nil || at+n != w.object.Info.Size {
		return nil
	}
	file, err := reader.File()
	if err != nil {
		return nil
	}
	return file
}

func (w *itemWriter) failedToRead(err error) {
	if w.failed == nil {
		w.failed = err
	}
	w.note(err)
}

func (w *itemWriter) note(err error) {
	if w.err == nil {
		w.err = err
	}
}

// short reports whether fewer bytes were sent than promised, in the response to method.
func (w *itemWriter) short(method string) bool {
	return method != http.MethodHead && w.sent < w.promised
}

// aborted reports whether the client is the cause of a short response: writing failed, but not
// reading. A read may also fail because the client disconnects, which ends ctx, the context of the
// request.
func (w *itemWriter) aborted(ctx context.Context) bool {
	return ctx.Err() != nil || w.err != nil && w.failed == nil
}

// Unwrap is for http.ResponseController.
func (w *itemWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

const (
	// smallItem is the largest item in bytes that is read completely before it is sent.
	smallItem = 256 << 10
	// pieceSize is the size of the reads of a larger item.
	pieceSize = 64 << 10
	// maxSmall bounds the memory of all items that are read completely. A client that does not read
	// its response holds its buffer until the connection times out.
	maxSmall = 64 << 20
)

// small are the buffers of all items that are being sent.
var small = newBuffers(maxSmall)

// sizes are the sizes of buffers.
var sizes = [...]int64{4 << 10, 16 << 10, pieceSize, smallItem}

// buffers are pools of buffers by size. Their memory is bounded together.
type buffers struct {
	room  *semaphore.Weighted
	pools [len(sizes)]sync.Pool
}

func newBuffers(room int64) *buffers {
	b := &buffers{room: semaphore.NewWeighted(room)}
	for i, size := range sizes {
		b.pools[i].New = func() any {
			buffer := make([]byte, size)
			return &buffer
		}
	}
	return b
}

// take returns a buffer of n bytes, at most [smallItem], if there is room for it.
func (b *buffers) take(n int64) (buffer []byte, release func(), ok bool) {
	for i, size := range sizes {
		if n > size {
			continue
		}
		if !b.room.TryAcquire(size) {
			return nil, nil, false
		}
		pooled := b.pools[i].Get().(*[]byte)
		return (*pooled)[:n], func() {
			b.pools[i].Put(pooled)
			b.room.Release(size)
		}, true
	}
	return nil, nil, false
}

// piece returns a buffer of [pieceSize] for an item that stays open while it is sent. The bound on
// open items also bounds these buffers.
func (b *buffers) piece() (buffer []byte, release func()) {
	const class = 2
	pooled := b.pools[class].Get().(*[]byte)
	return *pooled, func() { b.pools[class].Put(pooled) }
}
