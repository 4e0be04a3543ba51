package svg

import (
	"encoding/xml"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Namespace is that of SVG.
const Namespace = "http://www.w3.org/2000/svg"

const xmlNamespace = "http://www.w3.org/XML/1998/namespace"

// elements are the elements that draw, describe or animate: SVG 1.1, SVG 2, and additions of
// Inkscape. Elements that run or embed something are left out: script, handler, listener,
// foreignObject, iframe, embed, object, audio, video, canvas, form.
var elements = set(`
	a altGlyph altGlyphDef altGlyphItem animate animateColor animateMotion animateTransform circle clipPath
	color-profile cursor defs desc discard ellipse feBlend feColorMatrix feComponentTransfer feComposite
	feConvolveMatrix feDiffuseLighting feDisplacementMap feDistantLight feDropShadow feFlood feFuncA feFuncB feFuncG
	feFuncR feGaussianBlur feImage feMerge feMergeNode feMorphology feOffset fePointLight feSpecularLighting
	feSpotLight feTile feTurbulence filter flowDiv flowLine flowPara flowRegion flowRegionExclude flowRoot flowSpan
	font font-face font-face-format font-face-name font-face-src font-face-uri g glyph glyphRef hatch hatchpath hkern
	image line linearGradient marker mask mesh meshgradient meshpatch meshrow metadata missing-glyph mpath path
	pattern polygon polyline radialGradient rect set solidColor solidcolor stop style svg switch symbol text textArea
	textPath title tref tspan use view vkern`)

// editorNamespaces are those of metadata and of drawing programs; browsers ignore their elements.
var editorNamespaces = []string{
	"http://www.inkscape.org/namespaces/inkscape",
	"http://sodipodi.sourceforge.net/DTD/sodipodi-0.dtd",
	"http://inkscape.sourceforge.net/DTD/sodipodi-0.dtd",
	"http://www.w3.org/1999/02/22-rdf-syntax-ns#",
	"http://www.w3.org/2000/01/rdf-schema#",
	"http://creativecommons.org/ns#",
	"http://web.resource.org/cc/",
	"http://purl.org/dc/elements/1.1/",
	"http://purl.org/dc/terms/",
	"http://xmlns.com/foaf/0.1/",
	"http://www.bohemiancoding.com/sketch/ns",
	"http://www.serif.com/",
	"http://www.figma.com/figma/ns",
	"http://vectornator.io",
	"http://boxy-svg.com",
	"https://boxy-svg.com",
	"http://www.corel.com/coreldraw/odm/2003",
	"http://schemas.microsoft.com/visio/2003/SVGExtensions/",
	"http://www.openswatchbook.org/uri/2009/osb",
	"adobe:ns:meta/",
}

// adobeNamespaces is the prefix of all namespaces of Illustrator and of XMP.
const adobeNamespaces = "http://ns.adobe.com/"

// ofIllustrator reports whether an element is a foreignObject for Illustrator alone, with its
// editing data. Viewers draw the alternative beside it.
func ofIllustrator(e xml.StartElement) bool {
	return e.Name.Local == "foreignObject" && slices.ContainsFunc(e.Attr, func(a xml.Attr) bool {
		return a.Name == xml.Name{Local: "requiredExtensions"} && strings.HasPrefix(a.Value, adobeNamespaces)
	})
}

func set(words string) map[string]bool {
	m := make(map[string]bool)
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}

// activeNamespaces are the prefixes of namespaces that mean something to a browser wherever they
// are. Elements of unknown namespaces do nothing.
var activeNamespaces = []string{"http://www.w3.org/", "http://www.mozilla.org/", "urn:schemas-microsoft-com:"}

// knownNamespace reports whether elements of a namespace are metadata or of a drawing program.
func knownNamespace(space string, inMetadata bool) bool {
	return slices.Contains(editorNamespaces, space) || strings.HasPrefix(space, adobeNamespaces) ||
		inMetadata && !slices.ContainsFunc(activeNamespaces, func(prefix string) bool { return strings.HasPrefix(space, prefix) })
}

// checkElement checks an element and its attributes against the rules. They follow those of
// MediaWiki for uploaded SVG files: refuse everything that can run or that makes a browser fetch
// something. In a metadata element, elements may have any namespace without a meaning.
func checkElement(e xml.StartElement, inMetadata bool) error {
	switch {
	case e.Name.Space == Namespace && e.Name.Local == "foreignObject" && !ofIllustrator(e):
		return refusef("the SVG contains the element foreignObject: export text as SVG text (Mermaid: htmlLabels: false)")
	case e.Name.Space == Namespace:
		if !elements[e.Name.Local] && e.Name.Local != "foreignObject" {
			return refusef("the SVG contains the element %s", e.Name.Local)
		}
	case !knownNamespace(e.Name.Space, inMetadata):
		return refusef("the SVG contains the element %s of another namespace", e.Name.Local)
	}
	for _, a := range e.Attr {
		if a.Name.Space == "xmlns" || a.Name == (xml.Name{Local: "xmlns"}) {
			if a.Value == "xmlns" { // encoding/xml reports the attributes of that namespace as declarations
				return refusef("the SVG declares the namespace xmlns")
			}
			continue
		}
		if err := checkAttribute(e.Name, a); err != nil {
			return err
		}
	}
	return nil
}

func checkAttribute(element xml.Name, a xml.Attr) error {
	name := strings.ToLower(a.Name.Local)
	switch {
	// No event has an underscore in its name; Inkscape's only_selected has one.
	case strings.HasPrefix(name, "on") && !strings.Contains(name, "_"):
		return refusef("the SVG contains the event attribute %s", a.Name.Local)
	case strings.Contains(name, ":"), name == "ping", name == "handler", // of XML Events
		name == "base" && (a.Name.Space == xmlNamespace || a.Name.Space == "xml"): // xml:base makes fragments remote
		return refusef("the SVG contains the attribute %s", a.Name.Local)
	case containsAddress(a.Value, activeSchemes...):
		return refusef("the SVG contains a script address in the attribute %s", a.Name.Local)
	case containsAddress(a.Value, "data:image/svg"):
		return refusef("the SVG contains another SVG in the attribute %s: embed it as PNG", a.Name.Local)
	case name == "href", name == "src", name == "srcset":
		anchor := element == xml.Name{Space: Namespace, Local: "a"}
		if local := localLink(a.Value); !local && (!anchor || !link.MatchString(trimURL(a.Value))) {
			return refusef("the SVG refers to something outside of it in the attribute %s", a.Name.Local)
		}
	case name == "attributename" && !animatable(a.Value):
		return refusef("the SVG animates the attribute %s", a.Value)
	case a.Name.Space == "": // attributes of other namespaces have no style
		return checkCSS(a.Value)
	}
	return nil
}

// animatable reports whether an animation may change the attribute. Animating href would allow an
// unchecked address.
func animatable(attribute string) bool {
	name := strings.ToLower(strings.TrimSpace(attribute))
	name = name[strings.LastIndexByte(name, ':')+1:]
	return !strings.HasPrefix(name, "on") && name != "href" && name != "src" && name != "base" && name != "attributename"
}

var (
	// link matches the addresses that the reader of an image may follow: on the web, relative ones
	// included, to a mailbox or to a telephone.
	link       = regexp.MustCompile(`(?i)^(?:https?://|mailto:|tel:|[^:/?#\\]*(?:$|[/?#][^\\]*$))`)
	fontData   = regexp.MustCompile(`(?i)^data:(?:font/|application/(?:x-)?(?:font|vnd\.ms-fontobject))[\w.+-]*(?:;charset=[\w-]+)?;base64,`)
	rasterData = regexp.MustCompile(`(?i)^data:image/(?:png|jpe?g|gif|webp)(?:;charset=[\w-]+)?;base64,`)
)

// localLink reports whether a reference stays within the image: empty, a fragment, or an embedded
// raster image.
func localLink(ref string) bool {
	ref = trimURL(ref)
	return ref == "" || ref[0] == '#' || rasterData.MatchString(ref)
}

// trimURL strips the characters that the WHATWG URL parser strips before an address, and no others:
// other white space makes a relative address.
func trimURL(ref string) string {
	return strings.TrimLeftFunc(ref, func(r rune) bool { return r <= 0x20 })
}

// activeSchemes are addresses that run when followed.
var activeSchemes = []string{
	"javascript:", "vbscript:", "livescript:", "data:text/html", "data:text/xml", "data:application/",
}

// containsAddress reports whether the start of an address occurs anywhere in value, since an
// animation lists several. It ignores white space and control characters hidden in it.
func containsAddress(value string, starts ...string) bool {
	if !strings.Contains(value, ":") {
		return false
	}
	compact := strings.ToLower(strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, value))
	return slices.ContainsFunc(starts, func(start string) bool { return strings.Contains(compact, start) })
}

