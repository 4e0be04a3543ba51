// Package listing pages listings: those of services that have tokens for the next page, and those
// of folders, whose entries it keeps for the next pages. It lists nothing by itself: its entries
// are those of a driver. Begin with [Resume] for services, and with [Kept] for folders, whose empty
// ones [Clear] removes.
package listing

import (
	"fmt"
	"strings"

	"github.com/caddymedia/media/storagedrivers"
)

// Page is a page of a driver whose service pages by tokens and returns the folders itself.
// Some services return a folder again on the next page, so the cursor contains the last folder in
// addition to the token.
type Page struct {
	storagedrivers.Page
	last string // folder, on this page or one before
}

// Resume returns the page of cursor and the service's token for it.
func Resume(cursor string) (page *Page, token string) {
	last, token, _ := strings.Cut(cursor, "\n") // which no valid folder has
	return &Page{last: last}, token
}

// TakeFolder adds a folder to the page, unless it was added before or no valid key can begin with
// it.
func (p *Page) TakeFolder(folder string) {
	if folder == p.last || storagedrivers.ValidKey(strings.TrimSuffix(folder, "/")) != nil {
		return
	}
	p.last = folder
	p.Folders = append(p.Folders, folder)
}

// End returns the page. token is the token of the next page, empty on the last.
func (p *Page) End(token string) storagedrivers.Page {
	if token != "" {
		p.Next = p.last + "\n" + token
	}
	return p.Page
}

// ErrFolder means that a folder with other entries than folders has the name of a key. Another name
// would not be fs.ErrExist.
var ErrFolder = fmt.Errorf("a folder stands there: %w", storagedrivers.ErrInvalidKey)

// Clear removes a folder that contains nothing but folders like it: they stay where objects were
// deleted, and must not be in the way of a key. Read returns the names in a folder, or ErrFolder if
// not all are folders. Remove removes an empty folder, and nothing else.
func Clear(folder string, read func(folder string) ([]string, error), remove func(folder string) error) error {
	names, err := read(folder)
	for _, name := range names {
		if err == nil {
			err = Clear(folder+"/"+name, read, remove)
		}
	}
	if err != nil {
		return err
	}
	return remove(folder)
}
