package media

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"mime/multipart"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/upload"
	"github.com/caddymedia/media/caddymedia/internal/leaf/bytesize"
	"github.com/caddymedia/media/caddymedia/internal/leaf/fetch"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers/options"
)

// Result is the outcome of storing an item for Go code. As JSON it is
// {"success":true,"full_path":"...","filename":"..."}, with "webp" for an image that has a
// variant and "renditions" for one that has renditions, or {"success":false,"message":"..."}.
type Result struct {
	Success bool `json:"success"`
	// FullPath is the public address of the item. It begins with the base URL of the alias, or
	// without one at "/static/".
	FullPath string `json:"full_path,omitempty"`
	// Filename is the stored name, relative to the alias, sub folder included: what to keep in a
	// database.
	Filename string `json:"filename,omitempty"`
	// WebP is the public address of the variant; empty where there is none.
	WebP string `json:"webp,omitempty"`
	// Renditions are the public addresses of the renditions by their names; nil if there are none.
	Renditions map[string]string `json:"renditions,omitempty"`
	// Message is why nothing was stored. It may be shown to anybody: it never has a path, host,
	// address or secret. The details are logged.
	Message string `json:"message,omitempty"`
}

// request returns a request of Go code, on behalf of the client of ctx if there is one.
func (s *Service) request(ctx context.Context, kind item.Kind, alias, subFolder string) upload.Upload {
	return upload.Upload{
		Request: upload.Request{
			Kind: kind, Alias: cmp.Or(alias, item.DefaultAlias), Actor: item.Actor{Origin: item.OriginGo, Client: s.core.ClientOf(ctx)},
		},
		SubFolder: subFolder,
	}
}

// upload calls store while the service is open, and returns its result for one item.
func (s *Service) upload(store func() ([]upload.Item, item.Failures)) Result {
	_, release, err := s.Acquire()
	if err != nil {
		return Result{Message: "the media service does not run"}
	}
	defer release()
	items, failures := store()
	if failures != nil {
		return s.failed(failures)
	}
	item := items[0]
	return Result{
		Success: true, FullPath: item.FullPath, Filename: item.Filename, WebP: item.WebP, Renditions: item.Renditions,
	}
}

// failed logs the details of failures and returns their messages.
func (s *Service) failed(failures item.Failures) Result {
	messages := make([]string, len(failures))
	for i, f := range failures {
		messages[i] = f.Message
		if f.Err != nil {
			s.core.Log().Warn("storing an item for Go code", "message", f.Message, "error", f.Err)
		}
	}
	return Result{Message: strings.Join(messages, "; ")}
}

// Downloads limit the downloads of Go code in this process, and of uploads with addresses. The
// addresses may come from strangers, and must not reach hosts that only this machine can reach.
type Downloads struct {
	// Private networks such as `10.0.0.0/8`, or single addresses, that downloads may connect to.
	// Default: none.
	Allow []string `json:"allow,omitempty" option:"repeat" example:"10.0.0.0/8"`
	// The ports that downloads may connect to. Default: `80` and `443`.
	Ports []string `json:"ports,omitempty" option:"repeat" example:"443"`
	// The most redirects of a download. Each address is checked like the first. Default: 3.
	MaxRedirects int `json:"max_redirects,omitempty"`
	// The most time for a whole download. Default: `1m`.
	Timeout options.Duration `json:"timeout,omitempty" example:"1m"`
}

// Check implements options.Checker.
func (d *Downloads) Check() error {
	_, err := d.parse()
	return err
}

// parse returns the options of the client.
func (d *Downloads) parse() (fetch.Options, error) {
	o := fetch.Options{MaxRedirects: d.MaxRedirects, Timeout: time.Duration(d.Timeout)}
	for _, text := range d.Allow {
		network, ok := parseNetwork(text)
		if !ok {
			return o, fmt.Errorf("allow: %q is neither an address nor a network such as 10.0.0.0/8", text)
		}
		o.Allow = append(o.Allow, network)
	}
	for _, text := range d.Ports {
		port, err := strconv.ParseUint(text, 10, 16)
		if err != nil || port == 0 {
			return o, fmt.Errorf("ports: %q is no port", text)
		}
		o.Ports = append(o.Ports, uint16(port))
	}
	return o, nil
}

// parseNetwork parses a network or an address. It rejects forms that could never match a dialed
// address: addresses with a zone, and IPv4 addresses inside IPv6.
func parseNetwork(text string) (netip.Prefix, bool) {
	if addr, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(addr, addr.BitLen()), addr.Zone() == "" && !addr.Is4In6()
	}
	network, err := netip.ParsePrefix(text)
	return network.Masked(), err == nil && !network.Addr().Is4In6()
}

// DownloadImage downloads an image and stores it like an upload to the alias, with the same checks
// and the same name. address is an http or https address and may be untrusted: only public hosts
// are connected to, and those allowed by the options of downloads, whose limits hold too. An empty
// alias is "content". An empty subFolder is that of the storage; "/" is the root of the alias.
//
// The name is that of the server (Content-Disposition), else the last segment of the address. A
// name without the extension of an image gets that of its content; the media type of the server is
// ignored. The download is cancelled with ctx.
func (s *Service) DownloadImage(ctx context.Context, address, alias, subFolder string) Result {
	return s.download(ctx, address, s.request(ctx, item.Image, alias, subFolder))
}

// DownloadFile is [Service.DownloadImage] for a file alias. Only a name without any extension gets
// that of its content.
func (s *Service) DownloadFile(ctx context.Context, address, alias, subFolder string) Result {
	return s.download(ctx, address, s.request(ctx, item.File, alias, subFolder))
}

