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
