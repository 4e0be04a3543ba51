package svg

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/imagingtest"
)

// hostileSVG is an image that must be refused with a message that names the reason. It does not
// repeat cases of svg_test.go.
type hostileSVG struct{ name, image, says string }

func runHostileSVG(t *testing.T, cases []hostileSVG) {
	t.Helper()
	seen := make(map[string]bool)
	for _, c := range cases {
		if seen[c.name] || attacks[c.name] != "" {
			t.Errorf("there are two cases %q", c.name)
		}
		seen[c.name] = true
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := check(c.image, true)
			if verdictOf(err) != refused || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v (%s), want a content error with %q: %.300q", err, verdictOf(err), c.says, c.image)
			}
		})
	}
}

const (
	xhtml   = `xmlns:h="http://www.w3.org/1999/xhtml"`
	script  = `<script>alert(1)</script>`
	outside = "outside of it"
	address = "a script address"
	nested  = "another SVG in"
	another = "of another namespace"
	broken  = "not well-formed XML"
	doctype = "a document type declaration of its own"
)

func TestHostileSVGElements(t *testing.T) {
	t.Parallel()
	runHostileSVG(t, []hostileSVG{
		{"script in foreignObject", svg(`<foreignObject><h:script ` + xhtml + `>alert(1)</h:script></foreignObject>`), "the element foreignObject"},
		{"body with a handler in foreignObject", svg(`<foreignObject><h:body ` + xhtml + ` onload="alert(1)"/></foreignObject>`), "foreignObject"},
		{"iframe in foreignObject", svg(`<foreignObject><h:iframe ` + xhtml + ` src="javascript:alert(1)"/></foreignObject>`), "foreignObject"},
		{"foreignObject in switch", svg(`<switch><foreignObject requiredExtensions="http://www.w3.org/1999/xhtml"/></switch>`), "foreignObject"},
		{"script in a nested svg", svg(`<svg>` + script + `</svg>`), "the element script"},
		{"script in defs", svg(`<defs>` + script + `</defs>`), "script"},
		{"script in symbol", svg(`<symbol id="a">` + script + `</symbol><use href="#a"/>`), "script"},
		{"script in title", svg(`<title>` + script + `</title>`), "script"},
		{"script with a type", svg(`<script type="application/ecmascript">alert(1)</script>`), "script"},
		{"script by data address", svg(`<script href="data:,alert(1)"/>`), "script"},
		{"script by xlink", svg(`<script xlink:href="https://evil.example/x.js"/>`), "script"},
		{"image of XHTML with an error event", svg(`<h:img ` + xhtml + ` src="#" onerror="alert(1)"/>`), another},
		{"meta refresh of XHTML", svg(`<h:meta ` + xhtml + ` http-equiv="refresh" content="0;url=https://evil.example/"/>`), another},
		{"base of XHTML", svg(`<h:base ` + xhtml + ` href="https://evil.example/"/>`), another},
		{"link of XHTML", svg(`<h:link ` + xhtml + ` rel="stylesheet" href="https://evil.example/a.css"/>`), another},
		{"form of XHTML", svg(`<h:form ` + xhtml + ` action="https://evil.example/"/>`), another},
		{"video of XHTML", svg(`<h:video ` + xhtml + `><h:source onerror="alert(1)"/></h:video>`), another},
		{"math", svg(`<m:maction xmlns:m="http://www.w3.org/1998/Math/MathML" actiontype="statusline"/>`), another},
		{"XInclude", svg(`<x:include xmlns:x="http://www.w3.org/2001/XInclude" href="file:///etc/passwd" parse="text"/>`), another},
		{"XBL", svg(`<x:bindings xmlns:x="http://www.mozilla.org/xbl"><x:binding/></x:bindings>`), another},
		{"XSLT", svg(`<x:stylesheet xmlns:x="http://www.w3.org/1999/XSL/Transform" version="1.0"/>`), another},
		{"XSLT of Microsoft", svg(`<m:script xmlns:m="urn:schemas-microsoft-com:xslt">alert(1)</m:script>`), another},
		{"XUL", svg(`<x:window xmlns:x="http://www.mozilla.org/keymaster/gatekeeper/there.is.only.xul"/>`), another},
		{"script of XHTML in metadata", svg(`<metadata><h:script ` + xhtml + `>alert(1)</h:script></metadata>`), another},
		{"paragraph of XHTML in metadata", svg(`<metadata><x:a xmlns:x="urn:x"><h:p ` + xhtml + `/></x:a></metadata>`), another},
		{"math in metadata", svg(`<metadata><m:math xmlns:m="http://www.w3.org/1998/Math/MathML"/></metadata>`), another},
		{"XBL in metadata", svg(`<metadata><x:bindings xmlns:x="http://www.mozilla.org/xbl"/></metadata>`), another},
		{"unknown prefix in metadata", svg(`<metadata><c2pa:manifest/></metadata>`), another},
		{"unknown namespace behind metadata", svg(`<metadata/><x:a xmlns:x="urn:x"/>`), another},
		{"unknown namespace behind nested metadata", svg(`<metadata><metadata/></metadata><x:a xmlns:x="urn:x"/>`), another},
		{"event in metadata", svg(`<metadata><x:a xmlns:x="urn:x" onload="alert(1)"/></metadata>`), "onload"},
		{"remote address in metadata", svg(`<metadata><x:a xmlns:x="urn:x" href="https://evil.example/"/></metadata>`), outside},
		{"script of SVG in metadata of another", svg(`<metadata><x:a xmlns:x="urn:x">` + script + `</x:a></metadata>`), "script"},
		{"data island", svg(`<x:xml xmlns:x="urn:schemas-microsoft-com:office:office"/>`), another},
	})
	names := []string{
		"link", "meta", "base", "html", "body", "img", "input", "button", "applet", "frameset", "video", "canvas",
		"animation", "prefetch", "tbreak", "foreignobject", "Script", "stylesheet", "include", "bindings",
	}
	cases := make([]hostileSVG, 0, len(names))
	for _, name := range names {
		cases = append(cases, hostileSVG{"element " + name, svg("<" + name + "/>"), "the element " + name})
	}
	runHostileSVG(t, cases)
}

