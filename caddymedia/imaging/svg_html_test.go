package imaging_test

import (
	"fmt"
	"strings"
	"testing"

	nethtml "golang.org/x/net/html"

	"github.com/caddymedia/media/caddymedia/imaging"
)

// live is markup that runs a script if an HTML parser reads it as an element.
const live = `<img src="x" onerror="alert(1)">`

// pastes are images in which an HTML parser sees live, or another way out of the SVG. An XML
// parser sees neither.
var pastes = map[string]string{
	"style in title":             svg(`<title><style><!-- </style>` + live + ` --></style></title>`),
	"style in desc":              svg(`<desc><style><!-- </style>` + live + ` --></style></desc>`),
	"textArea in title":          svg(`<title><textArea><!-- </textArea>` + live + ` --></textArea></title>`),
	"title in title":             svg(`<title><title><!-- </title>` + live + ` --></title></title>`),
	"element in title":           svg(`<title><g/><![CDATA[>` + live + `]]></title>`),
	"element in textArea":        svg(`<textArea><tspan/></textArea>`),
	"font with a color":          svg(`<font color="a"><style><!-- </style>` + live + ` --></style></font>`),
	"font with a size":           svg(`<font SIZE="1"><textArea><!-- </textArea>` + live + ` --></textArea></font>`),
	"font with a face":           svg(`<font face="a"><![CDATA[>` + live + `]]></font>`),
	"font under a prefix":        svg(`<font xlink:face="a"/>`),
	"title of an editor":         svg(`<title xmlns="http://ns.adobe.com/a/"><g><style><!-- </style>` + live + `--></style></g></title>`),
	"desc of an editor":          svg(`<DESC xmlns="http://www.serif.com/"><x/><![CDATA[>` + live + `]]></DESC>`),
	"textarea of an editor":      svg(`<textarea xmlns="http://www.serif.com/"><!-- </textarea>` + live + ` --></textarea>`),
	"noscript of an editor":      svg(`<noscript xmlns="http://www.serif.com/"/>`),
	"math of an editor":          svg(`<math xmlns="http://www.serif.com/"/>`),
	"comment with an end tag":    svg(`<g><!-- </STYLE>` + live + ` --></g>`),
	"comment in a document type": `<!DOCTYPE svg <!-- >` + live + ` --> >` + svg(``),
	"comment in a subset":        `<!DOCTYPE svg [<!-- >` + live + ` -->]>` + svg(``),

	"style in a prefixed root": `<s:svg xmlns:s="` + svgSpace + `"><style xmlns="` + svgSpace + `"><!-- </style>` + live + ` --></style></s:svg>`,
	"title in a prefixed root": `<s:svg xmlns:s="` + svgSpace + `"><title xmlns="` + svgSpace + `"/></s:svg>`,
	"CDATA in a prefixed root": `<s:svg xmlns:s="` + svgSpace + `"><s:desc><![CDATA[>` + live + `]]></s:desc></s:svg>`,

	"HTML in Illustrator's part":         svg(illustrator(`<p xmlns="http://www.w3.org/1999/xhtml"/>`)),
	"script in Illustrator's part":       svg(illustrator(`<script/>`)),
	"style in Illustrator's part":        svg(illustrator(`<style><!-- </style>` + live + ` --></style>`)),
	"CDATA in Illustrator's part":        svg(illustrator(`<i:pgfRef><![CDATA[>` + live + `]]></i:pgfRef>`)),
	"style behind an open element":       svg(illustrator(`<i:pgfRef/>`) + `<style><!-- </style>` + live + ` --></style>`),
	"style behind two cases of a name":   svg(illustrator(`<i:A><i:a/></i:A>`) + `<style><!-- </style>` + live + ` --></style>`),
	"title behind an open element":       svg(illustrator(`<region xmlns="http://ns.adobe.com/Flows/1.0/"><b/></region>`) + `<title/>`),
	"CDATA behind an open element":       svg(illustrator(`<i:pgfRef/>`) + `<text><![CDATA[>` + live + `]]></text>`),
	"srcset behind an open element":      svg(illustrator(`<i:pgfRef/>`) + `<image srcset="https://evil.example/a 1x"/>`),
	"foreignObject without an extension": svg(`<switch><foreignObject requiredExtensions=""><g/></foreignObject></switch>`),

	"entity that HTML has":          `<!DOCTYPE svg [<!ENTITY colon "x">]>` + svg(`<a href="#javascript&colon;alert(1)"/>`),
	"entity that begins as in HTML": `<!DOCTYPE svg [<!ENTITY ltx "x">]>` + svg(``),
	"entity that XML has":           `<!DOCTYPE svg [<!ENTITY lt "x">]>` + svg(``),
	"entity twice":                  `<!DOCTYPE svg [<!ENTITY x "#a"><!ENTITY x "//evil.example/">]>` + svg(`<use href="&x;"/>`),
	"entity that is an address":     `<!DOCTYPE svg [<!ENTITY x "//evil.example/">]>` + svg(`<use href="&x;"/>`),
	"entity that splits an address": `<!DOCTYPE svg [<!ENTITY x "script">]>` + svg(`<a href="java&x;:alert(1)"/>`),
	"entity that is a style":        `<!DOCTYPE svg [<!ENTITY x "url(//evil.example/)">]>` + svg(`<g style="fill:&x;"/>`),
	"entity in an entity":           `<!DOCTYPE svg [<!ENTITY x "y"><!ENTITY y "&x;&x;">]>` + svg(`<g id="&y;"/>`),
	"entity with an escape":         `<!DOCTYPE svg [<!ENTITY x "\">]>` + svg(`<g style="fill:&x;75rl(//evil.example/)"/>`),
	"namespace by default":          `<!DOCTYPE svg [<!ATTLIST svg xmlns:i CDATA #FIXED "http://www.w3.org/2000/svg">]>` + svg(``),
	"prefix of links by default":    `<!DOCTYPE svg [<!ATTLIST svg xmlns:xlink CDATA #FIXED "http://www.w3.org/2000/svg">]>` + svg(``),
	"copy of itself":                svg(`<g id="a"><use href="#a"/></g>`),
	"copy of itself, by a copy":     svg(`<g id="a"><use href="#b"/></g><g id="b"><use href="#%61"/></g>`),
}

