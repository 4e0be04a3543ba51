package imaging

import "math"

// The colour spaces of ICC profiles that matter here.
const (
	spaceRGB  = "RGB "
	spaceGrey = "GRAY"
	spaceCMYK = "CMYK"
)

// colorProfile is an ICC profile of an image. The zero value is none.
type colorProfile struct {
	space string // as in the header of the profile
	data  []byte // nil if it is larger than maxProfile
}

// newProfile returns the profile in data, or the zero value if it has no ICC header (ICC.1:2022,
// 7.2).
func newProfile(data []byte) colorProfile {
	if len(data) < 128 || string(data[36:40]) != "acsp" {
		return colorProfile{}
	}
	p := colorProfile{space: string(data[16:20]), data: data}
	if len(data) > maxProfile {
		p.data = nil
	}
	return p
}

// setProfile sets the profile of pixels of a colour space. As in browsers, a profile of another
// space is ignored, except that grey pixels may have an RGB profile.
func (i *Info) setProfile(p colorProfile, pixels string) {
	switch {
	case p.space == spaceRGB && pixels != spaceCMYK:
		if i.Profile = p.data; p.data == nil {
			i.ColorLoss = "its colour profile is larger than 64 KiB"
		}
	case p.space == pixels && pixels == spaceGrey:
		i.ColorLoss = "it has a colour profile of grey"
	case p.space == pixels && pixels == spaceCMYK:
		i.ColorLoss = "it has a colour profile of CMYK"
	}
}

// pngColors are the colour chunks of a PNG, nil where there is none (W3C PNG, 11.3.2).
type pngColors struct {
	cicp, gamma, chroma []byte
	srgb                bool
	profile             colorProfile
}

// Browsers take a lone gAMA for the curve of sRGB if its exponent is close to that of sRGB.
const (
	srgbGamma = 1 / 2.2
	nearGamma = 0.05
)

// describe sets the colours. Of the chunks present, only the one that comes first in the order of
// W3C PNG, 4.3, counts. gAMA and cHRM are converted to a profile, which a variant can carry.
func (c *pngColors) describe(i *Info, grey bool) {
	pixels := spaceRGB
	if grey {
		pixels = spaceGrey
	}
	switch {
	case c.cicp != nil:
		if string(c.cicp) != "\x01\x0d\x00\x01" { // the primaries and the curve of sRGB, full range
			i.ColorLoss = "it has colours of video (cICP)"
		}
	case c.profile.space != "":
		i.setProfile(c.profile, pixels)
	case c.srgb, c.gamma == nil:
	default:
		c.applyGamma(i)
	}
}

// applyGamma sets the profile that gAMA and cHRM describe. cHRM alone is ignored.
func (c *pngColors) applyGamma(i *Info) {
	const factor = 100_000
	gamma := float64(be32(c.gamma)) / factor
	if gamma == 0 {
		return
	}
	chroma := srgbChromaticities
	if c.chroma != nil {
		for n := range chroma {
			x, y := be32(c.chroma[8*n:]), be32(c.chroma[8*n+4:])
			chroma[n] = [2]float64{float64(x) / factor, float64(y) / factor}
		}
	} else if math.Abs(gamma/srgbGamma-1) < nearGamma {
		return
	}
	if i.Profile = gammaProfile(1/gamma, chroma); i.Profile == nil {
		i.ColorLoss = "its gAMA and cHRM chunks describe no colours"
	}
}
