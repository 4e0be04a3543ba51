package media

import "github.com/caddymedia/media/caddymedia/aliases"

// Kind is the kind of items of an alias: [Image] or [File].
type Kind = aliases.Kind

// The kinds.
const (
	Image = aliases.Image
	File  = aliases.File
)

// Actor uploads or deletes an item.
type Actor = aliases.Actor

// OriginGo is the origin of requests of Go code.
const OriginGo = aliases.OriginGo
