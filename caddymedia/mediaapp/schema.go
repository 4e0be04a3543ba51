package mediaapp

import (
	_ "embed"

	"github.com/caddymedia/media/storagedrivers/options"
)

// The files whose comments document the options.
var (
	//go:embed config.go
	configComments string
	//go:embed storage.go
	storageComments string
	//go:embed alias.go
	aliasComments string
	//go:embed rendition.go
	renditionComments string
	//go:embed redirect.go
	redirectComments string
	//go:embed account.go
	accountComments string
	//go:embed limits.go
	limitsComments string
	//go:embed downloads.go
	downloadsComments string
	//go:embed resumable.go
	resumableComments string
)

var (
	settingsOptions   = options.Of[Settings](configComments)
	storageOptions    = options.Of[Storage](storageComments)
	imageAliasOptions = options.Of[ImageAlias](aliasComments, redirectComments, renditionComments)
	renditionOptions  = options.Of[Rendition](renditionComments)
	fileAliasOptions  = options.Of[FileAlias](aliasComments, redirectComments)
	accountOptions    = options.Of[Account](accountComments)
	limitsOptions     = options.Of[Limits](limitsComments)
	downloadsOptions  = options.Of[Downloads](downloadsComments)
	resumableOptions  = options.Of[Resumable](resumableComments)
)

// Descriptions are the schemas of the app's named parts, its downloads and its resumable uploads.
type Descriptions struct {
	// Storage does not include the driver, which describes itself.
	Storage, ImageAlias, FileAlias, Account *options.Schema
	// Downloads are the downloads of Go code.
	Downloads *options.Schema
	// Resumable are the resumable uploads.
	Resumable *options.Schema
}

// Schemas returns the documented options of storages, aliases, accounts, downloads and resumable
// uploads.
func Schemas() Descriptions {
	return Descriptions{
		Storage:    storageOptions.Documented(),
		ImageAlias: imageAliasOptions.Documented(),
		FileAlias:  fileAliasOptions.Documented(),
		Account:    accountOptions.Documented(),
		Downloads:  downloadsOptions.Documented(),
		Resumable:  resumableOptions.Documented(),
	}
}
