package imaging

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Namespaces of XMP (ISO 16684-1) with a meaning of their own.
const (
	nsMeta      = "adobe:ns:meta/"
	nsRDF       = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
	nsXML       = "xml"
	nsGainMap   = "http://ns.adobe.com/hdr-gain-map/1.0/"
	nsContainer = "http://ns.google.com/photos/1.0/container/"
	nsItem      = "http://ns.google.com/photos/1.0/container/item/"
)

// gainMapNamespaces are those of the properties that a decoder of a gain map needs.
var gainMapNamespaces = []string{nsGainMap, "http://ns.apple.com/HDRGainMap/1.0/", "http://ns.apple.com/pixeldatainfo/1.0/"}

// describingNamespaces are those of the properties that the mode [StripLocation] keeps. Others may
// hold anything.
var describingNamespaces = []string{
	"http://purl.org/dc/elements/1.1/", "http://ns.adobe.com/xap/1.0/", "http://ns.adobe.com/xap/1.0/rights/",
	"http://ns.adobe.com/xap/1.0/mm/", "http://ns.adobe.com/tiff/1.0/", "http://ns.adobe.com/exif/1.0/",
	"http://cipa.jp/exif/1.0/", "http://ns.adobe.com/exif/1.0/aux/", "http://ns.adobe.com/photoshop/1.0/",
	"http://iptc.org/std/Iptc4xmpCore/1.0/xmlns/", "http://iptc.org/std/Iptc4xmpExt/2008-02-29/",
	"http://ns.useplus.org/ldf/xmp/1.0/", "http://creativecommons.org/ns#", "http://ns.google.com/photos/1.0/panorama/",
}

// placeWords are parts of the names of properties that the mode [StripLocation] removes.
var placeWords = []string{
	"gps", "latitude", "longitude", "altitude", "location", "thumbnail", "makernote",
	"serialnumber", "hostcomputer", "imageuniqueid", "firmware", "imagenumber",
}

// placeNames are names of properties that the mode [StripLocation] removes.
var placeNames = []string{"city", "state", "country", "countrycode", "countryname", "provincestate", "worldregion", "coverage"}

const (
	maxXMPDepth      = 32
	maxXMPNodes      = 10_000
	maxXMPAttributes = 1000 // of an element
)

var errXMP = errors.New("not the structure of XMP")

// xmpFilter says which properties of XMP remain.
type xmpFilter struct {
	// describe keeps those that describe the image, without its location.
	describe bool
	// gainMap keeps those of a gain map.
	gainMap bool
	// length is that of the gain map behind the image. 0 removes the list of images in the file.
	length int64
}

// xmpNode is an element of XMP, or a text.
type xmpNode struct {
	parent   *xmpNode
	name     xml.Name // with the address of the namespace; empty for a text
	start    xml.StartElement
	head     []byte // the start tag, or the text
	tail     []byte // the end tag
	noise    bool   // a comment or instruction that nothing needs
	children []*xmpNode
}

// apply returns XMP with the properties that remain: packet itself if all do, or nil if none does
// or packet is damaged.
func (f xmpFilter) apply(packet []byte) []byte {
	root, err := parseXMP(packet)
	if err != nil {
		return nil
	}
	e := xmpEditor{xmpFilter: f}
	for _, n := range root.children {
		switch {
		case n.name.Space == nsMeta && (n.name.Local == "xmpmeta" || n.name.Local == "xapmeta"):
			n.limit(inNamespaces(nsMeta))
			e.element(n, e.meta)
		default:
			e.meta(n)
		}
	}
	if e.properties == 0 {
		return nil
	}
	if bytes.Equal(e.out, packet) {
		return packet
	}
	return e.out
}

// parseXMP returns a node with the nodes of a packet.
func parseXMP(packet []byte) (*xmpNode, error) {
	d := xml.NewDecoder(bytes.NewReader(packet))
	root := &xmpNode{}
	at := root
	for depth, nodes := 0, 0; ; nodes++ {
		from := d.InputOffset()
		token, err := d.RawToken()
		switch {
		case errors.Is(err, io.EOF) && depth == 0:
			return root, nil
		case err != nil:
			return nil, err
		case nodes > maxXMPNodes || depth > maxXMPDepth:
			return nil, errXMP
		}
		n := &xmpNode{parent: at, head: packet[from:d.InputOffset()]}
		switch token := token.(type) {
		case xml.StartElement:
			n.start = token.Copy()
			n.name = n.resolve(token.Name, false)
			if n.name.Space == "" || len(n.start.Attr) > maxXMPAttributes {
				return nil, errXMP
			}
			at.children = append(at.children, n)
			at = n
			depth++
			continue
		case xml.EndElement:
			if depth == 0 || at.start.Name != token.Name {
				return nil, errXMP
			}
			at.tail = n.head
			at = at.parent
			depth--
			continue
		case xml.Directive:
			return nil, errXMP
		case xml.ProcInst:
			n.noise = token.Target != "xpacket" || at != root
		case xml.Comment:
			n.noise = true
		}
		at.children = append(at.children, n)
	}
}

