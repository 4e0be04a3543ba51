package mediahttp_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/caddymedia/mediahttp"
	"github.com/caddymedia/media/caddymedia/tokens"
	tokenmemory "github.com/caddymedia/media/caddymedia/tokens/memory"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// A program without Caddy serves items and tokens that are kept in memory.
func Example() {
	running, err := media.New(media.Config{
		Storages:    []media.Storage{{Name: "default", Driver: memory.New()}},
		FileAliases: map[string]*media.FileAlias{"content": {}},
		Accounts:    map[string]*media.Account{"site-one": {PasswordHash: "a hash"}},
		// A real program compares slow hashes, such as argon2id.
		Comparer: tokens.CompareFunc(func(hashed, password []byte) (bool, error) { return bytes.Equal(hashed, password), nil }),
		FakeHash: []byte("another hash"),
		Tokens:   tokenmemory.New(nil),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer running.Close()
	running.Start()
	handler := mediahttp.New(running, mediahttp.Options{})

	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/api/upload/file", nil))
	fmt.Println(answer.Code, "without a token")
	// Output: 401 without a token
}
