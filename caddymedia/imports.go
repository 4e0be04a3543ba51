// Package caddymedia plugs the media service into Caddy: it imports every module of it,
// and is the package that xcaddy is given.
package caddymedia

import (
	// The app, what speaks for it, and where tokens and items are kept.
	_ "github.com/caddymedia/media/admin/api"
	_ "github.com/caddymedia/media/admin/panel"
	_ "github.com/caddymedia/media/caddymedia/mediaapp"
	_ "github.com/caddymedia/media/caddymedia/mediacmd"
	_ "github.com/caddymedia/media/caddymedia/mediahandler"
	_ "github.com/caddymedia/media/caddymedia/mediatpl"
	_ "github.com/caddymedia/media/caddymedia/tokens/bolt"
	_ "github.com/caddymedia/media/caddymedia/tokens/memory"
	_ "github.com/caddymedia/media/caddymedia/tokens/redis"
	_ "github.com/caddymedia/media/storagedrivers/azblob"
	_ "github.com/caddymedia/media/storagedrivers/ftp"
	_ "github.com/caddymedia/media/storagedrivers/gcs"
	_ "github.com/caddymedia/media/storagedrivers/local"
	_ "github.com/caddymedia/media/storagedrivers/s3"
	_ "github.com/caddymedia/media/storagedrivers/sftp"
)
