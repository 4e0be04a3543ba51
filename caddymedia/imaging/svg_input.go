package imaging

import (
	"encoding/xml"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"
)

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

// charsetReader decodes ISO-8859-1. Every encoding other than that and UTF-8 is refused, because a
// browser might read other characters than the check.
func charsetReader(charset string, in io.Reader) (io.Reader, error) {
	if strings.EqualFold(charset, "iso-8859-1") {
		return &latin1{r: in}, nil
	}
	return nil, contentErrorf("the SVG is encoded in %s, UTF-8 is needed", shorten(charset))
}

// latin1 decodes ISO-8859-1, whose bytes are the first 256 code points.
type latin1 struct {
	r   io.Reader
	buf [1024]byte
}

// Read fills at most half of p with input, since a byte becomes one or two.
func (l *latin1) Read(p []byte) (int, error) {
	n, err := l.r.Read(l.buf[:min(len(l.buf), len(p)/2)])
	out := p[:0]
	for _, b := range l.buf[:n] {
		out = utf8.AppendRune(out, rune(b))
	}
	return len(out), err
}

// xmlDeclaration is matched in full, because encoding/xml reads it loosely.
var xmlDeclaration = regexp.MustCompile(`^version=("1\.0"|'1\.0')` +
	`(\s+encoding=("[\w.-]+"|'[\w.-]+'))?(\s+standalone=("(yes|no)"|'(yes|no)'))?\s*$`)

func validDeclaration(p xml.ProcInst) bool {
	return p.Target == "xml" && xmlDeclaration.Match(p.Inst)
}
