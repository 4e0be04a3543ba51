package imaging

import (
	"bufio"
	"bytes"
	"io"
	"sync"
)

// IsIntact reports whether [Decode] is sure to succeed with an image that passed [CheckImage], at a
// fraction of its cost: it reads the codes of the pixels, and computes no pixels. It knows that of
// ordinary JPEGs only, which have their coefficients in one scan. False says nothing.
func IsIntact(r io.ReadSeeker, info Info) bool {
	if info.Format != JPEG || info.Progressive || info.scans != 1 {
		return false
	}
	s, err := newSource(r)
	if err != nil {
		return false
	}
	defer s.release()
	buffer := jpegReaders.Get().(*bufio.Reader) // the pool holds nothing else
	buffer.Reset(info.view.reader(s))
	defer func() {
		buffer.Reset(nil)
		jpegReaders.Put(buffer)
	}()
	return (&jpegCheck{bits: jpegBits{r: buffer}}).image()
}

// jpegReaders have room for a segment.
var jpegReaders = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 1<<16) }}

// jpegCheck reads an image as the decoder does (ITU-T T.81), and refuses all that is not usual. The
// decoder may accept what it refuses, but it accepts nothing that the decoder refuses.
type jpegCheck struct {
	bits   jpegBits
	tables [2][2]*jpegCodes // of DC and AC
	units  []jpegUnits      // of the components
	width  int
	height int
	every  int // MCUs between two restart markers; 0 for none
}

// jpegUnits are the blocks of a component in an MCU.
type jpegUnits struct {
	name, across, down int
}

// image reads all segments.
func (c *jpegCheck) image() bool {
	if c.bits.marker() != jpegSOI {
		return false
	}
	for {
		marker := c.bits.marker()
		if marker < jpegSOF0 || marker == jpegEOI {
			return false // there was no scan
		}
		segment, ok := c.bits.segment()
		if !ok {
			return false
		}
		switch marker {
		case jpegSOS:
			return c.scan(segment)
		case jpegDHT:
			ok = c.codes(segment)
		case jpegDQT:
			ok = c.quantization(segment)
		case jpegDRI:
			if ok = len(segment) == 2; ok {
				c.every = be16(segment)
			}
		case jpegSOF0, jpegSOF0 + 1:
			ok = c.frame(marker, segment)
		default:
			ok = jpegAPP0 <= marker && marker <= jpegAPP15 || marker == jpegCOM
		}
		if !ok {
			return false
		}
	}
}

// frame reads the frame header, which the decoder checks.
func (c *jpegCheck) frame(marker byte, b []byte) bool {
	cfg, err := jpegConfig(marker, b)
	if err != nil || c.units != nil || b[5] == 4 { // it needs a marker of Adobe
		return false
	}
	c.width, c.height = cfg.Width, cfg.Height
	for ; len(b) >= 6+3; b = b[3:] {
		c.units = append(c.units, jpegUnits{int(b[6]), int(b[7] >> 4), int(b[7] & 15)})
	}
	if len(c.units) == 1 {
		c.units[0].across, c.units[0].down = 1, 1
	}
	return c.width > 0 && c.height > 0
}

// quantization reads tables of 64 numbers of one or two bytes.
func (c *jpegCheck) quantization(b []byte) bool {
	for len(b) > 0 {
		size := 1 + 64*(1+int(b[0]>>4))
		if b[0]>>4 > 1 || b[0]&15 > 3 || len(b) < size {
			return false
		}
		b = b[size:]
	}
	return true
}

// codes reads Huffman tables: the number of codes of each length from 1 to 16, and their values.
func (c *jpegCheck) codes(b []byte) bool {
	for len(b) > 0 {
		if len(b) < 17 || b[0]>>4 > 1 || b[0]&15 > 1 {
			return false
		}
		table := &c.tables[b[0]>>4][b[0]&15]
		n := 0
		for _, count := range b[1:17] {
			n += int(count)
		}
		if n == 0 || n > 256 || len(b) < 17+n {
			return false
		}
		*table = newJPEGCodes(b[1:17], b[17:17+n])
		if *table == nil {
			return false
		}
		b = b[17+n:]
	}
	return true
}

// scan reads the scan of all components.
func (c *jpegCheck) scan(b []byte) bool {
	n := len(c.units)
	if n == 0 || len(b) != 4+2*n || int(b[0]) != n || !bytes.Equal(b[1+2*n:], []byte{0, 63, 0}) {
		return false
	}
	var dc, ac [3]*jpegCodes
	most, blocks := [2]int{}, 0
	for i, u := range c.units {
		tables := b[2+2*i]
		if int(b[1+2*i]) != u.name || tables>>4 > 1 || tables&15 > 1 {
			return false
		}
		dc[i], ac[i] = c.tables[0][tables>>4], c.tables[1][tables&15]
		if dc[i] == nil || ac[i] == nil {
			return false
		}
		most = [2]int{max(most[0], u.across), max(most[1], u.down)}
		blocks += u.across * u.down
	}
	if n > 1 && blocks > 10 { // ITU-T T.81, B.2.3
		return false
	}
	mcus := ((c.width + 8*most[0] - 1) / (8 * most[0])) * ((c.height + 8*most[1] - 1) / (8 * most[1]))
	for mcu := range mcus {
		if c.every > 0 && mcu > 0 && mcu%c.every == 0 && !c.bits.ended(jpegRST0+byte(mcu/c.every-1)%8) {
			return false
		}
		for i, u := range c.units {
			for range u.across * u.down {
				if !c.bits.block(dc[i], ac[i]) {
					return false
				}
			}
		}
	}
	return c.bits.ended(jpegEOI)
}

