package mediahttp

import (
	"io"
	"net/http"
	"os"

	"github.com/caddymedia/media/storagedrivers"
)

// fileWriter hands a whole file to the connection as the file that it is, so that the
// kernel can send it. http.ServeContent wraps what it sends in an io.LimitedReader, and
// Caddy's writer adds another; with two of them nobody recognises the file any more.
type fileWriter struct {
	http.ResponseWriter
	object *storagedrivers.Object
}

// newFileWriter wraps w where the object is a file.
func newFileWriter(w http.ResponseWriter, object *storagedrivers.Object) http.ResponseWriter {
	if _, ok := object.Underlying().(*os.File); !ok {
		return w
	}
	if _, ok := w.(io.ReaderFrom); !ok {
		return w
	}
	return &fileWriter{w, object}
}

// ReadFrom passes the file on when r is what is left of it up to the end.
func (w *fileWriter) ReadFrom(r io.Reader) (int64, error) {
	to := w.ResponseWriter.(io.ReaderFrom) // newFileWriter has looked
	limited, ok := r.(*io.LimitedReader)
	if !ok || limited.R != io.Reader(w.object) {
		return to.ReadFrom(r)
	}
	file := w.object.Underlying().(*os.File) // newFileWriter has looked
	at, err := file.Seek(0, io.SeekCurrent)
	if err != nil || at+limited.N != w.object.Info.Size {
		return to.ReadFrom(r)
	}
	n, err := to.ReadFrom(file)
	limited.N -= n
	return n, err
}

// Unwrap is for http.ResponseController.
func (w *fileWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
