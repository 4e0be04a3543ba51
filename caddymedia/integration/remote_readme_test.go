package integration

import (
	"os"
	"strings"
	"testing"
)

// TestReadmeStorages runs the README's example of each driver on a real server. Only the name of
// the server differs.
func TestReadmeStorages(t *testing.T) {
	for _, kind := range remoteDrivers {
		t.Run(kind.name, func(t *testing.T) {
			block := readmeBlock(t, "driver "+kind.name+" ")
			p := kind.start(t)
			for i := 0; i < len(p.example); i += 2 {
				if !strings.Contains(block, p.example[i]) {
					t.Fatalf("the example lacks %q:\n%s", p.example[i], block)
				}
				block = strings.ReplaceAll(block, p.example[i], p.example[i+1])
			}
			c := newChild(t, p.env...)
			c.start("tokens memory\n" + account + block + "\nimage_alias content\nfile_alias content {\nextensions bin\n}\n")
			client := c.http1()
			content := described(1, 3_000_000)
			client.mustFetch(t, "content", client.mustPut(t, client.mustLogin(t), "content", "file.bin", content), content)
		})
	}
}

// readmeBlock returns the first Caddyfile block in the README that contains a text.
func readmeBlock(t *testing.T, text string) string {
	t.Helper()
	for part := range strings.SplitSeq(readmeText(t), "```caddyfile\n") {
		if block, _, ok := strings.Cut(part, "```"); ok && strings.Contains(block, text) {
			return block
		}
	}
	t.Fatalf("the README has no example with %q", text)
	return ""
}

func readmeText(t *testing.T) string {
	t.Helper()
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(readme)
}