// cssActive are the constructs, other than url(), that load or run something.
var cssActive = []string{
	"@import", "image-set(", "cross-fade(", "image(", "src(",
	"expression(", "behavior:", "-moz-binding", "javascript:", "vbscript:",
}

// checkCSS refuses a style that fetches or runs anything: a url() must be a fragment, a raster
// image or a font. It checks the text with its comments, because a string may look like a comment.
// It also checks the text without them, because old browsers joined the text around a comment.
func checkCSS(css string) error {
	if !strings.ContainsAny(css, `(@\:`) {
		return nil
	}
	if err := checkPlainCSS(unescapeCSS(css)); err != nil {
		return err
	}
	if strings.Contains(css, "/*") {
		return checkPlainCSS(unescapeCSS(stripComments(css)))
	}
	return nil
}

func checkPlainCSS(css string) error {
	css = strings.ReplaceAll(strings.ToLower(css), "scroll-behavior:", "") // harmless, but contains a word of the list
	for _, word := range cssActive {
		if strings.Contains(css, word) {
			return refusef("the SVG contains style with %s", word)
		}
	}
	for {
		_, rest, ok := strings.Cut(css, "url(")
		if !ok {
			return nil
		}
		css = rest
		ref, end := trimURL(rest), byte(')')
		if ref != "" && (ref[0] == '"' || ref[0] == '\'') {
			ref, end = trimURL(ref[1:]), ref[0]
		}
		switch empty := ref == "" || ref[0] == end; {
		case empty, localLink(ref), fontData.MatchString(ref):
		case strings.HasPrefix(ref, "data:image/svg"):
			return refusef("the SVG contains another SVG in a style: embed it as PNG")
		default:
			return refusef("the SVG refers to something outside of it in a style")
		}
	}
}

