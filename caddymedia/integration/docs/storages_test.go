package docs_test

import (
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// TestReadmeStorages runs the README's example of each driver on a real server. Only the name of
// the server differs.
func TestReadmeStorages(t *testing.T) {
	for _, kind := range site.RemoteDrivers {
		t.Run(kind.Name, func(t *testing.T) {
			block := site.ReadmeBlock(t, "driver "+kind.Name+" ")
			p := kind.Start(t)
			for i := 0; i < len(p.Example); i += 2 {
				if !strings.Contains(block, p.Example[i]) {
					t.Fatalf("the example lacks %q:\n%s", p.Example[i], block)
				}
				block = strings.ReplaceAll(block, p.Example[i], p.Example[i+1])
			}
			c := site.NewChild(t, p.Env...)
			c.Start("tokens memory\n" + site.Account + block + "\nimage_alias content\nfile_alias content {\nextensions bin\n}\n")
			client := c.HTTP1()
			content := sample.Described(1, 3_000_000)
			client.MustFetch(t, "content", client.MustPut(t, client.MustLogin(t), "content", "file.bin", content), content)
		})
	}
}
