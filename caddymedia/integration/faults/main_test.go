// Package faults_test tests what remains when Caddys are killed or reloaded, connections are cut,
// and requests race. A file begins with the name of its subject: changes of items, the lifecycle,
// remote storages, resumable uploads, retries.
package faults_test

import (
	"flag"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/site"
)

// TestMain runs more tests at once than there are processors: most of them wait for a Caddy of
// their own.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	site.Main(m)
}