// resolve returns a name with the address of its namespace, which is empty if it has none. An
// attribute without a prefix has none.
func (n *xmpNode) resolve(name xml.Name, attribute bool) xml.Name {
	if name.Space == nsXML || attribute && name.Space == "" {
		return name
	}
	for at := n; at != nil; at = at.parent {
		for _, a := range at.start.Attr {
			if a.Name.Space == "xmlns" && a.Name.Local == name.Space || name.Space == "" && a.Name == (xml.Name{Local: "xmlns"}) {
				return xml.Name{Space: a.Value, Local: name.Local}
			}
		}
	}
	return xml.Name{Local: name.Local}
}

// xmpEditor writes the nodes that remain.
type xmpEditor struct {
	xmpFilter
	out        []byte
	properties int // that remain
}

// meta writes a node around or beside the RDF.
func (e *xmpEditor) meta(n *xmpNode) {
	switch {
	case n.name == xml.Name{Space: nsRDF, Local: "RDF"}:
		n.limit(inNamespaces(nsMeta))
		e.element(n, e.description)
	case n.blank() || n.name.Local == "" && bytes.HasPrefix(n.head, []byte("<?")) && !n.noise:
		e.out = append(e.out, n.head...)
	}
}

// limit removes the attributes that are properties, but for those that keep selects.
func (n *xmpNode) limit(keep func(xml.Name) bool) {
	n.start.Attr = slices.DeleteFunc(n.start.Attr, func(a xml.Attr) bool {
		name := n.resolve(a.Name, true)
		return !structural(a.Name, name) && !keep(name)
	})
}

// inNamespaces returns a function that reports whether a name is in one of the namespaces.
func inNamespaces(namespaces ...string) func(xml.Name) bool {
	return func(name xml.Name) bool { return slices.Contains(namespaces, name.Space) }
}

// blank reports whether a node is white space, or the mark of the byte order.
func (n *xmpNode) blank() bool {
	return n.name.Local == "" && !n.noise && len(bytes.Trim(n.head, " \t\r\n\uFEFF")) == 0
}

// description writes a child of the RDF.
func (e *xmpEditor) description(n *xmpNode) {
	switch {
	case n.name == xml.Name{Space: nsRDF, Local: "Description"}:
		n.limit(func(name xml.Name) bool {
			kept := e.keeps(name) && name.Space != nsContainer
			if kept {
				e.properties++
			}
			return kept
		})
		e.element(n, e.property)
	case n.blank():
		e.out = append(e.out, n.head...)
	}
}

// structural reports whether an attribute is no property.
func structural(raw, name xml.Name) bool {
	return raw.Space == "xmlns" || raw == xml.Name{Local: "xmlns"} || name.Space == nsRDF || name.Space == nsXML
}

// keeps reports whether a property remains.
func (e *xmpEditor) keeps(name xml.Name) bool {
	switch {
	case name.Space == nsContainer:
		return e.length > 0 && name.Local == "Directory"
	case slices.Contains(gainMapNamespaces, name.Space):
		return e.gainMap
	}
	return e.describe && slices.Contains(describingNamespaces, name.Space) && !placed(name.Local)
}

// placed reports whether the name of a property is that of a location, a serial number or a
// thumbnail.
func placed(name string) bool {
	name = strings.ToLower(name)
	return slices.Contains(placeNames, name) || slices.ContainsFunc(placeWords, func(word string) bool { return strings.Contains(name, word) })
}

// property writes a child of a description.
func (e *xmpEditor) property(n *xmpNode) {
	switch {
	case n.name.Local != "" && e.keeps(n.name):
		e.properties++
		if n.name.Space == nsContainer {
			e.list(n)
			return
		}
		e.value(n)
	case n.blank():
		e.out = append(e.out, n.head...)
	}
}

