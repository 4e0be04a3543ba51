package imaging

import (
	"encoding/xml"
	"strconv"
	"strings"
)

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
		n.limit()
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
			n.limit()
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

// field returns the new value of a property of an item, and reports whether it remains. The gain map
// follows the image.
func (e *xmpEditor) field(local, value, semantic string) (string, bool) {
	switch {
	case local == "Length" && semantic == "GainMap":
		return strconv.FormatInt(e.length, 10), true
	case local == "Mime" && strings.HasPrefix(value, "image/"), local == "Semantic", local == "Length" && value == "0", local == "Padding" && value == "0":
		return value, true
	}
	return "", false
}
