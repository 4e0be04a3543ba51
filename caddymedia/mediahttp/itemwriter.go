package mediahttp

import (
	"io"
	"net/http"
	"os"
	"strconv"

	"github.com/caddymedia/media/storagedrivers"
)

// itemWriter sends an object. It hands a whole file to the connection as the file that it
// is, so that the kernel can send it: http.ServeContent wraps what it sends in an
// io.LimitedReader, and Caddy's writer adds another, and with two of them nobody
// recognises the file any more. And it knows whether all that was promised was sent,
// which http.ServeContent does not tell.
type itemWriter struct {
	http.ResponseWriter
	object   *storagedrivers.Object
	promised int64
	sent     int64
	err      error // the first of reading or writing
}

func newItemWriter(w http.ResponseWriter, object *storagedrivers.Object) *itemWriter {
	return &itemWriter{ResponseWriter: w, object: object}
}

// WriteHeader takes note of the length, which a writer further out may drop.
func (w *itemWriter) WriteHeader(status int) {
	if n, err := strconv.ParseInt(w.Header().Get("Content-Length"), 10, 64); err == nil {
		w.promised = n
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write sends what http.ServeContent has in hand.
func (w *itemWriter) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	w.note(int64(n), err)
	return n, err
}

// ReadFrom passes the file on when r is what is left of it up to the end.
func (w *itemWriter) ReadFrom(r io.Reader) (int64, error) {
	from := r
	limited, ok := r.(*io.LimitedReader)
	if ok = ok && limited.R == io.Reader(w.object); ok {
		file, isFile := w.object.Underlying().(*os.File)
		if ok = isFile && restOf(file, limited.N, w.object.Info.Size); ok {
			from = file
		}
	}
	var n int64
	var err error
	if to, fast := w.ResponseWriter.(io.ReaderFrom); fast {
		n, err = to.ReadFrom(from)
	} else {
		n, err = io.Copy(w.ResponseWriter, from)
	}
	if ok {
		limited.N -= n
	}
	w.note(n, err)
	return n, err
}

// restOf tells whether n bytes are all that is left of a file.
func restOf(file *os.File, n, size int64) bool {
	at, err := file.Seek(0, io.SeekCurrent)
	return err == nil && at+n == size
}

func (w *itemWriter) note(n int64, err error) {
	w.sent += n
	if w.err == nil {
		w.err = err
	}
}

// short tells whether less was sent than promised, as the answer to method.
func (w *itemWriter) short(method string) bool {
	return method != http.MethodHead && w.sent < w.promised
}

// Unwrap is for http.ResponseController.
func (w *itemWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
