package media_test

import (
	"context"
	"fmt"
	"time"

	"github.com/caddymedia/media/caddymedia/media"
	tokenmemory "github.com/caddymedia/media/caddymedia/tokens/memory"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// A signed address of a private item is valid for ten minutes.
func ExampleService_FileURL() {
	service, err := media.New(media.Config{
		Settings: media.Settings{CDNBase: "https://media.example.com", SigningKey: []string{"a signing key of thirty-two bytes"}},
		Storages: []media.Storage{{Name: "default", Driver: memory.New()}},
		FileAliases: map[string]*media.FileAlias{
			"invoices": {AliasOptions: media.AliasOptions{Private: &media.Private{}}},
		},
		Tokens: tokenmemory.New(nil),
		Now:    func() time.Time { return time.Unix(1_800_000_000, 0) },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer service.Close()
	fmt.Println(service.FileURL(context.Background(), "invoices", "2026/11.pdf", 10*time.Minute))
	// Output: https://media.example.com/static/file/invoices/2026/11.pdf?expires=1800000600&signature=aygtDAnuIsKy90EGaEADXAKiBMMQpBiAPlfp7HlW4wc <nil>
}
