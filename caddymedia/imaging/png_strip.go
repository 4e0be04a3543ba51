package imaging

import (
	"bytes"
	"slices"
)

// pngKeywords are those of W3C PNG, section 11.3.3.1, for a text that describes the image.
var pngKeywords = []string{
	"Title", "Author", "Description", "Copyright", "Creation Time", "Software", "Disclaimer", "Warning", "Source", "Comment",
}

// pngXMP begins an iTXt chunk with XMP that is not compressed: the keyword, two flags, and an empty
// language and translation (ISO 16684-3).
const pngXMP = "XML:com.adobe.xmp\x00\x00\x00\x00\x00"

// keepDescription reports whether the mode [StripLocation] keeps a chunk that describes the image.
func (c *pngChunks) keepDescription(s *source, kind [4]byte, size int64) (kept bool, err error) {
	switch string(kind[:]) {
	case "tIME":
		return size == 7, nil
	case "caBX": // credentials of C2PA: eight bytes before the data, four behind
		c.credentials = append(c.credentials, c.info.hold(s.offset()-8, s.offset()+size+4))
		return false, nil
	}
	data, err := content(s, kind, size)
	if err != nil || data == nil {
		return false, err
	}
	if packet, ok := bytes.CutPrefix(data, []byte(pngXMP)); ok && string(kind[:]) == "iTXt" {
		if int64(len(data)) < size {
			return false, nil
		}
		rest := xmpFilter{describe: true}.apply(packet)
		if rest != nil {
			rest = append([]byte(pngXMP), rest...)
		}
		return c.rewrite(kind, data, rest), nil
	}
	keyword, _, _ := bytes.Cut(data, []byte{0})
	return slices.Contains(pngKeywords, string(keyword)), nil
}
