package panel

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"strings"
)

var (
	importLine = regexp.MustCompile(`(?m)^import \{([^}]*)\} from '([^']*)';$`)
	exportWord = regexp.MustCompile(`(?m)^export ((?:async )?function\*?|const|class) (\w+)`)
	// otherWay finds imports and exports that neither of them describes.
	otherWay = regexp.MustCompile(`(?m)^(?:import *["'*{]|import \w+ from|export *(?:[*{]|default|let|var)).*`)
	// comment is one that fills its lines. They are a quarter of the bytes. No text of a script has
	// such a line.
	comment = regexp.MustCompile(`(?m)^\t*(?://.*|/\*\*(?:[^*]|\*+[^*/])*\*+/)\n`)
)

// bundler joins a script and the modules that it imports, so that a browser far away needs one
// request for all of them. Each module becomes a function, whose result is its exports.
type bundler struct {
	files  map[string][]byte
	joined bytes.Buffer
	begun  map[string]bool
}

// bundle returns the script with the name entry and its modules.
func bundle(files map[string][]byte, entry string) ([]byte, error) {
	b := &bundler{files: files, begun: map[string]bool{entry: true}}
	script, err := b.body(entry)
	b.joined.Write(script)
	return b.joined.Bytes(), err
}

// add appends a module after those that it imports.
func (b *bundler) add(name string) error {
	if b.begun[name] {
		return nil
	}
	b.begun[name] = true
	if b.files[name] == nil {
		return fmt.Errorf("there is no %s", name)
	}
	var exports []string
	for _, export := range exportWord.FindAllSubmatch(b.files[name], -1) {
		exports = append(exports, string(export[2]))
	}
	body, err := b.body(name)
	fmt.Fprintf(&b.joined, "const %s = (() => {\n%sreturn { %s };\n})();\n", variable(name), body, strings.Join(exports, ", "))
	return err
}

// body returns a module without its imports and exports, after adding its imports.
func (b *bundler) body(name string) ([]byte, error) {
	var err error
	body := importLine.ReplaceAllFunc(comment.ReplaceAll(b.files[name], nil), func(line []byte) []byte {
		match := importLine.FindSubmatch(line)
		imported := path.Join(path.Dir(name), string(match[2]))
		if err == nil {
			err = b.add(imported)
		}
		return fmt.Appendf(nil, "const {%s} = %s;", match[1], variable(imported))
	})
	body = exportWord.ReplaceAll(body, []byte("$1 $2"))
	if other := otherWay.Find(body); err == nil && other != nil {
		err = fmt.Errorf("%s: %q is written in another way than all others", name, other)
	}
	return body, err
}

// variable returns the name of the exports of a module.
func variable(name string) string {
	return "$" + strings.NewReplacer("/", "_", ".", "_").Replace(name)
}