// value writes a property, or a part of it.
func (e *xmpEditor) value(n *xmpNode) {
	if n.noise || placed(n.name.Local) {
		return
	}
	if !e.describe && n.name.Local != "" {
		if n.limit(inNamespaces(gainMapNamespaces...)); n.name.Space != nsRDF && !slices.Contains(gainMapNamespaces, n.name.Space) {
			return
		}
	}
	n.limit(func(name xml.Name) bool { return !placed(name.Local) })
	e.element(n, e.value)
}

// element writes a node, whose children child writes. The start tag is written as it was, unless
// its attributes have changed.
func (e *xmpEditor) element(n *xmpNode, child func(*xmpNode)) {
	e.out = append(e.out, n.tag()...)
	for _, c := range n.children {
		child(c)
	}
	e.out = append(e.out, n.tail...)
}

// tag returns the start tag with the attributes that are left, or a text.
func (n *xmpNode) tag() []byte {
	if n.name.Local == "" {
		return n.head
	}
	d := xml.NewDecoder(bytes.NewReader(n.head))
	if was, err := d.RawToken(); err == nil && slices.Equal(was.(xml.StartElement).Attr, n.start.Attr) {
		return n.head
	}
	var b bytes.Buffer
	b.WriteString("<" + rawName(n.start.Name))
	for _, a := range n.start.Attr {
		b.WriteString(" " + rawName(a.Name) + `="`)
		_ = xml.EscapeText(&b, []byte(a.Value)) // a buffer does not fail
		b.WriteByte('"')
	}
	if bytes.HasSuffix(n.head, []byte("/>")) {
		b.WriteByte('/')
	}
	b.WriteByte('>')
	return b.Bytes()
}

func rawName(name xml.Name) string {
	if name.Space == "" {
		return name.Local
	}
	return name.Space + ":" + name.Local
}

// list writes the list of the images in a file, or a part of it. Only the image and its gain map
// remain.
func (e *xmpEditor) list(n *xmpNode) {
	switch {
	case n.blank():
		e.out = append(e.out, n.head...)
	case n.name == xml.Name{Space: nsRDF, Local: "li"}:
		semantic := n.find("Semantic")
		if semantic == "Primary" || semantic == "GainMap" {
			e.element(n, func(n *xmpNode) { e.item(n, semantic) })
		}
	case n.name.Space == nsRDF, n.name.Space == nsContainer:
		n.limit(inNamespaces())
		e.element(n, e.list)
	}
}

// find returns the value of a property of an item, which is an attribute or an element.
func (n *xmpNode) find(local string) string {
	for _, a := range n.start.Attr {
		if n.resolve(a.Name, true) == (xml.Name{Space: nsItem, Local: local}) {
			return a.Value
		}
	}
	for _, child := range n.children {
		if child.name == (xml.Name{Space: nsItem, Local: local}) && len(child.children) > 0 {
			return string(child.children[0].head)
		}
		if value := child.find(local); value != "" {
			return value
		}
	}
	return ""
}

// item writes a part of an item.
func (e *xmpEditor) item(n *xmpNode, semantic string) {
	attrs := n.start.Attr
	n.start.Attr = nil
	for _, a := range attrs {
		name := n.resolve(a.Name, true)
		kept := structural(a.Name, name)
		if name.Space == nsItem {
			a.Value, kept = e.field(name.Local, a.Value, semantic)
		}
		if kept {
			n.start.Attr = append(n.start.Attr, a)
		}
	}
	switch n.name.Space {
	case nsItem:
		var text []byte
		for _, child := range n.children {
			text = append(text, child.head...)
		}
		value, kept := e.field(n.name.Local, string(text), semantic)
		if kept && len(n.tail) > 0 {
			n.limit(inNamespaces())
			e.element(n, func(*xmpNode) {})
			e.out = append(e.out[:len(e.out)-len(n.tail)], value...)
			e.out = append(e.out, n.tail...)
		}
	case nsContainer, nsRDF:
		e.element(n, func(n *xmpNode) { e.item(n, semantic) })
	case "":
		if n.blank() {
			e.out = append(e.out, n.head...)
		}
	}
}

// field returns the new value of a property of an item, and reports whether it remains. The gain
// map follows the image.
func (e *xmpEditor) field(local, value, semantic string) (string, bool) {
	switch {
	case local == "Length" && semantic == "GainMap":
		return strconv.FormatInt(e.length, 10), true
	case local == "Mime" && strings.HasPrefix(value, "image/"), local == "Semantic", local == "Length" && value == "0", local == "Padding" && value == "0":
		return value, true
	}
	return "", false
}
