// Package imagingtest holds helpers for tests of images. It has no images in files: it writes their
// parts. Begin with [Photo].
package imagingtest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Corpus returns the folder of images in MEDIA_TEST_CORPUS. If it is unset, Corpus skips the test,
// also if MEDIA_TEST_MUST_RUN is set: the images are not part of this module.
func Corpus(t testing.TB) string {
	t.Helper()
	root := os.Getenv("MEDIA_TEST_CORPUS")
	if root != "" {
		return root
	}
	t.Skip("MEDIA_TEST_CORPUS names no folder of images")
	return ""
}

// Files returns the paths in one folder of the [Corpus]. It fails the test if there are none.
func Files(t testing.TB, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(Corpus(t), folder, "*.*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("MEDIA_TEST_CORPUS has no folder %s (%v)", folder, err)
	}
	return files
}

// Marks in the metadata of a [Photo].
const (
	// Place is a part of everything that says where the image was made, and with which device.
	Place = "PLACE-0.5N-0.5E"
	// Date is the date of the image, and Owner has its copyright.
	Date  = "2026:11:20 12:34:56"
	Owner = "OWNER OF THE IMAGE"
)

// tiffField is an entry of a directory: a value, or a directory.
type tiffField struct {
	tag, kind uint16
	value     []byte
	directory []tiffField
}

// EXIF returns EXIF with the marks, an orientation, a maker note, names of the device and a
// thumbnail.
func EXIF(order binary.AppendByteOrder, orientation byte) []byte {
	text := func(tag uint16, value string) tiffField {
		return tiffField{tag: tag, kind: 2, value: []byte(value + "\x00")}
	}
	short := func(tag uint16, v uint16) tiffField {
		return tiffField{tag: tag, kind: 3, value: order.AppendUint16(nil, v)}
	}
	half := slices.Concat([][]byte{order.AppendUint32(nil, 0), order.AppendUint32(nil, 1), order.AppendUint32(nil, 30), order.AppendUint32(nil, 1), order.AppendUint32(nil, 0), order.AppendUint32(nil, 1)}...)
	thumbnail := []byte("\xff\xd8" + Place + "\xff\xd9")
	first := []tiffField{
		text(0x010E, "a photo"), text(0x010F, "Maker"), short(0x0112, uint16(orientation)), text(0x0132, Date), text(0x013C, Place), text(0x8298, Owner),
		{tag: 0x8769, kind: 4, directory: []tiffField{
			{tag: 0x9000, kind: 7, value: []byte("0232")},
			text(0x9003, Date),
			{tag: 0x927C, kind: 7, value: []byte("Maker\x00" + Place)},
			short(0xA001, 1),
			{tag: 0xA005, kind: 4, directory: []tiffField{text(0x0001, "R98")}},
			text(0xA420, Place), text(0xA431, Place), text(0xA435, Place), text(0xA439, Place),
		}},
		{tag: 0x8825, kind: 4, directory: []tiffField{
			text(0x0001, "N"),
			{tag: 0x0002, kind: 5, value: half},
			text(0x0003, "E"),
			{tag: 0x0004, kind: 5, value: half},
			{tag: 0x001B, kind: 7, value: []byte("ASCII\x00\x00\x00" + Place)},
		}},
		text(0xC62F, Place),
	}
	b := []byte("MM\x00*")
	if order.String() == binary.LittleEndian.String() {
		b = []byte("II*\x00")
	}
	b = order.AppendUint32(b, 8)
	b, next := appendDirectory(order, b, first)
	order.(binary.ByteOrder).PutUint32(b[next:], uint32(len(b)))
	b, _ = appendDirectory(order, b, []tiffField{
		short(0x0103, 6),
		{tag: 0x0201, kind: 4, value: order.AppendUint32(nil, uint32(len(b)+2+3*12+4))},
		{tag: 0x0202, kind: 4, value: order.AppendUint32(nil, uint32(len(thumbnail)))},
	})
	return append(b, thumbnail...)
}

// appendDirectory appends a directory with its values. next is the offset of the pointer to the
// next one.
func appendDirectory(order binary.AppendByteOrder, b []byte, fields []tiffField) (out []byte, next int) {
	at := len(b)
	next = at + 2 + 12*len(fields)
	var values []byte
	b = order.AppendUint16(b, uint16(len(fields)))
	for _, f := range fields {
		if f.directory != nil {
			f.value = order.AppendUint32(nil, uint32(next+4+len(values)))
			inner, _ := appendDirectory(order, make([]byte, next+4+len(values)), f.directory)
			values = append(values, inner[next+4+len(values):]...)
		}
		count := len(f.value) / map[uint16]int{2: 1, 3: 2, 4: 4, 5: 8, 7: 1}[f.kind]
		b = order.AppendUint32(order.AppendUint16(order.AppendUint16(b, f.tag), f.kind), uint32(count))
		if len(f.value) <= 4 {
			b = append(append(b, f.value...), make([]byte, 4-len(f.value))...)
			continue
		}
		b = order.AppendUint32(b, uint32(next+4+len(values)))
		values = append(append(values, f.value...), make([]byte, len(f.value)%2)...)
	}
	return append(append(b, 0, 0, 0, 0), values...), next
}

