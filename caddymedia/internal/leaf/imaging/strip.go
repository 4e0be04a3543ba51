package imaging

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
)

// StripMode says which metadata [Info.Stripped] removes.
type StripMode string

const (
	// StripOff removes nothing. The default.
	StripOff StripMode = "off"
	// StripOn removes everything that is not needed to show the image.
	StripOn StripMode = "on"
	// StripLocation removes where and with which device the image was made, and other images and
	// films in the file: GPS, place names, maker notes, serial numbers, thumbnails and data behind
	// the image. Date, author, copyright and descriptions remain. Private fields do not, because
	// they may hold anything. Nor do credentials (C2PA), unless nothing else is removed.
	StripLocation StripMode = "location"
)

// layout lists parts of a file: those that remain without its metadata, or those that a decoder
// reads.
type layout struct {
	spans   []span
	patches []patch
	kept    int64 // bytes in spans
	closed  int   // number of the spans that may not grow
}

// span is a part of a file that remains: the offsets from the first byte up to, but excluding, to.
type span struct{ from, to int64 }

// patch is data inserted before the span with that number: bytes, then zeros.
type patch struct {
	span  int
	data  []byte
	zeros int64
}

// keep adds a part of the file after all kept so far. Adjacent parts become one span, so that the
// list stays short.
func (l *layout) keep(from, to int64) {
	l.kept += to - from
	if n := len(l.spans); n > l.closed && l.spans[n-1].to == from {
		l.spans[n-1].to = to
		return
	}
	l.spans = append(l.spans, span{from, to})
}

// mark returns a position for a patch, after all parts kept so far.
func (l *layout) mark() int {
	l.closed = len(l.spans)
	return l.closed
}

// insert puts data at a position that mark returned, after earlier patches there. It must replace a
// part that is not kept, or HasMetadata would miss the change.
func (l *layout) insert(mark int, data []byte) {
	l.patches = append(l.patches, patch{span: mark, data: data})
}

// hold keeps a part like keep. It returns a number for replace.
func (l *layout) hold(from, to int64) (held int) {
	held = l.mark()
	l.keep(from, to)
	l.mark()
	return held
}

// replace puts data, which may be empty, in the place of a part that hold kept.
func (l *layout) replace(held int, data []byte) {
	part := &l.spans[held]
	l.kept -= part.to - part.from
	part.to = part.from
	l.insert(held, data)
}

// release removes parts that hold kept, unless all of the file remains. These are credentials,
// which are no longer valid.
func (i *Info) release(credentials []int) {
	if !i.HasMetadata() {
		return
	}
	for _, held := range credentials {
		i.replace(held, nil)
	}
}

// add adds the parts of another layout behind all parts so far. It returns the number of the first
// of its spans.
func (l *layout) add(other layout) (first int) {
	first = l.mark()
	for _, p := range other.patches {
		p.span += first
		l.patches = append(l.patches, p)
	}
	l.spans = append(l.spans, other.spans...)
	l.kept += other.kept
	return first
}

// position returns the offset of a span in the result.
func (l *layout) position(span int) (at int64) {
	for _, p := range l.patches {
		if p.span <= span {
			at += int64(len(p.data)) + p.zeros
		}
	}
	return at + total(l.spans[:span])
}

// blank puts n zeros at a position that mark returned, like insert.
func (l *layout) blank(mark int, n int64) {
	l.patches = append(l.patches, patch{span: mark, zeros: n})
}

// reader returns the parts of the file that s is at the start of.
func (l layout) reader(s *source) io.Reader {
	if len(l.patches) == 0 && len(l.spans) < 2 {
		return s
	}
	return &stripReader{in: s.in, layout: l}
}

// sort puts patches in the order of their positions.
func (l *layout) sort() {
	slices.SortStableFunc(l.patches, func(a, b patch) int { return cmp.Compare(a.span, b.span) })
}

// stripBuffer is the least number of bytes read from the file at once. Gaps up to this size are
// read, not skipped by seeking.
const stripBuffer = 16 << 10

// stripReader reads the parts of a layout.
type stripReader struct {
	in  io.ReadSeeker
	buf *bufio.Reader // nil before the first read
	at  int64         // the offset of buf in the file
	layout

	next  int    // number of the next span
	left  int64  // of the previous span
	own   []byte // rest of the current patch
	zeros int64  // behind it
	err   error
}

// Read reads the parts in order.
func (r *stripReader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for r.err == nil {
		switch {
		case len(r.own) > 0:
			n := copy(p, r.own)
			r.own = r.own[n:]
			return n, nil
		case r.zeros > 0:
			n := min(int64(len(p)), r.zeros)
			clear(p[:n])
			r.zeros -= n
			return int(n), nil
		case r.left > 0:
			n, err := r.buf.Read(p[:min(int64(len(p)), r.left)])
			r.at += int64(n)
			r.left -= int64(n)
			r.fail(err)
			if n > 0 {
				return n, nil
			}
		case len(r.patches) > 0 && r.patches[0].span == r.next:
			r.own, r.zeros = r.patches[0].data, r.patches[0].zeros
			r.patches = r.patches[1:]
		case r.next < len(r.spans):
			part := r.spans[r.next]
			r.next++
			r.left = part.to - part.from
			r.fail(r.goTo(part.from))
		default:
			r.err = io.EOF
		}
	}
	return 0, r.err
}

// goTo moves to an offset. It reads over short gaps, since a seek for each would be a system call.
func (r *stripReader) goTo(offset int64) error {
	if gap := offset - r.at; r.buf != nil && 0 <= gap && gap <= stripBuffer {
		n, err := r.buf.Discard(int(gap))
		r.at += int64(n)
		return err
	}
	if _, err := r.in.Seek(offset, io.SeekStart); err != nil {
		return err
	}
	if r.buf == nil {
		r.buf = bufio.NewReaderSize(r.in, stripBuffer)
	} else {
		r.buf.Reset(r.in)
	}
	r.at = offset
	return nil
}

// fail ends the reading. An end of the file is unexpected here, since the image was complete.
func (r *stripReader) fail(err error) {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("reading the upload: %w", err)
	}
}
