package mediacmd

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/naming"
)

// upload is the upload of one file.
type upload struct {
	// File is the path of the file.
	File string
	// Kind is the endpoint, "image" or "file".
	Kind string
	// Alias and SubFolder are form fields. If empty, the service uses its defaults.
	Alias, SubFolder string
	// Sent is called with the number of bytes sent. It is negative for bytes that must be sent
	// again.
	Sent func(int64)
}

// uploaded is a stored item in the service's answer.
type uploaded struct {
	FullPath   string            `json:"full_path,omitempty"`
	Filename   string            `json:"filename,omitempty"`
	WebP       string            `json:"webp,omitempty"`
	Renditions map[string]string `json:"renditions,omitempty"`
}

// printable returns the item without control sequences.
func (u uploaded) printable() uploaded {
	safe := uploaded{FullPath: printable(u.FullPath), Filename: printable(u.Filename), WebP: printable(u.WebP)}
	for name, address := range u.Renditions {
		if safe.Renditions == nil {
			safe.Renditions = map[string]string{}
		}
		safe.Renditions[printable(name)] = printable(address)
	}
	return safe
}

// kindOf returns the endpoint for a file by its extension.
func kindOf(file string) string {
	if slices.Contains(imaging.Extensions(), naming.Extension(file)) {
		return "image"
	}
	return "file"
}

// upload sends a file. It renews a token once if the service rejects it.
func (c *uploadClient) upload(ctx context.Context, u upload) (uploaded, error) {
	token, err := c.currentToken(ctx)
	if err != nil {
		return uploaded{}, err
	}
	file, size, err := openRegular(u.File)
	if err != nil {
		return uploaded{}, err
	}
	defer file.Close()
	if c.resumeFrom > 0 && size >= c.resumeFrom && c.offersResumable(ctx, u.Kind) {
		return c.uploadResumable(ctx, u, file, size)
	}
	form, err := newFileForm(u, file, size)
	if err != nil {
		return uploaded{}, err
	}
	var item uploaded
	send := func() error {
		item, err = c.sendForm(ctx, u, form, token)
		return err
	}
	err = c.patiently(ctx, send)
	var refused *refusedError
	if errors.As(err, &refused) && refused.status == http.StatusUnauthorized {
		if token, err = c.renew(ctx, token); err != nil {
			return uploaded{}, err
		}
		err = c.patiently(ctx, send)
	}
	return item, err
}

func isFolder(path string) bool {
	stat, err := os.Stat(path)
	return err == nil && stat.IsDir()
}

// openRegular opens a regular file and returns its size. The caller must close the file.
func openRegular(path string) (*os.File, int64, error) {
	stat, err := os.Stat(path) // opening a pipe would wait for its writer
	if err == nil && !stat.Mode().IsRegular() {
		err = errors.New("it is no regular file")
	}
	var file *os.File
	if err == nil {
		file, err = os.Open(path)
	}
	if err != nil {
		return nil, 0, withoutPath(err)
	}
	return file, stat.Size(), nil
}

func (c *uploadClient) sendForm(ctx context.Context, u upload, form *fileForm, token string) (uploaded, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.server.JoinPath("api/upload", u.Kind).String(), nil)
	if err != nil {
		return uploaded{}, err
	}
	sent := &counter{add: u.Sent}
	r.GetBody = func() (io.ReadCloser, error) { // again, on another connection, when one turns out to be closed
		sent.undo()
		sent = &counter{add: u.Sent}
		return io.NopCloser(form.reader(sent)), nil
	}
	if r.Body, err = r.GetBody(); err != nil {
		return uploaded{}, err
	}
	r.ContentLength = form.size()
	r.Header.Set("Content-Type", form.contentType)
	r.Header.Set("Expect", "100-continue") // or all of a large file is sent to be refused
	r.Header.Set(headerKey, c.apiKey)
	r.Header.Set(headerToken, token)
	var answer struct{ Result []uploaded }
	if err = c.send(r, &answer); err == nil && len(answer.Result) != 1 {
		err = notOfTheService()
	}
	if err != nil {
		sent.undo()
		return uploaded{}, err
	}
	return answer.Result[0].printable(), nil
}

// fileForm is a multipart form with one file, which is read while it is sent.
type fileForm struct {
	contentType string
	head, tail  []byte
	file        io.ReaderAt
	fileSize    int64
}

func newFileForm(u upload, file io.ReaderAt, size int64) (*fileForm, error) {
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	for _, field := range [][2]string{{"alias", u.Alias}, {"sub_folder", u.SubFolder}} {
		if field[1] == "" {
			continue
		}
		if err := w.WriteField(field[0], field[1]); err != nil {
			return nil, err
		}
	}
	if _, err := w.CreateFormFile("files[]", filepath.Base(u.File)); err != nil {
		return nil, err
	}
	head := form.Len()
	if err := w.Close(); err != nil {
		return nil, err
	}
	return &fileForm{
		contentType: w.FormDataContentType(), file: file, fileSize: size,
		head: form.Bytes()[:head], tail: form.Bytes()[head:],
	}, nil
}

func (f *fileForm) size() int64 { return int64(len(f.head)) + f.fileSize + int64(len(f.tail)) }

// reader returns a reader of the whole form that counts the bytes of the file.
func (f *fileForm) reader(sent *counter) io.Reader {
	file := io.TeeReader(io.NewSectionReader(f.file, 0, f.fileSize), sent)
	return io.MultiReader(bytes.NewReader(f.head), file, bytes.NewReader(f.tail))
}

// counter counts the bytes of one attempt. The connection may still read bytes after the attempt
// has failed.
type counter struct {
	add  func(int64)
	mu   sync.Mutex
	n    int64
	over bool
}

func (c *counter) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.n += int64(len(p))
		c.add(int64(len(p)))
	}
	return len(p), nil
}

// undo subtracts the counted bytes of a failed attempt.
func (c *counter) undo() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	c.add(-c.n)
	c.n = 0
}
