package imaging

import (
	"encoding/xml"
	"net/url"
	"sort"
	"strings"
)

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
