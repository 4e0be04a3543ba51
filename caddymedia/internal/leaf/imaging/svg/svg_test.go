package svg

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/imagingtest"
)

// verdict is the outcome of a check.
type verdict string

const (
	passes   verdict = "passes"
	refused  verdict = "refused"
	tooLarge verdict = "too large"
	failed   verdict = "another error"
)

func verdictOf(err error) verdict {
	reason, ok := errors.AsType[*Error](err)
	switch {
	case err == nil:
		return passes
	case ok && reason.TooLarge:
		return tooLarge
	case ok && reason.Message != "":
		return refused
	}
	return failed
}

func check(text string, strict bool) error {
	return Check(bufio.NewReader(strings.NewReader(text)), int64(len(text)), strict)
}

const svgOpen = `<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">`

// svg wraps body in a root element.
func svg(body string) string { return svgOpen + body + `</svg>` }

const onePixel = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// attacks are images that run or fetch something, or that a browser may read differently from the
// check.
var attacks = map[string]string{
	"script element":                       svg(`<script>alert(1)</script>`),
	"script element, empty, by address":    svg(`<script href="https://evil.example/x.js"/>`),
	"script element under a prefix":        `<s:svg xmlns:s="http://www.w3.org/2000/svg"><s:script>alert(1)</s:script></s:svg>`,
	"script element in CDATA":              svg(`<script><![CDATA[alert(1)]]></script>`),
	"script element of XHTML":              svg(`<script xmlns="http://www.w3.org/1999/xhtml">alert(1)</script>`),
	"script element in metadata":           svg(`<metadata><script>alert(1)</script></metadata>`),
	"script element below an editor's":     svg(`<g xmlns:i="http://ns.adobe.com/x/"><i:pgf><script>alert(1)</script></i:pgf></g>`),
	"script element in upper case":         svg(`<SCRIPT>alert(1)</SCRIPT>`),
	"script element after the root closed": svg(``) + `<script xmlns="http://www.w3.org/2000/svg">alert(1)</script>`,
	"foreignObject":                        svg(`<foreignObject><p xmlns="http://www.w3.org/1999/xhtml">x</p></foreignObject>`),
	"iframe":                               svg(`<iframe src="https://evil.example/"/>`),
	"iframe of XHTML":                      svg(`<x:iframe xmlns:x="http://www.w3.org/1999/xhtml" src="#a"/>`),
	"embed":                                svg(`<embed src="x.swf"/>`),
	"object":                               svg(`<object data="x.html"/>`),
	"form":                                 svg(`<form action="https://evil.example/"><input/></form>`),
	"audio with an error event":            svg(`<audio src="#x" onerror="alert(1)"/>`),
	"handler":                              svg(`<handler type="text/javascript">alert(1)</handler>`),
	"listener":                             svg(`<ev:listener xmlns:ev="http://www.w3.org/2001/xml-events" event="load"/>`),
	"element of no namespace":              svg(`<g xmlns=""/>`),
	"element of an unknown namespace":      svg(`<z:thing xmlns:z="urn:z"/>`),
	"element of an undeclared prefix":      svg(`<z:script>alert(1)</z:script>`),

	"event attribute on the root":         strings.Replace(svg(``), "<svg", `<svg onload="alert(1)"`, 1),
	"event attribute in upper case":       svg(`<g OnClick="alert(1)"/>`),
	"event attribute of a future kind":    svg(`<g onfoobar="alert(1)"/>`),
	"event attribute under a prefix":      svg(`<g xlink:onload="alert(1)"/>`),
	"event attribute with entities":       svg(`<g onload="&#97;lert(1)"/>`),
	"event attribute of an animation":     svg(`<set attributeName="x" onbegin="alert(1)"/>`),
	"event attribute on editor's element": svg(`<s:namedview xmlns:s="http://sodipodi.sourceforge.net/DTD/sodipodi-0.dtd" onload="x"/>`),
	"xml:base":                            svg(`<g xml:base="https://evil.example/a.svg"><use href="#a"/></g>`),
	"ping":                                svg(`<a href="https://a.example/" ping="https://evil.example/"/>`),

	"javascript link":                       svg(`<a href="javascript:alert(1)">x</a>`),
	"javascript link, xlink":                svg(`<a xlink:href="javascript:alert(1)">x</a>`),
	"javascript link, another prefix":       `<svg xmlns="http://www.w3.org/2000/svg" xmlns:q="http://www.w3.org/1999/xlink"><a q:href="javascript:alert(1)"/></svg>`,
	"javascript link, mixed case":           svg(`<a href="JaVaScRiPt:alert(1)">x</a>`),
	"javascript link, decimal entities":     svg(`<a href="&#106;&#97;vascript:alert(1)">x</a>`),
	"javascript link, hex entities":         svg(`<a href="&#x6A;avascript&#x3A;alert(1)">x</a>`),
	"javascript link, tab inside":           svg(`<a href="java&#9;script:alert(1)">x</a>`),
	"javascript link, line end inside":      svg("<a href=\"java\nscript:alert(1)\">x</a>"),
	"javascript link, spaces before":        svg(`<a href="  javascript:alert(1)">x</a>`),
	"javascript link, control before":       svg("<a href=\"&#x85;javascript:alert(1)\">x</a>"),
	"javascript link, zero width inside":    svg("<a href=\"java\u200bscript:alert(1)\">x</a>"),
	"vbscript link":                         svg(`<a href="vbscript:msgbox(1)">x</a>`),
	"data link to HTML":                     svg(`<a href="data:text/html,&lt;script>alert(1)&lt;/script>">x</a>`),
	"data link to HTML, base64":             svg(`<a href="data:text/html;base64,PHNjcmlwdD4=">x</a>`),
	"javascript split in an animation":      svg(`<animate values="java&#9;script:alert(1)"/>`),
	"vbscript split in an animation":        svg(`<animate values="vb&#10;script:x"/>`),
	"livescript in an animation":            svg(`<animate values="livescript:x"/>`),
	"data XML in an animation":              svg(`<animate values="data:text/xml,x"/>`),
	"data XHTML in an animation":            svg(`<animate values="data:application/xhtml+xml,x"/>`),
	"data SVG in an animation":              svg(`<animate values="data:image/svg+xml,x"/>`),
	"data HTML in an animation":             svg(`<animate values="data:text/html,x"/>`),
	"vbscript in an animation":              svg(`<animate values="vbscript:x"/>`),
	"data image that is SVG":                svg(`<image href="data:image/svg+xml;base64,PHN2Zz4="/>`),
	"data image that is SVG, in use":        svg(`<use href="data:image/svg+xml,&lt;svg/>#a"/>`),
	"data image not in base64":              svg(`<image href="data:image/png,abc"/>`),
	"data image of an unknown kind":         svg(`<image href="data:image/x-icon;base64,AAAA"/>`),
	"data of no type":                       svg(`<image href="data:,x"/>`),
	"ftp link":                              svg(`<a href="ftp://evil.example/">x</a>`),
	"remote image":                          svg(`<image href="https://evil.example/p.png"/>`),
	"remote image, xlink":                   svg(`<image xlink:href="http://evil.example/p.png"/>`),
	"remote image, src":                     svg(`<image src="http://evil.example/p.png"/>`),
	"remote filter image":                   svg(`<filter><feImage href="http://evil.example/p.png"/></filter>`),
	"remote use":                            svg(`<use href="https://evil.example/a.svg#b"/>`),
	"relative use":                          svg(`<use href="a.svg#b"/>`),
	"use with a no-break space before #":    svg("<use href=\"\u00a0#b\"/>"),
	"remote text path":                      svg(`<text><textPath href="https://evil.example/a.svg#b">x</textPath></text>`),
	"remote gradient":                       svg(`<linearGradient href="https://evil.example/a.svg#b"/>`),
	"remote font":                           svg(`<font-face><font-face-src><font-face-uri xlink:href="http://evil.example/f"/></font-face-src></font-face>`),
	"remote colour profile":                 svg(`<color-profile xlink:href="http://evil.example/p.icc"/>`),
	"https link on an element that is no a": svg(`<g href="https://evil.example/"/>`),
	"https link on an editor's a":           svg(`<i:a xmlns:i="http://ns.adobe.com/i/" href="https://evil.example/"/>`),

	"animated href":                svg(`<a><animate attributeName="href" to="#x"/></a>`),
	"animated xlink:href":          svg(`<a><set attributeName="xlink:href" to="#x"/></a>`),
	"animated href, another case":  svg(`<a><set attributeName=" HREF " to="#x"/></a>`),
	"animated href, entity":        svg(`<a><set attributeName="hr&#101;f" to="#x"/></a>`),
	"animated src":                 svg(`<set attributeName="src" to="x"/>`),
	"animated xml:base":            svg(`<set attributeName="xml:base" to="x"/>`),
	"animated animation":           svg(`<set attributeName="attributeName" to="x"/>`),
	"animated event":               svg(`<g><set attributeName="onclick" to="alert(1)"/></g>`),
	"animation to javascript":      svg(`<a><animate attributeName="x" values="#a;javascript:alert(1)"/></a>`),
	"animation to a remote filter": svg(`<g><set attributeName="filter" to="url(https://evil.example/f.svg#a)"/></g>`),

	"style import":                     svg(`<style>@import "https://evil.example/a.css";</style>`),
	"style import by url":              svg(`<style>@import url(https://evil.example/a.css);</style>`),
	"style import, escaped":            svg(`<style>@\69mport "https://evil.example/a.css";</style>`),
	"style import, split by CDATA":     svg(`<style>@im<![CDATA[port]]> "https://evil.example/a.css";</style>`),
	"style import, split by a comment": svg(`<style>@im<!-- -->port "https://evil.example/a.css";</style>`),
	"style import, entity":             svg(`<style>@&#105;mport "x";</style>`),
	"style remote background":          svg(`<style>g{background:url(https://evil.example/a)}</style>`),
	"style remote, quoted":             svg(`<style>g{background:url( "https://evil.example/a")}</style>`),
	"style remote, upper case":         svg(`<style>g{background:URL(//evil.example/a)}</style>`),
	"style remote, escaped function":   svg(`<style>g{background:\75\72\6c(https://evil.example/a)}</style>`),
	"style remote, long escape":        svg(`<style>g{background:\000075 rl(https://evil.example/a)}</style>`),
	"style remote, letter escape":      svg(`<style>g{background:u\rl(https://evil.example/a)}</style>`),
	"style remote, hidden in strings":  svg(`<style>a{content:"/*";background:url(https://evil.example/a);content:"*/"}</style>`),
	"style remote, second url":         svg(`<style>g{mask:url(#a);background:url(https://evil.example/a)}</style>`),
	"style remote, nested quotes":      svg(`<style>g{background:url("'https://evil.example/a")}</style>`),
	"style relative":                   svg(`<style>g{background:url(a.png)}</style>`),
	"style SVG data":                   svg(`<style>g{background:url(data:image/svg+xml;base64,AAAA)}</style>`),
	"style image-set":                  svg(`<style>g{background:image-set("https://evil.example/a" 1x)}</style>`),
	"style -webkit-image-set":          svg(`<style>g{background:-webkit-image-set("https://evil.example/a" 1x)}</style>`),
	"style cross-fade":                 svg(`<style>g{background:cross-fade("https://evil.example/a" 50%)}</style>`),
	"style image function":             svg(`<style>g{background:image("https://evil.example/a")}</style>`),
	"style src function":               svg(`<style>g{background:src("https://evil.example/a")}</style>`),
	"style vbscript":                   svg(`<style>g{x:vbscript:msgbox(1)}</style>`),
	"style remote font":                svg(`<style>@font-face{font-family:x;src:url(https://evil.example/f.woff)}</style>`),
	"style expression":                 svg(`<style>g{width:expression(alert(1))}</style>`),
	"style expression, split":          svg(`<style>g{width:exp/**/ression(alert(1))}</style>`),
	"style binding":                    svg(`<style>g{-moz-binding:url(#x)}</style>`),
	"style behavior":                   svg(`<style>g{behavior:url(#x)}</style>`),
	"style javascript":                 svg(`<style>g{x:javascript:alert(1)}</style>`),
	"style with an element":            svg(`<style>@im<g/>port "x";</style>`),
	"style attribute remote":           svg(`<g style="background:url(https://evil.example/a)"/>`),
	"style attribute escaped":          svg(`<g style="background:\75rl(https://evil.example/a)"/>`),
	"style attribute entity":           svg(`<g style="background:&#117;rl(https://evil.example/a)"/>`),
	"presentation attribute remote":    svg(`<g fill="url(https://evil.example/a.svg#b)"/>`),
	"presentation attribute relative":  svg(`<g filter="url('a.svg#b')"/>`),
	"presentation attribute escaped":   svg(`<g mask="\75 rl(https://evil.example/a.svg#b)"/>`),
	"cursor remote":                    svg(`<g cursor="url(https://evil.example/c.cur), auto"/>`),

	"xml-stylesheet":                 `<?xml version="1.0"?><?xml-stylesheet href="https://evil.example/a.css"?>` + svg(``),
	"xml-stylesheet without xml":     `<?xml-stylesheet href="https://evil.example/a.xsl" type="text/xsl"?>` + svg(``),
	"processing instruction inside":  svg(`<?php system('id'); ?>`),
	"instruction of PHP, upper case": svg(`<?PHP system('id'); ?>`),
	"instruction of XSLT":            `<?xml-StyleSheet href="a"?>` + svg(``),
	"import of behaviour":            svg(`<?import implementation="a.htc"?>`),
	"xml declaration inside":         svg(`<?xml version="1.0" encoding="iso-8859-1"?>`),
	"internal entity with a tag":     `<!DOCTYPE svg [<!ENTITY x "<g/>">]>` + svg(`<text>&x;</text>`),
	"two document types":             `<!DOCTYPE svg><!DOCTYPE svg>` + svg(""),
	"external entity":                `<!DOCTYPE svg [<!ENTITY x SYSTEM "file:///etc/passwd">]>` + svg(`<text>&x;</text>`),
	"parameter entity":               `<!DOCTYPE svg [<!ENTITY % x SYSTEM "http://evil.example/x.dtd">%x;]>` + svg(``),
	"entity bomb":                    `<!DOCTYPE svg [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;">]>` + svg(`<text>&b;</text>`),
	"default attributes in the DTD":  `<!DOCTYPE svg [<!ATTLIST svg onload CDATA "alert(1)">]>` + svg(``),
	"foreign DTD":                    `<!DOCTYPE svg SYSTEM "http://evil.example/x.dtd">` + svg(``),
	"foreign DTD under a known name": `<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://evil.example/x.dtd">` + svg(``),
	"known DTD with a subset":        `<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/x.dtd" [<!ELEMENT x ANY>]>` + svg(``),
	"document type inside":           svg(`<!DOCTYPE svg>`),
	"directive inside":               svg(`<!ELEMENT x>`),
	"unknown entity":                 svg(`<text>&nbsp;</text>`),
	"UTF-7":                          `<?xml version="1.0" encoding="UTF-7"?>` + svg(`+ADw-script+AD4-`),
	"UTF-16 declared":                `<?xml version="1.0" encoding="UTF-16"?>` + svg(``),
	"encoding a browser reads alone": `<?xml version="1.0" encoding = "UTF-7"?>` + svg(``),
	"encoding behind a decoy":        `<?xml version="1.0" encoding="UTF-7" x="encoding='utf-8'"?>` + svg(``),
	"UTF-16 with its mark":           "\xff\xfe<\x00s\x00v\x00g\x00>\x00",
	"UTF-16 without its mark":        "<\x00s\x00v\x00g\x00>\x00",
	"broken UTF-8":                   svg("<text>\xff</text>"),
	"compressed":                     "\x1f\x8b\x08\x00\x00\x00\x00\x00",
	"no namespace":                   `<svg><path d="M0 0"/></svg>`,
	"another root":                   `<g xmlns="http://www.w3.org/2000/svg"/>`,
	"HTML around an SVG":             `<html>` + svg(``) + `</html>`,
	"two roots":                      svg(``) + svg(``),
	"text before the root":           `hello ` + svg(``),
	"text after the root":            svg(``) + `hello`,
	"not closed":                     svgOpen + `<g>`,
	"closed in the wrong order":      svgOpen + `<g></svg></g>`,
	"attribute without quotes":       svg(`<g id=a/>`),
	"name with two colons":           svg(`<a:b:c/>`),
	"attribute that is a colon":      svg(`<g :onload="alert(1)"/>`),

	"HTML in Illustrator's part":         svg(illustrator(`<p xmlns="http://www.w3.org/1999/xhtml"/>`)),
	"script in Illustrator's part":       svg(illustrator(`<script/>`)),
	"srcset beside Illustrator's part":   svg(illustrator(`<i:pgfRef/>`) + `<image srcset="https://evil.example/a 1x"/>`),
	"foreignObject without an extension": svg(`<switch><foreignObject requiredExtensions=""><g/></foreignObject></switch>`),

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

func TestSVGImagesPass(t *testing.T) {
	t.Parallel()
	for name, image := range map[string]string{
		"nothing in it":               svg(``),
		"declaration and BOM":         "\xef\xbb\xbf<?xml version='1.0' encoding='utf-8' standalone='no'?>\r\n" + svg(``),
		"latin-1":                     `<?xml version="1.0" encoding="ISO-8859-1"?>` + svg("<text>\xe9\xff</text>"),
		"doctype 1.1":                 `<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd">` + svg(``),
		"doctype 1.0":                 `<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.0//EN" 'http://www.w3.org/TR/2001/REC-SVG-20010904/DTD/svg10.dtd'>` + svg(``),
		"doctype over two lines":      "<!DOCTYPE svg PUBLIC \"-//W3C//DTD SVG 1.1 Tiny//EN\"\n  \"http://www.w3.org/Graphics/SVG/1.1/DTD/svg11-tiny.dtd\">\n" + svg(``),
		"doctype alone":               `<!DOCTYPE svg>` + svg(``),
		"comment before and after":    `<!-- Generator: X -->` + svg(`<!-- x -->`) + `<!-- y -->`,
		"prefix":                      `<s:svg xmlns:s="http://www.w3.org/2000/svg"><s:circle r="3"/></s:svg>`,
		"web link":                    svg(`<a href="https://example.com/" xlink:href="http://example.com/">x</a>`),
		"links":                       svg(`<a href="mailto:a@example.com"/><a href="TEL:+1"/><a href="/about"/><a href="a b.html#x:y"/><a href="?x=1"/><a href="//example.com/"/><a href="../a.svg"/><a href="javascript%3Aalert(1)"/>`),
		"fonts":                       svg(`<style>@font-face{src:url("data:application/font-woff;base64,d09GRg=="),url(data:font/woff2;base64,AAAA),url(data:application/x-font-ttf;charset=utf-8;base64,AAAA)}</style>`),
		"US-ASCII":                    `<?xml version="1.0" encoding="us-ascii" standalone="no"?>` + svg(``),
		"ASCII":                       `<?xml version="1.0" encoding="ASCII"?>` + svg(``),
		"utf8":                        `<?xml version="1.0" encoding="utf8"?>` + svg(`<text>é</text>`),
		"latin1":                      `<?xml version="1.0" encoding="latin1"?>` + svg("<text>\xe9</text>"),
		"PlantUML":                    `<?xml version="1.0" encoding="us-ascii"?><?plantuml 1.2024.7?>` + svg(`<?plantuml-src SoWkIImgAStDuNBAJrBGjLDmpCbCJbMmKiX8pSd9?>`),
		"credentials":                 svg(`<metadata><c2pa:manifest xmlns:c2pa="http://c2pa.org/manifest">AA==</c2pa:manifest></metadata>`),
		"unknown metadata":            svg(`<metadata><a xmlns="urn:x"><b:c xmlns:b="urn:y" d="e"/></a></metadata>`),
		"fragments":                   svg(`<use href="#a"/><use xlink:href=" #a"/><linearGradient xlink:href=""/>`),
		"raster image":                svg(`<image href="` + onePixel + `"/>`),
		"raster image in lines":       svg(`<image href="` + strings.ReplaceAll(onePixel, "A", "A\n") + `"/>`),
		"raster image with charset":   svg(`<image href="data:image/jpg;charset=utf-8;base64,AAAA"/>`),
		"raster image in a style":     svg(`<style>g{background:url("` + onePixel + `")}</style>`),
		"style":                       svg(`<style type="text/css"><![CDATA[.a > .b{fill:url( '#g' );mask:url();mask:url("")}]]></style>`),
		"style with a namespace":      svg(`<style>/* note: a, b */ @media (prefers-color-scheme:dark){:root{color:#fff}}</style>`),
		"style scrolling smoothly":    svg(`<svg style="scroll-behavior:smooth"/>`),
		"style with an escape":        svg(`<style>.\31 0{content:"\201C"}</style>`),
		"fill by fragment":            svg(`<g fill="url(#a) red" style="filter:url(&quot;#f&quot;)"/>`),
		"transform and path":          svg(`<path transform="matrix(1 0 0 1 2 3) rotate(45)" d="M0 0h9v9z"/>`),
		"animations":                  svg(`<rect><animate attributeName="opacity" values="0;1"/><animateTransform attributeName="transform" type="rotate"/><animateMotion><mpath href="#p"/></animateMotion><set attributeName="class" to="a"/></rect>`),
		"filter":                      svg(`<filter id="f"><feGaussianBlur stdDeviation="2"/><feMerge><feMergeNode in="x"/></feMerge></filter>`),
		"switch and language":         svg(`<switch><text systemLanguage="cs">á</text></switch>`),
		"windows path in inkscape":    svg(`<g xmlns:inkscape="http://www.inkscape.org/namespaces/inkscape" inkscape:export-filename="C:\Users\a\b.png"/>`),
		"windows path in a data name": svg(`<g data-name="C:\url\b.png"/>`),
		"licence in metadata": svg(`<metadata xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:cc="http://creativecommons.org/ns#"
			xmlns:dc="http://purl.org/dc/elements/1.1/"><rdf:RDF><cc:Work rdf:about=""><dc:format>image/svg+xml</dc:format>
			<cc:license rdf:resource="https://creativecommons.org/licenses/by/4.0/"/></cc:Work></rdf:RDF></metadata>`),
		"sodipodi view":       svg(`<s:namedview xmlns:s="http://sodipodi.sourceforge.net/DTD/sodipodi-0.dtd" pagecolor="#fff"/>`),
		"foreign attribute":   svg(`<g xmlns:x="urn:anything" x:kind="a"/>`),
		"depth of 100":        svg(strings.Repeat("<g>", 99) + strings.Repeat("</g>", 99)),
		"text with markup":    svg(`<text>&lt;script&gt;javascript:alert(1)&lt;/script&gt; @import</text>`),
		"title mentions time": svg(`<title>10:30</title><desc aria-label="a: b">x</desc>`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := check(image, true); err != nil {
				t.Errorf("%v: %s", err, image)
			}
		})
	}
}

