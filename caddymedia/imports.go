// Package caddymedia is the plug-in for xcaddy, with all parts of the media service, all storage
// drivers and all token stores. A build that needs few of them imports package core and theirs. It
// is only imported: begin with package media for a program in Go, and with internal/caddy/plugin
// for what the plug-in does in Caddy.
package caddymedia

import (
	// The plug-in, all storage drivers, and the token store that needs a server.
	_ "github.com/caddymedia/media/caddymedia/core"
	_ "github.com/caddymedia/media/caddymedia/drivers/azblob"
	_ "github.com/caddymedia/media/caddymedia/drivers/ftp"
	_ "github.com/caddymedia/media/caddymedia/drivers/gcs"
	_ "github.com/caddymedia/media/caddymedia/drivers/local"
	_ "github.com/caddymedia/media/caddymedia/drivers/redis"
	_ "github.com/caddymedia/media/caddymedia/drivers/s3"
	_ "github.com/caddymedia/media/caddymedia/drivers/sftp"
)
