package scale

import "math"

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

// filter returns the weights of a copy. Samples beyond an end of the plane count as the last one, so
// that edges are not darkened. Weights are padded with zeros to a multiple of group.
func (a axis) filter() filter {
	if a.identical() {
		return a.copying()
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

// copying returns the weights of a copy of samples.
func (a axis) copying() filter {
	f := newFilter(a.count, 1)
	for i := range f.first {
		f.first[i] = a.at(i)
		f.of(i)[0] = unit
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
