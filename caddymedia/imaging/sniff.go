package imaging

import (
	"bytes"
	"encoding/xml"
	"io"
	"mime"
	"strings"

	"github.com/gabriel-vasile/mimetype"
)

// sniffSize is how much of a file the sniffer looks at, its own default.
const sniffSize = 3072

// CheckFile tells whether the content of r contradicts its extension ext (lower case, no dot). contentType is the
// registered media type of that extension, "" when it has none. r may stand anywhere before and stands anywhere
// after.
//
// It rather lets a wrong label pass than refuses a real file: content that the sniffer does not know passes for
// every type that is not always recognisable, and relatives pass for each other (all office formats, all sound and
// film). Web pages, scripts and programs pass only under an extension that says so, or as plain text.
//
// The error is a [*ContentError] or wraps a failure of r.
func CheckFile(r io.ReadSeeker, ext, contentType string) error {
	s, err := newSource(r)
	if err != nil {
		return err
	}
	defer s.release()
	head, err := s.head(sniffSize)
	if err != nil {
		return err
	}
	said := newClaim(ext, contentType)
	if len(head) == 0 {
		if said.known == nil || said.text() {
			return nil
		}
		return contentErrorf("the file is empty, a .%s file never is", shorten(ext))
	}
	found := sniff(head)
	if said.markup() {
		found = sniffXML(head, found) // to the sniffer an element named a, b or p is a web page
	}
	switch {
	case said.fits(found, head):
		return nil
	case unknown(found):
		return contentErrorf("content is not a .%s file or is damaged", shorten(ext))
	}
	return contentErrorf("content is %s, the name says .%s", kindName(found, head), shorten(ext))
}

// sniff tells what head looks like. It corrects three answers of the sniffer that would refuse real files: a comment
// alone makes no web page, since XML and Markdown begin with one as well; an SVG somewhere in an XML file makes no
// SVG; and a sound frame somewhere in binary data makes no MP3.
func sniff(head []byte) *mimetype.MIME {
	found := mimetype.Detect(head)
	switch {
	case found.Is("text/html"):
		return mimetype.Detect(skipComments(head))
	case found.Is("image/svg+xml"), within(found, "text/xml"):
		return sniffXML(head, found)
	case found.Is("audio/mpeg") && head[0] != 0xFF && !bytes.HasPrefix(head, []byte("ID3")):
		return mimetype.Lookup(octetStream)
	}
	return found
}

// sniffXML decides by the root element what a browser would do with XML that looked like found.
func sniffXML(head []byte, found *mimetype.MIME) *mimetype.MIME {
	d := xml.NewDecoder(bytes.NewReader(head))
	d.Strict = false
	d.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil }
	for {
		token, err := d.Token()
		if err != nil {
			return found
		}
		root, ok := token.(xml.StartElement)
		switch {
		case !ok:
			continue
		case root.Name.Local == "svg", root.Name.Space == svgNamespace:
			return mimetype.Lookup("image/svg+xml")
		case root.Name.Local == "html", root.Name.Space == "http://www.w3.org/1999/xhtml":
			return mimetype.Lookup("text/html")
		case found.Is("image/svg+xml"), found.Is("text/html"), within(found, "application/xhtml+xml"):
			return mimetype.Lookup("text/xml")
		}
		return found
	}
}

// skipComments returns what follows the comments at the start of head.
func skipComments(head []byte) []byte {
	head = bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))
	for {
		head = bytes.TrimLeft(head, " \t\r\n\f")
		if !bytes.HasPrefix(head, []byte("<!--")) {
			return head
		}
		_, head, _ = bytes.Cut(head, []byte("-->"))
	}
}

const (
	octetStream = "application/octet-stream"
	plainText   = "text/plain"
)

// unknown tells that the sniffer recognised nothing.
func unknown(found *mimetype.MIME) bool { return found.Is(octetStream) }

// within tells whether m or one of the types it is built on is mediaType.
func within(m *mimetype.MIME, mediaType string) bool {
	for ; m != nil; m = m.Parent() {
		if m.Is(mediaType) {
			return true
		}
	}
	return false
}

// isText tells whether head holds no byte that text never holds (WHATWG MIME Sniffing, "binary data byte"), or is
// UTF-16 with its mark.
func isText(head []byte) bool {
	if bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("\xfe\xff")) {
		return true
	}
	return !bytes.ContainsFunc(head, func(r rune) bool {
		return r <= 0x08 || r == 0x0B || 0x0E <= r && r <= 0x1A || 0x1C <= r && r <= 0x1F
	})
}

