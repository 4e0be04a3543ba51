package guard_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddymedia/media/storagedrivers/internal/test"
)

// bare are the files with go statements, and why a panic there needs no guard.
var bare = map[string]string{
	"caddymedia/internal/access/request.go":  "renews a lease in the token store",
	"caddymedia/internal/observe/events.go":  "waits for the start of Caddy",
	"caddymedia/internal/s3api/multipart.go": "writes blanks to the client",
	"caddymedia/internal/service/health.go":  "uses storages, whose panics are errors, and the token store",
	"caddymedia/internal/service/usage.go":   "uses storages, whose panics are errors",
	"caddymedia/mediacmd/copy.go":            "uses storages, in a command that may end",
	"caddymedia/tokens/bolt/write.go":        "commits by functions that recover",
	"storagedrivers/ftp/connect.go":          "reads a connection to its end",
	"storagedrivers/headstart.go":            "is guarded",
	"storagedrivers/local/config.go":         "follows links with the library of Go",
	"storagedrivers/local/sync.go":           "syncs a file system",
	"storagedrivers/sftp/connect.go":         "reads a connection to its end",
	"storagedrivers/sftp/reader.go":          "is guarded",
}

// tests are folders with code for tests only.
var tests = []string{"caddymedia/integration/", "caddymedia/tokens/tokentest/", "storagedrivers/drivertest/"}

// TestBareGo: a goroutine that runs code of drivers, SDKs or decoders is guarded, because its
// panic ends the process. A new go statement needs a guard, and its file a line in bare.
func TestBareGo(t *testing.T) {
	t.Parallel()
	const root = "../../.."
	found := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		name, _ := filepath.Rel(root, path)
		name = filepath.ToSlash(name)
		for _, folder := range tests {
			if strings.HasPrefix(name, folder) {
				return nil
			}
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(node ast.Node) bool {
			if statement, ok := node.(*ast.GoStmt); ok {
				found[name] = true
				if bare[name] == "" {
					t.Errorf("%s: a go statement without a guard", files.Position(statement.Pos()))
				}
			}
			return true
		})
		return nil
	})
	test.Must(t, err)
	for name := range bare {
		if !found[name] {
			t.Errorf("%s has no go statement any more", name)
		}
	}
}
