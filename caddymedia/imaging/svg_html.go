package imaging

import (
	"bytes"
	"encoding/xml"
	"regexp"
	"strings"
)

// htmlBreakout are the start tags that make an HTML parser leave an SVG (HTML standard, 13.2.6.5).
var htmlBreakout = set(`b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li
	listing menu meta nobr ol p pre ruby s small span strong strike sub sup table tt u ul var`)

// htmlText are the elements whose content HTML parses as text, or by rules of their own. In an SVG
// they are ordinary elements, so they count once the parser is in HTML.
var htmlText = set(`desc iframe math noembed noframes noscript plaintext select style template textarea title xmp`)

// htmlEndTag matches the end tags that end what a comment stands in, where HTML reads an element as
// text.
var htmlEndTag = regexp.MustCompile(`(?i)</(?:iframe|noembed|noframes|noscript|style|textarea|title|xmp)`)

// htmlView follows the HTML parser of a page that a picture is pasted into. Its elements must stay
// inside of the SVG: in HTML a comment may be text, and text may be markup. It goes by names as
// they are written, since prefixes and namespaces mean nothing there.
type htmlView struct {
	left    bool   // the parser is in HTML, and may stay there to the end of the picture
	text    string // the open element that must hold only text
	foreign int    // the depth of the open foreignObject, whose content is HTML; 0 outside
}

// inHTML reports whether the parser reads what comes next as HTML.
func (h *htmlView) inHTML() bool { return h.left || h.foreign > 0 }

// start checks an element at the depth. raw is its name as written, with the prefix as Space.
func (h *htmlView) start(e xml.StartElement, raw xml.Name, depth int) error {
	name := strings.ToLower(raw.Local)
	if raw.Space != "" {
		name = "" // HTML has no element with a colon in its name
	}
	switch {
	case h.text != "":
		return contentErrorf("the SVG contains an element inside a %s element", h.text)
	case depth == 1:
		h.left = name != "svg"
	case htmlText[name] && (h.inHTML() || e.Name.Space != svgNamespace):
		return contentErrorf("the SVG contains the element %s where a page reads it as HTML", shorten(raw.Local))
	case h.inHTML() && (name == "p" || name == "span"): // of text that flows, in Illustrator's part
		h.left = true
	case htmlBreakout[name], name == "font" && formatsFont(e):
		return contentErrorf("the SVG contains the element %s, which ends an SVG in a page", shorten(raw.Local))
	case h.inHTML():
		h.left = h.left || name != ""
	}
	if name == "foreignobject" && h.foreign == 0 {
		h.foreign = depth
	}
	switch e.Name.Local {
	case "title", "desc", "style", "textArea":
		if e.Name.Space == svgNamespace {
			h.text = e.Name.Local
		}
	}
	return nil
}

// end closes an element at the depth. HTML does not close one by a slash at the end of its start
// tag.
func (h *htmlView) end(depth int, bySlash bool) {
	h.text = ""
	switch {
	case depth == h.foreign:
		h.foreign = 0
	case h.foreign > 0 && bySlash:
		h.left = true
	}
}

// data checks text. size is its length in the file: a CDATA section in HTML is a comment that ends
// at the first ">".
func (h *htmlView) data(text []byte, size int64) error {
	const brackets = int64(len("<![CDATA[]]>"))
	if h.inHTML() && size >= int64(len(text))+brackets && bytes.IndexByte(text, '>') >= 0 {
		return contentErrorf("the SVG contains a CDATA section where a page reads it as HTML")
	}
	return nil
}

// formatsFont reports whether a font element has an attribute of the one of HTML.
func formatsFont(e xml.StartElement) bool {
	for _, a := range e.Attr {
		switch strings.ToLower(a.Name.Local) {
		case "color", "face", "size":
			return true
		}
	}
	return false
}

// checkComment refuses a comment that is none in HTML: one that ends at once, or that may stand in
// text.
func checkComment(text []byte) error {
	if bytes.HasPrefix(text, []byte(">")) || bytes.HasPrefix(text, []byte("->")) {
		return contentErrorf("the SVG contains a comment that ends early in HTML")
	}
	if tag := htmlEndTag.Find(text); tag != nil {
		return contentErrorf("the SVG contains a comment with the end tag %s: remove the comment", shorten(string(tag)))
	}
	return nil
}

// rawTokens reads the tokens of a picture with their names as written. The decoder on top of it
// resolves namespaces.
type rawTokens struct {
	*xml.Decoder
	name xml.Name // of the last start element
	size int64    // of the last token in the file, without the bytes between its brackets that are dropped
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
