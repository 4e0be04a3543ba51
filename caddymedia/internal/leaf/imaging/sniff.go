package imaging

import (
	"bytes"
	"encoding/xml"
	"io"
	"mime"
	"regexp"
	"slices"
	"strings"

	"github.com/gabriel-vasile/mimetype"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/svg"
)

// sniffSize is the number of bytes that the sniffer examines, which is its own default.
const sniffSize = 3072

// CheckFile returns an error if the content of r contradicts the extension ext (lower case, no
// dot). contentType is the registered media type of ext, or "" if there is none. CheckFile reads r
// from its first byte, and may leave it at any position.
//
// In doubt the file is accepted. Unknown content is accepted unless files of the claimed type are
// always recognised. Related types are accepted for each other: all office formats, all audio and
// video. Web pages, scripts and programs need a matching extension, or one of plain text.
//
// The error is a [*ContentError] or wraps a read error of r.
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
	claimed := newClaim(ext, contentType)
	if len(head) == 0 {
		if claimed.known == nil || claimed.text() {
			return nil
		}
		return contentErrorf("the file is empty, a .%s file never is", shorten(ext))
	}
	found := sniff(head)
	if claimed.markup() {
		found = sniffXML(head, found) // the sniffer takes elements named a, b or p for a web page
	}
	switch {
	case claimed.fits(found, head):
		return nil
	case unknown(found):
		return contentErrorf("content is not a .%s file or is damaged", shorten(ext))
	}
	return contentErrorf("content is %s, the name says .%s", typeName(found, head), shorten(ext))
}

// sniff detects the type of head. It corrects three results of the sniffer that would refuse real
// files, and looks at all brands of an AVIF or HEIC file: the sniffer takes their short form for an
// MP4. A comment alone is not a web page, since XML and Markdown may begin with one as well. An SVG
// inside an XML file is not an SVG. An MPEG audio frame inside binary data is not an MP3.
func sniff(head []byte) *mimetype.MIME {
	found := mimetype.Detect(head)
	switch {
	case is(found, "text/html"):
		return mimetype.Detect(skipComments(head))
	case is(found, "image/svg+xml"), within(found, "text/xml"):
		return sniffXML(head, found)
	case strings.HasPrefix(found.String(), "image/hei"), is(found, "image/avif"), bytes.HasPrefix(head[min(4, len(head)):], []byte("ftypmif3")):
		if format := bmffFormat(head); format != "" {
			return mimetype.Lookup(rasters[format].mediaType)
		}
	case is(found, "audio/mpeg") && head[0] != 0xFF && !bytes.HasPrefix(head, []byte("ID3")):
		return mimetype.Lookup(octetStream)
	}
	return found
}

// sniffXML decides by the root element how a browser treats XML that was detected as found.
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
		case root.Name.Local == "svg", root.Name.Space == svg.Namespace:
			return mimetype.Lookup("image/svg+xml")
		case root.Name.Local == "html", root.Name.Space == "http://www.w3.org/1999/xhtml":
			return mimetype.Lookup("text/html")
		case is(found, "image/svg+xml"), is(found, "text/html"), within(found, "application/xhtml+xml"):
			return mimetype.Lookup("text/xml")
		}
		return found
	}
}

// skipComments returns head without the comments at its start.
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

// is reports whether m is mediaType, a name that the sniffer itself uses, without parameters.
// MIME.Is knows other names too, and parses both, which took a tenth of the memory of a small
// upload.
func is(m *mimetype.MIME, mediaType string) bool {
	essence, _, _ := strings.Cut(m.String(), ";")
	return essence == mediaType
}

// unknown reports whether the sniffer recognised nothing.
func unknown(found *mimetype.MIME) bool { return is(found, octetStream) }

// within reports whether m or one of its parent types is mediaType.
func within(m *mimetype.MIME, mediaType string) bool {
	for ; m != nil; m = m.Parent() {
		if is(m, mediaType) {
			return true
		}
	}
	return false
}