func TestHostileSVGAttributes(t *testing.T) {
	t.Parallel()
	events := `xmlns:ev="http://www.w3.org/2001/xml-events"`
	runHostileSVG(t, []hostileSVG{
		{"event attribute without quotes", `<svg xmlns="http://www.w3.org/2000/svg" onload=alert(1)/>`, broken},
		{"event attribute behind a slash", `<svg/onload=alert(1) xmlns="http://www.w3.org/2000/svg"/>`, broken},
		{"event attribute behind a slash, quoted", `<svg xmlns="http://www.w3.org/2000/svg"/onload="alert(1)"/>`, "an SVG image"},
		{"event attribute behind no space", `<svg xmlns="http://www.w3.org/2000/svg"onload="alert(1)"/>`, "event attribute"},
		{"event attribute without a value", svg(`<g onload/>`), broken},
		{"event attribute twice", svg(`<g onload="" onload="alert(1)"/>`), "onload"},
		{"event attribute over lines", svg("<g\nonload\n=\n\"alert(1)\"/>"), "onload"},
		{"event attribute of another namespace", svg(`<g xmlns:z="urn:z" z:onload="alert(1)"/>`), "onload"},
		{"event attribute of XHTML", svg(`<g ` + xhtml + ` h:onclick="alert(1)"/>`), "onclick"},
		{"event attribute that is on alone", svg(`<g on="alert(1)"/>`), "the event attribute on"},
		{"event attribute with an empty name behind", svg(`<g on-x="alert(1)"/>`), "event attribute"},
		{"handler attribute of XML events", svg(`<g ` + events + ` ev:event="load" ev:handler="https://evil.example/x.js#a"/>`), "handler"},
		{"handler attribute with a script", svg(`<g ` + events + ` ev:handler="data:text/javascript,alert(1)"/>`), "handler"},
		{"namespace that hides an attribute", `<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="xmlns"><a xlink:href="javascript:alert(1)">x</a></svg>`, "namespace"},
		{"namespace that hides an event", `<svg xmlns="http://www.w3.org/2000/svg" xmlns:q="xmlns" q:onload="alert(1)"/>`, "namespace"},
		{"namespace that hides an element", `<svg xmlns="http://www.w3.org/2000/svg"><g xmlns="xmlns"><script/></g></svg>`, "namespace"},

		{"animated href to javascript", svg(`<a><animate attributeName="href" values="javascript:alert(1)"/></a>`), "animates the attribute href"},
		{"href set to javascript", svg(`<a><set attributeName="href" to="javascript:alert(1)"/></a>`), "animates the attribute href"},
		{"href set from javascript by bytes", svg(`<a><set to="java&#x0D;script:alert(1)" attributeName="href"/></a>`), address},
		{"animated href by another prefix", svg(`<a><animate xmlns:q="http://www.w3.org/1999/xlink" attributeName="q:href" to="#"/></a>`), "animates"},
		{"animated href in upper case", svg(`<a><animate attributeName="XLINK:HREF" from="x"/></a>`), "animates"},
		{"animated href with line ends", svg("<a><animate attributeName=\"&#10;href&#9;\" to=\"x\"/></a>"), "animates"},
		{"animated href by transform", svg(`<animateTransform attributeName="href" type="rotate"/>`), "animates"},
		{"animated href by colour", svg(`<animateColor attributeName="href"/>`), "animates"},
		{"animated handler, entity", svg(`<g><set attributeName="&#x6f;nload" to="alert(1)"/></g>`), "animates"},
		{"animated handler, upper case", svg(`<g><set attributeName="ONLOAD" to="alert(1)"/></g>`), "animates"},
		{"animated handler under a prefix", svg(`<g><set attributeName="x:onload" to="alert(1)"/></g>`), "animates"},
		{"animated style to a remote image", svg(`<g><set attributeName="style" to="fill:url(https://evil.example/#a)"/></g>`), outside},
		{"animated mask, second value remote", svg(`<g><animate attributeName="mask" values="url(#a);url(//evil.example/#a)"/></g>`), outside},
		{"animated filter to an SVG", svg(`<g><animate attributeName="filter" by="url(data:image/svg+xml,x#a)"/></g>`), nested},
	})
	names := []string{
		"abort", "activate", "animationstart", "auxclick", "beforeprint", "begin", "copy", "end", "error", "focus", "focusin",
		"hashchange", "input", "message", "mouseover", "pointerrawupdate", "repeat", "scroll", "toggle", "unload", "wheel", "zoom",
	}
	cases := make([]hostileSVG, 0, len(names))
	for _, name := range names {
		cases = append(cases, hostileSVG{"handler on" + name, svg("<g on" + name + `="alert(1)"/>`), "the event attribute on" + name})
	}
	runHostileSVG(t, cases)
}

