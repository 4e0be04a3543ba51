package render

import (
	"image"
	"math"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/scale"
)

// ThumbHash is the format of a ThumbHash: some 25 bytes, of which a page draws a blurred image
// without a request (https://evanw.github.io/thumbhash/).
const ThumbHash imaging.Format = "ThumbHash"

// Hash is the output of a ThumbHash. More pixels than these do not change it.
var Hash = Output{Format: ThumbHash, Box: scale.Box{Width: 100, Height: 100}, FirstFrame: true, Still: true}

// thumbHash returns the ThumbHash of an image. Luminance, two differences of colours, and alpha
// become the lowest frequencies of a cosine transform, in four bits each.
func thumbHash(img *image.NRGBA) []byte {
	width, height := img.Rect.Dx(), img.Rect.Dy()
	planes, opaque := hashPlanes(img)
	most := 7
	if !opaque {
		most = 5
	}
	side := func(length int) int {
		return max(1, int(math.Round(float64(most*length)/float64(max(width, height)))))
	}
	across, down := side(width), side(height)
	l := planes[0].transform(max(3, across), max(3, down))
	p, q := planes[1].transform(3, 3), planes[2].transform(3, 3)
	short, landscape := across, 0
	if width > height {
		short, landscape = down, 1
	}
	head := bits(63, l.mean) | bits(31.5, p.mean+1)<<6 | bits(31.5, q.mean+1)<<12 | bits(31, l.scale)<<18
	shape := short | bits(63, p.scale)<<3 | bits(63, q.scale)<<9 | landscape<<15
	terms := [][]float64{l.terms, p.terms, q.terms}
	hash := []byte{byte(head), byte(head >> 8), byte(head >> 16), byte(shape), byte(shape >> 8)}
	if !opaque {
		a := planes[3].transform(5, 5)
		hash[2] |= 1 << 7
		hash = append(hash, byte(bits(15, a.mean)|bits(15, a.scale)<<4))
		terms = append(terms, a.terms)
	}
	half := false
	for _, list := range terms {
		for _, term := range list {
			if b := byte(bits(15, term)); half {
				hash[len(hash)-1] |= b << 4
			} else {
				hash = append(hash, b)
			}
			half = !half
		}
	}
	return hash
}

func bits(most, value float64) int { return int(math.Round(most * value)) }

// hashPlane has a value from -1 to 1 for each pixel.
type hashPlane struct {
	values        []float64
	width, height int
}

// hashPlanes returns the planes of luminance, yellow against blue, red against green, and alpha.
// The mean colour is behind transparent pixels.
func hashPlanes(img *image.NRGBA) (planes [4]hashPlane, opaque bool) {
	var sum [4]float64
	size := img.Rect.Size()
	for y := range size.Y {
		for p := row(img, y); len(p) > 0; p = p[4:] {
			alpha := float64(p[3]) / 255
			for i := range 3 {
				sum[i] += alpha * float64(p[i]) / 255
			}
			sum[3] += alpha
		}
	}
	var mean [3]float64
	for i := range mean {
		if sum[3] > 0 {
			mean[i] = sum[i] / sum[3]
		}
	}
	for i := range planes {
		planes[i] = hashPlane{make([]float64, 0, size.X*size.Y), size.X, size.Y}
	}
	for y := range size.Y {
		for p := row(img, y); len(p) > 0; p = p[4:] {
			alpha := float64(p[3]) / 255
			var c [3]float64
			for i := range c {
				c[i] = mean[i]*(1-alpha) + alpha*float64(p[i])/255
			}
			for i, value := range [4]float64{(c[0] + c[1] + c[2]) / 3, (c[0]+c[1])/2 - c[2], c[0] - c[1], alpha} {
				planes[i].values = append(planes[i].values, value)
			}
		}
	}
	return planes, img.Opaque()
}

// hashTerms are the frequencies of a plane.
type hashTerms struct {
	mean, scale float64
	terms       []float64 // from 0 to 1, where half is none and scale the distance to both ends
}

// transform returns the frequencies of a plane in the triangle below across and down.
func (p hashPlane) transform(across, down int) (t hashTerms) {
	for cy := range down {
		for cx := 0; cx*down < across*(down-cy); cx++ {
			sum, rows, columns := 0.0, cosines(p.height, cy), cosines(p.width, cx)
			for y, weight := range rows {
				var line float64
				for x, value := range p.values[y*p.width:][:p.width] {
					line += value * columns[x]
				}
				sum += line * weight
			}
			sum /= float64(len(p.values))
			if cx == 0 && cy == 0 {
				t.mean = sum
				continue
			}
			t.terms = append(t.terms, sum)
			t.scale = max(t.scale, math.Abs(sum))
		}
	}
	for i := range t.terms {
		if t.scale > 0 {
			t.terms[i] = 0.5 + 0.5*t.terms[i]/t.scale
		}
	}
	return t
}

// cosines returns the values of a frequency at the pixels of a side.
func cosines(length, frequency int) []float64 {
	values := make([]float64, length)
	for i := range values {
		values[i] = math.Cos(math.Pi / float64(length) * float64(frequency) * (float64(i) + 0.5))
	}
	return values
}
