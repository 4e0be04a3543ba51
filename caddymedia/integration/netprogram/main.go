// Command netprogram serves the media service with net/http alone. Images are in an S3 bucket,
// files on a host with SFTP, and tokens in a file of bbolt. It adds an endpoint that deletes
// images.
//
//	netprogram <address> <configuration file>
package main

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"log"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/caddymedia/mediahttp"
	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/caddymedia/tokens/bolt"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/s3"
	"github.com/caddymedia/media/storagedrivers/sftp"
)

// config is the configuration file, as JSON. The options are those of the documentation.
type config struct {
	S3     s3.Config   `json:"s3"`
	SFTP   sftp.Config `json:"sftp"`
	Tokens bolt.Config `json:"tokens"`
}

func main() {
	service, err := newService(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	service.Start()
	mux := http.NewServeMux()
	mux.Handle("/", mediahttp.New(service, mediahttp.Options{Log: slog.Default()}))
	mux.HandleFunc("DELETE /images/{filename...}", func(w http.ResponseWriter, r *http.Request) {
		if err := service.DeleteImage(r.Context(), "content", r.PathValue("filename")); err != nil {
			http.Error(w, "not deleted", http.StatusInternalServerError)
		}
	})
	server := &http.Server{Addr: os.Args[1], Handler: mux, ReadHeaderTimeout: time.Minute}
	log.Fatal(server.ListenAndServe())
}

// newService returns the service of a configuration file.
func newService(path string) (*media.Service, error) {
	text, err := os.ReadFile(path) //nolint:gosec // it is in the arguments of the program
	if err != nil {
		return nil, err
	}
	var c config
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, err
	}
	images, err := open(&c.S3)
	if err != nil {
		return nil, err
	}
	files, err := open(&c.SFTP)
	if err != nil {
		return nil, err
	}
	if err := c.Tokens.Complete("."); err != nil {
		return nil, err
	}
	store, err := c.Tokens.NewStore(slog.Default())
	if err != nil {
		return nil, err
	}
	return media.New(media.Config{
		Storages:     []media.Storage{{Name: "images", Driver: images}, {Name: "files", Driver: files}},
		ImageAliases: map[string]*media.ImageAlias{"content": {AliasOptions: media.AliasOptions{Storage: "images"}, WebP: &media.WebP{}}},
		FileAliases:  map[string]*media.FileAlias{"content": {AliasOptions: media.AliasOptions{Storage: "files"}}},
		Accounts:     map[string]*media.Account{"site-one": {PasswordHash: hash("secret")}},
		Comparer: tokens.CompareFunc(func(hashed, password []byte) (bool, error) {
			return subtle.ConstantTimeCompare(hashed, []byte(hash(string(password)))) == 1, nil
		}),
		FakeHash: []byte(hash("")),
		Tokens:   store,
		Log:      slog.Default(),
	})
}

// open returns the driver of a configuration, without connecting.
func open(c storagedrivers.Config) (storagedrivers.Driver, error) {
	if err := c.Complete(); err != nil {
		return nil, err
	}
	return c.NewDriver(slog.Default())
}

// hash is for this program alone: real passwords need a slow hash such as argon2id.
func hash(password string) string {
	sum := sha256.Sum256([]byte(password))
	return hex.EncodeToString(sum[:])
}
