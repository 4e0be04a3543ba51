package storagedrivers

import (
	"context"
	"errors"
	"io"
	"io/fs"

	"github.com/caddymedia/media/storagedrivers/internal/network"
	"github.com/caddymedia/media/storagedrivers/internal/source"
)

// Object reads an object from any offset, as an io.ReadSeeker for http.ServeContent. It is for one
// goroutine.
type Object struct {
	// Info of the object when it was opened. Read never returns bytes of another generation.
	Info Info

	storage *Storage
	open    func(offset int64) (*openBody, Info, error) // nil once closed
	body    *openBody                                   // nil while no reader is open
	at      int64                                       // where body stands
	offset  int64                                       // of the next Read
	seeker  io.Seeker                                   // the first body, where the driver's readers seek
	given   bool                                        // bytes were returned
	resumed int
}

// OpenSeeker opens an object for reading from any offset. One request to the backend returns its
// Info and its first bytes, so both are of one generation. The caller must Close it.
func (s *Storage) OpenSeeker(ctx context.Context, key string) (*Object, error) {
	return s.openObject(ctx, key, func(o *Object) error {
		var err error
		if o.body, o.Info, err = o.open(0); err == nil && s.Features().Seek {
			o.seeker, _ = o.Underlying().(io.Seeker)
		}
		return err
	})
}

// OpenLazy is [Storage.OpenSeeker] for a caller that may need no bytes, or not the first ones. It
// transfers nothing before the first Read, which returns [ErrChanged] if the object has been
// replaced.
func (s *Storage) OpenLazy(ctx context.Context, key string) (*Object, error) {
	if s.Features().Seek {
		return s.OpenSeeker(ctx, key)
	}
	return s.openObject(ctx, key, func(o *Object) error {
		var err error
		o.Info, err = s.Stat(ctx, key)
		return err
	})
}

func (s *Storage) openObject(ctx context.Context, key string, begin func(*Object) error) (*Object, error) {
	if !s.references.Acquire() {
		return nil, s.wrap("open", key, ErrClosed)
	}
	o := &Object{storage: s, open: func(offset int64) (*openBody, Info, error) {
		return s.open(ctx, key, Range{Offset: offset})
	}}
	if err := begin(o); err != nil {
		return nil, errors.Join(err, o.Close())
	}
	return o, nil
}

// Underlying returns the driver's own reader while it is open, otherwise nil. Callers can use it
// for fast paths, such as the File method of a local reader for sendfile.
func (o *Object) Underlying() io.Reader {
	if o.body == nil {
		return nil
	}
	return o.body.ReadCloser
}

// Read reads from the current offset on. If the connection is lost, Read opens the object again, up
// to maxResumes times: before the first byte, or if the entity tag guarantees that the rest is of
// the same generation.
func (o *Object) Read(p []byte) (int, error) {
	if o.open == nil {
		return 0, fs.ErrClosed
	}
	for {
		if o.seeker == nil && o.offset >= o.Info.Size {
			return 0, io.EOF
		}
		if err := o.advance(); err != nil {
			return 0, err
		}
		n, err := o.body.Read(p)
		o.offset += int64(n)
		o.at = o.offset
		o.given = o.given || n > 0
		if errors.Is(err, io.EOF) && o.offset < o.Info.Size {
			err = o.storage.wrap("open", o.Info.Key, errors.Join(ErrUnavailable, io.ErrUnexpectedEOF))
		}
		if !o.resumable(err) {
			return n, err
		}
		o.resumed++
		_ = o.closeBody() // it is broken
		o.seeker = nil
		if n > 0 {
			return n, nil
		}
	}
}

// maxSkip is how many bytes are read and dropped to reach an offset. Opening the object at the
// offset takes as long.
const maxSkip = 64 << 10

// advance moves body to the current offset.
func (o *Object) advance() error {
	if o.seeker != nil || o.body != nil && o.at == o.offset {
		return nil
	}
	if gap := o.offset - o.at; o.body != nil && gap > 0 && gap <= maxSkip {
		if _, err := io.CopyN(io.Discard, o.body, gap); err == nil {
			o.at = o.offset
			return nil
		}
	}
	_ = o.closeBody() // not all of it was read
	return o.begin()
}

// begin opens the object at the current offset. If neither an entity tag nor a time identifies a
// generation, it does not combine the bytes of two readers and returns ErrChanged.
func (o *Object) begin() error {
	body, info, err := o.open(o.offset)
	if err != nil {
		return err
	}
	identified := o.Info.ETag != "" || !o.Info.ModTime.IsZero()
	if !info.Same(o.Info) || o.given && !identified {
		return o.storage.wrap("open", o.Info.Key, errors.Join(ErrChanged, body.Close()))
	}
	o.body, o.at = body, o.offset
	return nil
}

// maxResumes bounds how often one object is opened again.
const maxResumes = 3

func (o *Object) resumable(err error) bool {
	return errors.Is(err, ErrUnavailable) && o.resumed < maxResumes &&
		(!o.given && !network.Silent(err) || o.seeker == nil && o.Info.ETag != "")
}

// ErrChanged means that an object was replaced while it was opened or read, or has another size
// than a writer expects. The caller may open it again. If the driver's next attempt may succeed,
// its error also matches [ErrUnavailable].
var ErrChanged = errors.New("the object was replaced or has changed")

// Seek sets the offset of the next Read.
func (o *Object) Seek(offset int64, whence int) (int64, error) {
	if o.seeker != nil {
		at, err := o.seeker.Seek(offset, whence)
		if err == nil {
			o.offset = at
		}
		return at, err
	}
	at, err := source.Seek(offset, whence, o.offset, o.Info.Size)
	o.offset = at
	return at, err
}

// Close closes the object. Further calls do nothing.
func (o *Object) Close() error {
	if o.open == nil {
		return nil
	}
	o.open = nil
	return errors.Join(o.closeBody(), o.storage.references.Release())
}

func (o *Object) closeBody() error {
	if o.body == nil {
		return nil
	}
	body := o.body
	o.body = nil
	return body.Close()
}
