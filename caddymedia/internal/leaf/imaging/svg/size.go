package svg

import (
	"bufio"
	"encoding/xml"
	"io"
	"math"
	"strconv"
	"strings"
)

// pixels are the CSS pixels of the units of a length (CSS Values 4, section 6.2).
var pixels = map[string]float64{
	"": 1, "px": 1, "pt": 96.0 / 72, "pc": 16, "in": 96, "cm": 96 / 2.54, "mm": 96 / 25.4, "q": 96 / 101.6,
}

// Size returns the width and height that the root element of an SVG says, in CSS pixels. Where it
// says none, or a percentage, they follow from its viewBox. Both are 0 if nothing says them. It
// reads no further than the root element.
func Size(r *bufio.Reader) (width, height int) {
	if start, _ := r.Peek(3); string(start) == "\xef\xbb\xbf" {
		_, _ = r.Discard(3)
	}
	d := xml.NewDecoder(r) //nolint:gosec // tokens are read, and nothing is made of them
	d.Strict = false       // entities of names of namespaces
	d.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil }
	for {
		token, err := d.RawToken()
		if err != nil {
			return 0, 0
		}
		if root, ok := token.(xml.StartElement); ok {
			return sizeOf(root.Attr)
		}
	}
}

func sizeOf(attributes []xml.Attr) (width, height int) {
	var w, h, boxWidth, boxHeight float64
	for _, a := range attributes {
		switch {
		case a.Name.Space != "":
		case a.Name.Local == "width":
			w = length(a.Value)
		case a.Name.Local == "height":
			h = length(a.Value)
		case a.Name.Local == "viewBox":
			box := strings.FieldsFunc(a.Value, func(c rune) bool { return strings.ContainsRune(" ,\t\r\n", c) })
			if len(box) == 4 {
				boxWidth, boxHeight = length(box[2]), length(box[3])
			}
		}
	}
	hasBox := boxWidth > 0 && boxHeight > 0
	switch {
	case w > 0 && h > 0:
	case !hasBox:
		return 0, 0
	case w > 0:
		h = w * boxHeight / boxWidth
	case h > 0:
		w = h * boxWidth / boxHeight
	default:
		w, h = boxWidth, boxHeight
	}
	const most = 1 << 20 // no screen is wider
	if w > most || h > most {
		return 0, 0
	}
	return max(1, int(math.Round(w))), max(1, int(math.Round(h)))
}

// length returns a length in pixels; 0 if it is none, is not above zero, or depends on the page.
func length(text string) float64 {
	text = strings.ToLower(strings.TrimSpace(text))
	number := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyz%")
	n, err := strconv.ParseFloat(number, 64)
	unit, known := pixels[text[len(number):]]
	if err != nil || !known || math.IsNaN(n) || n <= 0 || math.IsInf(n, 0) {
		return 0
	}
	return n * unit
}
