package guard_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// bare are the files that begin goroutines without this package, and why a panic there needs no
// guard.
var bare = map[string]string{
	"storagedrivers/guard/guard.go": "is the guard",

	"caddymedia/internal/leaf/access/request.go":          "uses the token store by Call",
	"caddymedia/internal/core/derived/maker.go":           "makes images by CallAs",
	"caddymedia/internal/front/httpx/httpx.go":            "sets a deadline",
	"caddymedia/internal/leaf/check/clamd.go":             "sets a deadline",
	"caddymedia/internal/leaf/imaging/render/clock.go":    "reads a clock, and ends a context",
	"caddymedia/internal/leaf/imaging/webp/libwebp.go":    "sets a flag",
	"caddymedia/internal/front/s3api/completion.go":       "writes blanks to the client",
	"caddymedia/internal/core/service/listing_ordered.go": "forgets a list",
	"caddymedia/internal/core/service/private.go":         "uses the token store by CallAs",
	"caddymedia/media/gocode.go":                          "removes files of net/http",
	"caddymedia/mediacmd/copy.go":                         "uses storages, in a command that may end",
	"caddymedia/mediacmd/output.go":                       "listens to signals",
	"caddymedia/mediacmd/probe.go":                        "uses storages, in a command that may end",
	"caddymedia/tokens/bolt/store.go":                     "opens a file by Call",
	"caddymedia/tokens/bolt/write.go":                     "commits by Call",
	"storagedrivers/cache/fetch.go":                       "uses the driver by Call",
	"storagedrivers/commit.go":                            "uses the driver by Call",
	"storagedrivers/ftp/conn.go":                          "closes connections",
	"storagedrivers/ftp/connect.go":                       "closes connections, and reads one to its end",
	"storagedrivers/ftp/open.go":                          "closes a connection",
	"storagedrivers/ftp/pool.go":                          "closes connections",
	"storagedrivers/growing.go":                           "uses the driver by Call",
	"storagedrivers/headstart.go":                         "uses the driver by Call",
	"storagedrivers/internal/listing/kept.go":             "forgets a list",
	"storagedrivers/internal/lostreply/lostreply.go":      "ends a context",
	"storagedrivers/local/config.go":                      "follows links with the library of Go",
	"storagedrivers/local/sync.go":                        "syncs a file system",
	"storagedrivers/sftp/connect.go":                      "closes connections, and reads one to its end",
	"storagedrivers/sftp/put.go":                          "uses the connection by Call",
	"storagedrivers/sftp/sftp.go":                         "uses the connection by Call",
	"storagedrivers/sftp/pool.go":                         "uses the connection by Call",
	"storagedrivers/sftp/reader.go":                       "uses the connection by Call",
	"storagedrivers/storage.go":                           "ends a context",
}

// tests are folders with code for tests only.
var tests = []string{"caddymedia/integration/", "caddymedia/tokens/tokentest/", "storagedrivers/drivertest/", "storagedrivers/internal/foreigntest/"}

// beginners are packages whose functions run in goroutines that end the process.
var beginners = []string{`"golang.org/x/sync/errgroup"`, `"golang.org/x/sync/singleflight"`}

// TestBareGo: a goroutine that runs code of drivers, SDKs or decoders is guarded, because its panic
// ends the process. A new go statement, or what has the same effect, uses this package, or its file
// has a line in bare.
func TestBareGo(t *testing.T) {
	t.Parallel()
	const root = "../.."
	found := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		name, _ := filepath.Rel(root, path)
		name = filepath.ToSlash(name)
		if slices.ContainsFunc(tests, func(folder string) bool { return strings.HasPrefix(name, folder) }) {
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, at := range goroutines(file) {
			found[name] = true
			if bare[name] == "" {
				t.Errorf("%s: a goroutine without a guard", files.Position(at))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range bare {
		if !found[name] {
			t.Errorf("%s begins no goroutine any more", name)
		}
	}
}

// goroutines returns where a file begins goroutines without this package: go statements, timers,
// wait groups, and imports of beginners. Go is a method of a [guard.Group] in a file that names no
// wait group.
func goroutines(file *ast.File) (at []token.Pos) {
	var calls []token.Pos // of a method Go
	guarded := false
	for _, imported := range file.Imports {
		guarded = guarded || strings.HasSuffix(imported.Path.Value, `/storagedrivers/guard"`)
		if slices.Contains(beginners, imported.Path.Value) {
			at = append(at, imported.Pos())
		}
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.GoStmt:
			at = append(at, node.Pos())
		case *ast.SelectorExpr:
			switch node.Sel.Name {
			case "AfterFunc":
				at = append(at, node.Pos())
			case "WaitGroup":
				guarded = false
			case "Go":
				calls = append(calls, node.Pos())
			}
		}
		return true
	})
	if !guarded {
		at = append(at, calls...)
	}
	return at
}
