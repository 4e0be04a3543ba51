// Package caddymedia is the plug-in for xcaddy. It imports all modules of the media service.
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
