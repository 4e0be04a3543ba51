package scale

import "math"

// The filter works on two rows of the copy at once. Each lane of 32 bits of a uint64 holds a sum
// for one of them, and one multiplication serves both. Products of negative weights borrow from the
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

// resample filters a plane, down its columns first. It calls done for each pair of rows of the
// copy, with the sums of all channels. The second row of the last pair may be void.
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

// filterDown sets mid to the weighted sums of lines, of which there is a multiple of group.
func filterDown[T sample](mid []uint64, lines [][]T, weights []uint64) {
	// Samples of 16 bits lose one bit.
	shift := uint(unitBits - midBits)
	if wide := ^T(0); wide > 255 {
		shift = unitBits + 1
	}
	bias := uint64(midBias<<shift+1<<(shift-1)) * pairs
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

// Weights are fixed-point numbers. Those of one window add up to unit.
const (
	unitBits = 14
	unit     = 1 << unitBits
)

// group is the number of samples that are added at once. More would not fit into the registers of a
// processor.
const group = 4

// lobes is the radius of the filter, in pixels of the copy.
const lobes = 3

// axis is how one side of a copy lies on the samples of a plane. The copy's sample i covers
// start+i*step to start+(i+1)*step. The step is negative for a flipped side.
type axis struct {
	start, step float64
	count       int // samples of the copy
	samples     int // samples of the plane
}

// halved returns the axis on a plane that was halved n times.
func (a axis) halved(n int, samples int) axis {
	a.start = math.Ldexp(a.start, -n)
	a.step = math.Ldexp(a.step, -n)
	a.samples = samples
	return a
}

// identical reports whether the copy consists of samples of the plane.
func (a axis) identical() bool { return math.Abs(a.step) == 1 && a.start == math.Trunc(a.start) }

// filter is the weights of all samples of a copy.
type filter struct {
	taps    int      // samples of the plane that make one sample of the copy
	first   []int    // the first of them
	weights []uint64 // negative ones wrap
	stride  int      // weights from one sample of the copy to the next
}

// of returns the weights of a sample of the copy.
func (f filter) of(i int) []uint64 { return f.weights[i*f.stride:][:f.taps] }

// filter returns the weights of a copy. Samples beyond an end of the plane count as the last one,
// so that edges are not darkened. Weights are padded with zeros to a multiple of group.
func (a axis) filter() filter {
	if a.identical() {
		f := newFilter(a.count, 1)
		for i := range f.first {
			f.first[i] = a.at(i)
			f.of(i)[0] = unit
		}
		return f
	}
	wide := max(math.Abs(a.step), 1)
	radius := lobes * wide
	row := make([]float64, int(math.Ceil(2*radius)))
	f := newFilter(a.count, min(len(row), a.samples))
	last := a.samples - 1
	for i := range f.first {
		center := a.start + (float64(i)+0.5)*a.step
		first := int(math.Floor(center - radius + 0.5))
		sum := 0.0
		for k := range row {
			row[k] = lanczos((float64(first+k) + 0.5 - center) / wide)
			sum += row[k]
		}
		from := min(max(first, 0), a.samples-f.taps)
		f.first[i] = from
		weights := f.of(i)
		// Rounding the running total, not each weight, keeps their sum exact.
		total, before := 0.0, int64(0)
		for k, w := range row {
			total += w
			now := int64(math.Round(total / sum * unit))
			weights[min(max(first+k, 0), last)-from] += uint64(now - before)
			before = now
		}
	}
	return f
}

// at returns which sample of the plane is in the middle of the copy's sample i.
func (a axis) at(i int) int { return int(a.start + (float64(i)+0.5)*a.step) }

func newFilter(count, taps int) filter {
	stride := (taps + group - 1) / group * group
	return filter{taps: taps, first: make([]int, count), weights: make([]uint64, count*stride), stride: stride}
}

// lanczos returns sinc(x) * sinc(x/3) for |x| < 3. The sine of three times an angle follows from
// that of the angle.
func lanczos(x float64) float64 {
	if x <= -lobes || x >= lobes {
		return 0
	}
	if math.Abs(x) < 1e-6 {
		return 1
	}
	angle := x * (math.Pi / lobes)
	s := math.Sin(angle)
	s *= s
	return s * (3 - 4*s) / (lobes * angle * angle)
}
