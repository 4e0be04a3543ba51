package mediahttp

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strconv"
	"syscall"

	"github.com/caddymedia/media/storagedrivers"
)

// itemWriter sends an object. Nothing is sent before the first bytes of the object are there, so
// that a storage's failure still has a status of its own. A small object is read whole and closed
// before it is written: a client that takes nothing holds no source open. Of a larger file the
// connection gets the file itself, so that the kernel can send it: http.ServeContent wraps what it
// sends in an io.LimitedReader, and Caddy's writer adds another, behind which no file is
// recognised. And it knows whether all that was promised was sent, which http.ServeContent does
// not return.
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

// WriteHeader keeps the status until there is something to send, and records the length,
// which a writer further out may drop.
func (w *itemWriter) WriteHeader(status int) {
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

// finish sends the header of an answer without a body. It returns the error of an object of which
// nothing could be read, when nothing was sent.
func (w *itemWriter) finish() error {
	if w.failed != nil && !w.started {
		return w.failed
	}
	w.start()
	return nil
}

// Write sends what http.ServeContent has in hand.
func (w *itemWriter) Write(p []byte) (int, error) {
	w.start()
	n, err := w.ResponseWriter.Write(p)
	w.sent += int64(n)
	w.note(err)
	return n, err
}

// ReadFrom sends what r has, which is a part of the object up to a limit.
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
	if file, ok := w.object.Underlying().(*os.File); ok && restOf(file, limited.N, w.object.Info.Size) {
		n, err := w.sendFile(file)
		limited.N -= n
		return n, err
	}
	return w.copy(r)
}

// sendWhole reads all that is wanted of the object and closes it before anything is written.
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

// sendFile has the connection send the rest of a file.
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

// copy sends what r has, piece by piece.
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

// restOf reports whether n bytes are all that is left of a file.
func restOf(file *os.File, n, size int64) bool {
	at, err := file.Seek(0, io.SeekCurrent)
	return err == nil && at+n == size
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

// short reports whether less was sent than promised, as the answer to method.
func (w *itemWriter) short(method string) bool {
	return method != http.MethodHead && w.sent < w.promised
}

// aborted reports whether the client is the cause of a short answer: writing failed, and reading
// did not. When the client leaves, the end of ctx, which is that of its request, also ends a read.
func (w *itemWriter) aborted(ctx context.Context) bool {
	return ctx.Err() != nil || w.err != nil && w.failed == nil
}

// Unwrap is for http.ResponseController.
func (w *itemWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
