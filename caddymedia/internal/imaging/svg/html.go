package svg

import (
	"bytes"
	"encoding/xml"
	"regexp"
	"strings"
)

// htmlBreakout are the start tags at which an HTML parser leaves an SVG (HTML standard, 13.2.6.5).
var htmlBreakout = set(`b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li
	listing menu meta nobr ol p pre ruby s small span strong strike sub sup table tt u ul var`)

// htmlText are the elements whose content HTML parses as text, or by special rules. In an SVG they
// are ordinary elements, so they count only while the parser is in HTML.
var htmlText = set(`desc iframe math noembed noframes noscript plaintext select style template textarea title xmp`)

// htmlEndTag matches end tags inside a comment. If HTML reads the enclosing element as text, such a
// tag ends that element and thereby the comment.
var htmlEndTag = regexp.MustCompile(`(?i)</(?:iframe|noembed|noframes|noscript|style|textarea|title|xmp)`)

// htmlView simulates the HTML parser of a page that an image is pasted into. No element may end up
// outside the SVG: in HTML a comment may be text, and text may be markup. Names are used as
// written, since prefixes and namespaces have no meaning there.
type htmlView struct {
	left    bool   // the parser is in HTML, and may stay there to the end of the image
	text    string // the open element that must hold only text
	foreign int    // the depth of the open foreignObject, whose content is HTML; 0 outside
}

// inHTML reports whether the parser reads the next token as HTML.
func (h *htmlView) inHTML() bool { return h.left || h.foreign > 0 }

// start checks an element at a depth. raw is its name as written, with the prefix as Space.
func (h *htmlView) start(e xml.StartElement, raw xml.Name, depth int) error {
	name := strings.ToLower(raw.Local)
	if raw.Space != "" {
		name = "" // HTML has no element with a colon in its name
	}
	switch {
	case h.text != "":
		return refusef("the SVG contains an element inside a %s element", h.text)
	case depth == 1:
		h.left = name != "svg"
	case htmlText[name] && (h.inHTML() || e.Name.Space != Namespace):
		return refusef("the SVG contains the element %s where a page reads it as HTML", raw.Local)
	case h.inHTML() && (name == "p" || name == "span"): // flowing text in Illustrator's part
		h.left = true
	case htmlBreakout[name], name == "font" && formatsFont(e):
		return refusef("the SVG contains the element %s, which ends an SVG in a page", raw.Local)
	case h.inHTML():
		h.left = h.left || name != ""
	}
	if name == "foreignobject" && h.foreign == 0 {
		h.foreign = depth
	}
	switch e.Name.Local {
	case "title", "desc", "style", "textArea":
		if e.Name.Space == Namespace {
			h.text = e.Name.Local
		}
	}
	return nil
}

// end closes an element at a depth. In HTML a slash at the end of a start tag does not close the
// element.
func (h *htmlView) end(depth int, bySlash bool) {
	h.text = ""
	switch {
	case depth == h.foreign:
		h.foreign = 0
	case h.foreign > 0 && bySlash:
		h.left = true
	}
}

// data checks text. size is its length in the file. A CDATA section in HTML is a comment that ends
// at the first ">".
func (h *htmlView) data(text []byte, size int64) error {
	const brackets = int64(len("<![CDATA[]]>"))
	if h.inHTML() && size >= int64(len(text))+brackets && bytes.IndexByte(text, '>') >= 0 {
		return refusef("the SVG contains a CDATA section where a page reads it as HTML")
	}
	return nil
}

// formatsFont reports whether a font element has an attribute of the HTML element.
func formatsFont(e xml.StartElement) bool {
	for _, a := range e.Attr {
		switch strings.ToLower(a.Name.Local) {
		case "color", "face", "size":
			return true
		}
	}
	return false
}

// checkComment refuses a comment that HTML reads differently. In HTML it may end early, or contain
// an end tag that ends the enclosing text.
func checkComment(text []byte) error {
	if bytes.HasPrefix(text, []byte(">")) || bytes.HasPrefix(text, []byte("->")) {
		return refusef("the SVG contains a comment that ends early in HTML")
	}
	if tag := htmlEndTag.Find(text); tag != nil {
		return refusef("the SVG contains a comment with the end tag %s: remove the comment", string(tag))
	}
	return nil
}

// rawTokens reads the tokens of an image with their names as written. The decoder on top of it
// resolves namespaces.
type rawTokens struct {
	*xml.Decoder
	name xml.Name // of the last start element
	size int64    // of the last token in the file, without the dropped bytes between its brackets
}

// Token returns the next token.
func (r *rawTokens) Token() (xml.Token, error) {
	from := r.InputOffset()
	token, err := r.RawToken()
	r.size = r.InputOffset() - from
	if e, ok := token.(xml.StartElement); ok {
		r.name = e.Name
	}
	return token, err
}
