package imaging

import (
	"compress/lzw"
	"errors"
	"image"
	"image/color"
	"image/gif"
	"io"
	"math"
)

// DecodeGIF is [Decode] for a GIF: it returns all frames separately, not composed. A frame may
// extend beyond the image, whose size is that of info.
//
// The decoder of the standard library refuses what browsers show: such frames, unknown extensions,
// data behind the pixels of a frame, and a missing trailer.
func DecodeGIF(r io.ReadSeeker, info Info) (*gif.GIF, error) {
	return decodeWith(r, info, func(s *source) (*gif.GIF, error) {
		g := &gif.GIF{LoopCount: -1, Config: image.Config{Width: info.Width, Height: info.Height}}
		limits := Options{MaxFrames: math.MaxInt, MaxFramePixels: math.MaxInt64, MaxChunk: math.MaxInt64}
		b := gifBlocks{info: &Info{}, frames: frameSum{opts: limits}, decoder: &gifDecoder{images: g}}
		return g, b.walk(s)
	})
}

// gifDecoder decodes the frames of a GIF.
type gifDecoder struct {
	images  *gif.GIF
	global  color.Palette
	control [4]byte // of the next frame: flags, delay, transparent colour
	lzw     lzw.Reader
}

var errNoColors = errors.New("a frame without a colour table")

// setControl reads the control of the next frame.
func (d *gifDecoder) setControl(s *source) error {
	b, err := s.Peek(5)
	if err != nil {
		return err
	}
	if b[0] != 4 {
		return errGIF
	}
	d.control = [4]byte(b[1:])
	return nil
}

// frame decodes a frame from its LZW code size on.
func (d *gifDecoder) frame(s *source, area image.Rectangle, flags byte, colors color.Palette) error {
	size, err := s.ReadByte()
	if err != nil {
		return err
	}
	if colors == nil {
		colors = d.global
	}
	if colors == nil {
		return errNoColors
	}
	m := image.NewPaletted(area, colors)
	data := gifData{s: s}
	if len(m.Pix) > 0 {
		d.lzw.Reset(&data, lzw.LSB, int(size))
		if err := readRows(&d.lzw, m, flags&0x40 != 0); err != nil {
			return err
		}
	}
	if err := data.skip(); err != nil {
		return err
	}
	d.setColors(m)
	d.images.Image = append(d.images.Image, m)
	d.images.Delay = append(d.images.Delay, le16(d.control[1:]))
	d.images.Disposal = append(d.images.Disposal, d.control[0]>>2&7)
	d.control = [4]byte{} // it counts for one frame
	return nil
}

// setColors makes the transparent colour so. As in browsers, colours beyond the table are black.
func (d *gifDecoder) setColors(m *image.Paletted) {
	transparent := d.control[0]&1 != 0
	highest := len(m.Palette) - 1
	if highest < 255 {
		for _, index := range m.Pix {
			highest = max(highest, int(index))
		}
	}
	if !transparent && highest < len(m.Palette) {
		return
	}
	colors := append(make(color.Palette, 0, highest+1), m.Palette...)
	for len(colors) <= highest {
		colors = append(colors, color.RGBA{A: 255})
	}
	if i := int(d.control[3]); transparent && i < len(colors) {
		colors[i] = color.RGBA{}
	}
	m.Palette = colors
}

// readRows reads the rows of a frame. Those of an interlaced one come in four passes (GIF89a,
// appendix E).
func readRows(r io.Reader, m *image.Paletted, interlaced bool) error {
	passes := [][2]int{{0, 1}}
	if interlaced {
		passes = [][2]int{{0, 8}, {4, 8}, {2, 4}, {1, 2}}
	}
	for _, pass := range passes {
		for y := pass[0]; y < m.Rect.Dy(); y += pass[1] {
			if _, err := io.ReadFull(r, m.Pix[y*m.Stride:][:m.Stride]); err != nil {
				return err
			}
		}
	}
	return nil
}

// palette returns the colours of a table of three bytes each; nil if there is none.
func palette(table []byte) color.Palette {
	var p color.Palette
	for ; len(table) > 0; table = table[3:] {
		p = append(p, color.RGBA{table[0], table[1], table[2], 255})
	}
	return p
}

// gifData reads the data of the sub-blocks of a frame.
type gifData struct {
	s     *source
	left  int // bytes of the current sub-block
	ended bool
}

// ReadByte returns the next byte, or io.EOF behind the last sub-block.
func (d *gifData) ReadByte() (byte, error) {
	for d.left == 0 {
		if d.ended {
			return 0, io.EOF
		}
		size, err := d.s.ReadByte()
		if err != nil {
			return 0, err
		}
		d.left, d.ended = int(size), size == 0
	}
	d.left--
	return d.s.ReadByte()
}

// Read is never called, because a decoder of LZW prefers ReadByte.
func (d *gifData) Read([]byte) (int, error) { return 0, errors.ErrUnsupported }

// skip skips the data behind the pixels.
func (d *gifData) skip() error {
	if d.ended {
		return nil
	}
	if _, err := d.s.Discard(d.left); err != nil {
		return err
	}
	return skipSubBlocks(d.s, math.MaxInt64)
}
