// Command netprogram serves the media service with net/http alone, on the address in its argument.
// Items and tokens are in memory. It adds an endpoint that deletes images.
package main

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"log"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/caddymedia/media/caddymedia/aliases"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/caddymedia/mediahttp"
	"github.com/caddymedia/media/caddymedia/tokens"
	tokenmemory "github.com/caddymedia/media/caddymedia/tokens/memory"
	"github.com/caddymedia/media/storagedrivers/memory"
)

func main() {
	service, err := media.New(media.Config{
		Storages:     []media.Storage{{Name: "default", Driver: memory.New()}},
		ImageAliases: map[string]*media.ImageAlias{"content": {WebP: &media.WebP{}}},
		FileAliases:  map[string]*media.FileAlias{"content": {}},
		Accounts:     map[string]*media.Account{"site-one": {PasswordHash: hash("secret")}},
		Comparer: tokens.CompareFunc(func(hashed, password []byte) (bool, error) {
			return subtle.ConstantTimeCompare(hashed, []byte(hash(string(password)))) == 1, nil
		}),
		FakeHash: []byte(hash("")),
		Tokens:   tokenmemory.New(nil),
		Log:      slog.Default(),
	})
	if err != nil {
		log.Fatal(err)
	}
	service.Start()
	mux := http.NewServeMux()
	mux.Handle("/", mediahttp.New(service, mediahttp.Options{Log: slog.Default()}))
	mux.HandleFunc("DELETE /images/{filename...}", func(w http.ResponseWriter, r *http.Request) {
		alias, _ := service.Alias(aliases.Image, "content")
		actor := aliases.Actor{Origin: aliases.OriginGo}
		if err := service.Uploader().Delete(r.Context(), alias, r.PathValue("filename"), actor); err != nil {
			http.Error(w, "not deleted", http.StatusInternalServerError)
		}
	})
	server := &http.Server{Addr: os.Args[1], Handler: mux, ReadHeaderTimeout: time.Minute}
	log.Fatal(server.ListenAndServe())
}

// hash is for this program alone: real passwords need a slow hash such as argon2id.
func hash(password string) string {
	sum := sha256.Sum256([]byte(password))
	return hex.EncodeToString(sum[:])
}
