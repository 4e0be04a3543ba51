package imaging_test

import (
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/imaging"
)

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
	"relative link":                         svg(`<a href="other.html">x</a>`),
	"ftp link":                              svg(`<a href="ftp://evil.example/">x</a>`),
	"link without a scheme":                 svg(`<a href="//evil.example/">x</a>`),
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
	"style that ends itself in HTML":   svg(`<style><![CDATA[</style><img src=x onerror=alert(1)>]]></style>`),
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
}

func TestSVGAttacksAreRefused(t *testing.T) {
	t.Parallel()
	for name, image := range attacks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := check([]byte(image), "svg", imaging.Options{})
			if verdictOf(err) != refused {
				t.Errorf("%v (%s): %s", err, verdictOf(err), image)
			}
			t.Log(err)
		})
	}
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
			if _, err := check([]byte(image), "svg", imaging.Options{}); err != nil {
				t.Errorf("%v: %s", err, image)
			}
		})
	}
}

func TestSVGModes(t *testing.T) {
	t.Parallel()
	illustrator := `<?xml version="1.0"?><!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/x.dtd" [
		<!ENTITY ns_svg "http://www.w3.org/2000/svg"> <!ENTITY ns_ai 'http://ns.adobe.com/AdobeIllustrator/10.0/'> ]>
		<svg xmlns="&ns_svg;" xmlns:i="&ns_ai;"><g/></svg>`
	script := svg(`<script>alert(1)</script>`)
	for _, c := range []struct {
		name, image string
		mode        imaging.SVGMode
		want        verdict
	}{
		{"reject is the default", script, "", refused},
		{"reject, script", script, imaging.SVGReject, refused},
		{"reject, Illustrator's entities", illustrator, imaging.SVGReject, passes},
		{"a mode that does not exist rejects", script, "allow", refused},
		{"keep, script", script, imaging.SVGKeep, passes},
		{"keep, Illustrator's entities", illustrator, imaging.SVGKeep, passes},
		{"keep, stylesheet", `<?xml-stylesheet href="a.css"?>` + svg(``), imaging.SVGKeep, passes},
		{"keep, not XML", svgOpen, imaging.SVGKeep, refused},
		{"keep, another root", `<g xmlns="http://www.w3.org/2000/svg"/>`, imaging.SVGKeep, refused},
		{"keep, HTML", `<html></html>`, imaging.SVGKeep, refused},
		{"keep, too deep", svg(strings.Repeat("<g>", 200) + strings.Repeat("</g>", 200)), imaging.SVGKeep, tooLarge},
		{"keep, too large", svg(strings.Repeat(" ", 3<<20)), imaging.SVGKeep, tooLarge},
		{"off", svg(``), imaging.SVGOff, refused},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if _, err := check([]byte(c.image), "svg", imaging.Options{SVG: c.mode}); verdictOf(err) != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// TestSVGSizeIsCountedWhileReading: the size argument may be wrong, so the bytes read are counted
// as well.
func TestSVGSizeIsCountedWhileReading(t *testing.T) {
	t.Parallel()
	_, err := imaging.CheckImage(strings.NewReader(svg(strings.Repeat(" ", 3<<20))), 100, "svg", imaging.Options{})
	if verdictOf(err) != tooLarge {
		t.Errorf("got %v", err)
	}
}
