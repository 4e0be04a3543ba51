package imaging_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/caddymedia/media/caddymedia/imaging"
)

func TestHostileSVGDocuments(t *testing.T) {
	t.Parallel()
	var laughs strings.Builder
	laughs.WriteString(`<!DOCTYPE svg [<!ENTITY l0 "lol">`)
	for i := range 9 {
		fmt.Fprintf(&laughs, `<!ENTITY l%d "%s">`, i+1, strings.Repeat(fmt.Sprintf("&l%d;", i), 10))
	}
	billion := laughs.String() + `]>` + svg(`<text>&l9;</text>`)
	if _, err := check([]byte(billion), "svg", imaging.Options{SVG: imaging.SVGKeep}); err != nil {
		t.Errorf("billion laughs are kept, since they are empty: %v", err)
	}
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
		{"document type of HTML", `<!DOCTYPE html>` + svg(""), "content is HTML"},
		{"document type in lower case", `<!doctype svg>` + svg(""), doctype},
		{"document type with a comment", `<!DOCTYPE svg <!-- ]> --> [<!ENTITY x "y">]>` + svg(""), doctype},
		{"document type on this host", `<!DOCTYPE svg SYSTEM "file:///etc/passwd">` + svg(""), doctype},
		{"CDATA before the root", `<![CDATA[<script>]]>` + svg(""), "not an SVG image"},

		{"XML 1.1", `<?xml version="1.1"?>` + svg(""), "an SVG image"},
		{"UTF-7 with its mark", "+/v8-" + svg(""), "content is plain text"},
		{"UTF-16, little endian", utf16LE(svg(script)), ""},
		{"UTF-16, big endian", "\xfe\xff" + utf16BE(svg(script)), ""},
		{"UTF-16, big endian, without its mark", utf16BE(svg(script)), ""},
		{"UTF-16 declared and real", utf16LE(`<?xml version="1.0" encoding="UTF-16"?>` + svg("")), ""},
		{"UTF-32", "\xff\xfe\x00\x00<\x00\x00\x00s\x00\x00\x00", ""},
		{"EBCDIC", "\x4c\x6f\xa7\x94\x93\x40", ""},
		{"encoding windows-1252", `<?xml version="1.0" encoding="windows-1252"?>` + svg(""), "UTF-8 is needed"},
		{"encoding Shift_JIS", `<?xml version="1.0" encoding="Shift_JIS"?>` + svg("<text>\x81\x5c</text>"), "UTF-8 is needed"},
		{"encoding ISO-2022-JP", `<?xml version="1.0" encoding="ISO-2022-JP"?>` + svg("\x1b$B<script>\x1b(B"), "UTF-8 is needed"},
		{"encoding HZ", `<?xml version="1.0" encoding="HZ-GB-2312"?>` + svg("~{"), "UTF-8 is needed"},
		{"encoding UTF-16 after its mark of UTF-8", "\xef\xbb\xbf" + `<?xml version="1.0" encoding="UTF-16"?>` + svg(""), "UTF-8 is needed"},
		{"overlong UTF-8", svg("\xc0\xbcscript>"), broken},
		{"surrogate in UTF-8", svg("\xed\xa0\x80"), broken},
		{"two byte order marks", "\xef\xbb\xbf\xef\xbb\xbf" + svg(""), "content is plain text"},
		{"byte order mark behind the declaration", `<?xml version="1.0"?>` + "\xef\xbb\xbf" + svg(""), "not an SVG image"},
		{"byte order mark of UTF-16 before UTF-8", "\xff\xfe" + svg(""), ""},
		{"byte order mark before compressed", "\xef\xbb\xbf" + packed.String(), ""},
		{"svgz", packed.String(), "compressed"},
		{"svgz behind an image", svg("") + packed.String(), "an SVG image"},

		{"comment that ends early in HTML", svg(`<!--><img src=x onerror=alert(1)>-->`), "comment"},
		{"comment that ends early in HTML, with a dash", svg(`<!---><img src=x onerror=alert(1)>-->`), "comment"},
		{"comment that ends in HTML alone", svg(`<!-- --!><img src=x onerror=alert(1)>-->`), broken},
		{"comment that is open", svg(`<!-- `), broken},
		{"section that is open", svg(`<![CDATA[ `), broken},
		{"conditional section", svg(`<![if IE]>` + script + `<![endif]>`), "an SVG image"},
		{"HTML within", svg(`<g><p><img src=x onerror=alert(1)>`), "the element p"},
		{"end tag with an attribute", svg(`<g></g onload="alert(1)">`), broken},
		{"tag that is never closed", svgOpen + `<g onload="alert(1)" `, broken},
		{"markup in an attribute", svg(`<g id="<script>alert(1)</script>"/>`), broken},
		{"characters of a stylesheet outside", `<style>@import "x"</style>` + svg(""), "content is HTML"},
	})
}