// isText reports whether head is UTF-16 with a byte order mark, or has no "binary data byte"
// (WHATWG MIME Sniffing).
func isText(head []byte) bool {
	if bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("\xfe\xff")) {
		return true
	}
	return !bytes.ContainsFunc(head, func(r rune) bool {
		return r <= 0x08 || r == 0x0B || 0x0E <= r && r <= 0x1A || 0x1C <= r && r <= 0x1F
	})
}

// claim is the type that the extension of a file claims.
type claim struct {
	ext       string
	mediaType string
	known     *mimetype.MIME // nil if the sniffer knows no signature for it
}

func newClaim(ext, contentType string) claim {
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		mediaType = ""
	}
	// Images must have their signature, whatever the table of media types says.
	if kind, ok := rasters[formats[ext]]; ok {
		mediaType = kind.mediaType
	}
	c := claim{ext: ext, mediaType: mediaType}
	if m := mimetype.Lookup(mediaType); m != nil && !unknown(m) {
		c.known = m
	}
	return c
}

// plain reports whether any text may have the claimed type. Markdown may consist of HTML
// (CommonMark 0.31, section 4.6), and browsers neither run nor render either type.
func (c claim) plain() bool { return c.mediaType == plainText || c.mediaType == "text/markdown" }

// text reports whether the claimed type is a text format.
func (c claim) text() bool {
	return strings.HasPrefix(c.mediaType, "text/") || strings.HasSuffix(c.mediaType, "+xml") ||
		strings.HasSuffix(c.mediaType, "+json") || within(c.known, plainText)
}

// markup reports whether the claimed type is an XML format other than SVG.
func (c claim) markup() bool {
	return c.mediaType != "image/svg+xml" && (strings.HasSuffix(c.mediaType, "+xml") || within(c.known, "text/xml"))
}

// fits reports whether a file with the detected type and the head may have the claimed name.
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
		return !slices.ContainsFunc(signedTypes, func(t string) bool { return within(c.known, t) })
	}
	return c.related(found)
}

// signedTypes always begin with a signature that the sniffer knows. Unrecognised content is not of
// these types. Of all other types the sniffer knows only some variants.
var signedTypes = []string{
	"image/jpeg", "image/png", "image/gif", "image/webp", "application/pdf", "application/zip",
	"application/gzip", "application/x-7z-compressed", "application/vnd.rar", "application/x-xz", "application/x-bzip2",
}

// officeTypes are accepted for each other. Office programs open each other's files, and also RTF,
// XML and tables of text under any of these names. A protected DOCX is an OLE container
// ([MS-OFFCRYPTO]), and an old DOC is often RTF.
var officeTypes = []string{
	"application/msword", "application/vnd.ms-", "application/vnd.openxmlformats-officedocument.",
}

// related reports whether found is the claimed type, a special form of it, its container, or a type
// that programs accept instead.
func (c claim) related(found *mimetype.MIME) bool {
	if within(found, c.known.String()) {
		return true
	}
	office := slices.ContainsFunc(officeTypes, func(t string) bool { return strings.HasPrefix(c.mediaType, t) })
	if office && (within(found, "application/zip") || within(found, "application/x-ole-storage") ||
		within(found, plainText)) {
		return true
	}
	if c.mediaType == "application/postscript" && is(found, "application/pdf") { // .ai of Illustrator 9 and later
		return true
	}
	// Audio and video names and containers mix freely: MP3 in WAV, FLAC after an ID3 tag, QuickTime
	// named MP4.
	if media(c.mediaType) && media(found.String()) {
		return true
	}
	// Types that are built on each other, or both on a third type. Text does not count as such.
	for ; found != nil && !unknown(found) && !is(found, plainText); found = found.Parent() {
		if essence, _, _ := strings.Cut(found.String(), ";"); within(c.known, essence) {
			return true
		}
	}
	return false
}