// places are attributes of XMP with the marks of the location and the device.
const places = ` exif:GPSLatitude="` + Place + `" exif:ImageUniqueID="` + Place + `" exif:Firmware="` + Place + `"` +
	` other:what="` + Place + `"`

// XMP returns XMP with the marks, and further properties as attributes and as elements.
func XMP(attributes, elements string) string {
	return `<?xpacket begin="` + "\uFEFF" + `" id="W5M0MpCehiHzreSzNTczkc9d"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/" x:xmptk="test">
 <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
  <rdf:Description rdf:about=""
    xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:xmp="http://ns.adobe.com/xap/1.0/"
    xmlns:exif="http://ns.adobe.com/exif/1.0/" xmlns:photoshop="http://ns.adobe.com/photoshop/1.0/"
    xmlns:Iptc4xmpExt="http://iptc.org/std/Iptc4xmpExt/2008-02-29/" xmlns:other="http://example.com/other/"
    xmlns:hdrgm="` + nsGainMap + `" xmlns:Container="http://ns.google.com/photos/1.0/container/"
    xmlns:Item="http://ns.google.com/photos/1.0/container/item/"
    xmp:CreateDate="` + Date + `"` + places + attributes + `>
   <dc:rights><rdf:Alt><rdf:li xml:lang="x-default">` + Owner + `</rdf:li></rdf:Alt></dc:rights>
   <photoshop:City>` + Place + `</photoshop:City>
   <Iptc4xmpExt:LocationShown><rdf:Bag><rdf:li Iptc4xmpExt:Sublocation="` + Place + `"/></rdf:Bag></Iptc4xmpExt:LocationShown>
   <xmp:Thumbnails><rdf:Alt><rdf:li>` + Place + `</rdf:li></rdf:Alt></xmp:Thumbnails>` + elements + `
  </rdf:Description>
 </rdf:RDF>
</x:xmpmeta>
<?xpacket end="w"?>`
}

const nsGainMap = "http://ns.adobe.com/hdr-gain-map/1.0/"

// Resources returns image resources of Photoshop with the marks in IPTC, and a thumbnail.
func Resources() []byte {
	dataset := func(number byte, value string) string {
		return string([]byte{0x1C, 2, number, 0, byte(len(value))}) + value
	}
	resource := func(number uint16, data string) string {
		head := binary.BigEndian.AppendUint16([]byte("8BIM"), number)
		head = binary.BigEndian.AppendUint32(append(head, 0, 0), uint32(len(data)))
		return string(head) + data + strings.Repeat("\x00", len(data)%2)
	}
	iptc := dataset(55, "20261120") + dataset(90, Place) + dataset(116, Owner) + dataset(101, Place) + dataset(202, Place)
	return []byte("Photoshop 3.0\x00" + resource(0x0404, iptc) + resource(0x040C, Place) + resource(0x0425, "digest"))
}

// Segment returns a segment of a JPEG.
func Segment(marker byte, data ...string) []byte {
	all := strings.Join(data, "")
	return append(binary.BigEndian.AppendUint16([]byte{0xFF, marker}, uint16(2+len(all))), all...)
}

// Metadata returns segments of a JPEG with the marks.
func Metadata(order binary.AppendByteOrder, orientation byte) []byte {
	return slices.Concat(
		Segment(0xE1, "Exif\x00\x00", string(EXIF(order, orientation))),
		Segment(0xE1, "http://ns.adobe.com/xap/1.0/\x00", XMP("", "")),
		Segment(0xE1, "http://ns.adobe.com/xmp/extension/\x00", Place),
		Segment(0xED, string(Resources())),
		Segment(0xE4, Place),
	)
}

// ISO is the start of the segments that describe a gain map by ISO 21496-1.
const ISO = "urn:iso:std:iso:ts:21496:-1\x00"

// Photo describes a JPEG with a gain map: an HDR photo.
type Photo struct {
	// Image and GainMap are JPEGs.
	Image, GainMap []byte
	Order          binary.AppendByteOrder
	// XMP and ISO are the ways of describing the gain map.
	XMP, ISO bool
	// Plain leaves out all other metadata, such as previews and films.
	Plain bool
	// Credentials adds credentials.
	Credentials bool
}

