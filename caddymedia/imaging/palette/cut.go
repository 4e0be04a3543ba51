package palette

// box is the pixels within a cuboid of the colour space.
type box struct {
	pixels []rgb
	counts *[3][256]int32 // how many pixels have each value of a channel
	gain   float64        // how much less the squared errors are after the best cut
	axis   int            // the channel of that cut
	limit  uint8          // the first value behind it
}

// chosen returns at most n colours, and changes the order of the pixels.
func chosen(pixels []rgb, n int) []rgb {
	if len(pixels) == 0 || n <= 0 {
		return nil
	}
	boxes := []box{newBox(pixels, counted(pixels))}
	for len(boxes) < n {
		widest := 0
		for i := range boxes {
			if boxes[i].gain > boxes[widest].gain {
				widest = i
			}
		}
		if boxes[widest].gain == 0 {
			break
		}
		low, high := boxes[widest].cut()
		boxes[widest] = low
		boxes = append(boxes, high)
	}
	colors := make([]rgb, len(boxes))
	for i, b := range boxes {
		colors[i] = b.mean()
	}
	return settled(colors, pixels)
}

func counted(pixels []rgb) *[3][256]int32 {
	var counts [3][256]int32
	for _, c := range pixels {
		counts[0][c[0]]++
		counts[1][c[1]]++
		counts[2][c[2]]++
	}
	return &counts
}

// newBox returns a box with its best cut.
func newBox(pixels []rgb, counts *[3][256]int32) box {
	b := box{pixels: pixels, counts: counts}
	all := float64(len(pixels))
	for axis := range counts {
		total := 0.0
		for value, n := range counts[axis] {
			total += float64(value) * float64(n)
		}
		// A cut lessens the squared errors by what the means of both parts are apart.
		below, sum := 0.0, 0.0
		for value, n := range counts[axis] {
			if n > 0 && below > 0 {
				between := sum/below - (total-sum)/(all-below)
				if gain := below * (all - below) / all * between * between; gain > b.gain {
					b.gain, b.axis, b.limit = gain, axis, uint8(value)
				}
			}
			below += float64(n)
			sum += float64(value) * float64(n)
		}
	}
	return b
}

// cut divides a box in two.
func (b box) cut() (low, high box) {
	i, j := 0, len(b.pixels)
	for i < j {
		if b.pixels[i][b.axis] < b.limit {
			i++
		} else {
			j--
			b.pixels[i], b.pixels[j] = b.pixels[j], b.pixels[i]
		}
	}
	// Only the smaller part is counted.
	lower, upper := b.pixels[:i], b.pixels[i:]
	if len(lower) <= len(upper) {
		counts := counted(lower)
		subtract(b.counts, counts)
		return newBox(lower, counts), newBox(upper, b.counts)
	}
	counts := counted(upper)
	subtract(b.counts, counts)
	return newBox(lower, b.counts), newBox(upper, counts)
}

func subtract(from, counts *[3][256]int32) {
	for axis := range counts {
		for value, n := range counts[axis] {
			from[axis][value] -= n
		}
	}
}

func (b box) mean() rgb {
	var sums [3]int
	for axis := range sums {
		for value, n := range b.counts[axis] {
			sums[axis] += value * int(n)
		}
	}
	return average(sums, len(b.pixels))
}

func average(sums [3]int, n int) rgb {
	return rgb{uint8((sums[0] + n/2) / n), uint8((sums[1] + n/2) / n), uint8((sums[2] + n/2) / n)}
}

// Bounds of the work of settled.
const (
	samples = 1 << 16
	rounds  = 6
)

// settled moves each colour to the mean of the pixels nearest to it, some times over. The pixels are
// in the order of their boxes, so that regular samples of them are representative.
func settled(colors, pixels []rgb) []rgb {
	step := (len(pixels) + samples - 1) / samples
	for range rounds {
		f := newFinder(colors)
		sums := make([][3]int, len(colors))
		counts := make([]int, len(colors))
		for i := 0; i < len(pixels); i += step {
			c := pixels[i]
			n := f.nearest(int(c[0]), int(c[1]), int(c[2]))
			counts[n]++
			for axis, value := range c {
				sums[n][axis] += int(value)
			}
		}
		moved := false
		for i, n := range counts {
			if n == 0 {
				continue
			}
			if mean := average(sums[i], n); mean != colors[i] {
				colors[i], moved = mean, true
			}
		}
		if !moved {
			break
		}
	}
	return colors
}
