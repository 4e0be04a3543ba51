package media

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"mime/multipart"
	"net/http"

	"github.com/caddymedia/media/caddymedia/aliases"
	"github.com/caddymedia/media/caddymedia/internal/bytesize"
	"github.com/caddymedia/media/caddymedia/upload"
)

// FormImage stores the image of the named file input of a multipart/form-data request, with the
// same checks as an upload to the alias. An empty alias is "content". An empty subFolder is that of
// the storage; "/" is the root of the alias.
//
// FormImage parses the form, within MaxBody of the limits, unless it is parsed already. The form
// stays in r.MultipartForm for further inputs and fields. Its temporary files, in the folder of
// [os.TempDir], are removed when the request ends. The input must have exactly one file.
func (s *Service) FormImage(r *http.Request, input, alias, subFolder string) Result {
	return s.formItem(r, input, s.request(r.Context(), aliases.Image, alias, subFolder))
}

// FormFile is [Service.FormImage] for a file alias.
func (s *Service) FormFile(r *http.Request, input, alias, subFolder string) Result {
	return s.formItem(r, input, s.request(r.Context(), aliases.File, alias, subFolder))
}

func (s *Service) formItem(r *http.Request, input string, req upload.Request) Result {
	ctx := r.Context()
	return s.upload(func() ([]upload.Item, aliases.Failures) {
		file, failure := s.formFile(r, input)
		if failure != nil {
			return nil, s.uploader.Refuse(ctx, req, failure)
		}
		name, failure := submittedName(file)
		if failure != nil {
			return nil, s.uploader.Refuse(ctx, req, failure)
		}
		body, err := file.Open()
		if err != nil {
			return nil, s.uploader.Refuse(ctx, req, formFailure(err))
		}
		defer body.Close()
		return s.uploader.Upload(ctx, req, upload.Single(name, body))
	})
}

// formFile returns the only file of an input.
func (s *Service) formFile(r *http.Request, input string) (*multipart.FileHeader, *aliases.Failure) {
	if r.MultipartForm == nil {
		if err := s.parseForm(r); err != nil {
			return nil, formFailure(err)
		}
	}
	files := r.MultipartForm.File[input]
	switch len(files) {
	case 0:
		return nil, badRequest("there is no file in the input %.64q of the form", input)
	case 1:
		return files[0], nil
	default:
		return nil, badRequest("there are %d files in the input %.64q of the form, which takes one", len(files), input)
	}
}

func badRequest(format string, args ...any) *aliases.Failure {
	return &aliases.Failure{Reason: aliases.BadRequest, Message: fmt.Sprintf(format, args...)}
}

// formMemory is the most bytes of a form's files in memory; the rest goes to temporary files.
const formMemory = 1 << 20

// parseForm parses the form within the limits. It removes the temporary files at the end of the
// request: net/http does so only for its own request, and handlers often have a copy.
func (s *Service) parseForm(r *http.Request) error {
	if r.Body == nil {
		return errors.New("there is no body")
	}
	r.Body = http.MaxBytesReader(nil, r.Body, s.limits.MaxBody)
	err := r.ParseMultipartForm(formMemory)
	form := r.MultipartForm
	if form == nil {
		return err
	}
	context.AfterFunc(r.Context(), func() {
		if err := form.RemoveAll(); err != nil {
			s.log.Warn("removing the temporary files of a form", "error", err)
		}
	})
	return nil // the query may be malformed, which is none of our business
}

// formFailure returns the failure of a form that could not be read.
func formFailure(err error) *aliases.Failure {
	var (
		tooLarge *http.MaxBytesError
		kept     *fs.PathError
	)
	f := &aliases.Failure{Reason: aliases.BadRequest, Message: "the form is malformed or ends too early", Err: err}
	switch {
	case errors.As(err, &tooLarge):
		f.Reason, f.Message = aliases.TooLarge, "the request is larger than "+bytesize.Format(tooLarge.Limit)
	case errors.Is(err, multipart.ErrMessageTooLarge):
		f.Reason, f.Message = aliases.TooLarge, "the form has too many fields, or too large ones"
	case errors.Is(err, http.ErrNotMultipart), errors.Is(err, http.ErrMissingBoundary):
		f.Message = "the request is no form of the type multipart/form-data"
	case errors.As(err, &kept):
		f.Reason, f.Message = aliases.Internal, "the form could not be kept until it was read"
	}
	return f
}

// submittedName returns the name of a file exactly as it was sent, for the checks. net/http removes
// the folders.
func submittedName(file *multipart.FileHeader) (string, *aliases.Failure) {
	disposition := file.Header.Get("Content-Disposition")
	if disposition == "" {
		return file.Filename, nil
	}
	return upload.FormFilename(disposition)
}