// TestSVGSizeIsCountedWhileReading: the size argument may be wrong, so the bytes read are counted
// as well.
func TestSVGSizeIsCountedWhileReading(t *testing.T) {
	t.Parallel()
	err := Check(bufio.NewReader(strings.NewReader(svg(strings.Repeat(" ", 3<<20)))), 100, true)
	imagingtest.Equal(t, verdictOf(err), tooLarge, err)
}

const svgSpace = "http://www.w3.org/2000/svg"

// illustrator returns the part of an image that Illustrator writes for itself.
func illustrator(inner string) string {
	return `<switch><foreignObject requiredExtensions="http://ns.adobe.com/AdobeIllustrator/10.0/" width="1" height="1"
		xmlns:i="http://ns.adobe.com/AdobeIllustrator/10.0/">` + inner + `</foreignObject><g><path d="M0 0"/></g></switch>`
}

func TestAttacksAreRefused(t *testing.T) {
	t.Parallel()
	for name, text := range attacks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := check(text, true)
			imagingtest.Equal(t, verdictOf(err), refused, err, "(", ")", text)
			t.Log(err)
		})
	}
}

// TestSVGOfProgramsPasses: the output of drawing programs passes.
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
		"text as CDATA":                svg(`<title><![CDATA[><img src="x">]]></title><text><![CDATA[<img src="x">]]></text>`),
		"empty title":                  svg(`<title/><desc></desc><style/><g/>`),
		"title of Dublin Core":         svg(`<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title><dc:creator/></dc:title></metadata>`),
		"font of SVG":                  svg(`<font horiz-adv-x="9"><font-face font-family="a"/></font>`),
		"commented markup":             svg(`<!-- <g></g> -->`),
		"copies of glyphs":             svg(`<defs><path id="a"/></defs>` + strings.Repeat(`<use xlink:href="#a" href="#a"/>`, 20_000)),
		"copies of what is not there":  svg(strings.Repeat(`<use href="#a"/>`, 1000)),
		"copies of copies, a few":      svg(copies(4)),
		"copies of an image elsewhere": svg(`<use href="` + onePixel + `#a"/>`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := check(text, true); err != nil {
				t.Errorf("%v: %.300s", err, text)
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
		if err := check(svg(copies(depth)), true); verdictOf(err) != want {
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
		if err := check(text, true); verdictOf(err) != want {
			t.Errorf("%d references: got %v, want %s", references, err, want)
		}
	}
}

// TestLimitsOfSVG: each limit, at its value and just above. No option changes them.
func TestLimitsOfSVG(t *testing.T) {
	t.Parallel()
	const empty = len(svgOpen) + len("</svg>")
	for name, c := range map[string]struct {
		image string
		want  verdict
	}{
		"2 MiB":                    {svg(strings.Repeat(" ", 2<<20-empty)), passes},
		"a byte more":              {svg(strings.Repeat(" ", 2<<20-empty+1)), tooLarge},
		"100 elements deep":        {svg(strings.Repeat("<g>", 99) + strings.Repeat("</g>", 99)), passes},
		"101 elements deep":        {svg(strings.Repeat("<g>", 100) + strings.Repeat("</g>", 100)), tooLarge},
		"200,000 parts":            {svg(strings.Repeat("<g/>", 99_999)), passes},
		"a part more":              {svg(strings.Repeat("<g/>", 99_999) + "x"), tooLarge},
		"10,000 attributes":        {`<svg xmlns="http://www.w3.org/2000/svg"><g ` + strings.Repeat(`a="" `, 10_000) + `/></svg>`, passes},
		"an attribute more":        {`<svg xmlns="http://www.w3.org/2000/svg"><g ` + strings.Repeat(`a="" `, 10_001) + `/></svg>`, tooLarge},
		"a name of a megabyte":     {svg("<" + strings.Repeat("a", 1<<20) + "/>"), refused},
		"a comment of a megabyte":  {svg("<!--" + strings.Repeat("a", 1<<20) + "-->"), passes},
		"a value of a megabyte":    {svg(`<g id="` + strings.Repeat("a", 1<<20) + `"/>`), passes},
		"a section of a megabyte":  {svg("<![CDATA[" + strings.Repeat("]", 1<<20) + "]]>"), passes},
		"a document type of stars": {"<!DOCTYPE svg " + strings.Repeat("<", 1<<20) + ">" + svg(""), refused},
		"an instruction of a megabyte": {
			"<?xml " + strings.Repeat(" ", 1<<20) + "?>" + svg(""), refused,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := check(c.image, true); verdictOf(err) != c.want {
				t.Errorf("got %v (%s), want %s", err, verdictOf(err), c.want)
			}
		})
	}
}

