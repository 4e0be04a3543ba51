package render

import (
	"encoding/binary"
	"image"
)

// fewColors is the largest number of colours for which lossless encoding is tried as well. For
// drawings and screenshots it is often both smaller and exact.
const fewColors = 256

// hasFewColors reports whether an image has at most fewColors colours. Invisible ones count as
// one.
func hasFewColors(img *image.NRGBA) bool {
	var seen colorSet
	size := img.Bounds()
	last := uint32(1) // no visible colour: its alpha is 0
	for y := range size.Dy() {
		row := img.Pix[y*img.Stride:][:4*size.Dx()]
		for ; len(row) > 0; row = row[4:] {
			c := binary.BigEndian.Uint32(row)
			if c == last {
				continue
			}
			last = c
			if c&0xFF == 0 {
				c = 0
			}
			if !seen.add(c) {
				return false
			}
		}
	}
	return true
}

// colorSet is a hash table of up to fewColors colours.
type colorSet struct {
	slots [4 * fewColors]uint32 // any value is a colour, so used marks the occupied slots
	used  [4 * fewColors]bool
	count int
}

// add adds a colour. It reports whether there are still few.
func (s *colorSet) add(c uint32) bool {
	i := (c * 0x9E3779B1) >> 22 // the golden ratio spreads over the 1,024 slots
	for s.used[i] {
		if s.slots[i] == c {
			return true
		}
		i = (i + 1) % uint32(len(s.slots))
	}
	s.slots[i], s.used[i] = c, true
	s.count++
	return s.count <= fewColors
}