func TestHostileSVGAddresses(t *testing.T) {
	t.Parallel()
	cases := make([]hostileSVG, 0, 200)
	for name, ref := range map[string]string{
		"javascript over two lines": "java&#10;script:alert(1)", "javascript, carriage return": "java&#13;script:alert(1)",
		"javascript, raw tab": "java\tscript:alert(1)", "javascript, tab before the colon": "javascript&#9;:alert(1)",
		"javascript, padded entities": "&#0000106;avascript:alert(1)", "javascript, upper case": "JAVASCRIPT:alert(1)",
		"javascript, soft hyphen": "java&#xAD;script:alert(1)", "javascript, no-break space before": "&#xA0;javascript:alert(1)",
		"javascript, byte order mark before": "&#xFEFF;javascript:alert(1)", "javascript as a comment": "javascript://example.com/%0Aalert(1)",
		"vbscript, mixed case": "VbScRiPt:x", "data HTML with a charset": "data:text/html;charset=utf-8,x",
		"data HTML, upper case": "DATA:TEXT/HTML,x", "data HTML, spaces": "data: text/html,x", "data XML": "data:text/xml,x",
		"data XHTML": "data:application/xhtml+xml,x", "data XML of applications": "data:application/xml,x",
		"data script": "data:application/javascript,alert(1)",
	} {
		cases = append(cases,
			hostileSVG{"link to " + name, svg(`<a href="` + ref + `">x</a>`), address},
			hostileSVG{"xlink to " + name, svg(`<image xlink:href="` + ref + `"/>`), address})
	}
	for name, ref := range map[string]string{
		"data SVG, nested":     "data:image/svg+xml,%3Csvg onload=alert(1)%3E",
		"data SVG in base64":   "data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString([]byte(svg(script))),
		"data SVG, upper case": "data:IMAGE/SVG+XML,x", "data SVG over two lines": "data:image/&#10;svg+xml,x",
	} {
		cases = append(cases,
			hostileSVG{"link to " + name, svg(`<a href="` + ref + `">x</a>`), nested},
			hostileSVG{"xlink to " + name, svg(`<image xlink:href="` + ref + `"/>`), nested})
	}
	for name, ref := range map[string]string{
		"javascript, percent-encoded": "javascript%3Aalert(1)", "absolute path": "/admin", "query": "?x", "parent": "../x",
		"fragment of another file": "x.svg#a", "mail": "mailto:a@example.com", "telephone": "tel:1", "other scheme": "//evil.example/",
	} {
		cases = append(cases, hostileSVG{"xlink to " + name, svg(`<image xlink:href="` + ref + `"/>`), outside})
	}
	for name, ref := range map[string]string{
		"data, percent-encoded": "data:text%2Fhtml,x",
		"data without a type":   "data:;base64,AAAA", "data text": "data:text/plain,x", "data GIF by another name": "data:image/x-gif;base64,AAAA",
		"data raster with a comma before": "data:image/png,;base64,AAAA", "blob": "blob:https://evil.example/1", "filesystem": "filesystem:x",
		"file": "file:///etc/passwd", "jar": "jar:https://evil.example/a.jar!/a.svg", "view-source": "view-source:x", "about": "about:blank",
		"mhtml": "mhtml:https://evil.example/", "backslashes": `\\evil.example\share`, "slash and backslash": `/\evil.example`,
		"https without slashes": "https:evil.example", "https with backslashes": `https:\\evil.example`,
		"a colon behind a name": "a.svg:b", "a tab in the scheme": "ht&#9;tp:x", "a line end before": "&#10;file:x", "nothing before a colon": ":x",
		"ImageMagick's MSL": "msl:/tmp/x.msl", "ImageMagick's MVG": "mvg:/tmp/x.mvg", "ImageMagick's text": "text:/etc/passwd",
		"ImageMagick's label": "label:@/etc/passwd", "ImageMagick's ephemeral": "ephemeral:/tmp/x", "ImageMagick's caption": "caption:x",
		"shell in the address": "https:&quot;|id&quot;",
	} {
		cases = append(cases,
			hostileSVG{"link to " + name, svg(`<a href="` + ref + `">x</a>`), outside},
			hostileSVG{"xlink to " + name, svg(`<image xlink:href="` + ref + `"/>`), outside})
	}
	cases = append(cases,
		hostileSVG{"javascript, entity of HTML", svg(`<a href="javascript&colon;alert(1)">x</a>`), broken},
		hostileSVG{"javascript, tab of HTML", svg(`<a href="java&Tab;script:alert(1)">x</a>`), broken},
		hostileSVG{"javascript, control character", svg(`<a href="&#1;javascript:alert(1)">x</a>`), broken},
		hostileSVG{"javascript, zero byte", svg("<a href=\"java\x00script:alert(1)\">x</a>"), broken},
		hostileSVG{"javascript, entity without its end", svg(`<a href="&#106avascript:alert(1)">x</a>`), broken},
		hostileSVG{"two links, one to javascript", svg(`<a href="https://example.com/" xlink:href="javascript:alert(1)">x</a>`), address},
		hostileSVG{"the same link twice", svg(`<a href="https://example.com/" href="javascript:alert(1)">x</a>`), address},
	)
	for name := range strings.SplitSeq("altGlyph|cursor|feImage|filter|font-face-uri|glyphRef|image|linearGradient|mpath|pattern|radialGradient|set|textPath|tref|use|style|view", "|") {
		cases = append(cases, hostileSVG{"remote " + name + " by xlink", svg("<" + name + ` xlink:href="https://evil.example/a.svg#b"/>`), outside})
	}
	runHostileSVG(t, cases)
}

