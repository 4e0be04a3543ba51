// Package svg checks SVG images: it parses them as XML, and refuses all that may run or fetch
// something. It never changes an image, because sanitizers that rewrite are error-prone, and is no
// check for HTML that an SVG is pasted into. Begin with [Check].
package svg

import (
	"bufio"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"sort"
	"strings"

	"golang.org/x/text/encoding/charmap"

	"github.com/caddymedia/media/caddymedia/internal/leaf/bytesize"
)

// Limits of an SVG image. Icon sets and diagrams are a hundred times smaller.
const (
	maxSize   = 2 << 20
	maxDepth  = 100
	maxTokens = 200_000
)

// Error is the reason why an image is refused.
type Error struct {
	// Message is for the uploader.
	Message string
	// TooLarge reports that the image exceeds a limit.
	TooLarge bool
	// NoRoot reports that no root element of SVG was found: the content may be of another type.
	NoRoot bool
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// refusef returns an Error. Strings among args, which the uploader has chosen, are shortened.
func refusef(format string, args ...any) error {
	const most = 40
	for i, arg := range args {
		if name, ok := arg.(string); ok {
			name = strings.ToValidUTF8(name, "\uFFFD")
			if r := []rune(name); len(r) > most {
				name = string(r[:most]) + "..."
			}
			args[i] = name
		}
	}
	return &Error{Message: fmt.Sprintf(format, args...)}
}

func tooLargef(format string, args ...any) error {
	return &Error{Message: fmt.Sprintf(format, args...), TooLarge: true}
}

// Check parses an image of a size as XML. If strict is set, each token must pass the rules of this
// package; otherwise every XML document with an SVG root passes. The error is an [*Error]; one of
// reading r makes the content appear damaged.
func Check(r *bufio.Reader, size int64, strict bool) error {
	if size > maxSize {
		return errSize
	}
	start, _ := r.Peek(3) // a short file fails as XML
	if strings.HasPrefix(string(start), "\x1f\x8b") {
		return refusef("the SVG is compressed, upload it unpacked")
	}
	if string(start) == "\xef\xbb\xbf" {
		_, _ = r.Discard(3)
	}
	in := &input{r: r}
	c := checker{strict: strict, input: in, raw: &rawTokens{Decoder: xml.NewDecoder(in)}}
	c.raw.CharsetReader = func(charset string, in io.Reader) (io.Reader, error) {
		switch strings.ToLower(charset) {
		case "utf8":
			return in, nil
		case "iso-8859-1", "latin1", "us-ascii", "ascii": // one encoding for browsers (WHATWG Encoding)
			return charmap.ISO8859_1.NewDecoder().Reader(in), nil
		}
		// A browser might read other characters than the check.
		return nil, refusef("the SVG is encoded in %s, UTF-8 is needed", charset)
	}
	c.xml = xml.NewTokenDecoder(c.raw)
	if err := c.run(); err != nil {
		return c.refuse(err)
	}
	return nil
}

// checker is the state of a pass over the tokens of an image.
type checker struct {
	input  *input
	raw    *rawTokens
	xml    *xml.Decoder
	strict bool

	tokens, depth int
	metadata      int // the depth of the open metadata element; 0 outside
	rooted        bool
	style         *strings.Builder // the text of the open style element
	copies        copyCounter
}

func (c *checker) run() error {
	for {
		token, err := c.xml.Token()
		if errors.Is(err, io.EOF) && c.rooted {
			copies, err := c.copies.copied(0, int32(len(c.copies.ends)), make(map[int32]int64))
			if err == nil && copies > maxCopies {
				err = tooLargef("the use elements of the SVG copy more than the 100,000 elements allowed")
			}
			return err
		}
		if err != nil {
			return err
		}
		if c.tokens++; c.tokens > maxTokens {
			return tooLargef("the SVG has more than the 200,000 parts allowed")
		}
		if err := c.token(token); err != nil {
			return err
		}
	}
}

func (c *checker) token(token xml.Token) error {
	switch t := token.(type) {
	case xml.StartElement:
		return c.start(t)
	case xml.EndElement:
		return c.end()
	case xml.CharData:
		return c.text(t)
	case xml.Directive:
		return c.directive(string(t))
	case xml.ProcInst:
		declaration := t.Target == "xml" && c.tokens == 1 && xmlDeclaration.Match(t.Inst)
		if c.strict && !declaration && activeTarget.MatchString(t.Target) {
			return refusef("the SVG contains the processing instruction %s", t.Target)
		}
	}
	return nil
}

func (c *checker) start(e xml.StartElement) error {
	if c.depth++; c.depth > maxDepth {
		return tooLargef("the SVG is nested deeper than %d elements", maxDepth)
	}
	if c.depth == 1 {
		if c.rooted || e.Name != (xml.Name{Space: Namespace, Local: "svg"}) {
			return errNoSVG
		}
		c.rooted = true
	}
	if !c.strict {
		return nil
	}
	if err := checkElement(e, c.metadata > 0 && e.Name.Space != c.raw.name.Space); err != nil {
		return err
	}
	if c.metadata == 0 && e.Name == (xml.Name{Space: Namespace, Local: "metadata"}) {
		c.metadata = c.depth
	}
	if c.style != nil { // a browser joins the text around it
		return refusef("the SVG contains an element inside a style element")
	}
	c.copies.start(e)
	if e.Name == (xml.Name{Space: Namespace, Local: "style"}) {
		c.style = new(strings.Builder)
	}
	return nil
}

// end checks a style sheet as a whole. Comments and CDATA sections may split its text, but a
// browser joins it.
func (c *checker) end() error {
	if c.strict {
		c.copies.end()
	}
	if c.depth == c.metadata {
		c.metadata = 0
	}
	c.depth--
	if c.style == nil {
		return nil
	}
	css := c.style.String()
	c.style = nil
	return checkCSS(css)
}

func (c *checker) text(data []byte) error {
	if c.depth == 0 && strings.TrimSpace(string(data)) != "" {
		return errNoSVG
	}
	if c.style != nil {
		c.style.Write(data)
	}
	return nil
}

// directive accepts the public document types, with a subset of harmless entities. Any other subset
// may declare default attributes, which a browser applies but encoding/xml does not.
func (c *checker) directive(text string) error {
	if !c.strict {
		c.raw.Entity, c.input.entity = declaredEntities(text), len(Namespace)
		return nil
	}
	entities, ok := parseDoctype(text)
	if c.rooted || c.raw.Entity != nil || !ok {
		return refusef("the SVG contains a document type declaration of its own")
	}
	c.raw.Entity = entities
	for _, value := range entities {
		c.input.entity = max(c.input.entity, len(value))
	}
	return nil
}

// rawTokens reads the tokens of an image with their names as written. The decoder on top of it
// resolves namespaces.
type rawTokens struct {
	*xml.Decoder
	name xml.Name // of the last start element, with the prefix as Space
}

// Token returns the next token.
func (r *rawTokens) Token() (xml.Token, error) {
	token, err := r.RawToken()
	if e, ok := token.(xml.StartElement); ok {
		r.name = e.Name
	}
	return token, err
}

var (
	errSize  = tooLargef("the SVG is larger than %s", bytesize.Format(maxSize))
	errNoSVG = errors.New(`the root element is not svg of the SVG namespace: add xmlns="` + Namespace + `"`)
)

// refuse returns the error to report for a failure of the parser.
func (c *checker) refuse(cause error) error {
	var refused Error
	if known, ok := errors.AsType[*Error](cause); ok {
		refused = *known
	} else if errors.Is(cause, errNoSVG) {
		refused.Message = fmt.Sprintf("content is not an SVG image: %v", cause)
	} else {
		line, _ := c.raw.InputPos()
		refused.Message = fmt.Sprintf("content is not an SVG image or is damaged: not well-formed XML at line %d", line)
	}
	refused.NoRoot = !c.rooted
	return &refused
}

// maxAttributes limits the attributes of one element.
const maxAttributes = 10_000

// input limits the input of the XML parser. It refuses too many bytes, counted with all entities
// expanded. It also refuses too many attributes of one element, because the parser would collect
// them all before any check.
type input struct {
	r      io.Reader
	read   int
	equals int // since the last "<", which XML allows nowhere inside a tag: at least the number of its attributes
	refs   int // "&" so far: at least the number of references to entities
	entity int // the length of the longest declared entity
}

// Read reads and counts.
func (in *input) Read(p []byte) (int, error) {
	n, err := in.r.Read(p)
	if in.read += n; in.read > maxSize {
		return 0, errSize
	}
	for _, b := range p[:n] {
		switch b {
		case '<':
			in.equals = 0
		case '=':
			if in.equals++; in.equals > maxAttributes {
				return 0, tooLargef("the SVG has an element with more than the 10,000 attributes allowed")
			}
		case '&':
			in.refs++
		}
	}
	if in.refs*in.entity > maxSize {
		return 0, errSize
	}
	return n, err
}

// activeTarget matches the targets of instructions that load or run something: a style sheet, PHP.
// Programs ignore all others, such as that of PlantUML with the source of its diagram.
var activeTarget = regexp.MustCompile(`(?i)^(?:xml|php|import$)`)

// xmlDeclaration is matched in full, because encoding/xml reads it loosely.
var xmlDeclaration = regexp.MustCompile(`^version=("1\.0"|'1\.0')` +
	`(\s+encoding=("[\w.-]+"|'[\w.-]+'))?(\s+standalone=("(yes|no)"|'(yes|no)'))?\s*$`)

// Declarations are matched in full, because encoding/xml reads them loosely.
var (
	publicDoctype = regexp.MustCompile(`^DOCTYPE\s+(?:[\w.-]+:)?svg` +
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
// namespaces and styles. ok reports whether the document type declares nothing else.
func parseDoctype(text string) (entities map[string]string, ok bool) {
	parts := publicDoctype.FindStringSubmatch(text)
	if parts == nil {
		return nil, false
	}
	entities = make(map[string]string)
	for _, m := range plainEntities.FindAllStringSubmatch(parts[1], -1) {
		if _, twice := entities[m[1]]; twice {
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
		if m[2]+m[3] == Namespace {
			entities[m[1]] = Namespace
		}
	}
	return entities
}

// maxCopies limits the elements that a viewer creates for use elements. Copies of copies grow
// exponentially.
const maxCopies = 100_000

// copyCounter counts the elements that the use elements of an image copy.
type copyCounter struct {
	open []int32          // numbers of the open elements
	ends []int32          // of each element: the number after its last descendant
	ids  map[string]int32 // the first element of each id
	uses []useElement     // by element
}

// useElement is a reference of a use element to the element that it copies.
type useElement struct {
	element int32
	id      string
}

// start records an element.
func (c *copyCounter) start(e xml.StartElement) {
	element := int32(len(c.ends))
	c.open = append(c.open, element)
	c.ends = append(c.ends, 0)
	isUse := e.Name == xml.Name{Space: Namespace, Local: "use"}
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
			use := useElement{element, fragment(a.Value)}
			if last := len(c.uses) - 1; last < 0 || c.uses[last] != use { // href and xlink:href often agree
				c.uses = append(c.uses, use)
			}
		}
	}
}

// end closes the last open element.
func (c *copyCounter) end() {
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

// copied counts the elements that those in [from, to) copy, nested copies included. It stops early
// when over the limit. sizes caches the counts of targets; -1 marks one in progress.
func (c *copyCounter) copied(from, to int32, sizes map[int32]int64) (total int64, err error) {
	first := sort.Search(len(c.uses), func(i int) bool { return c.uses[i].element >= from })
	for _, use := range c.uses[first:] {
		if use.element >= to || total > maxCopies {
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
			return 0, refusef("the SVG copies the element %s into itself", use.id)
		}
		total += size
	}
	return total, nil
}