// JPEG returns the file.
func (p Photo) JPEG() []byte {
	var own []byte // of the gain map
	var attributes, elements string
	if p.XMP {
		own = append(own, Segment(0xE1, "http://ns.adobe.com/xap/1.0/\x00", `<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">`+
			`<rdf:Description rdf:about="" xmlns:hdrgm="`+nsGainMap+`" hdrgm:Version="1.0" hdrgm:GainMapMax="2.5" hdrgm:HDRCapacityMax="2.5"/></rdf:RDF></x:xmpmeta>`)...)
	}
	if p.ISO {
		// Versions, flags, the two headrooms, and five values of one channel, all as fractions.
		own = append(own, Segment(0xE2, ISO, "\x00\x00\x00\x00\x40", strings.Repeat("\x00\x00\x00\x00\x00\x00\x00\x01", 7))...)
	}
	if !p.Plain {
		own = append(own, Metadata(p.Order, 1)...)
	}
	gainMap := slices.Concat(p.GainMap[:2], own, p.GainMap[2:])
	preview := slices.Concat(p.GainMap[:2], Segment(0xFE, Place), p.GainMap[2:])
	if p.XMP {
		item := func(semantic, more string) string {
			return fmt.Sprintf(`<rdf:li rdf:parseType="Resource"><Container:Item Item:Semantic="%s" Item:Mime="image/jpeg"%s/></rdf:li>`, semantic, more)
		}
		attributes = ` hdrgm:Version="1.0"`
		elements = "<Container:Directory><rdf:Seq>" + item("Primary", "") + item("GainMap", fmt.Sprintf(` Item:Length="%d"`, len(gainMap)))
		if !p.Plain {
			elements += item("MotionPhoto", fmt.Sprintf(` Item:Length="%d"`, len(Place)))
		}
		elements += "</rdf:Seq></Container:Directory>"
	}
	xmp := XMP(attributes, elements)
	head := Metadata(p.Order, 1)
	if p.Plain {
		head = nil
		if xmp = strings.Replace(xmp, places, "", 1); p.XMP {
			from, to := strings.Index(xmp, "<photoshop:City>"), strings.Index(xmp, "<Container:Directory>")
			xmp = xmp[:from] + xmp[to:]
		}
	}
	if p.XMP {
		if at := bytes.Index(head, []byte("http://ns.adobe.com/xap")); at > 0 {
			head = head[:at-4]
		}
		head = append(head, Segment(0xE1, "http://ns.adobe.com/xap/1.0/\x00", xmp)...)
	}
	if p.ISO {
		head = append(head, Segment(0xE2, ISO, "\x00\x00\x00\x00")...)
	}
	if p.Credentials {
		head = append(head, Segment(0xEB, "JP", Place)...)
	}
	return p.assemble(head, gainMap, preview)
}

// assemble returns the file with an index of its images.
func (p Photo) assemble(head, gainMap, preview []byte) []byte {
	images := [][]byte{nil, preview, gainMap}
	if p.Plain {
		images = [][]byte{nil, gainMap}
	}
	index := func(size int) []byte {
		b := []byte("MPF\x00MM\x00*")
		if p.Order.String() == binary.LittleEndian.String() {
			b = []byte("MPF\x00II*\x00")
		}
		entries := p.Order.AppendUint32(p.Order.AppendUint32(nil, 0x030000), uint32(size))
		entries = append(entries, make([]byte, 8)...)
		at := size - (2 + len(head) + 8)
		for _, image := range images[1:] {
			entries = p.Order.AppendUint32(p.Order.AppendUint32(entries, 0), uint32(len(image)))
			entries = append(p.Order.AppendUint32(entries, uint32(at)), 0, 0, 0, 0)
			at += len(image)
		}
		o := p.Order
		b = o.AppendUint16(o.AppendUint32(b, 8), 3)
		b = append(o.AppendUint32(o.AppendUint16(o.AppendUint16(b, 0xB000), 7), 4), "0100"...)
		b = o.AppendUint32(o.AppendUint32(o.AppendUint16(o.AppendUint16(b, 0xB001), 4), 1), uint32(len(images)))
		b = o.AppendUint32(o.AppendUint32(o.AppendUint16(o.AppendUint16(b, 0xB002), 7), uint32(len(entries))), 50)
		return Segment(0xE2, string(append(o.AppendUint32(b, 0), entries...)))
	}
	size := len(index(0)) + len(head) + len(p.Image)
	file := slices.Concat(p.Image[:2], head, index(size), p.Image[2:])
	for _, image := range images[1:] {
		file = append(file, image...)
	}
	if !p.Plain {
		file = append(file, "film "+Place...)
	}
	return file
}