func TestHostileSVGStyle(t *testing.T) {
	t.Parallel()
	const remote = "https://evil.example/a"
	cases := make([]hostileSVG, 0, 200)
	for name, css := range map[string]struct{ css, says string }{
		"import, upper case":              {`@IMPORT url(` + remote + `);`, "@import"},
		"import without a space":          {`@import"` + remote + `";`, "@import"},
		"import of data":                  {`@import url(data:text/css,x);`, "@import"},
		"import, six digits":              {`@\000069mport "` + remote + `";`, "@import"},
		"import, all escaped":             {`@\69\6d\70\6f\72\74 "` + remote + `";`, "@import"},
		"import behind a charset":         {`@charset "utf-7";@import "` + remote + `";`, "@import"},
		"import with a layer":             {`@import '` + remote + `' layer(x) supports(a:b);`, "@import"},
		"import in a media rule":          {`@media all{@import "` + remote + `";}`, "@import"},
		"import, comment inside":          {`@im/**/port "` + remote + `";`, "@import"},
		"remote over two lines":           {"g{fill:url(\n" + remote + ")}", outside},
		"remote, tab and quote":           {"g{fill:url(\t'" + remote + "')}", outside},
		"remote, escaped bracket":         {`g{fill:url\28 ` + remote + `)}`, outside},
		"remote, escaped address":         {`g{fill:url(\68ttps://evil.example)}`, outside},
		"remote, comment as an address":   {`g{fill:url(/**/` + remote + `)}`, outside},
		"remote by a property of its own": {`g{--a:url(` + remote + `);fill:var(--a)}`, outside},
		"remote namespace":                {`@namespace x url(` + remote + `);`, outside},
		"remote document":                 {`@document url(` + remote + `){}`, outside},
		"remote file":                     {`g{fill:url(file:///etc/passwd)}`, outside},
		"remote without a scheme":         {`g{fill:url(//evil.example/)}`, outside},
		"remote, list style":              {`g{list-style:url(x)}`, outside},
		"remote font over lines":          {"@font-face{font-family:x;\nsrc:\nurl('" + remote + "')}", outside},
		"remote cursor":                   {`g{cursor:url(` + remote + `),auto}`, outside},
		"remote shape":                    {`g{shape-outside:url(` + remote + `)}`, outside},
		"data HTML":                       {`g{fill:url(data:text/html,x)}`, outside},
		"data SVG, quoted":                {`g{fill:url("data:image/svg+xml,x")}`, nested},
		"font of HTML":                    {`@font-face{src:url(data:text/html;base64,x)}`, outside},
		"font of another type":            {`@font-face{src:url(data:application/xhtml+xml;base64,x)}`, outside},
		"font without base64":             {`@font-face{src:url(data:font/woff,x)}`, outside},
		"font behind a data font":         {`@font-face{src:url(data:font/woff;base64,x),url(` + remote + `)}`, outside},
		"data SVG, escaped":               {`g{fill:url(data:image\2fsvg+xml,x)}`, nested},
		"data style":                      {`g{fill:url(data:text/css,x)}`, outside},
		"javascript in url":               {`g{fill:url(javascript:alert(1))}`, "javascript:"},
		"javascript in url, escaped":      {`g{fill:url(\6a avascript:alert(1))}`, "javascript:"},
		"javascript in content":           {`g{content:"javascript:alert(1)"}`, "javascript:"},
		"link of Opera":                   {`g{-o-link:'javascript:alert(1)';-o-link-source:current}`, "javascript:"},
		"expression, upper case":          {`g{width:EXPRESSION(alert(1))}`, "expression("},
		"expression, escaped":             {`g{width:e\78pression(alert(1))}`, "expression("},
		"binding, upper case":             {`g{-MOZ-BINDING:url(#x)}`, "-moz-binding"},
		"binding to data":                 {`g{-moz-binding:url(data:text/xml,x)}`, "-moz-binding"},
		"binding, escaped":                {`g{-moz-\62inding:url(#x)}`, "-moz-binding"},
		"behavior, escaped":               {`g{b\65havior:url(#x)}`, "behavior:"},
		"behavior behind scroll-behavior": {`g{scroll-behavior:smooth;behavior:url(#default#time2)}`, "behavior:"},
		"image-set, upper case":           {`g{fill:IMAGE-SET("` + remote + `" 1x)}`, "image-set("},
		"image-set, comment inside":       {`g{fill:image-/**/set("` + remote + `" 1x)}`, "image-set("},
		"src, escaped":                    {`g{fill:s\72 c("` + remote + `")}`, "src("},
	} {
		inline := css.says
		if strings.Contains(css.css, "javascript:") || strings.Contains(css.css, "data:text/html") || strings.Contains(css.css, "data:text/xml") || strings.Contains(css.css, "data:application/") {
			inline = address // checked before the style
		}
		cases = append(cases, hostileSVG{"style " + name, svg("<style>" + css.css + "</style>"), css.says},
			hostileSVG{"style in an attribute, " + name, svg(`<g style="` + strings.ReplaceAll(css.css, `"`, "&quot;") + `"/>`), inline})
	}
	for _, name := range []string{"clip-path", "color-profile", "cursor", "fill", "filter", "marker", "marker-end", "mask", "stroke", "unknown"} {
		cases = append(cases, hostileSVG{"remote " + name, svg("<g " + name + `="url( &#34;` + remote + `&#34; )"/>`), outside})
	}
	runHostileSVG(t, cases)
}