// jpegCodes are the codes of a Huffman table (ITU-T T.81, annex C).
type jpegCodes struct {
	short [1 << shortCode]uint16 // the value and the length of the code that begins with the bits; 0 for none
	last  [17]int32              // the greatest code of each length; -1 for none
	first [17]int32              // the index of the value of the least code, less that code
	value [256]byte
}

// shortCode is the length of the codes that are looked up at once.
const shortCode = 9

// newJPEGCodes returns the codes of values, of which counts have each length; nil if there are more
// than the length allows.
func newJPEGCodes(counts, values []byte) *jpegCodes {
	codes := new(jpegCodes)
	copy(codes.value[:], values)
	code, index := int32(0), int32(0)
	for i, count := range counts {
		length := i + 1
		code <<= 1
		codes.first[length] = index - code
		for range count {
			if code >= 1<<length {
				return nil
			}
			if spare := shortCode - length; spare >= 0 {
				for end := range 1 << spare {
					codes.short[int(code)<<spare|end] = uint16(values[index])<<8 | uint16(length)
				}
			}
			code, index = code+1, index+1
		}
		codes.last[length] = -1
		if count > 0 {
			codes.last[length] = code - 1
		}
	}
	return codes
}

// jpegBits reads segments, and the bits of a scan.
type jpegBits struct {
	r     *bufio.Reader
	next  uint64 // bits, the next one highest
	n     int    // of them
	stops bool   // a marker follows them, or the end
	stop  byte   // that marker, which is read; 0 for none
}

// marker reads a marker; 0 means that there is none.
func (b *jpegBits) marker() byte {
	if c, err := b.r.ReadByte(); err != nil || c != 0xFF {
		return 0
	}
	c, _ := b.r.ReadByte()
	return c
}

// segment reads the content of a segment, which is valid until the next call.
func (b *jpegBits) segment() ([]byte, bool) {
	length, err := b.r.Peek(2)
	if err != nil || be16(length) < 2 {
		return nil, false
	}
	size := be16(length)
	content, err := b.r.Peek(size)
	if err != nil {
		return nil, false
	}
	_, err = b.r.Discard(size)
	return content[2:], err == nil
}

// fill reads bits until there are more than 56, or a marker follows.
func (b *jpegBits) fill() {
	for b.n <= 56 && !b.stops {
		c, err := b.r.ReadByte()
		if err == nil && c == 0xFF {
			b.stop, err = b.r.ReadByte()
		}
		if err != nil || b.stop != 0 {
			b.stops = true
			return
		}
		b.next |= uint64(c) << (56 - b.n)
		b.n += 8
	}
}

// take drops bits, and reports whether there were as many.
func (b *jpegBits) take(n int) bool {
	b.next <<= n
	b.n -= n
	return b.n >= 0
}

// code reads a value. Then there are at least 16 more bits, or a marker follows.
func (b *jpegBits) code(codes *jpegCodes) (value byte, ok bool) {
	if b.n < 32 {
		b.fill()
	}
	if found := codes.short[b.next>>(64-shortCode)]; found != 0 {
		return byte(found >> 8), b.take(int(found & 0xFF))
	}
	for length := shortCode + 1; length <= 16; length++ {
		if code := int32(b.next >> (64 - length)); code <= codes.last[length] {
			return codes.value[codes.first[length]+code], b.take(length)
		}
	}
	return 0, false
}

// block reads the 64 coefficients of a block.
func (b *jpegBits) block(dc, ac *jpegCodes) bool {
	size, ok := b.code(dc)
	if !ok || size > 15 || !b.take(int(size)) {
		return false
	}
	for at := 1; at < 64; at++ {
		value, ok := b.code(ac)
		if !ok {
			return false
		}
		if value == 0 {
			return true // the others are zero
		}
		zeros, size := int(value>>4), int(value&15)
		if at += zeros; at > 63 || size == 0 && zeros != 15 || !b.take(size) {
			return false
		}
	}
	return true
}

// ended reports whether the bits end at a marker, but for those that fill the last byte. Others may
// follow.
func (b *jpegBits) ended(marker byte) bool {
	b.fill()
	ended := b.stop == marker && b.n < 8
	*b = jpegBits{r: b.r}
	return ended
}
