package storagedrivers

import (
	"errors"
	"strings"
)

// Wants reports whether the object under key, or a folder of a shallow listing, is on this page or
// a later one. It is for drivers whose cursor is the last name of the previous page.
func (o ListOptions) Wants(key string) bool {
	return key > o.Cursor && strings.HasPrefix(key, o.Prefix)
}

// Enters reports whether the folder, which ends with a slash, may contain names of the listing. It
// is for drivers that walk folders in the byte order of the keys.
func (o ListOptions) Enters(folder string) bool {
	passed := o.Cursor > folder && !strings.HasPrefix(o.Cursor, folder)
	below := !o.Shallow && strings.HasPrefix(folder, o.Prefix)
	return !passed && (below || strings.HasPrefix(o.Prefix, folder))
}

// Walk fills the page of a driver that walks objects and folders in their byte order. The cursor is
// the last name of the previous page.
type Walk struct {
	ListOptions
	page Page
	last string // on the page
}

var errPageFull = errors.New("page full")

// Take adds a wanted object to the page. An error must end the walk and be passed to [Walk.Page].
func (w *Walk) Take(info Info) error {
	if err := w.take(info.Key); err != nil {
		return err
	}
	w.page.Objects = append(w.page.Objects, info)
	return nil
}

// TakeFolder adds a folder that is not entered to the page, if the listing is shallow and wants it.
// An error must end the walk and be passed to [Walk.Page].
func (w *Walk) TakeFolder(folder string) error {
	if !w.Shallow || !w.Wants(folder) {
		return nil
	}
	if err := w.take(folder); err != nil {
		return err
	}
	w.page.Folders = append(w.page.Folders, folder)
	return nil
}

func (w *Walk) take(name string) error {
	if len(w.page.Objects)+len(w.page.Folders) == w.PageLimit() {
		return errPageFull
	}
	w.last = name
	return nil
}

// Page returns the page. err is the error that ended the walk, or nil.
func (w *Walk) Page(err error) (Page, error) {
	if errors.Is(err, errPageFull) {
		w.page.Next, err = w.last, nil
	}
	if err != nil {
		return Page{}, err
	}
	return w.page, nil
}

// TokenPage is the page of a driver whose service pages by tokens and returns the folders itself.
// Some services return a folder again on the next page, so the cursor contains the last folder in
// addition to the token.
type TokenPage struct {
	Page
	last string // folder, on this page or one before
}

// Resume returns the page of cursor and the service's token for it.
func Resume(cursor string) (page *TokenPage, token string) {
	last, token, _ := strings.Cut(cursor, "\n") // which no valid folder has
	return &TokenPage{last: last}, token
}

// TakeFolder adds a folder to the page, unless it was added before or no valid key can begin with
// it.
func (p *TokenPage) TakeFolder(folder string) {
	if folder == p.last || ValidKey(strings.TrimSuffix(folder, "/")) != nil {
		return
	}
	p.last = folder
	p.Folders = append(p.Folders, folder)
}

// End returns the page. token is the token of the next page, empty on the last.
func (p *TokenPage) End(token string) Page {
	if token != "" {
		p.Next = p.last + "\n" + token
	}
	return p.Page
}
