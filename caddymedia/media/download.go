package media

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/caddymedia/media/caddymedia/fetch"
	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/ingest"
	"github.com/caddymedia/media/caddymedia/internal/bytesize"
	"github.com/caddymedia/media/caddymedia/naming"
)

// DownloadImage downloads an image and stores it like an upload to the alias, with the same checks
// and the same name. address is an http or https address and may be untrusted: only public hosts
// are connected to, and those allowed by the options of downloads, whose limits hold too. An empty
// alias is "content". An empty subFolder is that of the storage; "/" is the root of the alias.
//
// The name is that of the server (Content-Disposition), else the last segment of the address. A
// name without the extension of an image gets that of its content; the media type of the server is
// ignored. The download is cancelled with ctx.
func (s *Service) DownloadImage(ctx context.Context, address, alias, subFolder string) Result {
	return s.download(ctx, address, s.request(ctx, ingest.Image, alias, subFolder))
}

// DownloadFile is [Service.DownloadImage] for a file alias. Only a name without any extension gets
// that of its content.
func (s *Service) DownloadFile(ctx context.Context, address, alias, subFolder string) Result {
	return s.download(ctx, address, s.request(ctx, ingest.File, alias, subFolder))
}

func (s *Service) download(ctx context.Context, address string, req ingest.Request) Result {
	return s.upload(func() ([]ingest.Item, ingest.Failures) {
		alias, ok := s.Alias(req.Kind, req.Alias)
		if !ok {
			return nil, s.uploader.Refuse(ctx, req, badRequest("unknown alias %.64q", req.Alias))
		}
		from, err := s.remote.Get(ctx, address)
		if err != nil {
			return nil, s.uploader.Refuse(ctx, req, remoteFailure(err))
		}
		defer from.Body.Close()
		name, body, failure := open(from, alias)
		if failure != nil {
			return nil, s.uploader.Refuse(ctx, req, failure)
		}
		return s.uploader.Upload(ctx, req, ingest.Single(name, body))
	})
}

// open returns the name of a download and a reader of all its bytes.
func open(from *fetch.Download, alias *ingest.Alias) (string, io.Reader, *ingest.Failure) {
	if from.Size > alias.MaxSize {
		return "", nil, &ingest.Failure{
			Reason: ingest.TooLarge, Message: "larger than " + bytesize.Format(alias.MaxSize),
		}
	}
	ext := naming.Extension(from.Name)
	if alias.Extensions[ext] || ext != "" && alias.Kind == ingest.File {
		return from.Name, remoteBody{from.Body}, nil
	}
	found, whole, err := imaging.Guess(from.Body)
	if err != nil {
		return "", nil, remoteFailure(err)
	}
	name := strings.TrimRight(from.Name, ". ")
	if name == "" {
		name = alias.Kind.Name()
	}
	if found != "" {
		name += "." + found
	}
	return name, remoteBody{whole}, nil
}

// remoteFailure returns the failure of an item that could not be downloaded.
func remoteFailure(err error) *ingest.Failure {
	f := &ingest.Failure{Reason: ingest.BadRequest, Message: "the download failed", Err: err}
	if known, ok := errors.AsType[*fetch.Error](err); ok {
		f.Message = known.Message
	}
	return f
}

// remoteBody maps read errors to failures.
type remoteBody struct{ io.Reader }

func (b remoteBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // only io.EOF itself is the end
		err = remoteFailure(err)
	}
	return n, err
}