const svgSpace = "http://www.w3.org/2000/svg"

// illustrator returns the part of an image that Illustrator writes for itself.
func illustrator(inner string) string {
	return `<switch><foreignObject requiredExtensions="http://ns.adobe.com/AdobeIllustrator/10.0/" width="1" height="1"
		xmlns:i="http://ns.adobe.com/AdobeIllustrator/10.0/">` + inner + `</foreignObject><g><path d="M0 0"/></g></switch>`
}

func TestPastedSVGAttacksAreRefused(t *testing.T) {
	t.Parallel()
	for name, text := range pastes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := check([]byte(text), "svg", imaging.Options{})
			if verdictOf(err) != refused {
				t.Errorf("%v (%s): %s", err, verdictOf(err), text)
			}
			t.Log(err)
		})
	}
}

// TestSVGOfProgramsPasses: the output of drawing programs passes. A page with the pasted image
// has only the elements of the image.
func TestSVGOfProgramsPasses(t *testing.T) {
	t.Parallel()
	const inkscape = `xmlns:inkscape="http://www.inkscape.org/namespaces/inkscape"`
	entities := `<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.0//EN" "http://www.w3.org/TR/2001/REC-SVG-20010904/DTD/svg10.dtd" [
		<!ENTITY ns_svg "http://www.w3.org/2000/svg"> <!ENTITY ns_ai 'http://ns.adobe.com/AdobeIllustrator/10.0/'>
		<!ENTITY st0 "fill:url(#XMLID_9_);opacity:0.2;"> <!ENTITY st3 "font-family:'MyriadPro-Regular';"> ]>`
	for name, text := range map[string]string{
		"Inkscape, path effect":        svg(`<defs ` + inkscape + `><inkscape:path-effect only_selected="false" effect="fillet_chamfer"/></defs>`),
		"Illustrator, editing":         svg(illustrator(`<i:pgfRef xlink:href="#adobe_illustrator_pgf"></i:pgfRef>`) + `<style>a > b{fill:red}</style>`),
		"Illustrator, closed by slash": svg(illustrator(`<i:pgfRef xlink:href="#adobe_illustrator_pgf"/>`)),
		"Illustrator, replacement":     svg(illustrator(`<imageReplacement xmlns="http://ns.adobe.com/ImageReplacement/1.0/" x="0"></imageReplacement>`)),
		"Illustrator, text that flows": svg(illustrator(`<flow xmlns="http://ns.adobe.com/Flows/1.0/"><p><span>9</span></p></flow>`)),
		"Illustrator, entities":        entities + `<svg xmlns="&ns_svg;" xmlns:i="&ns_ai;"><g style="&st0;" i:layer="yes"/><i:pgf id="a"><![CDATA[ eNrs ]]></i:pgf></svg>`,
		"Sodipodi, prefix of links":    `<!DOCTYPE svg [<!ATTLIST svg xmlns:xlink CDATA #FIXED "http://www.w3.org/1999/xlink">]>` + svg(``),
		"empty subset":                 `<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/a"[]>` + svg(""),
		"prefixed root":                `<s:svg xmlns:s="` + svgSpace + `"><s:style><![CDATA[a b{fill:red}]]></s:style><s:title>a &gt; b</s:title></s:svg>`,
		"text as CDATA":                svg(`<title><![CDATA[>` + live + `]]></title><text><![CDATA[` + live + `]]></text>`),
		"empty title":                  svg(`<title/><desc></desc><style/><g/>`),
		"title of Dublin Core":         svg(`<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title><dc:creator/></dc:title></metadata>`),
		"font of SVG":                  svg(`<font horiz-adv-x="9"><font-face font-family="a"/></font>`),
		"commented markup":             svg(`<!-- <g>` + live + `</g> -->`),
		"copies of glyphs":             svg(`<defs><path id="a"/></defs>` + strings.Repeat(`<use xlink:href="#a" href="#a"/>`, 20_000)),
		"copies of what is not there":  svg(strings.Repeat(`<use href="#a"/>`, 1000)),
		"copies of copies, a few":      svg(copies(4)),
		"copies of an image elsewhere": svg(`<use href="` + onePixel + `#a"/>`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := check([]byte(text), "svg", imaging.Options{}); err != nil {
				t.Errorf("%v: %.300s", err, text)
			}
			if out := escapes(text); out != "" {
				t.Errorf("a page sees %s: %.300s", out, text)
			}
		})
	}
}

