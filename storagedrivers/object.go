package storagedrivers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// Object is an object that is read, from any place in it: what http.ServeContent wants.
// Nothing is transferred before the first Read. It is for one goroutine.
type Object struct {
	// Info of the object when it was opened; a reader never gets another generation.
	Info Info

	storage *Storage
	open    func(offset int64) (*openBody, Info, error) // nil once closed
	body    *openBody                                   // nil before the first Read and after a Seek
	offset  int64                                       // of the next Read
	seeker  io.Seeker                                   // body, where the driver's readers seek
	resumed int
}

// OpenSeeker opens an object for reading from any place in it. The caller must Close it.
func (s *Storage) OpenSeeker(ctx context.Context, key string) (*Object, error) {
	if !s.users.Acquire() {
		return nil, s.wrap("open", key, ErrClosed)
	}
	o := &Object{storage: s, open: func(offset int64) (*openBody, Info, error) {
		return s.open(ctx, key, Range{Offset: offset})
	}}
	var err error
	if s.Features().Seek {
		if o.body, o.Info, err = o.open(0); err == nil {
			o.seeker, _ = o.Underlying().(io.Seeker)
		}
	} else {
		o.Info, err = s.Stat(ctx, key)
	}
	if err != nil {
		return nil, errors.Join(err, o.Close())
	}
	return o, nil
}

// Underlying is the driver's own reader while one is open, an *os.File for instance, for
// who can make more of it than Read does; otherwise nil.
func (o *Object) Underlying() io.Reader {
	if o.body == nil {
		return nil
	}
	return o.body.ReadCloser
}

// Read gives bytes from the current offset on. A connection that is lost on the way is
// replaced a few times, where the entity tag tells that the rest is of the same generation.
func (o *Object) Read(p []byte) (int, error) {
	if o.open == nil {
		return 0, fs.ErrClosed
	}
	for {
		if o.body == nil {
			if o.offset >= o.Info.Size {
				return 0, io.EOF
			}
			if err := o.begin(); err != nil {
				return 0, err
			}
		}
		n, err := o.body.Read(p)
		o.offset += int64(n)
		if errors.Is(err, io.EOF) && o.offset < o.Info.Size {
			err = o.storage.wrap("open", o.Info.Key, errors.Join(ErrUnavailable, io.ErrUnexpectedEOF))
		}
		if !o.resumable(err) {
			return n, err
		}
		o.resumed++
		_ = o.closeBody() // it is broken
		if n > 0 {
			return n, nil
		}
	}
}

// begin opens the object from the current offset on.
func (o *Object) begin() error {
	body, info, err := o.open(o.offset)
	if err != nil {
		return err
	}
	if !info.Same(o.Info) {
		return o.storage.wrap("open", o.Info.Key, errors.Join(ErrChanged, body.Close()))
	}
	o.body = body
	return nil
}

// maxResumes bounds how often one object is opened again.
const maxResumes = 3

func (o *Object) resumable(err error) bool {
	return errors.Is(err, ErrUnavailable) && o.seeker == nil && o.Info.ETag != "" && o.resumed < maxResumes
}

// ErrChanged is an object that was replaced while an [Object] was read. It may be opened anew.
var ErrChanged = errors.New("the object was replaced while it was read")

// Seek sets the offset of the next Read.
func (o *Object) Seek(offset int64, whence int) (int64, error) {
	if o.seeker != nil {
		at, err := o.seeker.Seek(offset, whence)
		if err == nil {
			o.offset = at
		}
		return at, err
	}
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		offset += o.offset
	case io.SeekEnd:
		offset += o.Info.Size
	default:
		return 0, fmt.Errorf("seeking: whence %d", whence)
	}
	if offset < 0 {
		return 0, fmt.Errorf("seeking to %d: negative offset", offset)
	}
	if offset == o.offset {
		return offset, nil
	}
	o.offset = offset
	return offset, o.closeBody()
}

// Close ends the reading. Closing again does nothing.
func (o *Object) Close() error {
	if o.open == nil {
		return nil
	}
	o.open = nil
	return errors.Join(o.closeBody(), o.storage.users.Release())
}

func (o *Object) closeBody() error {
	if o.body == nil {
		return nil
	}
	body := o.body
	o.body = nil
	return body.Close()
}