func TestHostileSVGDocuments(t *testing.T) {
	t.Parallel()
	var laughs strings.Builder
	laughs.WriteString(`<!DOCTYPE svg [<!ENTITY l0 "lol">`)
	for i := range 9 {
		fmt.Fprintf(&laughs, `<!ENTITY l%d "%s">`, i+1, strings.Repeat(fmt.Sprintf("&l%d;", i), 10))
	}
	billion := laughs.String() + `]>` + svg(`<text>&l9;</text>`)
	imagingtest.Is(t, check(billion, false), nil, "billion laughs are kept, since they are empty")
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte(svg("")))
	_ = z.Close()
	sheet := func(attributes string) string { return `<?xml-stylesheet ` + attributes + `?>` + svg("") }
	runHostileSVG(t, []hostileSVG{
		{"xml-stylesheet that is data", sheet(`type="text/css" href="data:text/css,x"`), "xml-stylesheet"},
		{"xml-stylesheet with a script", sheet(`type="text/xsl" href="javascript:alert(1)"`), "xml-stylesheet"},
		{"xml-stylesheet within", sheet(`type="text/xsl" href="#stylesheet"`), "xml-stylesheet"},
		{"xml-stylesheet behind the root", svg("") + `<?xml-stylesheet href="x"?>`, "xml-stylesheet"},
		{"xml-stylesheet in upper case", `<?XML-STYLESHEET href="x"?>` + svg(""), "XML-STYLESHEET"},
		{"import instruction of Microsoft", `<?import namespace="t" implementation="#default#time2"?>` + svg(""), "import"},
		{"billion laughs", billion, doctype},
		{"quadratic blow-up", `<!DOCTYPE svg [<!ENTITY a "` + strings.Repeat("a", 50_000) + `">]>` + svg(strings.Repeat("&a;", 1000)), doctype},
		{"external entity by public name", `<!DOCTYPE svg [<!ENTITY x PUBLIC "a" "file:///etc/passwd">]>` + svg("&x;"), doctype},
		{"external entity over HTTP", `<!DOCTYPE svg [<!ENTITY x SYSTEM "http://169.254.169.254/">]>` + svg("&x;"), doctype},
		{"external entity of PHP", `<!DOCTYPE svg [<!ENTITY x SYSTEM "expect://id">]>` + svg("&x;"), doctype},
		{"external entity in an attribute", `<!DOCTYPE svg [<!ENTITY x SYSTEM "file:///etc/passwd">]>` + svg(`<g id="&x;"/>`), doctype},
		{"entity that is a tag", `<!DOCTYPE svg [<!ENTITY x "<script xmlns='http://www.w3.org/2000/svg'>alert(1)</script>">]>` + svg("&x;"), doctype},
		{"notation", `<!DOCTYPE svg [<!NOTATION x SYSTEM "x.exe">]>` + svg(""), doctype},
		{"fixed namespace in the DTD", `<!DOCTYPE svg [<!ATTLIST g xmlns CDATA #FIXED "http://www.w3.org/1999/xhtml">]>` + svg("<g/>"), doctype},
		{"document type of HTML", `<!DOCTYPE html>` + svg(""), doctype},
		{"document type in lower case", `<!doctype svg>` + svg(""), doctype},
		{"document type on this host", `<!DOCTYPE svg SYSTEM "file:///etc/passwd">` + svg(""), doctype},
		{"CDATA before the root", `<![CDATA[<script>]]>` + svg(""), "not an SVG image"},

		{"XML 1.1", `<?xml version="1.1"?>` + svg(""), "an SVG image"},
		{"UTF-7 with its mark", "+/v8-" + svg(""), "the root element"},
		{"UTF-16, little endian", utf16Of(binary.LittleEndian, svg(script)), ""},
		{"UTF-16, big endian", utf16Of(binary.BigEndian, svg(script)), ""},
		{"UTF-16, big endian, without its mark", utf16Of(binary.BigEndian, svg(script))[2:], ""},
		{"UTF-16 declared and real", utf16Of(binary.LittleEndian, `<?xml version="1.0" encoding="UTF-16"?>`+svg("")), ""},
		{"UTF-32", "\xff\xfe\x00\x00<\x00\x00\x00s\x00\x00\x00", ""},
		{"EBCDIC", "\x4c\x6f\xa7\x94\x93\x40", ""},
		{"encoding windows-1252", `<?xml version="1.0" encoding="windows-1252"?>` + svg(""), "UTF-8 is needed"},
		{"encoding Shift_JIS", `<?xml version="1.0" encoding="Shift_JIS"?>` + svg("<text>\x81\x5c</text>"), "UTF-8 is needed"},
		{"encoding ISO-2022-JP", `<?xml version="1.0" encoding="ISO-2022-JP"?>` + svg("\x1b$B<script>\x1b(B"), "UTF-8 is needed"},
		{"encoding HZ", `<?xml version="1.0" encoding="HZ-GB-2312"?>` + svg("~{"), "UTF-8 is needed"},
		{"encoding UTF-16 after its mark of UTF-8", "\xef\xbb\xbf" + `<?xml version="1.0" encoding="UTF-16"?>` + svg(""), "UTF-8 is needed"},
		{"overlong UTF-8", svg("\xc0\xbcscript>"), broken},
		{"surrogate in UTF-8", svg("\xed\xa0\x80"), broken},
		{"two byte order marks", "\xef\xbb\xbf\xef\xbb\xbf" + svg(""), "the root element"},
		{"byte order mark behind the declaration", `<?xml version="1.0"?>` + "\xef\xbb\xbf" + svg(""), "not an SVG image"},
		{"byte order mark of UTF-16 before UTF-8", "\xff\xfe" + svg(""), ""},
		{"byte order mark before compressed", "\xef\xbb\xbf" + packed.String(), ""},
		{"svgz", packed.String(), "compressed"},
		{"svgz behind an image", svg("") + packed.String(), "an SVG image"},

		{"comment that ends in HTML alone", svg(`<!-- --!><img src=x onerror=alert(1)>-->`), broken},
		{"comment that is open", svg(`<!-- `), broken},
		{"section that is open", svg(`<![CDATA[ `), broken},
		{"conditional section", svg(`<![if IE]>` + script + `<![endif]>`), "an SVG image"},
		{"HTML within", svg(`<g><p><img src=x onerror=alert(1)>`), "the element p"},
		{"end tag with an attribute", svg(`<g></g onload="alert(1)">`), broken},
		{"tag that is never closed", svgOpen + `<g onload="alert(1)" `, broken},
		{"markup in an attribute", svg(`<g id="<script>alert(1)</script>"/>`), broken},
		{"characters of a stylesheet outside", `<style>@import "x"</style>` + svg(""), "the root element"},
	})
}