// fewestIcons is the least number of icons for a meaningful test.
const fewestIcons = 1000

// TestIconsPass: the rules accept the output of drawing tools. Every icon in the folder
// MEDIA_TEST_ICONS passes. If it is unset, the test is skipped, or fails if MEDIA_TEST_MUST_RUN is
// set.
func TestIconsPass(t *testing.T) {
	t.Parallel()
	root := os.Getenv("MEDIA_TEST_ICONS")
	if root == "" {
		if os.Getenv("MEDIA_TEST_MUST_RUN") != "" {
			t.Fatal("MEDIA_TEST_ICONS is not set")
		}
		t.Skip("MEDIA_TEST_ICONS names no icons")
	}
	icons, bytes := 0, 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || filepath.Ext(path) != ".svg" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		icons++
		bytes += len(data)
		imagingtest.Is(t, check(string(data), true), nil, path)
		return nil
	})
	imagingtest.Must(t, err)
	if icons < fewestIcons {
		t.Errorf("there are %d icons, at least %d are needed", icons, fewestIcons)
	}
	t.Logf("%d icons, %d bytes", icons, bytes)
}

func FuzzCheckSVG(f *testing.F) {
	for _, text := range attacks {
		f.Add([]byte(text))
	}
	f.Add([]byte(svg(illustrator(`<i:pgfRef></i:pgfRef>`) + copies(2))))
	f.Add([]byte(`<!DOCTYPE svg [<!ENTITY x "y">]><s:svg xmlns:s="http://www.w3.org/2000/svg"><s:g id="&x;"/></s:svg>`))
	f.Fuzz(func(t *testing.T, data []byte) {
		// measured checks data, which must not allocate much, and documents its errors.
		measured := func(strict bool) error {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := check(string(data), strict)
			runtime.ReadMemStats(&after)
			if verdictOf(err) == failed {
				t.Errorf("undocumented error %v", err)
			}
			if err != nil && (len(err.Error()) > 300 || !utf8.ValidString(err.Error())) {
				t.Errorf("message %q", err)
			}
			if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 64<<20 {
				t.Errorf("allocated %d bytes", allocated)
			}
			return err
		}
		strict, kept := measured(true), measured(false)
		if strict != nil {
			return
		}
		if kept != nil {
			t.Errorf("passes, but is not kept: %v", kept)
		}
		lower := strings.ToLower(string(data))
		hidden := strings.Contains(lower, "<!") || strings.Contains(lower, "<?") || strings.Count(lower, "xmlns") > 1
		if strings.Contains(lower, "<script") && !hidden {
			t.Errorf("a script passed: %q", data)
		}
	})
}
