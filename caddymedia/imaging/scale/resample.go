package scale

// The filter works on two rows of the copy at once. Each lane of 32 bits of a uint64 holds a sum for
// one of them, and one multiplication serves both. Products of negative weights borrow from the
// upper lane, but adding the bias pays that back before the lanes are taken apart.
const (
	lane  = 32
	pairs = 1 | 1<<lane // times a number: the number in both lanes

	// A sum over a column has midBits fractional bits for samples of 8 bits. The lanes stay
	// positive, as midBias is more than a filter undershoots.
	midBits = 7
	midBias = 1 << (midBits + 7)

	// A sum over a row has midBits+unitBits fractional bits.
	rowBits = midBits + unitBits
	rowBias = 128
)

// sample is one channel of a pixel. Samples of 16 bits are products of a colour and its alpha.
type sample interface{ uint8 | uint16 }

// raster is the rows of a plane.
type raster[T sample] struct {
	channels int

	// open returns a function that returns a row of the columns left to right, one channel after
	// the other. As many rows as depth must stay valid.
	open func(left, right, depth int) func(y int) []T
}

// resample filters a plane, down its columns first. It calls done for each pair of rows of the copy,
// with the sums of all channels. The second row of the last pair may be void.
func resample[T sample](r raster[T], across, down axis, done func(y int, sums []uint64)) {
	columns, rows := across.filter(), down.filter()
	count := across.count
	left, right := columns.span(0, count)
	width := right - left
	for i := range columns.first {
		columns.first[i] -= left
	}
	depth := 0
	for y := 0; y < down.count; y += 2 {
		top, bottom := rows.span(y, min(y+2, down.count))
		depth = max(depth, bottom-top)
	}
	row := r.open(left, right, depth)
	mid := make([]uint64, width*r.channels+group) // the padding of the last weights reads beyond
	sums := make([]uint64, count*r.channels)
	var lines [][]T
	var weights []uint64
	for y := 0; y < down.count; y += 2 {
		end := min(y+2, down.count)
		top, bottom := rows.span(y, end)
		lines, weights = lines[:0], rows.paired(weights[:0], y, end)
		for i := top; i < bottom; i++ {
			lines = append(lines, row(i))
		}
		for len(lines)%group > 0 {
			lines, weights = append(lines, lines[0]), append(weights, 0)
		}
		filterDown(mid[:width*r.channels], lines, weights)
		for c := range r.channels {
			filterAcross(sums[c*count:][:count], mid[c*width:], columns)
		}
		done(y, sums)
	}
}

// span returns the range of samples of the plane that make a range of samples of the copy.
func (f filter) span(begin, end int) (from, to int) {
	from, to = f.first[begin], 0
	for _, first := range f.first[begin:end] {
		from, to = min(from, first), max(to, first+f.taps)
	}
	return from, to
}

// paired appends the weights of one or two rows of the copy, each in a lane.
func (f filter) paired(weights []uint64, begin, end int) []uint64 {
	from, to := f.span(begin, end)
	for range to - from {
		weights = append(weights, 0)
	}
	for i := begin; i < end; i++ {
		for k, weight := range f.of(i) {
			weights[f.first[i]-from+k] += weight << ((i - begin) * lane)
		}
	}
	return weights
}

// downScale returns the rounding and bias of a sum over a column, and how many bits it is shifted by
// then. Samples of 16 bits lose one bit.
func downScale[T sample]() (bias uint64, shift uint) {
	shift = unitBits - midBits
	if wide := ^T(0); wide > 255 {
		shift = unitBits + 1
	}
	return (midBias<<shift + 1<<(shift-1)) * pairs, shift
}

// filterDown sets mid to the weighted sums of lines, of which there is a multiple of group.
func filterDown[T sample](mid []uint64, lines [][]T, weights []uint64) {
	bias, shift := downScale[T]()
	mask := uint64(1<<(lane-shift)-1) * pairs
	clear(mid)
	n := len(mid)
	for len(lines) > group && len(weights) > group {
		a, b, c, d := lines[0][:n], lines[1][:n], lines[2][:n], lines[3][:n]
		wa, wb, wc, wd := weights[0], weights[1], weights[2], weights[3]
		for x, sum := range mid {
			mid[x] = sum + wa*uint64(a[x]) + wb*uint64(b[x]) + wc*uint64(c[x]) + wd*uint64(d[x])
		}
		lines, weights = lines[group:], weights[group:]
	}
	a, b, c, d := lines[0][:n], lines[1][:n], lines[2][:n], lines[3][:n]
	wa, wb, wc, wd := weights[0], weights[1], weights[2], weights[3]
	for x, sum := range mid {
		sum += wa*uint64(a[x]) + wb*uint64(b[x]) + wc*uint64(c[x]) + wd*uint64(d[x])
		mid[x] = (sum + bias) >> shift & mask
	}
}

// filterAcross sets sums to the weighted sums of mid.
func filterAcross(sums, mid []uint64, columns filter) {
	n := columns.stride
	all := columns.weights
	for x, first := range columns.first {
		from, weights := mid[first:][:n], all[:n]
		all = all[n:]
		sum := uint64(rowBias << rowBits * pairs)
		for len(from) >= group && len(weights) >= group {
			sum += weights[0]*from[0] + weights[1]*from[1] + weights[2]*from[2] + weights[3]*from[3]
			from, weights = from[group:], weights[group:]
		}
		sums[x] = sum
	}
}

// zero is a sum, without its fractional bits, that stands for a sample of 0.
const zero = rowBias + midBias>>midBits

// narrow returns a lane as a sample of 8 bits.
func narrow(sum uint32) uint8 {
	v := int32((sum+1<<(rowBits-1))>>rowBits) - zero
	if uint32(v) > 255 {
		v = max(min(v, 255), 0)
	}
	return uint8(v)
}

// wide returns a lane as a sample of 16 bits.
func wide(sum uint32) int32 {
	const bits = rowBits - 8
	return max(int32((sum+1<<(bits-1))>>bits)-zero<<8, 0)
}