// utf16Of returns a text with its byte order mark in UTF-16.
func utf16Of(order binary.AppendByteOrder, s string) string {
	b := order.AppendUint16(nil, 0xFEFF)
	for _, u := range utf16.Encode([]rune(s)) {
		b = order.AppendUint16(b, u)
	}
	return string(b)
}

// TestHarmlessSVG: these images look hostile but pass, because browsers ignore the hostile part
// in an SVG that is served as one. The name of each is the reason.
func TestHarmlessSVG(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"markup as text stays text":                          svg(`<desc><![CDATA[<script>alert(1)</script>]]></desc>`),
		"script in a comment is a comment":                   svg(`<!-- <script>alert(1)</script> -->`),
		"conditional comment is one to all but IE 9":         svg(`<!--[if IE]>` + script + `<![endif]-->`),
		"address as text is text":                            svg(`<text>javascript:alert(1) data:text/html,x</text>`),
		"handler's name as text is text":                     svg(`<text>onload="alert(1)"</text>`),
		"declared prefix is no attribute":                    svg(`<g xmlns:onload="urn:x"/>`),
		"type of scripts runs none":                          `<svg xmlns="http://www.w3.org/2000/svg" contentScriptType="text/ecmascript"/>`,
		"extension that is asked for is not loaded":          svg(`<switch requiredExtensions="http://www.w3.org/1999/xhtml"><g/></switch>`),
		"link that opens itself goes nowhere":                svg(`<use href="#a" xlink:actuate="onLoad" xlink:show="embed"/>`),
		"link to the web waits for a click":                  svg(`<a href="https://user:password@evil.example/" target="_top">x</a>`),
		"raster data that is SVG is read as a raster":        svg(`<image href="data:image/png;base64,PHN2Zz4="/>`),
		"raster data is no image to use":                     svg(`<use href="` + onePixel + `#a"/>`),
		"animated class runs nothing":                        svg(`<set attributeName="class" to="onload"/>`),
		"animation that waits for a key runs nothing":        svg(`<set attributeName="x" begin="accessKey(a)" to="1"/>`),
		"space before the bracket makes no url":              svg(`<style>g{fill:url (https://evil.example/)}</style>`),
		"zero in an escape is no letter":                     svg(`<style>@i\0 mport "https://evil.example/";</style>`),
		"rule for addresses of Mozilla loads none":           svg(`<style>@-moz-document url-prefix(https://x){g{fill:red}}</style>`),
		"filter of IE 8 is not in SVG":                       svg(`<g style="filter:progid:DXImageTransform.Microsoft.AlphaImageLoader(src='https://evil.example/')"/>`),
		"address in attr() is text":                          svg(`<style>g{fill:attr(data-a url)}</style>`),
		"element of an editor with a style draws nothing":    svg(`<i:g xmlns:i="http://ns.adobe.com/i/" i:style="fill:url(https://evil.example/)"/>`),
		"mark and encoding that disagree: ASCII is ASCII":    "\xef\xbb\xbf" + `<?xml version="1.0" encoding="ISO-8859-1"?>` + svg("<text>\xc3\xa9</text>"),
		"an attribute twice is an error to a browser":        svg(`<g id="a" id="b"/>`),
		"entities of XML only":                               svg(`<text>&lt;&amp;&gt;&quot;&apos;&#60;</text>`),
		"web address in a namespace is a name":               `<svg xmlns="http://www.w3.org/2000/svg" xmlns:x="https://evil.example/"/>`,
		"place of a schema is not fetched":                   svg(`<g xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="a https://evil.example/a.xsd"/>`),
		"script of an editor is none":                        svg(`<SCRIPT xmlns="http://ns.adobe.com/x/">alert(1)</SCRIPT>`),
		"script of unknown metadata is none":                 svg(`<metadata><x:script xmlns:x="urn:x">alert(1)</x:script></metadata>`),
		"style of an editor is none":                         svg(`<style xmlns="adobe:ns:meta/">@import "https://evil.example/";</style>`),
		"frame of an editor is none":                         svg(`<iframe xmlns="http://ns.adobe.com/x/" srcdoc="&lt;script>alert(1)&lt;/script>"/>`),
		"instruction to an unknown program may have tags":    svg(`<?x <script>alert(1)</script>?>`),
		"comment ends at its two dashes":                     svg(`<!--><img src=x onerror=alert(1)>-->`),
		"comment in a document type is a comment":            `<!DOCTYPE svg [<!-- ><script>alert(1)</script> -->]>` + svg(``),
		"end tag in the text of a style ends nothing":        svg(`<style><![CDATA[</style><img src=x onerror=alert(1)>]]></style>`),
		"entity of HTML is none":                             `<!DOCTYPE svg [<!ENTITY colon "x">]>` + svg(`<a href="#javascript&colon;alert(1)"/>`),
		"event of XML Events without a handler does nothing": svg(`<g xmlns:ev="http://www.w3.org/2001/xml-events" ev:event="load"/>`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := check(text, true); err != nil {
				t.Errorf("%v: %.300s", err, text)
			}
		})
	}
}
