package mediaapp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddymedia/media/caddymedia/ingest"
)

// Result tells Go code in this process what has become of its item. As JSON it is
// {"success":true,"full_path":"...","filename":"..."}, with "webp" for a picture that has a
// variant, or {"success":false,"message":"..."}.
type Result struct {
	Success bool `json:"success"`
	// FullPath is the public address of the item. It begins with the cdn_base of the alias, or
	// without one at "/static/".
	FullPath string `json:"full_path,omitempty"`
	// Filename is the stored name, relative to the alias, sub folder included: what to keep in a
	// database.
	Filename string `json:"filename,omitempty"`
	// WebP is the public address of the variant; empty where there is none.
	WebP string `json:"webp,omitempty"`
	// Message tells why nothing was stored. It may be shown to anybody: it never has a path, host,
	// address or secret. The details are in the log.
	Message string `json:"message,omitempty"`
}

// DownloadImage downloads a picture and stores it, as an upload to the alias would be: through
// the same checks and with the same name. address is one of http or https, and may come from a
// stranger: only public hosts are connected to, and those that the configuration of downloads
// allows; its limits hold too. alias "" is "content", and subFolder "" that of the storage, as
// "/" is the root of the alias.
//
// The name is what the server says (Content-Disposition), else the last segment of the address. One
// without the extension of a picture gets that of its content behind it; the media type that the
// server says counts for nothing. The download ends with ctx.
func (a *App) DownloadImage(ctx context.Context, address, alias, subFolder string) Result {
	return a.download(ctx, address, request(ctx, ingest.Image, alias, subFolder))
}

// DownloadFile is [App.DownloadImage] for an alias of files. Only a name without any extension
// gets that of its content.
func (a *App) DownloadFile(ctx context.Context, address, alias, subFolder string) Result {
	return a.download(ctx, address, request(ctx, ingest.File, alias, subFolder))
}

// FormImage stores the picture that was sent in the file input of that name, of a request with a
// multipart/form-data body, through the same checks as an upload to the alias. alias "" is
// "content", and subFolder "" that of the storage, as "/" is the root of the alias.
//
// The form is parsed unless it is already, within max_body of the limits; it stays in
// r.MultipartForm, so that further inputs and fields can be read, and its temporary files, in the
// folder of [os.TempDir], are removed when the request ends. Exactly one file must be in the input.
func (a *App) FormImage(r *http.Request, input, alias, subFolder string) Result {
	return a.formItem(r, input, request(r.Context(), ingest.Image, alias, subFolder))
}

// FormFile is [App.FormImage] for an alias of files.
func (a *App) FormFile(r *http.Request, input, alias, subFolder string) Result {
	return a.formItem(r, input, request(r.Context(), ingest.File, alias, subFolder))
}

// request is one of Go code, on behalf of the client of a request of Caddy's if ctx is that of one.
func request(ctx context.Context, kind ingest.Kind, alias, subFolder string) ingest.Request {
	return ingest.Request{
		Kind: kind, Alias: cmp.Or(alias, ingest.DefaultAlias), SubFolder: subFolder,
		Actor: ingest.Actor{Origin: ingest.OriginGo, Client: ClientOf(ctx)},
	}
}

// ClientOf gives the address that Caddy holds for the client's, given the context of a request:
// forwarded headers count only from its trusted proxies. It is empty where Caddy knows none.
func ClientOf(ctx context.Context) string {
	client, _ := caddyhttp.GetVar(ctx, caddyhttp.ClientIPVarKey).(string)
	return client
}

// upload stores one item by the running app.
func (a *App) upload(store func(*App) ([]ingest.Item, ingest.Failures)) Result {
	app, done, err := a.Use()
	if err != nil {
		return Result{Message: "the media service does not run"}
	}
	defer done()
	items, failures := store(app)
	if failures != nil {
		return app.failed(failures)
	}
	return Result{Success: true, FullPath: items[0].FullPath, Filename: items[0].Filename, WebP: items[0].WebP}
}

// failed logs the details of failures and returns their messages.
func (a *App) failed(failures ingest.Failures) Result {
	messages := make([]string, len(failures))
	for i, f := range failures {
		messages[i] = f.Message
		if f.Err != nil {
			a.log.Warn("storing an item for Go code", slog.String("message", f.Message), slog.Any("error", f.Err))
		}
	}
	return Result{Message: strings.Join(messages, "; ")}
}

func (a *App) formItem(r *http.Request, input string, req ingest.Request) Result {
	ctx := r.Context()
	return a.upload(func(app *App) ([]ingest.Item, ingest.Failures) {
		file, failure := app.formFile(r, input)
		if failure != nil {
			return nil, app.uploader.Refuse(ctx, req, failure)
		}
		body, err := file.Open()
		if err != nil {
			return nil, app.uploader.Refuse(ctx, req, formFailure(err))
		}
		defer body.Close()
		return app.uploader.Upload(ctx, req, ingest.Single(submittedName(file), body))
	})
}

// formFile gives the one file of an input.
func (a *App) formFile(r *http.Request, input string) (*multipart.FileHeader, *ingest.Failure) {
	if r.MultipartForm == nil {
		if err := a.parseForm(r); err != nil {
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

func badRequest(format string, args ...any) *ingest.Failure {
	return &ingest.Failure{Reason: ingest.BadRequest, Message: fmt.Sprintf(format, args...)}
}

// formMemory is how many bytes of a form's files are kept in memory; more go to temporary files.
const formMemory = 1 << 20

// parseForm reads the form within the limits. What net/http removes at the end of a request are the
// temporary files of the request that it has made, and Caddy's handlers have a copy.
func (a *App) parseForm(r *http.Request) error {
	if r.Body == nil {
		return errors.New("there is no body")
	}
	r.Body = http.MaxBytesReader(nil, r.Body, a.service.Limits().MaxBody)
	err := r.ParseMultipartForm(formMemory) //nolint:gosec // the line above bounds it
	form := r.MultipartForm
	if form == nil {
		return err
	}
	context.AfterFunc(r.Context(), func() {
		if err := form.RemoveAll(); err != nil {
			a.log.Warn("removing the temporary files of a form", slog.Any("error", err))
		}
	})
	return nil // the query may be malformed, which is none of our business
}

// formFailure tells of a form that could not be read.
func formFailure(err error) *ingest.Failure {
	var (
		tooLarge *http.MaxBytesError
		kept     *fs.PathError
	)
	f := &ingest.Failure{Reason: ingest.BadRequest, Message: "the form is malformed or ends too early", Err: err}
	switch {
	case errors.As(err, &tooLarge):
		f.Reason, f.Message = ingest.TooLarge, fmt.Sprintf("the request is larger than %d bytes", tooLarge.Limit)
	case errors.Is(err, multipart.ErrMessageTooLarge):
		f.Reason, f.Message = ingest.TooLarge, "the form has too many fields, or too large ones"
	case errors.Is(err, http.ErrNotMultipart), errors.Is(err, http.ErrMissingBoundary):
		f.Message = "the request is no form of the type multipart/form-data"
	case errors.As(err, &kept):
		f.Reason, f.Message = ingest.Internal, "the form could not be kept until it was read"
	}
	return f
}

// submittedName is the name of a file exactly as it was sent, as the checks want it: net/http takes the
// folders off.
func submittedName(file *multipart.FileHeader) string {
	_, params, _ := mime.ParseMediaType(file.Header.Get("Content-Disposition")) // it was parsed before
	return cmp.Or(params["filename"], file.Filename)
}
