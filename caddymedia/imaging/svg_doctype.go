package imaging

import (
	"html"
	"regexp"
)

// Declarations are matched in full, because encoding/xml reads them loosely.
var (
	svgDoctype = regexp.MustCompile(`^DOCTYPE\s+(?:[\w.-]+:)?svg` +
		`(?:\s+PUBLIC\s+["']-//W3C//DTD SVG [\w. ]+//EN["'](?:\s+["']https?://www\.w3\.org/[\w./-]+["'])?)?` +
		`\s*(?:\[((?:\s|` + plainEntity + `|` + linkPrefix + `)*)\]\s*)?$`)
	plainEntities     = regexp.MustCompile(plainEntity)
	entityDeclaration = regexp.MustCompile(`<!ENTITY\s+([\w.-]+)\s+(?:"([^"]*)"|'([^']*)')\s*>`)
)

// The declarations allowed in an internal subset: the prefix of links, and entities of plain text.
// An entity may not refer to another one, begin or end a tag, or escape a letter.
const (
	entityText  = `[\w:/.#,;()+=~? -]{0,1000}`
	fontsText   = `[\w:/.#,;()+=~?' -]{0,1000}` // with the quotes of font names
	plainEntity = `<!ENTITY\s+([A-Za-z_][\w.-]*)\s+(?:"(` + fontsText + `)"|'(` + entityText + `)')\s*>`
	linkPrefix  = `<!ATTLIST\s+svg\s+xmlns:xlink\s+CDATA\s+#FIXED\s+["']http://www\.w3\.org/1999/xlink["']\s*>`
)

// parseDoctype returns the entities of a document type, as drawing programs write them for
// namespaces and styles. ok reports whether the document type declares nothing else. An entity with
// a name that HTML knows is not accepted, because it would be another character in a page.
func parseDoctype(text string) (entities map[string]string, ok bool) {
	parts := svgDoctype.FindStringSubmatch(text)
	if parts == nil {
		return nil, false
	}
	entities = make(map[string]string)
	for _, m := range plainEntities.FindAllStringSubmatch(parts[1], -1) {
		reference := "&" + m[1] + ";"
		if _, twice := entities[m[1]]; twice || html.UnescapeString(reference) != reference {
			return nil, false
		}
		entities[m[1]] = m[2] + m[3]
	}
	return entities, true
}

// declaredEntities returns the entities of an internal subset, so that an unchecked image parses.
// Only the SVG namespace keeps its value. All others are empty, so that nothing grows by expansion.
func declaredEntities(text string) map[string]string {
	entities := make(map[string]string)
	for _, m := range entityDeclaration.FindAllStringSubmatch(text, 1000) {
		entities[m[1]] = ""
		if m[2]+m[3] == svgNamespace {
			entities[m[1]] = svgNamespace
		}
	}
	return entities
}
