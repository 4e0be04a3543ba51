package service

import "github.com/caddymedia/media/caddymedia/internal/leaf/item"

// Deletion is a request to delete items.
type Deletion struct {
	Kind item.Kind
	// Alias and Filename as in the request. The filename is empty for a set.
	Alias, Filename string
	// IsSet means that the request names a set of items.
	IsSet bool
	// Purge means that the items are in the trash; Filename is the ID of an entry.
	Purge bool
	// Folder of a set; empty if the request names its items.
	Folder string
	// Number of items of a set that were deleted.
	Number int
	Actor  item.Actor
	// Failure is why the request was refused, or why some items of a set are left; nil otherwise.
	Failure *item.Failure
}