func (s *Service) download(ctx context.Context, address string, req upload.Upload) Result {
	return s.upload(func() ([]upload.Item, item.Failures) { return s.core.Download(ctx, address, req) })
}

// DeleteImage deletes an image with its variant and its renditions. The error satisfies errors.Is
// with [io/fs.ErrNotExist] if there is none, and is [ErrClosed], that of an unknown alias or of the
// storage.
func (s *Service) DeleteImage(ctx context.Context, alias, filename string) error {
	return s.remove(ctx, item.Image, alias, filename)
}

// DeleteFile is [Service.DeleteImage] for a file alias.
func (s *Service) DeleteFile(ctx context.Context, alias, filename string) error {
	return s.remove(ctx, item.File, alias, filename)
}

func (s *Service) remove(ctx context.Context, kind item.Kind, name, filename string) error {
	alias, ok := s.core.Alias(kind, cmp.Or(name, item.DefaultAlias))
	if !ok {
		return fmt.Errorf("unknown alias %q", name)
	}
	_, release, err := s.Acquire()
	if err != nil {
		return err
	}
	defer release()
	return s.core.Uploader().Delete(ctx, alias, filename, item.Actor{Origin: item.OriginGo, Client: s.core.ClientOf(ctx)})
}

// FormImage stores the image of the named file input of a multipart/form-data request, with the
// same checks as an upload to the alias. An empty alias is "content". An empty subFolder is that of
// the storage; "/" is the root of the alias.
//
// FormImage parses the form, within MaxBody of the limits, unless it is parsed already. The form
// stays in r.MultipartForm for further inputs and fields. Its temporary files, in the folder of
// [os.TempDir], are removed when the request ends. The input must have exactly one file.
func (s *Service) FormImage(r *http.Request, input, alias, subFolder string) Result {
	return s.formItem(r, input, s.request(r.Context(), item.Image, alias, subFolder))
}

// FormFile is [Service.FormImage] for a file alias.
func (s *Service) FormFile(r *http.Request, input, alias, subFolder string) Result {
	return s.formItem(r, input, s.request(r.Context(), item.File, alias, subFolder))
}

func (s *Service) formItem(r *http.Request, input string, req upload.Upload) Result {
	ctx := r.Context()
	return s.upload(func() ([]upload.Item, item.Failures) {
		file, failure := s.formFile(r, req.Kind, input)
		if failure != nil {
			return nil, s.core.Uploader().Refuse(ctx, req, failure)
		}
		name, failure := submittedName(file)
		if failure != nil {
			return nil, s.core.Uploader().Refuse(ctx, req, failure)
		}
		body, err := file.Open()
		if err != nil {
			return nil, s.core.Uploader().Refuse(ctx, req, formFailure(err))
		}
		defer body.Close()
		return s.core.Uploader().Upload(ctx, req, upload.Single(name, body))
	})
}

// formFile returns the only file of an input.
func (s *Service) formFile(r *http.Request, kind item.Kind, input string) (*multipart.FileHeader, *item.Failure) {
	if r.MultipartForm == nil {
		if err := s.parseForm(r); err != nil {
			return nil, formFailure(err)
		}
	}
	if failure := upload.PieceOf(kind, r.Header, r.MultipartForm.Value); failure != nil {
		return nil, failure
	}
	files := r.MultipartForm.File[input]
	switch len(files) {
	case 0:
		return nil, item.Failf(item.BadRequest, "there is no file in the input %.64q of the form", input)
	case 1:
		return files[0], nil
	default:
		return nil, item.Failf(item.BadRequest, "there are %d files in the input %.64q of the form, which takes one", len(files), input)
	}
}

// formMemory is the most bytes of a form's files in memory; the rest goes to temporary files.
const formMemory = 1 << 20

// parseForm parses the form within the limits. It removes the temporary files at the end of the
// request: net/http does so only for its own request, and handlers often have a copy.
func (s *Service) parseForm(r *http.Request) error {
	if r.Body == nil {
		return errors.New("there is no body")
	}
	r.Body = http.MaxBytesReader(nil, r.Body, s.core.Limits().MaxBody)
	err := r.ParseMultipartForm(formMemory)
	form := r.MultipartForm
	if form == nil {
		return err
	}
	context.AfterFunc(r.Context(), func() {
		if err := form.RemoveAll(); err != nil {
			s.core.Log().Warn("removing the temporary files of a form", "error", err)
		}
	})
	return nil // the query may be malformed, which is none of our business
}

// formFailure returns the failure of a form that could not be read.
func formFailure(err error) *item.Failure {
	var (
		tooLarge *http.MaxBytesError
		kept     *fs.PathError
	)
	f := &item.Failure{Reason: item.BadRequest, Message: "the form is malformed or ends too early", Err: err}
	switch {
	case errors.As(err, &tooLarge):
		f.Reason, f.Message = item.TooLarge, "the request is larger than "+bytesize.Format(tooLarge.Limit)
	case errors.Is(err, multipart.ErrMessageTooLarge):
		f.Reason, f.Message = item.TooLarge, "the form has too many fields, or too large ones"
	case errors.Is(err, http.ErrNotMultipart), errors.Is(err, http.ErrMissingBoundary):
		f.Message = "the request is no form of the type multipart/form-data"
	case errors.As(err, &kept):
		f.Reason, f.Message = item.Internal, "the form could not be kept until it was read"
	}
	return f
}

// submittedName returns the name of a file exactly as it was sent, for the checks. net/http removes
// the folders.
func submittedName(file *multipart.FileHeader) (string, *item.Failure) {
	disposition := file.Header.Get("Content-Disposition")
	if disposition == "" {
		return file.Filename, nil
	}
	return upload.FormFilename(disposition)
}