func utf16BE(s string) string {
	var b []byte
	for _, u := range utf16.Encode([]rune(s)) {
		b = binary.BigEndian.AppendUint16(b, u)
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
		"event of XML Events without a handler does nothing": svg(`<g xmlns:ev="http://www.w3.org/2001/xml-events" ev:event="load"/>`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := check([]byte(text), "svg", imaging.Options{}); err != nil {
				t.Errorf("%v: %.300s", err, text)
			}
		})
	}
}

// TestHostileNames: files of other programs, and programs, are named like an image.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	mvg := "push graphic-context\nviewbox 0 0 640 480\nfill 'url(https://127.0.0.1/x.png\"|id;\")'\npop graphic-context\n"
	msl := `<?xml version="1.0"?><image><read filename="caption:&lt;?php ?&gt;"/><write filename="info:/tmp/x.php"/></image>`
	eps := "%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n(%pipe%id) (w) file\n"
	files := samples(t)
	for name, content := range map[string]string{
		"MVG of ImageMagick": mvg, "MSL of ImageMagick": msl, "viewbox of ImageMagick": "viewbox 0 0 1 1 image over 0,0 0,0 'label:@/etc/passwd'",
		"PostScript": eps, "PostScript that restores": "%!PS\nuserdict /setpagedevice undef\nsave\nlegal\n{ null restore } stopped\n",
		"EPS for DOS": "\xc5\xd0\xd3\xc6\x1e\x00\x00\x00" + eps, "PCL XL": ") HP-PCL XL;2;0\n", "DjVu with Perl": "AT&TFORM\x00\x00\x00\x40DJVMANTa(metadata \"\\c${id}\")",
		"SVG": svg(script), "SVG with a declaration": `<?xml version="1.0"?>` + svg(script), "XHTML": files["xhtml"], "HTML": files["html"],
		"XML with a stylesheet": `<?xml version="1.0"?><?xml-stylesheet type="text/xsl" href="#a"?><a/>`, "MHTML": "MIME-Version: 1.0\nContent-Type: text/html\n\n" + html,
		"HEIC": files["heic"], "HEIF": files["heif"], "AVIF": files["avif"], "WebP": files["webp"], "TIFF": files["tif"], "BMP": files["bmp"], "icon": files["ico"],
		"JPEG XL": "\xff\x0a\xfa\x1f", "JPEG XL in boxes": "\x00\x00\x00\x0cJXL \x0d\x0a\x87\x0a", "JPEG 2000": "\x00\x00\x00\x0cjP  \x0d\x0a\x87\x0a",
		"JPEG-LS": "\xff\xd8\xff\xf7\x00\x0b\x08\x00\x01\x00\x01\x01\x01\x11\x00", "Photoshop": "8BPS\x00\x01" + strings.Repeat("\x00", 60), "Flash": "CWS\x0a\x00\x00\x00\x00x\x9c",
		"MNG": "\x8aMNG\r\n\x1a\n", "JNG": "\x8bJNG\r\n\x1a\n", "PNG behind a space": " " + files["png"], "PNG behind HTML": html + files["png"],
		"JPEG behind a PDF": "%PDF-1.4\n" + files["jpg"], "JPEG behind PHP": php + files["jpg"], "GIF behind a line end": "\n" + files["gif"],
		"HTML behind the signature of PNG": pngSignature + html, "HTML behind half a signature of PNG": "\x89PNG\n" + html,
		"HTML behind the signature of GIF87a": "GIF87a" + html, "script behind the signature of GIF": "GIF89a=/*;*/1;alert('" + marker + "')", "script that assigns to GIF89a": "GIF89a/*" + html + "*/=1;",
		"HTML behind the signature of JPEG": "\xff\xd8\xff\xe0\x00\x10JFIF\x00" + html, "HTML behind the start of JPEG": "\xff\xd8" + html, "PHP behind Exif": "\xff\xd8\xff\xe1\x00\x20Exif\x00\x00" + php,
		"tar": files["tar"], "JAR": files["jar"], "7z": files["7z"], "cabinet": "MSCF\x00\x00\x00\x00", "shortcut": files["lnk"], "Java class": files["class"], "Linux program": files["elf"],
		"htaccess": "AddType application/x-httpd-php .jpg\n", "server-side include": `<!--#exec cmd="id" -->`, "ASP": "<%@ Page Language=\"C#\" %>", "JSP": "<% Runtime.getRuntime().exec(\"id\"); %>",
	} {
		for _, ext := range []string{"jpg", "png", "gif", "svg"} {
			if ext == "svg" && strings.HasPrefix(name, "SVG") {
				continue // see the tests of SVG
			}
			t.Run(name+", named "+ext, func(t *testing.T) {
				t.Parallel()
				_, err := check([]byte(content), ext, imaging.Options{})
				if verdictOf(err) != refused {
					t.Errorf("got %v (%s)", err, verdictOf(err))
				}
				t.Log(err)
			})
		}
	}
}