func media(mediaType string) bool {
	major, _, _ := strings.Cut(mediaType, "/")
	return major == "audio" || major == "video" || mediaType == "application/ogg"
}

// active is a type of content that a browser, a web server or an operating system runs.
type active struct {
	name  string
	types []string
	exts  string // the matching extensions, separated by spaces
}

var activeKinds = []active{
	// Some programs export HTML tables under the names of old Office files. No browser renders
	// those.
	{"HTML", []string{"text/html", "application/xhtml+xml"}, "html htm xhtml xht shtml hta xls doc"},
	{"SVG", []string{"image/svg+xml"}, "svg"},
	{"PHP", []string{"text/x-php"}, ""},
	{
		"a Windows program",
		[]string{"application/vnd.microsoft.portable-executable"},
		"exe dll sys scr com ocx cpl drv efi mui bin img",
	},
	{"a Windows installer", []string{"application/x-ms-installer"}, "msi msp mst"},
	{"a Windows shortcut", []string{"application/x-ms-shortcut"}, "lnk"},
	{"a Linux program", []string{"application/x-elf"}, "elf so o ko run appimage bin img"},
	{"a macOS program", []string{"application/x-mach-binary"}, "macho dylib so bundle o bin"},
	{"a Java class", []string{"application/x-java-applet"}, "class"},
}

// scripts start with #! and the path of an interpreter.
var (
	scripts = active{
		name: "a script",
		exts: "sh bash zsh ksh csh tcsh fish bats command py pl pm perl rb lua tcl awk sed r js mjs cjs ts ps1 groovy exs",
	}
	shebang = regexp.MustCompile(`^#![ \t]*/`)
)

// activeKind returns the type of active content, or nil if there is none.
func activeKind(found *mimetype.MIME, head []byte) *active {
	if shebang.Match(head) {
		return &scripts
	}
	for i, kind := range activeKinds {
		for _, t := range kind.types {
			// The sniffer takes any text that begins with MZ for a program.
			if within(found, t) && (within(found, plainText) || !isText(head)) {
				return &activeKinds[i]
			}
		}
	}
	return nil
}

// typeName returns the name of found for a message.
func typeName(found *mimetype.MIME, head []byte) string {
	if kind := activeKind(found, head); kind != nil {
		return kind.name
	}
	switch {
	case is(found, plainText):
		return "plain text"
	case is(found, "image/jpeg"):
		return string(JPEG)
	case is(found, "image/apng"):
		return string(PNG)
	case is(found, "image/webp"):
		return string(WebP)
	case is(found, "image/heif"), is(found, "image/heif-sequence"):
		return "HEIF"
	case is(found, "application/x-ole-storage"):
		return "an old Office document"
	}
	if ext := found.Extension(); ext != "" {
		return strings.ToUpper(ext[1:])
	}
	return found.String()
}

// Guess returns the extension that fits the content of r (lower case, no dot), or "" for unknown
// content, and a reader of all of r. It reads only the first bytes. The extension is a proposal:
// check it with [CheckImage] or [CheckFile]. The error is one of r.
func Guess(r io.Reader) (ext string, whole io.Reader, err error) {
	head, err := io.ReadAll(io.LimitReader(r, sniffSize))
	if err != nil {
		return "", nil, err
	}
	if len(head) > 0 { // the sniffer reports an empty file as plain text
		found := sniff(head)
		if ext = imageFormat(found).Extension(); ext == "" {
			ext = strings.TrimPrefix(found.Extension(), ".")
		}
	}
	return ext, io.MultiReader(bytes.NewReader(head), r), nil
}

// imageFormat returns the format of a detected type, or "" if it is none of an image. The
// sniffer has types of their own for forms of a format, such as animated PNG.
func imageFormat(found *mimetype.MIME) Format {
	if is(found, "image/svg+xml") {
		return SVG
	}
	for format, kind := range rasters {
		if within(found, kind.mediaType) {
			return format
		}
	}
	return ""
}
