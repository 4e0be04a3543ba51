// Package caddymedia is the plug-in for xcaddy, with all parts of the media service and all storage drivers. A
// build that needs few drivers imports package core and theirs. It is only imported: begin with package media for
// a program in Go, and with internal/plugin for what the plug-in does in Caddy.
package caddymedia

import (
	// The plug-in, and all storage drivers.
	_ "github.com/caddymedia/media/caddymedia/core"
	_ "github.com/caddymedia/media/caddymedia/drivers/azblob"
	_ "github.com/caddymedia/media/caddymedia/drivers/ftp"
	_ "github.com/caddymedia/media/caddymedia/drivers/gcs"
	_ "github.com/caddymedia/media/caddymedia/drivers/local"
	_ "github.com/caddymedia/media/caddymedia/drivers/s3"
	_ "github.com/caddymedia/media/caddymedia/drivers/sftp"
)
