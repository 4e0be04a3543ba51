package scale

import (
	"image"
	"math"
)

// Source is a decoded image of which copies are made. It must not be used by several goroutines at
// the same time.
type Source struct {
	width, height int
	layers        []layer // luma and two of chroma, or one
	opaque        bool    // pixels only
}

// layer is a plane of a source and its halves, of which each is made when it is first needed.
type layer struct {
	levels []plane
	sub    image.Point // pixels of the image that a sample covers, in both directions
	offset image.Point // of the image within the first sample
}

// New returns a source for an image of the type *image.YCbCr, *image.Gray or *image.NRGBA, which
// must not be empty. It returns nil for another one. The image must not be changed while the
// source is in use.
func New(img image.Image) *Source {
	b := img.Bounds()
	if b.Empty() {
		return nil
	}
	s := &Source{width: b.Dx(), height: b.Dy()}
	one := image.Pt(1, 1)
	switch img := img.(type) {
	case *image.YCbCr:
		return s.planes(img)
	case *image.Gray:
		s.layers = []layer{{levels: []plane{{img.Pix, img.Stride, s.width, s.height, 1}}, sub: one}}
	case *image.NRGBA:
		s.layers = []layer{{levels: []plane{{img.Pix, img.Stride, s.width, s.height, 4}}, sub: one}}
		s.opaque = img.Opaque()
	default:
		return nil
	}
	return s
}

func (s *Source) planes(img *image.YCbCr) *Source {
	sub, known := subsamplings[img.SubsampleRatio]
	if !known {
		return nil
	}
	corner := img.Rect.Min
	y := plane{img.Y[img.YOffset(corner.X, corner.Y):], img.YStride, s.width, s.height, 1}
	offset := image.Pt(corner.X%sub.X, corner.Y%sub.Y)
	start := img.COffset(corner.X, corner.Y)
	width, height := (s.width+offset.X+sub.X-1)/sub.X, (s.height+offset.Y+sub.Y-1)/sub.Y
	s.layers = []layer{{levels: []plane{y}, sub: image.Pt(1, 1)}}
	for _, pix := range [][]byte{img.Cb, img.Cr} {
		chroma := plane{pix[start:], img.CStride, width, height, 1}
		s.layers = append(s.layers, layer{levels: []plane{chroma}, sub: sub, offset: offset})
	}
	return s
}

// subsamplings are the pixels that a sample of chroma covers.
var subsamplings = map[image.YCbCrSubsampleRatio]image.Point{
	image.YCbCrSubsampleRatio444: {X: 1, Y: 1},
	image.YCbCrSubsampleRatio422: {X: 2, Y: 1},
	image.YCbCrSubsampleRatio420: {X: 2, Y: 2},
	image.YCbCrSubsampleRatio440: {X: 1, Y: 2},
	image.YCbCrSubsampleRatio411: {X: 4, Y: 1},
	image.YCbCrSubsampleRatio410: {X: 4, Y: 2},
}

// level returns the plane that was halved n times.
func (l *layer) level(n int) plane {
	for len(l.levels) <= n {
		l.levels = append(l.levels, l.levels[len(l.levels)-1].halved())
	}
	return l.levels[n]
}

// reduced returns the smallest plane that still has at least two samples, in both directions, for
// each sample of the copy. The axes are on the plane itself, and returned on the smaller one.
func (l *layer) reduced(across, down axis) (plane, axis, axis) {
	n := 0
	for least := min(math.Abs(across.step), math.Abs(down.step)); least >= 4; least /= 2 {
		n++
	}
	p := l.level(n)
	return p, across.halved(n, p.width), down.halved(n, p.height)
}
