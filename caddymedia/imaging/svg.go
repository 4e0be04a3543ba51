package imaging

import (
	"bytes"
	"encoding/xml"
	"errors"
	"html"
	"io"
	"net/url"
	"regexp"
	"sort"
	"strings"

	"golang.org/x/text/encoding/charmap"

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
	c.raw.CharsetReader = func(charset string, in io.Reader) (io.Reader, error) {
		if strings.EqualFold(charset, "iso-8859-1") {
			return charmap.ISO8859_1.NewDecoder().Reader(in), nil
		}
		// A browser might read other characters than the check.
		return nil, contentErrorf("the SVG is encoded in %s, UTF-8 is needed", shorten(charset))
	}
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
		if c.strict && (c.tokens > 1 || t.Target != "xml" || !xmlDeclaration.Match(t.Inst)) {
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

// maxSVGAttributes limits the attributes of one element.
const maxSVGAttributes = 10_000

// svgInput limits the input of the XML parser. It refuses too many bytes, counted with all entities
// expanded. It also refuses too many attributes of one element, because the parser would collect
// them all before any check.
type svgInput struct {
	r      io.Reader
	read   int
	equals int // since the last "<", which XML allows nowhere inside a tag: at least the number of its attributes
	refs   int // "&" so far: at least the number of references to entities
	entity int // the length of the longest declared entity
}

// Read reads and counts.
func (in *svgInput) Read(p []byte) (int, error) {
	n, err := in.r.Read(p)
	if in.read += n; in.read > maxSVGSize {
		return 0, errSVGSize
	}
	for _, b := range p[:n] {
		switch b {
		case '<':
			in.equals = 0
		case '=':
			if in.equals++; in.equals > maxSVGAttributes {
				return 0, tooLargef("the SVG has an element with more than the %s attributes allowed",
					thousands(maxSVGAttributes))
			}
		case '&':
			in.refs++
		}
	}
	if in.refs*in.entity > maxSVGSize {
		return 0, errSVGSize
	}
	return n, err
}

// xmlDeclaration is matched in full, because encoding/xml reads it loosely.
var xmlDeclaration = regexp.MustCompile(`^version=("1\.0"|'1\.0')` +
	`(\s+encoding=("[\w.-]+"|'[\w.-]+'))?(\s+standalone=("(yes|no)"|'(yes|no)'))?\s*$`)

// Declarations are matched in full, because encoding/xml reads them loosely.
var (
	svgDoctype = regexp.MustCompile(`^DOCTYPE\s+(?:[\w.-]+:)?svg` +
		`(?:\s+PUBLIC\s+["']-//W3C//DTD SVG [\w. ]+//EN["'](?:\s+["']https?://www\.w3\.org/[\w./-]+["'])?)?` +
		`\s*(?:\[((?:\s|` + plainEntity + `|` + linkPrefix + `)*)\]\s*)?$`)
	plainEntities     = regexp.MustCompile(plainEntity)
	entityDeclaration = regexp.MustCompile(`<!ENTITY\s+([\w.-]+)\s+(?:"([^"]*)"|'([^']*)')\s*>`)
)

// The declarations allowed in an internal subset: the prefix of links, and entities of plain text.
// An entity may not refer to another one, begin or end a tag, or escape a letter.
const (
	entityText  = `[\w:/.#,;()+=~? -]{0,1000}`
	fontsText   = `[\w:/.#,;()+=~?' -]{0,1000}` // with the quotes of font names
	plainEntity = `<!ENTITY\s+([A-Za-z_][\w.-]*)\s+(?:"(` + fontsText + `)"|'(` + entityText + `)')\s*>`
	linkPrefix  = `<!ATTLIST\s+svg\s+xmlns:xlink\s+CDATA\s+#FIXED\s+["']http://www\.w3\.org/1999/xlink["']\s*>`
)

// parseDoctype returns the entities of a document type, as drawing programs write them for
// namespaces and styles. ok reports whether the document type declares nothing else. An entity with
// a name that HTML knows is not accepted, because it would be another character in a page.
func parseDoctype(text string) (entities map[string]string, ok bool) {
	parts := svgDoctype.FindStringSubmatch(text)
	if parts == nil {
		return nil, false
	}
	entities = make(map[string]string)
	for _, m := range plainEntities.FindAllStringSubmatch(parts[1], -1) {
		reference := "&" + m[1] + ";"
		if _, twice := entities[m[1]]; twice || html.UnescapeString(reference) != reference {
			return nil, false
		}
		entities[m[1]] = m[2] + m[3]
	}
	return entities, true
}

// declaredEntities returns the entities of an internal subset, so that an unchecked image parses.
// Only the SVG namespace keeps its value. All others are empty, so that nothing grows by expansion.
func declaredEntities(text string) map[string]string {
	entities := make(map[string]string)
	for _, m := range entityDeclaration.FindAllStringSubmatch(text, 1000) {
		entities[m[1]] = ""
		if m[2]+m[3] == svgNamespace {
			entities[m[1]] = svgNamespace
		}
	}
	return entities
}

// maxSVGCopies limits the elements that a viewer creates for use elements. Copies of copies grow
// exponentially.
const maxSVGCopies = 100_000

// svgCopies counts the elements that the use elements of an image copy.
type svgCopies struct {
	open []int32          // numbers of the open elements
	ends []int32          // of each element: the number after its last descendant
	ids  map[string]int32 // the first element of each id
	uses []svgUse         // by element
}

// svgUse is a reference of a use element to the element that it copies.
type svgUse struct {
	element int32
	id      string
}

// start records an element.
func (c *svgCopies) start(e xml.StartElement) {
	element := int32(len(c.ends))
	c.open = append(c.open, element)
	c.ends = append(c.ends, 0)
	isUse := e.Name == xml.Name{Space: svgNamespace, Local: "use"}
	for _, a := range e.Attr {
		switch {
		case a.Name.Local == "id":
			if c.ids == nil {
				c.ids = make(map[string]int32)
			}
			if _, taken := c.ids[a.Value]; !taken {
				c.ids[a.Value] = element
			}
		case isUse && strings.EqualFold(a.Name.Local, "href"):
			use := svgUse{element, fragment(a.Value)}
			if last := len(c.uses) - 1; last < 0 || c.uses[last] != use { // href and xlink:href often agree
				c.uses = append(c.uses, use)
			}
		}
	}
}

// end closes the last open element.
func (c *svgCopies) end() {
	last := len(c.open) - 1
	c.ends[c.open[last]] = int32(len(c.ends))
	c.open = c.open[:last]
}

// fragment returns the id in a reference within the image, or "".
func fragment(ref string) string {
	id := strings.TrimPrefix(trimURL(ref), "#")
	if decoded, err := url.PathUnescape(id); err == nil {
		return decoded
	}
	return id
}

// check refuses an image with too many copies.
func (c *svgCopies) check() error {
	copies, err := c.copied(0, int32(len(c.ends)), make(map[int32]int64))
	if err == nil && copies > maxSVGCopies {
		return tooLargef("the use elements of the SVG copy more than the %s elements allowed", thousands(maxSVGCopies))
	}
	return err
}

// copied counts the elements that those in [from, to) copy, nested copies included. It stops early
// when over the limit. sizes caches the counts of targets; -1 marks one in progress.
func (c *svgCopies) copied(from, to int32, sizes map[int32]int64) (total int64, err error) {
	first := sort.Search(len(c.uses), func(i int) bool { return c.uses[i].element >= from })
	for _, use := range c.uses[first:] {
		if use.element >= to || total > maxSVGCopies {
			break
		}
		target, ok := c.ids[use.id]
		if !ok {
			continue
		}
		size, known := sizes[target]
		if !known {
			sizes[target] = -1
			if size, err = c.copied(target, c.ends[target], sizes); err != nil {
				return 0, err
			}
			size += int64(c.ends[target] - target)
			sizes[target] = size
		}
		if size < 0 {
			return 0, contentErrorf("the SVG copies the element %s into itself", shorten(use.id))
		}
		total += size
	}
	return total, nil
}
