package imaging

import "encoding/binary"

// fields reads integers one after the other. After a read beyond the end, short is true and all
// further values are 0.
type fields struct {
	b     []byte
	read  int
	short bool
}

func (f *fields) bytes(n int) []byte {
	if f.short = f.short || n > len(f.b)-f.read; f.short {
		return nil
	}
	f.read += n
	return f.b[f.read-n : f.read]
}

// uint returns the next integer of n bytes, at most 8.
func (f *fields) uint(n int) uint64 {
	var padded [8]byte
	if n > len(padded) {
		f.short = true
		return 0
	}
	copy(padded[len(padded)-n:], f.bytes(n))
	return binary.BigEndian.Uint64(padded[:])
}

// version returns the version of a box, and reads over its flags.
func (f *fields) version() int { return int(f.uint(4) >> 24) }

// id returns the number of an item, or of items.
func (f *fields) id(wide bool) uint64 {
	if wide {
		return f.uint(4)
	}
	return f.uint(2)
}

func (f *fields) err() error {
	if f.short {
		return errBMFF
	}
	return nil
}
