package scale

import "image"

// maxSide is the longest side of a copy in pixels, the limit of WebP
// (https://developers.google.com/speed/webp/docs/riff_container).
const maxSide = 16383

// Box is the configured size of a copy in pixels. A side of 0 is free.
type Box struct {
	Width, Height int

	// Cover fills the box and crops the image at its centre. Otherwise the whole image is shown
	// inside the box. A box with a free side cannot be filled, and Cover has no effect.
	Cover bool
}

// Area is a rectangle of an image in pixels. The pixel in column x covers x to x+1.
type Area struct {
	X, Y, Width, Height float64
}

// View is which part of an image is shown, and at which size.
type View struct {
	From Area
	Size image.Point
}

// View returns the view of an image in a box. Width and height are those of the upright image,
// at least 1. An image is never enlarged: a smaller one is cropped, on each side, to the smaller of
// box and image. No side of a view is longer than 16383 pixels.
func (b Box) View(width, height int) View {
	limit := image.Pt(maxSide, maxSide)
	if b.Width > 0 {
		limit.X = min(b.Width, maxSide)
	}
	if b.Height > 0 {
		limit.Y = min(b.Height, maxSide)
	}
	if b.Cover && b.Width > 0 && b.Height > 0 {
		return cover(limit, width, height)
	}
	return contain(limit, width, height)
}

func contain(limit image.Point, width, height int) View {
	size := image.Pt(width, height)
	if width > limit.X || height > limit.Y {
		if wider(limit, width, height) {
			size = image.Pt(limit.X, scaled(height, limit.X, width))
		} else {
			size = image.Pt(scaled(width, limit.Y, height), limit.Y)
		}
	}
	return View{From: Area{Width: float64(width), Height: float64(height)}, Size: size}
}

// wider reports whether an image is at least as wide as the box, in proportion to its height.
func wider(box image.Point, width, height int) bool {
	return int64(box.X)*int64(height) <= int64(box.Y)*int64(width)
}

// scaled returns side*to/from, rounded and at least 1.
func scaled(side, to, from int) int {
	return int(max(1, (2*int64(side)*int64(to)+int64(from))/(2*int64(from))))
}

func cover(limit image.Point, width, height int) View {
	size := image.Pt(min(limit.X, width), min(limit.Y, height))
	if size.X == width || size.Y == height { // a whole pixel as the corner keeps all pixels as they are
		return View{From: Area{
			X: float64((width - size.X) / 2), Y: float64((height - size.Y) / 2),
			Width: float64(size.X), Height: float64(size.Y),
		}, Size: size}
	}
	from := Area{Width: float64(width), Height: float64(height)}
	if wider(size, width, height) {
		from.Width = from.Height * float64(size.X) / float64(size.Y)
		from.X = (float64(width) - from.Width) / 2
	} else {
		from.Height = from.Width * float64(size.Y) / float64(size.X)
		from.Y = (float64(height) - from.Height) / 2
	}
	return View{From: from, Size: size}
}

// clipped returns v within an image. A part outside is replaced by the whole image.
func (v View) clipped(width, height int) View {
	w, h := float64(width), float64(height)
	f := v.From
	const rounding = 1.0 / 1024
	inside := f.X >= 0 && f.Y >= 0 && f.Width > 0 && f.Height > 0 &&
		f.X+f.Width <= w+rounding && f.Y+f.Height <= h+rounding
	if !inside {
		v.From = Area{Width: w, Height: h}
	}
	v.Size.X = min(max(v.Size.X, 1), maxSide)
	v.Size.Y = min(max(v.Size.Y, 1), maxSide)
	return v
}
