package mediaapp

import (
	_ "embed"

	"github.com/caddymedia/media/storagedrivers/options"
)

// The files with the comments of what is described.
var (
	//go:embed storage.go
	storageComments string
	//go:embed alias.go
	aliasComments string
	//go:embed redirect.go
	redirectComments string
	//go:embed account.go
	accountComments string
	//go:embed limits.go
	limitsComments string
	//go:embed downloads.go
	downloadsComments string
)

var (
	storageOptions    = options.Of[Storage](storageComments)
	imageAliasOptions = options.Of[ImageAlias](aliasComments, redirectComments)
	fileAliasOptions  = options.Of[FileAlias](aliasComments, redirectComments)
	accountOptions    = options.Of[Account](accountComments)
	limitsOptions     = options.Of[Limits](limitsComments)
	downloadsOptions  = options.Of[Downloads](downloadsComments)
)

// Descriptions are those of what the app has by name, and of its downloads.
type Descriptions struct {
	// Storage is without its driver, which describes itself.
	Storage, ImageAlias, FileAlias, Account *options.Schema
	// Downloads are those of Go code.
	Downloads *options.Schema
}

// Schemas describes the options of storages, aliases, accounts and downloads, with their
// documentation.
func Schemas() Descriptions {
	return Descriptions{
		Storage:    storageOptions.Documented(),
		ImageAlias: imageAliasOptions.Documented(),
		FileAlias:  fileAliasOptions.Documented(),
		Account:    accountOptions.Documented(),
		Downloads:  downloadsOptions.Documented(),
	}
}
