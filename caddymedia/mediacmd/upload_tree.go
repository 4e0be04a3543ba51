package mediacmd

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
)

// source is a file to upload.
type source struct {
	file      string
	subFolder string
	// err is why the file, or the folder of this name, could not be read; nil otherwise.
	err error
}

// leftOut counts what is not sent of folders.
type leftOut struct{ hidden, links, others int }

// String returns the counts in words; empty if there are none.
func (l leftOut) String() string {
	var parts []string
	for _, part := range []struct {
		n    int
		name string
	}{{l.hidden, "hidden"}, {l.links, "symbolic links"}, {l.others, "no regular files"}} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.name))
		}
	}
	return strings.Join(parts, ", ")
}

// sources returns the files of the command line, and those in its folders.
func (u *uploading) sources(args []string) []source {
	var found []source
	for _, arg := range args {
		if !isFolder(arg) {
			found = append(found, source{file: arg, subFolder: u.each.SubFolder})
			continue
		}
		u.folders = true
		found = append(found, u.tree(arg)...)
	}
	return found
}

// tree returns the files in a folder and in all below, with sub folders that begin with the name of
// the folder. Hidden files and symbolic links are left out.
func (u *uploading) tree(root string) []source {
	absolute, err := filepath.Abs(root)
	if err == nil {
		root, err = filepath.EvalSymlinks(root) // the named folder itself may be a link
	}
	if err != nil {
		return []source{{file: root, err: err}}
	}
	var found []source
	err = filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			found = append(found, source{file: file, err: withoutPath(err)})
			return nil
		}
		if file == root {
			return nil
		}
		hidden := strings.HasPrefix(entry.Name(), ".")
		if !hidden && entry.IsDir() {
			return nil
		}
		if hidden || !entry.Type().IsRegular() {
			u.leaveOut(file, entry, hidden)
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		below, err := filepath.Rel(root, filepath.Dir(file))
		subFolder := strings.TrimPrefix(path.Join(u.each.SubFolder, filepath.Base(absolute), filepath.ToSlash(below)), "/")
		found = append(found, source{file, subFolder, err})
		return nil
	})
	if err != nil {
		found = append(found, source{file: root, err: withoutPath(err)})
	}
	return found
}

// leaveOut prints and counts an entry of a folder that is not sent.
func (u *uploading) leaveOut(file string, entry fs.DirEntry, hidden bool) {
	switch {
	case hidden:
		u.left.hidden++
		u.sayf("%s: left out, it is hidden", file)
	case entry.Type()&fs.ModeSymlink != 0:
		u.left.links++
		u.sayf("%s: left out, it is a symbolic link", file)
	default:
		u.left.others++
		u.sayf("%s: left out, it is no regular file", file)
	}
}

// withoutPath returns the error of a file without its path, which everybody knows.
func withoutPath(err error) error {
	if known, ok := errors.AsType[*fs.PathError](err); ok {
		return known.Err
	}
	return err
}
