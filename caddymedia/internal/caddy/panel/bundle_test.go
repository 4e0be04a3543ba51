package panel

import (
	"strings"
	"testing"

	"github.com/caddymedia/media/admin/web"
)

// TestBundle: a script is joined with its modules, each once and after those that it imports,
// without the comments that fill lines. What cannot be joined is an error.
func TestBundle(t *testing.T) {
	t.Parallel()
	files := map[string][]byte{
		"app.js": []byte("// @ts-check\nimport { a,\n\tb } from './lib/one.js';\nimport { c } from './lib/two.js';\na(b, c); // now\n"),
		"lib/one.js": []byte("import { c } from './two.js';\n/**\n * Says ** it.\n * @param {any} x\n */\nexport async function* a(x) {\n" +
			"\t// Why.\n\tyield /** @type {any} */ (x) + c;\n}\n/** Two. */\nexport const b = 'http://';\n"),
		"lib/two.js":  []byte("export class c {}\nconst own = `\nexport AWS_REGION=1\nimport boto3\n`;\n"),
		"lost.js":     []byte("import { x } from './none.js';\n"),
		"whole.js":    []byte("import * as two from './lib/two.js';\n"),
		"exporter.js": []byte("export { own };\n"),
		"outer.js":    []byte("import { own } from './exporter.js';\n"),
		"default.js":  []byte("import own from './lib/two.js';\n"),
	}
	const want = "const $lib_two_js = (() => {\nclass c {}\nconst own = `\nexport AWS_REGION=1\nimport boto3\n`;\nreturn { c };\n})();\n" +
		"const $lib_one_js = (() => {\nconst { c } = $lib_two_js;\nasync function* a(x) {\n\tyield /** @type {any} */ (x) + c;\n}\nconst b = 'http://';\nreturn { a, b };\n})();\n" +
		"const { a,\n\tb } = $lib_one_js;\nconst { c } = $lib_two_js;\na(b, c); // now\n"
	if got, err := bundle(files, "app.js"); err != nil || string(got) != want {
		t.Errorf("got %s, %v", got, err)
	}
	for entry, want := range map[string]string{
		"lost.js": "there is no none.js", "whole.js": "whole.js", "outer.js": "exporter.js", "default.js": "default.js",
	} {
		if _, err := bundle(files, entry); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", entry, err, want)
		}
	}
}

// TestBundleOfPanel: the page asks for one script, which has all modules of the panel.
func TestBundleOfPanel(t *testing.T) {
	t.Parallel()
	p, err := newPages(web.Files)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(p.index), ".js"); n != 1 {
		t.Errorf("the page asks for %d scripts", n)
	}
	for name := range p.files {
		if strings.HasPrefix(name, "lib/") || strings.HasPrefix(name, "pages/") {
			if n := strings.Count(string(p.files[appFile]), "const "+variable(name)+" = "); n != 1 {
				t.Errorf("%s is there %d times", name, n)
			}
		}
	}
}