// copies returns an image of groups, each of which copies the previous one ten times.
func copies(depth int) string {
	var b strings.Builder
	b.WriteString(`<g id="a0"><path d="M0 0"/></g>`)
	for i := range depth {
		fmt.Fprintf(&b, `<g id="a%d">%s</g>`, i+1, strings.Repeat(fmt.Sprintf(`<use href="#a%d"/>`, i), 10))
	}
	return b.String()
}

func TestSVGCopiesAreBounded(t *testing.T) {
	t.Parallel()
	for depth, want := range map[int]verdict{3: passes, 4: passes, 5: tooLarge, 12: tooLarge, 1000: tooLarge} {
		if _, err := check([]byte(svg(copies(depth))), "svg", imaging.Options{}); verdictOf(err) != want {
			t.Errorf("%d deep: got %v, want %s", depth, err, want)
		}
	}
}

// TestSVGEntitiesAreBounded: a few bytes for each reference to an entity may expand to many.
func TestSVGEntitiesAreBounded(t *testing.T) {
	t.Parallel()
	subset := `<!DOCTYPE svg [<!ENTITY x "` + strings.Repeat("a", 1000) + `">]>`
	for references, want := range map[int]verdict{1000: passes, 3000: tooLarge} {
		text := subset + svg(`<g id="`+strings.Repeat("&x;", references)+`"/>`)
		if _, err := check([]byte(text), "svg", imaging.Options{}); verdictOf(err) != want {
			t.Errorf("%d references: got %v, want %s", references, err, want)
		}
	}
}

// escapes describes content of a page beyond the image pasted into it: a foreign HTML element, or
// anything that runs. It returns "" if there is none.
func escapes(text string) string {
	page, err := nethtml.Parse(strings.NewReader("<!doctype html><body>" + text))
	if err != nil {
		return err.Error()
	}
	for node := range page.Descendants() {
		if node.Type != nethtml.ElementNode {
			continue
		}
		switch node.Data {
		case "script", "iframe", "embed", "object", "link", "meta", "base", "form", "video", "audio":
			return "the element " + node.Data
		case "style", "title", "textarea", "xmp", "noscript", "plaintext":
			if node.Namespace == "" {
				return "text of the HTML element " + node.Data
			}
		}
		for _, a := range node.Attr {
			if strings.HasPrefix(a.Key, "on") && !strings.Contains(a.Key, "_") {
				return "the attribute " + a.Key
			}
		}
	}
	return ""
}
