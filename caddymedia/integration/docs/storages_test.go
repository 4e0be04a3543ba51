package docs_test

import (
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/pages"
	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// TestDocsStorages runs the configuration on the page of each driver with a real server. Only the
// names of the server and of the account differ.
func TestDocsStorages(t *testing.T) {
	for _, kind := range site.RemoteDrivers {
		t.Run(kind.Name, func(t *testing.T) {
			block := pages.Media(t, pages.Example(t, "storage-"+kind.Name+".md", "caddyfile", "{\n"))
			p := kind.Start(t)
			for i := 0; i < len(p.Example); i += 2 {
				if !strings.Contains(block, p.Example[i]) {
					t.Fatalf("the example lacks %q:\n%s", p.Example[i], block)
				}
				block = strings.ReplaceAll(block, p.Example[i], p.Example[i+1])
			}
			block = strings.NewReplacer("account shop", "account "+site.APIKey, "file_alias content\n", "file_alias content {\nextensions bin\n}\n").Replace(block)
			c := site.NewChild(t, append(p.Env, "SHOP_PASSWORD_HASH="+site.CheapHash)...)
			c.Start("tokens memory\n" + block)
			client := c.HTTP1()
			content := sample.Described(1, 3_000_000)
			client.MustFetch(t, "content", client.MustPut(t, client.MustLogin(t), "content", "file.bin", content), content)
		})
	}
}