func stripComments(css string) string {
	var out strings.Builder
	for {
		before, rest, ok := strings.Cut(css, "/*")
		out.WriteString(before)
		if !ok {
			return out.String()
		}
		_, css, _ = strings.Cut(rest, "*/")
	}
}

// unescapeCSS resolves the escapes of CSS Syntax 3, section 4.3.7: up to six hexadecimal digits and
// one white space, or any other character for itself. An escaped line end is removed.
func unescapeCSS(css string) string {
	if !strings.Contains(css, `\`) {
		return css
	}
	css = strings.ReplaceAll(css, "\r\n", "\n")
	var out strings.Builder
	for {
		before, rest, ok := strings.Cut(css, `\`)
		out.WriteString(before)
		if !ok {
			return out.String()
		}
		digits := 0
		for digits < min(6, len(rest)) && strings.IndexByte("0123456789abcdefABCDEF", rest[digits]) >= 0 {
			digits++
		}
		switch {
		case digits > 0:
			code, _ := strconv.ParseUint(rest[:digits], 16, 32)
			out.WriteRune(rune(code))
			if rest = rest[digits:]; rest != "" && strings.IndexByte(" \t\n\r\f", rest[0]) >= 0 {
				rest = rest[1:]
			}
		case rest != "" && strings.IndexByte("\n\r\f", rest[0]) >= 0:
			rest = rest[1:]
		default:
			_, size := utf8.DecodeRuneInString(rest)
			out.WriteString(rest[:size])
			rest = rest[size:]
		}
		css = rest
	}
}
