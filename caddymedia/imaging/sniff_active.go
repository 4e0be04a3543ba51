package imaging

import (
	"regexp"
	"strings"

	"github.com/gabriel-vasile/mimetype"
)

// active is a type of content that a browser, a web server or an operating system runs.
type active struct {
	name  string
	types []string
	exts  string // the matching extensions, separated by spaces
}

var activeKinds = []active{
	// Some programs export HTML tables under the names of old Office files. No browser renders
	// those.
	{"HTML", []string{"text/html", "application/xhtml+xml"}, "html htm xhtml xht shtml hta xls doc"},
	{"SVG", []string{"image/svg+xml"}, "svg"},
	{"PHP", []string{"text/x-php"}, ""},
	{
		"a Windows program",
		[]string{"application/vnd.microsoft.portable-executable"},
		"exe dll sys scr com ocx cpl drv efi mui bin img",
	},
	{"a Windows installer", []string{"application/x-ms-installer"}, "msi msp mst"},
	{"a Windows shortcut", []string{"application/x-ms-shortcut"}, "lnk"},
	{"a Linux program", []string{"application/x-elf"}, "elf so o ko run appimage bin img"},
	{"a macOS program", []string{"application/x-mach-binary"}, "macho dylib so bundle o bin"},
	{"a Java class", []string{"application/x-java-applet"}, "class"},
}

// scripts start with #! and the path of an interpreter.
var (
	scripts = active{
		name: "a script",
		exts: "sh bash zsh ksh csh tcsh fish bats command py pl pm perl rb lua tcl awk sed r js mjs cjs ts ps1 groovy exs",
	}
	shebang = regexp.MustCompile(`^#![ \t]*/`)
)

// activeKind returns the type of active content, or nil if there is none.
func activeKind(found *mimetype.MIME, head []byte) *active {
	if shebang.Match(head) {
		return &scripts
	}
	for i, kind := range activeKinds {
		for _, t := range kind.types {
			// The sniffer takes any text that begins with MZ for a program.
			if within(found, t) && (within(found, plainText) || !isText(head)) {
				return &activeKinds[i]
			}
		}
	}
	return nil
}

// typeName returns the name of found for a message.
func typeName(found *mimetype.MIME, head []byte) string {
	if kind := activeKind(found, head); kind != nil {
		return kind.name
	}
	switch {
	case found.Is(plainText):
		return "plain text"
	case found.Is("image/jpeg"):
		return string(JPEG)
	case found.Is("image/apng"):
		return string(PNG)
	case found.Is("image/webp"):
		return string(WebP)
	case found.Is("image/heif"), found.Is("image/heif-sequence"):
		return "HEIF"
	case found.Is("application/x-ole-storage"):
		return "an old Office document"
	}
	if ext := found.Extension(); ext != "" {
		return strings.ToUpper(ext[1:])
	}
	return found.String()
}
