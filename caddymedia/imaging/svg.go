package imaging

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"

	"github.com/caddymedia/media/caddymedia/internal/bytesize"
)

// SVGMode is the treatment of SVG images.
type SVGMode string

const (
	// SVGReject refuses an image with active content, external references or its own declarations.
	// The default.
	SVGReject SVGMode = "reject"
	// SVGKeep accepts every XML document with an SVG root.
	SVGKeep SVGMode = "keep"
	// SVGOff accepts no SVG image.
	SVGOff SVGMode = "off"
)

// Limits of an SVG image. Icon sets and diagrams are a hundred times smaller.
const (
	maxSVGSize   = 2 << 20
	maxSVGDepth  = 100
	maxSVGTokens = 200_000
)

// checkSVG parses the image as XML. In every mode but [SVGKeep] each token must pass the rules of
// svg_rules.go. The image is refused rather than cleaned, because sanitizers that rewrite are
// error-prone.
func checkSVG(s *source, size int64, mode SVGMode) (Info, error) {
	if mode == SVGOff {
		return Info{}, contentErrorf("SVG images are not accepted here")
	}
	if size > maxSVGSize {
		return Info{}, errSVGSize
	}
	start, _ := s.Peek(3) // a failure is recorded; a short file fails as XML
	if strings.HasPrefix(string(start), "\x1f\x8b") {
		return Info{}, contentErrorf("the SVG is compressed, upload it unpacked")
	}
	if string(start) == "\xef\xbb\xbf" {
		_, _ = s.Discard(3)
	}
	input := &svgInput{r: s}
	c := svgCheck{strict: mode != SVGKeep, input: input, raw: &rawTokens{Decoder: xml.NewDecoder(input)}}
	c.raw.CharsetReader = charsetReader
	c.xml = xml.NewTokenDecoder(c.raw)
	err := c.run()
	switch {
	case s.ioError() != nil:
		return Info{}, s.ioError()
	case err != nil:
		return Info{}, c.refuse(s, err)
	}
	info := Info{Format: SVG, Frames: 1, Orientation: Upright, End: size, size: size}
	info.keep(0, size)
	return info, nil
}

// svgCheck is the state of a pass over the tokens of an image.
type svgCheck struct {
	input  *svgInput
	raw    *rawTokens
	xml    *xml.Decoder
	strict bool

	tokens, depth int
	rooted        bool
	style         *strings.Builder // the text of the open style element
	html          htmlView
	copies        svgCopies
}

func (c *svgCheck) run() error {
	for {
		token, err := c.xml.Token()
		if errors.Is(err, io.EOF) && c.rooted {
			return c.copies.check()
		}
		if err != nil {
			return err
		}
		if c.tokens++; c.tokens > maxSVGTokens {
			return tooLargef("the SVG has more than the %s parts allowed", thousands(maxSVGTokens))
		}
		if err := c.token(token); err != nil {
			return err
		}
	}
}

func (c *svgCheck) token(token xml.Token) error {
	switch t := token.(type) {
	case xml.StartElement:
		return c.start(t)
	case xml.EndElement:
		return c.end()
	case xml.CharData:
		return c.text(t)
	case xml.Comment:
		if c.strict {
			return checkComment(t)
		}
	case xml.Directive:
		return c.directive(string(t))
	case xml.ProcInst:
		if c.strict && (c.tokens > 1 || !validDeclaration(t)) {
			return contentErrorf("the SVG contains the processing instruction %s", shorten(t.Target))
		}
	}
	return nil
}

func (c *svgCheck) start(e xml.StartElement) error {
	if c.depth++; c.depth > maxSVGDepth {
		return tooLargef("the SVG is nested deeper than %d elements", maxSVGDepth)
	}
	if c.depth == 1 {
		if c.rooted || e.Name != (xml.Name{Space: svgNamespace, Local: "svg"}) {
			return errNoSVG
		}
		c.rooted = true
	}
	if !c.strict {
		return nil
	}
	if err := checkElement(e); err != nil {
		return err
	}
	if err := c.html.start(e, c.raw.name, c.depth); err != nil {
		return err
	}
	c.copies.start(e)
	if e.Name == (xml.Name{Space: svgNamespace, Local: "style"}) {
		c.style = new(strings.Builder)
	}
	return nil
}

// end checks a style sheet as a whole. Comments and CDATA sections may split its text, but a
// browser joins it.
func (c *svgCheck) end() error {
	if c.strict {
		c.html.end(c.depth, c.raw.size == 0)
		c.copies.end()
	}
	c.depth--
	if c.style == nil {
		return nil
	}
	css := c.style.String()
	c.style = nil
	return checkStyleSheet(css)
}

func (c *svgCheck) text(data []byte) error {
	if c.depth == 0 && strings.TrimSpace(string(data)) != "" {
		return errNoSVG
	}
	if c.style != nil {
		c.style.Write(data)
	}
	if c.strict {
		return c.html.data(data, c.raw.size)
	}
	return nil
}

// directive accepts the public document types, with a subset of harmless entities. Any other subset
// may declare default attributes, which a browser applies but encoding/xml does not.
func (c *svgCheck) directive(text string) error {
	if !c.strict {
		c.raw.Entity, c.input.entity = declaredEntities(text), len(svgNamespace)
		return nil
	}
	entities, ok := parseDoctype(text)
	whole := c.raw.size == int64(len(text)+len("<!>")) // the decoder drops comments, which end the type in HTML
	if c.rooted || c.raw.Entity != nil || !ok || !whole {
		return contentErrorf("the SVG contains a document type declaration of its own")
	}
	c.raw.Entity = entities
	for _, value := range entities {
		c.input.entity = max(c.input.entity, len(value))
	}
	return nil
}

var (
	errSVGSize = tooLargef("the SVG is larger than %s", bytesize.Format(maxSVGSize))
	errNoSVG   = errors.New(`the root element is not svg of the SVG namespace: add xmlns="` + svgNamespace + `"`)
)

// refuse returns the error to report for a failure of the parser.
func (c *svgCheck) refuse(s *source, cause error) error {
	if !c.rooted {
		head, err := s.head(sniffSize)
		if err != nil {
			return err
		}
		found := sniff(head)
		// The sniffer may take XML for plain text. The error of the parser is then more precise.
		markup := unknown(found) || found.Is("image/svg+xml") || within(found, "text/xml") ||
			found.Is(plainText) && bytes.HasPrefix(skipComments(head), []byte("<"))
		if !markup {
			return contentErrorf("content is %s, the name says .svg", typeName(found, head))
		}
	}
	if refused := refusal(cause); refused != nil {
		return refused
	}
	if errors.Is(cause, errNoSVG) {
		return contentErrorf("content is not an SVG image: %v", cause)
	}
	line, _ := c.raw.InputPos()
	return contentErrorf("content is not an SVG image or is damaged: not well-formed XML at line %d", line)
}
