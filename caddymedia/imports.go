// Package caddymedia is the plug-in for xcaddy. It imports all modules of the media service.
package caddymedia

import (
	// The app, its handlers and commands, the token stores and the storage drivers.
	_ "github.com/caddymedia/media/admin/api"
	_ "github.com/caddymedia/media/admin/panel"
	_ "github.com/caddymedia/media/caddymedia/mediaapp"
	_ "github.com/caddymedia/media/caddymedia/mediacmd"
	_ "github.com/caddymedia/media/caddymedia/tokens/bolt"
	_ "github.com/caddymedia/media/caddymedia/tokens/redis"
	_ "github.com/caddymedia/media/storagedrivers/azblob"
	_ "github.com/caddymedia/media/storagedrivers/ftp"
	_ "github.com/caddymedia/media/storagedrivers/gcs"
	_ "github.com/caddymedia/media/storagedrivers/local"
	_ "github.com/caddymedia/media/storagedrivers/s3"
	_ "github.com/caddymedia/media/storagedrivers/sftp"
)