// claim is what the name of a file says it is.
type claim struct {
	ext       string
	mediaType string
	known     *mimetype.MIME // nil when the sniffer knows no signature for it
}

func newClaim(ext, contentType string) claim {
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		mediaType = ""
	}
	// The pictures are held to their signature whatever the table of media types says.
	if kind, ok := rasters[formats[ext]]; ok {
		mediaType = kind.mediaType
	}
	c := claim{ext: ext, mediaType: mediaType}
	if m := mimetype.Lookup(mediaType); m != nil && !unknown(m) {
		c.known = m
	}
	return c
}

// plain tells that any text is rightly named so. Markdown may consist of HTML (CommonMark 0.31, section 4.6), and
// neither type is run or rendered by a browser.
func (c claim) plain() bool { return c.mediaType == plainText || c.mediaType == "text/markdown" }

// text tells that the claimed type is a kind of text.
func (c claim) text() bool {
	return strings.HasPrefix(c.mediaType, "text/") || strings.HasSuffix(c.mediaType, "+xml") ||
		strings.HasSuffix(c.mediaType, "+json") || within(c.known, plainText)
}

// markup tells that the claimed type is a kind of XML with elements of its own.
func (c claim) markup() bool {
	return c.mediaType != "image/svg+xml" && (strings.HasSuffix(c.mediaType, "+xml") || within(c.known, "text/xml"))
}

// fits tells whether a file of which found and head are known may bear the name.
func (c claim) fits(found *mimetype.MIME, head []byte) bool {
	if c.plain() && isText(head) {
		return true
	}
	if kind := activeKind(found, head); kind != nil {
		return strings.Contains(" "+kind.exts+" ", " "+c.ext+" ")
	}
	switch {
	case c.text():
		return isText(head) || within(found, plainText) || unknown(found)
	case c.known == nil:
		return true
	case unknown(found):
		return !c.signed()
	}
	return c.related(found)
}

// signedTypes always begin with a signature that the sniffer knows, so content it does not know is not of them. Of
// all other types it knows some variants only.
var signedTypes = []string{
	"image/jpeg", "image/png", "image/gif", "image/webp", "application/pdf", "application/zip",
	"application/gzip", "application/x-7z-compressed", "application/vnd.rar", "application/x-xz", "application/x-bzip2",
}

func (c claim) signed() bool {
	for _, t := range signedTypes {
		if within(c.known, t) {
			return true
		}
	}
	return false
}

// officeTypes open each other's files, and their programs open RTF, XML and tables of text under any of these names.
// A protected DOCX is an OLE container ([MS-OFFCRYPTO]), an old DOC is often RTF.
var officeTypes = []string{
	"application/msword", "application/vnd.ms-", "application/vnd.openxmlformats-officedocument.",
}

func (c claim) office() bool {
	for _, t := range officeTypes {
		if strings.HasPrefix(c.mediaType, t) {
			return true
		}
	}
	return false
}

// related tells whether found is the claimed type, a special form of it, the container it is built on, or a file
// that programs take for it.
func (c claim) related(found *mimetype.MIME) bool {
	if within(found, c.known.String()) {
		return true
	}
	if c.office() && (within(found, "application/zip") || within(found, "application/x-ole-storage") ||
		within(found, plainText)) {
		return true
	}
	if c.mediaType == "application/postscript" && found.Is("application/pdf") { // .ai of Illustrator 9 and later
		return true
	}
	// MP3 in WAV, FLAC after an ID3 tag, QuickTime named MP4: names and containers of sound and film mix freely.
	if media(c.mediaType) && media(found.String()) {
		return true
	}
	return sharedContainer(found, c.known)
}

func media(mediaType string) bool {
	major, _, _ := strings.Cut(mediaType, "/")
	return major == "audio" || major == "video" || mediaType == "application/ogg"
}

// sharedContainer tells whether one of a and b is built on the other, or both on a third. Text is no container.
func sharedContainer(a, b *mimetype.MIME) bool {
	for ; a != nil && !unknown(a) && !a.Is(plainText); a = a.Parent() {
		if within(b, a.String()) {
			return true
		}
	}
	return false
}
