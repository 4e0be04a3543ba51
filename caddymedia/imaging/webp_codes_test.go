package imaging_test

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/caddymedia/media/caddymedia/imaging"
)

// bits writes the fields of a lossless bit stream (RFC 9649, section 3.3), lowest bit first.
type bits struct {
	data []byte
	used int // bits of the last byte
}

func (b *bits) put(value, n int) {
	for i := range n {
		if b.used%8 == 0 {
			b.data = append(b.data, 0)
			b.used = 0
		}
		b.data[len(b.data)-1] |= byte(value >> i & 1 << b.used)
		b.used++
	}
}

// code writes a prefix code, highest bit first.
func (b *bits) code(value, n int) {
	for i := n - 1; i >= 0; i-- {
		b.put(value>>i, 1)
	}
}

// full writes a prefix code of all symbols of an alphabet, with lengths that differ by at most one
// (RFC 9649, section 3.7.2.1.2). The shorter ones are first.
func (b *bits) full(symbols int) {
	length := 0
	for 2<<length <= symbols {
		length++
	}
	long := 2 * (symbols - 1<<length) // of length+1
	lengths := map[int]int{16: 1, length: 1}
	codes := map[int][2]int{length: {0, 1}, 16: {1, 1}} // of lengths, 16 repeats the last
	if long > 0 {
		lengths = map[int]int{16: 1, length: 2, length + 1: 2}
		codes = map[int][2]int{16: {0, 1}, length: {2, 2}, length + 1: {3, 2}}
	}
	b.put(0, 1)
	b.put(12, 4) // 16 lengths follow
	for _, symbol := range []int{17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12} {
		b.put(lengths[symbol], 3)
	}
	b.put(0, 1)
	run := func(value, count int) {
		b.code(codes[value][0], codes[value][1])
		for left := count - 1; left > 0; {
			n := min(left, 6)
			if left == 7 || left == 8 {
				n = left - 3
			}
			b.code(codes[16][0], codes[16][1])
			b.put(n-3, 2)
			left -= n
		}
	}
	run(length, symbols-long)
	if long > 0 {
		run(length+1, long)
	}
}

// single writes a prefix code of one symbol, 0.
func (b *bits) single() {
	b.put(1, 1)
	b.put(0, 3)
}

// manyCodes returns a lossless image of 208 x 208 pixels with n groups of the largest prefix
// codes, and no pixels.
func manyCodes(n int) []byte {
	const side, tiles = 208, 52
	var b bits
	b.put(0x2F, 8)
	b.put(side-1, 14)
	b.put(side-1, 14)
	b.put(0, 4+1)     // no alpha, version 0, no transform
	b.put(1|11<<1, 5) // colour cache of 2,048 entries
	b.put(1, 1+3)     // an entropy image for tiles of 4 x 4 pixels
	b.put(0, 1)       // without a colour cache
	b.full(280)
	b.full(256)
	for range 3 {
		b.single()
	}
	for i := range tiles * tiles {
		group := min(i, n-1)
		if green := group & 255; green < 232 {
			b.code(green, 8)
		} else {
			b.code(2*232+green-232, 9)
		}
		b.code(group>>8, 8)
	}
	for range n {
		b.full(280 + 2048)
		for range 3 {
			b.full(256)
		}
		b.full(40)
	}
	return riffFile(webpChunk("VP8L", b.data))
}

// TestWebPPrefixCodes: a decoder holds all prefix codes of an image at once. The test is not
// parallel, because it reads counters of the process.
func TestWebPPrefixCodes(t *testing.T) {
	for _, n := range []int{1, 2600, 2601} {
		file := manyCodes(n)
		info, err := check(file, "webp", imaging.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		_, err = imaging.Decode(bytes.NewReader(file), info)
		runtime.ReadMemStats(&after)
		if verdictOf(err) != refused {
			t.Errorf("%d groups: got %v (%s)", n, err, verdictOf(err))
		}
		// The lengths of each code take the same memory again, but only for a moment.
		allocated := after.TotalAlloc - before.TotalAlloc
		if allocated > 300<<20 || n > 2600 && allocated > 1<<20 {
			t.Errorf("%d groups: allocated %d bytes", n, allocated)
		}
		t.Logf("%d groups, %d bytes: %v, %d MiB", n, len(file), err, allocated>>20)
	}
}
